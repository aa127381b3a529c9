"""How far the assessors of a pool agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalhub.pools.models import Judgement, Pool
from metrics.engine.agreement.assessors import (
    UNJUDGED,
    AssessedDocuments,
    AssessorAgreement,
    assessor_agreement,
    observed_agreement,
    weighted_kappa,
)
from metrics.engine.arrays import Ints
from metrics.engine.significance.pairs import Options
from metrics.services.work import begin
from runs.attention import present_attention
from runs.errors import Conflict

# B of the intervals, and assessors that are compared at once.
RESAMPLES = 1_000
MAX_ASSESSORS = 30
# Seconds for a cell of the tables of all topics.
_CELL = 6e-9
_CHUNK = 5000


@dataclass(frozen=True)
class PairAgreement:
    """Two assessors on the documents that both judged; NaN where it is undefined."""

    first: str
    second: str
    documents: int
    agreement: float
    kappa: float
    confusion: Ints


@dataclass(frozen=True)
class PoolAgreement:
    """The agreement of the assessors of a pool, overall, by topic and by pair."""

    assessors: list[str]
    topic_ids: list[str]
    levels: list[int]
    agreement: AssessorAgreement
    pairs: list[PairAgreement]

    @property
    def documents(self) -> int:
        """Return the number of documents with at least two judgements."""
        return int(self.agreement.documents.sum())


def read_agreement(
    pools: Sequence[Pool], aspect: str = "", *, resamples: int = RESAMPLES, seed: int = 0
) -> PoolAgreement:
    """Return the agreement of all assessors of pools of a collection.

    Raise Conflict if no document has two judgements, or there are too many assessors.
    """
    rows = (
        Judgement.objects.filter(pool__in=pools, aspect=aspect, active=True, level__gte=0)
        .order_by("topic_id", "doc_id", "assessor__name")
        .values_list("pool_id", "topic_id", "doc_id", "assessor__name", "level")
    )
    names, topics, levels = (
        sorted(rows.order_by(field).values_list(field, flat=True).distinct())
        for field in ("assessor__name", "topic_id", "level")
    )
    if len(names) < 2:
        message = "an agreement is one of two assessors or more; give a topic to a second one"
        raise Conflict(message, code="too_few_assessors")
    if len(names) > MAX_ASSESSORS:
        message = f"the agreement of more than {MAX_ASSESSORS} assessors is not computed"
        raise Conflict(message, code="too_many_assessors")

    places = {name: place for place, name in enumerate(names)}
    numbers = {topic_id: number for number, topic_id in enumerate(topics)}
    of_level = {level: place for place, level in enumerate(levels)}
    documents: dict[tuple[Any, str, str], list[int]] = {}
    for pool_id, topic_id, doc_id, name, level in rows.iterator(_CHUNK):
        document = documents.setdefault((pool_id, topic_id, doc_id), [UNJUDGED] * len(names))
        document[places[name]] = of_level[level]

    assessed = AssessedDocuments(
        topic_ids=[topic_id.encode() for topic_id in topics],
        topics=np.array([numbers[topic_id] for _, topic_id, _ in documents], np.int64),
        places=np.array(list(documents.values()), np.int64),
        levels=np.array(levels, np.int64),
    )
    if not (assessed.judgements >= 2).any():
        message = "no document has judgements of two assessors; give a topic with copies=2"
        raise Conflict(message, code="too_few_assessors")

    cells = len(topics) * len(assessed.pairs) * len(levels) ** 2
    seconds = 10 * resamples * cells * _CELL
    begin(seconds, f"agreement of {len(names)} assessors", "use fewer resamples", "resamples")
    options = Options(resamples=resamples, seed=seed, watch=present_attention().keep_going)
    return PoolAgreement(
        assessors=names,
        topic_ids=topics,
        levels=levels,
        agreement=assessor_agreement(assessed, options),
        pairs=_pairs(assessed, names),
    )


def _pairs(assessed: AssessedDocuments, names: list[str]) -> list[PairAgreement]:
    unequal = 1.0 - np.eye(len(assessed.levels))
    tables = assessed.confusions.sum(axis=0)
    return [
        PairAgreement(
            first=names[first],
            second=names[second],
            documents=int(table.sum()),
            agreement=float(observed_agreement(table)),
            kappa=float(weighted_kappa(table, unequal)),
            confusion=table,
        )
        for (first, second), table in zip(assessed.pairs, tables, strict=True)
        if table.any()
    ]


def agreement_figures(pools: Sequence[Pool], aspect: str = "") -> dict[str, Any] | None:
    """Return the coefficients of agreement for a version's record; None without two assessors."""
    try:
        agreement = read_agreement(pools, aspect)
    except Conflict:
        return None
    values = {name: estimate.value for name, estimate in agreement.agreement.estimates.items()}
    return {
        "documents": agreement.documents,
        **{name: None if math.isnan(value) else value for name, value in values.items()},
    }
