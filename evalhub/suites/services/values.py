"""Read the values of systems in the collections of a suite."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evalhub.suites.models import SuiteMember, SuiteVersion
from evalhub.suites.services.suites import averaged_measure
from metrics.engine.analysis.suites import collection_means, collection_weights
from metrics.engine.arrays import Floats
from metrics.engine.cautions import Caution
from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.pairs import Matrix
from metrics.models import Evaluation
from metrics.services.boards.selection import select_evaluations
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.judged_views import matrix_of
from metrics.services.values.sampled import check_suits
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.models import Qrels, Run

MAX_RUNS = 1_000
MAX_VALUES = 5_000_000
# Why a collection has no results.
HIDDEN, NO_QRELS = "results are not shown to you", "no judgements are active"
# The key of a run's metadata that names its system, and what such a name may be.
_KEY = "system"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class MemberValues:
    """A collection of a suite as a reader sees it.

    `runs` are the runs of the systems in it, by the names of these; `values` has a row for every
    system of the suite, of NaN where it has no run. Without `qrels` there are no results; `absence`
    says why: the reader does not see them (`hidden`), no judgements are active, the measure does
    not suit sampled judgements, or one of value tables is not declared any more.
    """

    member: SuiteMember
    measure: Measure | None
    absence: str
    qrels: Qrels | None
    runs: dict[str, Run]
    values: Matrix

    @property
    def hidden(self) -> bool:
        return self.absence == HIDDEN

    @cached_property
    def topics(self) -> Floats:
        """Return on how many topics each system has a value; shape (systems,)."""
        topics: Floats = np.isfinite(self.values).sum(axis=1).astype(np.float64)
        return topics

    @cached_property
    def complete(self) -> Any:
        """Return which systems have a value on as many topics as any; shape (systems,)."""
        return (self.topics > 0) & (self.topics == self.topics.max(initial=0))

    def lack(self, system: int) -> str:
        """Return what a system lacks here, or an empty text."""
        slug, topics = self.member.collection.slug, int(self.topics[system])
        if self.qrels is None or self.complete[system]:
            return ""
        most = int(self.topics.max())
        return f"{slug}: a mean over {topics} of {most} topics" if topics else slug


@dataclass(frozen=True)
class SuiteValues:
    """The values of a version of a suite: its collections in order, and the names of its systems.

    A system is named by its team and the name of its system, `team/name`.
    """

    version: SuiteVersion
    members: list[MemberValues]
    systems: list[str]

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
    def without_results(self) -> list[MemberValues]:
        return [row for row in self.members if row.qrels is None]

    @property
    def cautions(self) -> list[Caution]:
        return [
            Caution(caution.code, f"{row.member.collection.slug}: {caution.message}")
            for row in self.members
            if row.qrels and row.measure
            for caution in qrels_cautions([row.measure], row.qrels)
        ]


@dataclass(frozen=True)
class _Selected:
    member: SuiteMember
    measure: Measure | None
    absence: str
    qrels: Qrels | None
    evaluations: dict[str, Evaluation]


def read_values(
    version: SuiteVersion, scored: Set[int], systems: list[str] | None = None
) -> SuiteValues:
    """Return the values of all systems, or of those that are named.

    `scored` has the keys of the collections with results that the reader sees; of others nothing is
    read. A system with several runs in a collection counts by its latest version. Raise
    InvalidInput for a name that no system has, and for more than MAX_VALUES values.
    """
    members = version.members.select_related("collection", "qrels").order_by("position")
    selected = [_select(member, member.collection_id in scored) for member in members]
    known = sorted({name for row in selected for name in row.evaluations})
    if systems is None:
        named = known
    else:
        named = list(dict.fromkeys(_known_name(name, known) for name in systems))
    values = sum(len(named) * row.qrels.topics for row in selected if row.qrels)
    if values > MAX_VALUES:
        message = (
            f"{values:,} values of {len(named):,} systems; the limit is {MAX_VALUES:,}: name "
            "some with systems="
        )
        raise InvalidInput(message, code="too_many_values", pointer="systems")
    return SuiteValues(version, [_read(row, named) for row in selected], named)


def _known_name(name: str, known: list[str]) -> str:
    """Return the name of a system that is named with its team, or without it where that is clear."""
    of_teams = [full for full in known if full.partition("/")[2] == name]
    if name in known:
        return name
    if len(of_teams) == 1:
        return of_teams[0]

    if of_teams:
        message = f"several teams have a system {name[:100]!r}: {', '.join(of_teams[:5])}"
    else:
        message = f"no system {name[:100]!r} has results in this suite; name one as team/system"
    raise InvalidInput(message, code="unknown_system", pointer="systems")


def _select(member: SuiteMember, scored: bool) -> _Selected:
    collection = member.collection
    qrels = (member.qrels or collection.active_qrels) if scored else None
    if qrels is None:
        return _Selected(member, None, NO_QRELS if scored else HIDDEN, None, {})
    try:
        measure = averaged_measure(collection, member.measure)
        check_suits([measure], qrels)
    except MeasureError as error:
        return _Selected(member, None, error.message, None, {})

    qrels.collection = collection
    evaluations = select_evaluations(
        collection=collection,
        qrels=qrels,
        scores=collection.scores,
        runs=[],
        most=MAX_RUNS,
        measures=[measure],
    )
    return _Selected(member, measure, "", qrels, _by_system(evaluations))


def _by_system(evaluations: list[Evaluation]) -> dict[str, Evaluation]:
    """Return the evaluation of each system by its name, that of the latest run."""
    keys = [evaluation.run_id for evaluation in evaluations]
    rows = Run.objects.filter(pk__in=keys).values_list("pk", "system__slug", "metadata")
    names = {pk: slug or _named_in(metadata) for pk, slug, metadata in rows}

    def age(evaluation: Evaluation) -> tuple[int, Any]:
        return evaluation.run.version or 0, evaluation.run.created_at

    by_system: dict[str, Evaluation] = {}
    for evaluation in sorted(evaluations, key=age):
        run = evaluation.run
        by_system[f"{run.team.slug}/{names[run.pk] or run.tag}"] = evaluation
    return by_system


def _named_in(metadata: Any) -> str:
    name = metadata.get(_KEY) if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and _NAME.fullmatch(name) else ""


def _read(row: _Selected, systems: list[str]) -> MemberValues:
    keep_going()
    present = [place for place, name in enumerate(systems) if name in row.evaluations]
    values = np.full((len(systems), row.qrels.topics if row.qrels else 0), np.nan)
    if row.qrels and row.measure and present:
        keys = [row.evaluations[systems[place]].pk for place in present]
        values[present] = matrix_of(keys, row.measure, row.qrels)[0]

    runs = {systems[place]: row.evaluations[systems[place]].run for place in present}
    return MemberValues(row.member, row.measure, row.absence, row.qrels, runs, values)
