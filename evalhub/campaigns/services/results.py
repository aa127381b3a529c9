"""The results of one team in a phase: its own values and the figures of the reference sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from evalhub.campaigns.services.reference_sets import (
    ALL,
    EntryValues,
    ReferenceSet,
    read_entry_values,
    reference_sets,
    with_hidden_names,
)
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.services.boards.mean_intervals import Ends, intervals_of, within_range
from metrics.services.boards.official_entries import seen_while_frozen
from metrics.services.values.judged_views import Mean, depths_of, means_of
from runs.models import Disclosure, Entry, Participation, Phase, Qrels
from runs.services import clock

JUDGED = parse_measure("Judged@10")
CONFIDENCE = 0.95


@dataclass(frozen=True)
class OwnEntry:
    """An evaluated entry of the team; `row` is its index among all entries that were read.

    Means have 95 % intervals, unless they are not means of values of at least two topics. `judged`
    is the share of its first ten documents that are judged, `depth` its judged depth. `of` is the
    index of the reference set of its type, or None; `counts` says whether it is in that set.
    """

    row: int
    entry: Entry
    means: dict[str, Mean]
    intervals: dict[str, Ends]
    judged: float | None
    depth: int
    of: int | None
    counts: bool


@dataclass(frozen=True)
class OwnResults:
    """The results of a team in a phase; with `sees_all` the reader may see values of others, too."""

    read: EntryValues
    reference: str
    sets: list[ReferenceSet]
    entries: list[OwnEntry]
    participation: Participation
    sees_all: bool


@dataclass(frozen=True)
class PhaseValues:
    """The values of a phase's entries and their reference sets, before names of teams are hidden."""

    read: EntryValues
    reference: str
    sets: list[ReferenceSet]
    sees_all: bool


def phase_measures(phase: Phase) -> list[Measure]:
    """Return the measures of a phase, or else of its collection, the primary one first."""
    collection = phase.collection
    return [collection.measure(name) for name in phase.measure_names]


def read_own_results(
    *,
    phase: Phase,
    participation: Participation,
    qrels: Qrels,
    sees_all: bool,
    reference: str = ALL,
    as_of: datetime | None = None,
    names_at: datetime | None = None,
) -> OwnResults:
    """Return the results of a team's evaluated entries under these judgements.

    A reader who may not see the values of others gets the figures that `reference_sets` allows.
    Other teams have the names that the team saw at `names_at`, or sees now.
    """
    seen = None
    if not sees_all:
        seen = seen_while_frozen(phase, participation, clock.database_now())

    values = read_phase_values(
        phase=phase, qrels=qrels, sees_all=sees_all, reference=reference, as_of=as_of, seen=seen
    )

    return own_results(values, participation, names_at)


def read_phase_values(
    *,
    phase: Phase,
    qrels: Qrels,
    sees_all: bool,
    reference: str = ALL,
    as_of: datetime | None = None,
    seen: Q | None = None,
) -> PhaseValues:
    """Return the values that the results of every team have in common, if they see the same entries."""
    read = read_entry_values(
        phase=phase, qrels=qrels, measures=phase_measures(phase), as_of=as_of, seen=seen
    )
    # Immediate feedback shows a team its own values, and those of others only on a leaderboard.
    by_feedback = (
        phase.collection.disclosure == Disclosure.ORGANISERS
        and phase.feedback != Phase.Feedback.BOARD
    )
    alone = by_feedback and not sees_all
    sets = reference_sets(read, reference=reference, sees_all=sees_all, alone=alone)

    return PhaseValues(read, reference, sets, sees_all)


def own_results(
    values: PhaseValues, participation: Participation, names_at: datetime | None = None
) -> OwnResults:
    """Return the results of a team among the values of a phase, with names as in `read_own_results`."""
    read = with_hidden_names(values.read, participation, names_at or clock.database_now())
    own = [
        row for row, entry in enumerate(read.entries) if entry.participation_id == participation.pk
    ]
    described = described_entries(read, values.sets, own)

    return OwnResults(
        read, values.reference, values.sets, described, participation, values.sees_all
    )


def described_entries(
    read: EntryValues, sets: list[ReferenceSet], rows: list[int]
) -> list[OwnEntry]:
    """Return these entries with their means, intervals and judged shares."""
    keys = [read.evaluations[row] for row in rows]
    ends: dict[str, Mapping[int, Ends]] = {}
    intervals = intervals_of(keys, read.measures, CONFIDENCE, read.qrels.topics)

    for measure in read.measures:
        ends[measure.name] = within_range(intervals, measure)

    judged = means_of(keys, [JUDGED], read.qrels.pk)
    depths = depths_of(keys)
    places = {reference_set.run_type: index for index, reference_set in enumerate(sets)}
    described = []

    for row, pk in zip(rows, keys, strict=True):
        entry = read.entries[row]
        of = places.get(read.type_of(entry))
        described.append(
            OwnEntry(
                row,
                entry,
                {name: means[pk] for name, means in read.means.items()},
                {name: by_run[pk] for name, by_run in ends.items() if pk in by_run},
                judged[pk, JUDGED.name][0],
                depths[pk],
                of,
                of is not None and row in sets[of].rows,
            )
        )

    return described
