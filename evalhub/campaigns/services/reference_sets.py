"""The values of a phase's entries under one version of judgements, and their reference sets."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from django.db.models import Q

from evalhub.campaigns.services.pseudonyms import ShownName, hidden_tag, shown_names
from metrics.engine.analysis.reference import TopicFigures, topic_figures
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.queue.damage import check_files
from metrics.services.values.effort import check_values
from metrics.services.values.judged_views import Mean, matrix_of
from runs.models import Entry, Participation, Phase, Qrels, Team

# All runs of a set, or of each team the one with the best mean of the primary measure.
ALL, BEST_OF_TEAM = "all", "best_of_team"
REFERENCES = (ALL, BEST_OF_TEAM)
# For readers who do not see all values: from fewer runs those of others could be worked out.
# Quartiles of so few are their values, so that they need more.
MIN_RUNS, MIN_RUNS_OF_QUARTILES = 5, 10
_LONG = ("run__warnings", "run__metadata", "run__ir_metadata")


@dataclass(frozen=True)
class EntryValues:
    """The evaluated entries of a phase at one moment; `values` (entries, topics) is by measure.

    `evaluations` are their keys, in the same order. Measures that pool have only means.
    """

    phase: Phase
    qrels: Qrels
    measures: list[Measure]
    entries: list[Entry]
    evaluations: list[int]
    values: dict[str, Matrix]
    means: dict[str, dict[int, Mean]]

    @property
    def by_topic(self) -> list[Measure]:
        """Return the measures that have values of topics."""
        return [measure for measure in self.measures if not measure.pools]

    @property
    def run_types(self) -> list[str]:
        """Return the keys of the types of runs; one empty key if the phase has no types."""
        return [run_type["key"] for run_type in self.phase.run_types] or [""]

    def type_of(self, entry: Entry) -> str:
        return entry.run_type if self.phase.run_types else ""

    def primary(self, row: int) -> float:
        """Return an entry's primary mean, negated if lower is better; -inf without a mean."""
        measure = self.measures[0]
        mean = self.means[measure.name][self.evaluations[row]][0]
        return -np.inf if mean is None else -mean if measure.lower_is_better else mean


@dataclass(frozen=True)
class ReferenceSet:
    """The runs that runs of one type are compared with; `rows` are indexes of entries.

    `by_topic` has the figures of each measure with values of topics. For readers who do not see all
    values, figures that would reveal values of single runs are NaN, and `withheld` is set.
    """

    run_type: str
    rows: list[int]
    by_topic: dict[str, TopicFigures]
    withheld: bool = False


def read_entry_values(
    *,
    phase: Phase,
    qrels: Qrels,
    measures: list[Measure],
    as_of: datetime | None = None,
    seen: Q | None = None,
) -> EntryValues:
    """Return the values of a phase's entries that are evaluated under these judgements, by number.

    Entries that were withdrawn or disqualified by `as_of` (default: now) are left out, and so are
    entries that do not fulfil `seen`.
    Raise StatisticsError for more values than are read in one request.
    """
    took_part, entries = Q(state=Entry.State.ENTERED), phase.entries.filter(seen or Q())
    if as_of is not None:
        # Nothing is entered again once results are out: whoever left after that moment took part
        # until then.
        took_part, entries = (
            took_part | Q(state_changed_at__gt=as_of),
            entries.filter(arrived_at__lte=as_of),
        )

    entries = (
        entries.filter(took_part)
        .select_related("participation__team", "participation__campaign", "run__team")
        .defer(*_LONG)
        .order_by("number")
    )
    # Also of runs that were withdrawn since.
    current = Evaluation.objects.filter(run__entries__in=entries).evaluated()
    current = current.counting(Q(qrels=qrels), phase.collection.scores)
    rows = list(current.with_files().values_list("run_id", "pk", "same_files"))
    check_files(Evaluation, ((pk, same) for _, pk, same in rows))
    evaluation_of = {run: pk for run, pk, _ in rows}
    evaluated = [entry for entry in entries if entry.run_id in evaluation_of]
    keys = [evaluation_of[entry.run_id] for entry in evaluated]
    check_values(len(keys), qrels.topics, len(measures))
    read = {measure.name: matrix_of(keys, measure, qrels) for measure in measures}

    return EntryValues(
        phase,
        qrels,
        measures,
        evaluated,
        keys,
        {measure.name: read[measure.name][0] for measure in measures if not measure.pools},
        {name: means for name, (_, means) in read.items()},
    )


