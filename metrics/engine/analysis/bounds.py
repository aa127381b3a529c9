"""What unjudged documents could change: bounds of the difference of two runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from metrics.engine.agreement.standings import TIE
from metrics.engine.arrays import Floats
from metrics.engine.judgement.judged import JudgedRun, RecallBase
from metrics.engine.measures.grammar import Measure

# Sums over documents that grow with each level and do not ask what else is judged.
BOUNDED = ("P", "CG", "DCG", "RBP")
# Beyond this rank of a measure without a cutoff, a document changes nothing that is shown.
USUAL_RANKS = 1_000


@dataclass(frozen=True)
class OpenDocument:
    """An unjudged document: its rank in each run, None where it is not within the cutoff, and by how
    much the top level would change the difference of the topic's values, first minus second."""

    topic: int
    doc_id: bytes
    ranks: tuple[int | None, int | None]
    change: float = 0.0


@dataclass(frozen=True)
class DifferenceBounds:
    """The mean difference of two runs, and between what it lies whatever the unjudged documents are.

    `documents` are those that can change it, the largest change first.
    """

    difference: float
    low: float
    high: float
    documents: list[OpenDocument] = field(default_factory=list)

    @property
    def decided(self) -> bool:
        """Return whether the same run is ahead whatever the documents are.

        A bound that is 0 but for rounding is a tie.
        """
        return self.low > TIE or self.high < -TIE


def is_bounded(measure: Measure) -> bool:
    """Return whether bounds of a measure are exact.

    The ideal of nDCG and the recall base of AP would move with each judgement. So would the largest
    gain of a topic, by which RBP divides unless it has `rel`.
    """
    parameters = measure.parameters
    if measure.definition.name not in BOUNDED or parameters.get("judged_only"):
        return False
    if measure.definition.name == "P":
        return parameters.get("level") is None and not parameters.get("relative")
    return measure.definition.name != "RBP" or parameters.get("rel") is not None


def worth_of_ranks(measure: Measure, level: int, ranks: int) -> Floats:
    """Return what a document of a level adds to the value of a topic at each rank; shape (ranks,).

    The measure is computed for rankings with a single judged document, so that its definition is
    the only place with its discount and gain.
    """
    topic = np.arange(ranks)
    ones = np.ones(ranks, np.int64)
    run = JudgedRun(
        topic=topic,
        rank=topic + 1,
        level=np.full(ranks, level),
        judgement=topic,
        score=np.zeros(ranks),
        tie_first=topic + 1,
        tie_size=ones,
        num_ret=np.full(ranks, ranks),
        squared_scores=np.zeros(ranks),
        recall_base=RecallBase(topic, np.full(ranks, level), ones, ranks),
    )
    return measure.compute(run)


def bound_difference(
    difference: float, topics: int, worth: Floats, documents: list[OpenDocument]
) -> DifferenceBounds:
    """Return the bounds of a mean difference over `topics` topics.

    A document counts between not relevant, as it does now, and the top level, and the same for both
    runs. `documents` come without their change; those that change nothing are left out.
    """

    def added(rank: int | None) -> float:
        return 0.0 if rank is None else float(worth[rank - 1])

    changing = []
    for document in documents:
        change = added(document.ranks[0]) - added(document.ranks[1])
        if change:
            changing.append(replace(document, change=change / topics))

    changing.sort(key=lambda document: (-abs(document.change), document.topic, document.doc_id))
    return DifferenceBounds(
        difference=difference,
        low=math.fsum([difference, *(min(0.0, document.change) for document in changing)]),
        high=math.fsum([difference, *(max(0.0, document.change) for document in changing)]),
        documents=changing,
    )
