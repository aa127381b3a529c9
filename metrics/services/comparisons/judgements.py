"""Describe judgements by level and by topic, and the agreement of two versions of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metrics.engine.agreement.assessments import Assessments, compare_assessments
from metrics.engine.arrays import Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.judgement.judging import Judgements
from metrics.services.boards.board_question import active_qrels, qrels_version
from metrics.services.question import MAX_VERSION, Integer, Question, Several, parameter
from runs.errors import InvalidInput
from runs.models import Collection, Qrels
from runs.services.collections.qrels import load_judgements

# The most levels of a version that are counted for each topic.
MAX_LEVELS = 50


@dataclass(frozen=True)
class JudgedVersion:
    """One version: `counts` has the documents of each topic at each level, shape (topics, levels).

    `rest` is the number of documents of the collection that are relevant to none of the topics,
    None where the collection does not say how many documents it has, or says fewer than are
    relevant.
    """

    qrels: Qrels
    levels: list[int]
    counts: Ints
    rest: int | None = None

    @property
    def totals(self) -> list[int]:
        totals: list[int] = self.counts.sum(axis=0).tolist()
        return totals

    @property
    def judged(self) -> Ints:
        judged: Ints = self.counts.sum(axis=1)
        return judged

    @property
    def relevant(self) -> Ints:
        """Return the recall base of each topic: the number of documents of level 1 or more."""
        relevant: Ints = self.counts[:, [level >= 1 for level in self.levels]].sum(axis=1)
        return relevant

    @property
    def shares_of_relevant(self) -> list[float | None]:
        """Return the share of each level among the relevant documents, None for levels below 1."""
        relevant = int(self.relevant.sum())
        return [
            count / relevant if level >= 1 and relevant else None
            for level, count in zip(self.levels, self.totals, strict=True)
        ]


@dataclass(frozen=True)
class JudgementsQuery(Question):
    """Which versions of the judgements, by their numbers; none means the active one."""

    versions: list[int] = parameter(
        Several(
            "one version, or two separated by a comma; default: the active one",
            name="qrels",
            of=Integer("a version", low=1, high=MAX_VERSION),
        )
    )


@dataclass(frozen=True)
class JudgementsAnswer:
    """The requested versions, and their comparison if there are two."""

    versions: list[JudgedVersion] = field(default_factory=list)
    compared: Assessments | None = None


def read_judgements(*, collection: Collection, query: JudgementsQuery) -> JudgementsAnswer:
    """Return the active version, or one or two versions by their numbers.

    Raise NotFound for an unknown version, InvalidInput for judgements of single queries or with too
    many levels, StatisticsError for more than two versions.
    """
    versions = query.versions
    if len(versions) > 2:
        message = f"{len(versions)} versions; one or two can be looked at: qrels=1,2"
        raise StatisticsError(message, code="too_many_versions", pointer="qrels")

    qrels_of_versions = [qrels_version(collection, version) for version in versions]
    qrels_of_versions = qrels_of_versions or [active_qrels(collection)]
    judgements = [judgements_of(qrels) for qrels in qrels_of_versions]
    compared = compare_assessments(*judgements) if len(judgements) == 2 else None

    return JudgementsAnswer(
        [
            _count_levels(qrels, of_version, collection.documents)
            for qrels, of_version in zip(qrels_of_versions, judgements, strict=True)
        ],
        compared,
    )


def judgements_of(qrels: Qrels) -> Judgements:
    """Return the judgements of a version.

    Raise InvalidInput for judgements of single queries or with too many levels.
    """
    if qrels.keyed_by != Qrels.KeyedBy.TOPIC:
        message = (
            f"qrels v{qrels.version} judges single queries of sessions; only judgements of "
            "topics can be shown"
        )
        raise InvalidInput(message, code="unknown_qrels", pointer="qrels")
    if len(qrels.levels) > MAX_LEVELS:
        message = (
            f"qrels v{qrels.version} has {len(qrels.levels)} levels; at most {MAX_LEVELS} can "
            "be shown"
        )
        raise InvalidInput(message, code="too_many_levels", pointer="qrels")
    return load_judgements(qrels)


def _count_levels(qrels: Qrels, judgements: Judgements, documents: int | None) -> JudgedVersion:
    base = judgements.recall_base
    levels = np.unique(base.level)
    counts = np.zeros((base.n_topics, len(levels)), np.int64)
    counts[base.topic, np.searchsorted(levels, base.level)] = base.counts

    not_relevant = None
    if documents is not None:
        # A document that is relevant to several topics is one document of the collection.
        rows = np.flatnonzero(judgements.levels >= 1)
        text = judgements.data.tobytes()
        starts, ends = judgements.doc_starts[rows].tolist(), judgements.doc_ends[rows].tolist()
        relevant = {text[start:end] for start, end in zip(starts, ends, strict=True)}
        not_relevant = documents - len(relevant) if documents >= len(relevant) else None

    return JudgedVersion(qrels, levels.tolist(), counts, not_relevant)
