"""Measures of subtopics as loops over one topic's documents: slow, plain, exact, and written apart from the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tests.engine.build import Run, SubtopicQrels

Covered = list[set[str]]


@dataclass(frozen=True)
class Topic:
    """One topic: the subtopics that the document at each rank is relevant to, and those of every judged document."""

    ranking: Covered
    judged: dict[str, set[str]]

    @property
    def subtopics(self) -> set[str]:
        return set[str]().union(*self.judged.values())

    def size(self, subtopic: str) -> int:
        return sum(subtopic in subtopics for subtopics in self.judged.values())

    def ideal(self, alpha: Fraction) -> Covered:
        """The greedy ideal ranking; in fractions, so that equal gains are equal."""
        rest, above = dict(self.judged), Covered()
        while rest:
            best = max(rest, key=lambda doc: (gain(rest[doc], above, alpha), doc.encode()))
            above.append(rest.pop(best))
        return above


def topics(
    qrels: SubtopicQrels, run: Run, rel: int = 1, judged_only: bool = False
) -> Iterator[Topic]:
    """Topics in the order of the qrels; `judged_only` leaves out what has no level of 0 or above."""
    for topic in dict.fromkeys(line[0] for line in qrels):
        judged: dict[str, set[str]] = {}
        documents_judged = {doc for where, _, doc, level in qrels if where == topic and level >= 0}
        for where, subtopic, doc, level in qrels:
            if where == topic:
                judged.setdefault(doc, set()).update([subtopic] if level >= rel else [])
        scores = run.get(topic, {})
        order = sorted(scores, key=lambda doc: (scores[doc], doc.encode()), reverse=True)
        yield Topic(
            [judged.get(doc, set()) for doc in order if doc in documents_judged or not judged_only],
            judged,
        )


def gain(covered: set[str], above: Covered, alpha: Fraction) -> Fraction:
    return sum(
        ((1 - alpha) ** sum(subtopic in other for other in above) for subtopic in covered),
        Fraction(0),
    )


def gains(ranking: Covered, alpha: Fraction) -> list[float]:
    return [float(gain(covered, ranking[:place], alpha)) for place, covered in enumerate(ranking)]


def weighted(
    ranking: Covered, alpha: str, weight: Callable[[int], float], k: int | None = None
) -> float:
    return sum(
        weight(rank) * gain for rank, gain in enumerate(gains(ranking, Fraction(alpha))[:k], 1)
    )


def share(above: float, below: float) -> float:
    return above / below if below else 0.0


def of_most(topic: Topic, k: int, alpha: str, weight: Callable[[int], float]) -> float:
    """Against k documents that are relevant to every subtopic, which no ranking can exceed."""
    return share(
        weighted(topic.ranking, alpha, weight, k), weighted([topic.subtopics] * k, alpha, weight)
    )


def of_ideal(topic: Topic, k: int | None, alpha: str, weight: Callable[[int], float]) -> float:
    ideal = topic.ideal(Fraction(alpha))
    return share(weighted(topic.ranking, alpha, weight, k), weighted(ideal, alpha, weight, k))


def log2(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def inverse(rank: int) -> float:
    return 1 / rank


def recall(topic: Topic, k: int) -> float:
    return share(len(set[str]().union(*topic.ranking[:k])), len(topic.subtopics))


def nrbp(topic: Topic, alpha: str, beta: float) -> float:
    """Against 10,000 documents that are relevant to every subtopic would take long: the sum of that series."""
    most = len(topic.subtopics) / (1 - (1 - float(Fraction(alpha))) * beta)
    return share(weighted(topic.ranking, alpha, lambda rank: beta ** (rank - 1)), most)


def average_precision(topic: Topic, subtopic: str) -> float:
    ranks = [rank for rank, covered in enumerate(topic.ranking, 1) if subtopic in covered]
    return sum(place / rank for place, rank in enumerate(ranks, 1)) / topic.size(subtopic)


def averaged(topic: Topic, value_of: Callable[[str], float]) -> float:
    return share(sum(map(value_of, topic.subtopics)), len(topic.subtopics))


def precision(topic: Topic, k: int) -> float:
    return averaged(
        topic, lambda subtopic: sum(subtopic in covered for covered in topic.ranking[:k]) / k
    )


# By the measure's name with its parameters left open for rel and judged_only.
NAIVE: dict[str, Callable[[Topic], float]] = {
    "StRecall({})@1": lambda t: recall(t, 1),
    "StRecall({})@7": lambda t: recall(t, 7),
    "alpha_DCG({})@1": lambda t: of_most(t, 1, "1/2", log2),
    "alpha_DCG(alpha=0.3,{})@12": lambda t: of_most(t, 12, "3/10", log2),
    "alpha_DCG(alpha=1,{})@5": lambda t: of_most(t, 5, "1", log2),
    "alpha_nDCG({})@1": lambda t: of_ideal(t, 1, "1/2", log2),
    "alpha_nDCG({})@30": lambda t: of_ideal(t, 30, "1/2", log2),
    "alpha_nDCG(alpha=0,{})@5": lambda t: of_ideal(t, 5, "0", log2),
    "alpha_nDCG(alpha=0.3,{})@9": lambda t: of_ideal(t, 9, "3/10", log2),
    "alpha_nDCG(alpha=0.9,{})@100": lambda t: of_ideal(t, 100, "9/10", log2),
    "ERR_IA({})@1": lambda t: of_most(t, 1, "1/2", inverse),
    "ERR_IA(alpha=0.7,{})@12": lambda t: of_most(t, 12, "7/10", inverse),
    "nERR_IA({})@8": lambda t: of_ideal(t, 8, "1/2", inverse),
    "nERR_IA(alpha=0.7,{})@3": lambda t: of_ideal(t, 3, "7/10", inverse),
    "NRBP({})": lambda t: nrbp(t, "1/2", 0.5),
    "NRBP(alpha=0.2,beta=0.9,{})": lambda t: nrbp(t, "1/5", 0.9),
    "nNRBP({})": lambda t: of_ideal(t, None, "1/2", lambda rank: 0.5 ** (rank - 1)),
    "nNRBP(alpha=0.2,beta=0.9,{})": lambda t: of_ideal(
        t, None, "1/5", lambda rank: 0.9 ** (rank - 1)
    ),
    "P_IA({})@6": lambda t: precision(t, 6),
    "AP_IA({})": lambda t: averaged(t, lambda subtopic: average_precision(t, subtopic)),
}
