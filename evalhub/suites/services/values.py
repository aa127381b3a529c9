"""Read the values of systems in the collections of a suite."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db.models import F

from evalhub.suites.models import SuiteMember, SuiteVersion
from evalhub.suites.services.suites import averaged_measure
from metrics.engine.analysis.suites import collection_means, collection_weights
from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.cautions import Caution
from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.pairs import Matrix
from metrics.models import Evaluation
from metrics.services.boards.board_question import ranked_evaluations
from metrics.services.boards.topic_selection import TopicFilter, TopicSelection, select_topics
from metrics.services.queue.damage import check_files
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.judged_views import matrix_of
from metrics.services.values.sampled import check_suits
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.models import Qrels

MAX_SYSTEMS = 1_000
# Of a collection, with all versions of its systems.
MAX_RUNS = 20_000
MAX_VALUES = 5_000_000
# Why a collection has no results.
HIDDEN, NO_QRELS = "results are not shown to you", "no judgements are active"
# The key of a run's metadata that names its system, and what such a name may be.
_KEY = "system"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SystemRun(NamedTuple):
    """The run by which a system counts, the key of its evaluation, and whether its values are means
    over replicates."""

    run: UUID
    evaluation: int
    has_replicates: bool


@dataclass(frozen=True)
class MemberValues:
    """A collection of a suite as a reader sees it.

    `runs` are those of the systems in it, by the names of these; `values` has a row for every
    system of the suite, of NaN where it has no run, and a column for every topic, or for those of
    the `selection`. Without `qrels` there are no results; `absence` says why: the reader does not
    see them (`hidden`), no judgements are active, the measure does not suit sampled judgements, or
    one of value tables is not declared any more.
    """

    member: SuiteMember
    measure: Measure | None
    absence: str
    qrels: Qrels | None
    runs: dict[str, SystemRun]
    values: Matrix
    selection: TopicSelection | None = None

    @property
    def hidden(self) -> bool:
        return self.absence == HIDDEN

    @cached_property
    def topics(self) -> Flags:
        """Return the topics on which any system has a value; shape (topics,)."""
        topics: Flags = np.asarray(np.isfinite(self.values).any(axis=0))
        return topics

    @cached_property
    def missing(self) -> Ints:
        """Return on how many of these topics each system has no value; shape (systems,)."""
        missing: Ints = np.isnan(self.values[:, self.topics]).sum(axis=1)
        return missing

    def lack(self, system: int) -> str:
        """Return what a system lacks here, or an empty text: it is on every topic of another."""
        topics, missing = int(self.topics.sum()), int(self.missing[system])
        slug = self.member.collection.slug
        if self.qrels is None or (topics and not missing):
            return ""
        return (
            slug
            if missing == topics
            else f"{slug}: a mean over {topics - missing} of {topics} topics"
        )


@dataclass(frozen=True)
class SuiteValues:
    """The values of a version of a suite: its collections in order, and the names of its systems.

    A system is named by its team and the name of its system, `team/name`. Collections that are
    `left_out` have none of the selected topics.
    """

    version: SuiteVersion
    members: list[MemberValues]
    systems: list[str]
    topics: TopicFilter | None = None
    left_out: tuple[SuiteMember, ...] = ()

    @cached_property
    def means(self) -> Matrix:
        """Return the mean of each system in each collection; shape (systems, collections)."""
        return collection_means([member.values for member in self.members])

    @cached_property
    def weights(self) -> Floats:
        """Return the weights of the collections, which sum to 1."""
        return collection_weights([row.member.weight for row in self.members])

    @cached_property
    def group_weights(self) -> Floats | None:
        """Return the weights by which each group counts the same; None without groups."""
        members = [row.member for row in self.members]
        if not members[0].group:
            return None
        weights = [member.weight for member in members]
        return collection_weights(weights, [member.group for member in members])

    @property
    def short_names(self) -> list[str]:
        """Return the names of the systems, without their team where all are of the same one."""
        teams = {name.partition("/")[0] for name in self.systems}
        return [name.partition("/")[2] if len(teams) == 1 else name for name in self.systems]

    @property
    def topics_text(self) -> str:
        """Return which topics count, as written in `topics=`; empty for all."""
        return self.topics.text if self.topics else ""

    @property
    def with_replicates(self) -> list[str]:
        """Return the names of the systems whose values are means over replicates somewhere."""
        return [
            name
            for name in self.systems
            if any(name in row.runs and row.runs[name].has_replicates for row in self.members)
        ]

    @property
    def without_results(self) -> list[MemberValues]:
        return [row for row in self.members if row.qrels is None]

    @property
    def cautions(self) -> list[Caution]:
        return [
            Caution(caution.code, f"{row.member.collection.slug}: {caution.message}")
            for row in self.members
            if row.qrels and row.measure
            for caution in [
                *qrels_cautions([row.measure], row.qrels),
                *(row.selection.cautions if row.selection else []),
            ]
        ]


def read_values(
    version: SuiteVersion,
    scored: Set[int],
    systems: list[str] | None = None,
    topics: TopicFilter | None = None,
) -> SuiteValues:
    """Return the values of all systems, or of those that are named, on all topics or on those that
    are selected.

    `scored` has the keys of the collections with results that the reader sees; of others nothing is
    read. A system with several runs in a collection counts by its latest version. Raise
    InvalidInput for a name that no system has, and for too many systems, runs or values; for a key
    that no collection has, or StatisticsError if no topic of any is left, as `select_topics` does.
    """
    members, left_out = [], []
    problem: Exception | None = None
    for member in version.members.select_related("collection", "qrels").order_by("position"):
        row = _select(member, member.collection_id in scored)
        try:
            if row.qrels:
                selection = select_topics(row.qrels, topics, member.collection.scores)
                row = replace(row, selection=selection)
        except (InvalidInput, StatisticsError) as error:
            left_out.append(member)
            problem = error
        else:
            members.append(row)

    if problem and not members:
        raise problem

    names = sorted({name for row in members for name in row.runs})
    if systems is not None:
        names = list(dict.fromkeys(_full_name(name, names) for name in systems))
    if len(names) > MAX_SYSTEMS:
        message = f"{len(names):,} systems; the limit is {MAX_SYSTEMS:,}: name some with systems="
        raise InvalidInput(message, code="too_many_systems", pointer="systems")

    values = sum(len(names) * row.qrels.topics for row in members if row.qrels)
    if values > MAX_VALUES:
        message = (
            f"{values:,} values of {len(names):,} systems; the limit is {MAX_VALUES:,}: name "
            "some with systems="
        )
        raise InvalidInput(message, code="too_many_values", pointer="systems")
    members = [_read(row, names) for row in members]
    return SuiteValues(version, members, names, topics, tuple(left_out))


def _full_name(name: str, names: Sequence[str]) -> str:
    """Return the name of a system that is named with its team, or without it where that is clear."""
    of_teams = [full for full in names if full.partition("/")[2] == name]
    if name in names:
        return name
    if len(of_teams) == 1:
        return of_teams[0]

    if of_teams:
        message = f"several teams have a system {name[:100]!r}: {', '.join(of_teams[:5])}"
    else:
        message = f"no system {name[:100]!r} has results in this suite; name one as team/system"
    raise InvalidInput(message, code="unknown_system", pointer="systems")


def _select(member: SuiteMember, scored: bool) -> MemberValues:
    """Return a collection with its runs and no values yet."""
    keep_going()
    collection, none = member.collection, np.zeros((0, 0))
    qrels = (member.qrels or collection.active_qrels) if scored else None
    if qrels is None:
        return MemberValues(member, None, NO_QRELS if scored else HIDDEN, None, {}, none)
    try:
        measure = averaged_measure(collection, member.measure)
        check_suits([measure], qrels)
    except MeasureError as error:
        return MemberValues(member, None, error.message, None, {}, none)

    qrels.collection = collection
    return MemberValues(member, measure, "", qrels, _latest_runs(qrels, measure), none)


def _latest_runs(qrels: Qrels, measure: Measure) -> dict[str, SystemRun]:
    """Return the latest run of each system that the leaderboard of a collection ranks."""
    collection = qrels.collection
    evaluations = ranked_evaluations(collection, qrels, collection.scores)
    names = ("run__team__slug", "run__system__slug", "run__metadata", "run__tag", "run__sha256")
    latest_last = (F("run__version").asc(nulls_first=True), "run__created_at", "run_id")
    rows = list(
        evaluations.with_values_of([measure])
        .with_files()
        .order_by(*latest_last)
        .values_list("pk", "same_files", "run_id", *names)[: MAX_RUNS + 1]
    )
    if len(rows) > MAX_RUNS:
        message = f"{collection.slug} has more than {MAX_RUNS:,} runs, too many for a suite"
        raise InvalidInput(message, code="too_many_runs")

    check_files(Evaluation, (row[:2] for row in rows))
    runs = {}
    for pk, _, run, team, system, metadata, tag, sha256 in rows:
        runs[f"{team}/{system or _named_in(metadata) or tag}"] = SystemRun(run, pk, not sha256)
    return runs


def _named_in(metadata: Any) -> str:
    name = metadata.get(_KEY) if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and _NAME.fullmatch(name) else ""


def _read(row: MemberValues, systems: Sequence[str]) -> MemberValues:
    keep_going()
    present = [place for place, name in enumerate(systems) if name in row.runs]
    values = np.full((len(systems), row.qrels.topics if row.qrels else 0), np.nan)
    if row.qrels and row.measure and present:
        keys = [row.runs[systems[place]].evaluation for place in present]
        values[present] = matrix_of(keys, row.measure, row.qrels)[0]
    if row.selection:
        values = values[:, row.selection.selected]

    return replace(row, values=values)