def reference_sets(
    read: EntryValues, *, reference: str = ALL, sees_all: bool, alone: bool = False
) -> list[ReferenceSet]:
    """Return a set for each type of run: the entries that compete, on time and not ended.

    With `best_of_team`, a set has the entry of each team with the best mean of the primary measure,
    or the earlier one of equals. In a phase for runs that come afterwards, the sets are empty.
    Readers who do not see all values get no figures of fewer than 5 runs, and no quartiles of fewer
    than 10. With `alone` the sets are empty: figures that change with every run that others enter
    would tell its values.
    """
    sets = []
    for run_type in read.run_types:
        rows = [
            row
            for row, entry in enumerate(read.entries)
            if _counts(read, entry) and read.type_of(entry) == run_type
        ]
        if alone:
            rows = []
        elif reference == BEST_OF_TEAM:
            rows = _best_of_teams(read, rows)

        figures = {name: topic_figures(values[rows]) for name, values in read.values.items()}
        visible = figures if sees_all else {name: _safe(figure) for name, figure in figures.items()}
        sets.append(
            ReferenceSet(
                run_type, rows, visible, withheld=not sees_all and len(rows) < MIN_RUNS_OF_QUARTILES
            )
        )

    return sets


def with_hidden_names(read: EntryValues, own: Participation | None, at: datetime) -> EntryValues:
    """Return the entries as a team saw them at this moment.

    Hidden teams have pseudonyms, and their runs neither tags nor descriptions. The own team is
    never hidden.
    """
    teams = {entry.participation for entry in read.entries if entry.participation}
    names = shown_names(read.phase, teams, own, False, at)
    return replace(read, entries=[_masked(entry, names) for entry in read.entries])


def _masked(entry: Entry, names: dict[int, ShownName]) -> Entry:
    name = names[entry.participation_id] if entry.participation_id else None
    if name is None or not name.hidden:
        return entry

    masked, team = copy.copy(entry), copy.copy(entry.participation)
    masked.run = copy.copy(entry.run)
    masked.run.tag, masked.run.description = hidden_tag(entry), ""
    if team is not None:
        team.team, team.name, team.affiliation = (
            Team(slug=name.slug, name=name.name),
            name.name,
            "",
        )
        masked.participation = team

    return masked


def _counts(read: EntryValues, entry: Entry) -> bool:
    afterwards = read.phase.kind == Phase.Kind.AFTERWARDS
    return entry.role == Entry.Role.COMPETING and not entry.late and not afterwards


def _best_of_teams(read: EntryValues, rows: list[int]) -> list[int]:
    teams: dict[int | None, list[int]] = {}
    for row in rows:
        teams.setdefault(read.entries[row].participation_id, []).append(row)

    def place(row: int) -> tuple[float, datetime, int]:
        return -read.primary(row), read.entries[row].arrived_at, row

    return sorted(min(own, key=place) for own in teams.values())


def _safe(figures: TopicFigures) -> TopicFigures:
    """Return the figures without those of too few runs."""
    few, fewer = figures.n < MIN_RUNS_OF_QUARTILES, figures.n < MIN_RUNS
    return replace(
        figures,
        **{name: np.where(few, np.nan, getattr(figures, name)) for name in ("q1", "q3")},
        **{
            name: np.where(fewer, np.nan, getattr(figures, name))
            for name in ("low", "median", "median_upper", "high")
        },
    )
