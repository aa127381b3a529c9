"""Measures as loops over one topic's documents: slow, plain, and written apart from the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.engine.build import Qrels, Run

DOCUMENTS = 1000


@dataclass(frozen=True)
class Topic:
    """One topic in the plainest form: levels in rank order, None where unjudged; scores beside; all judged levels."""

    levels: list[int | None]
    scores: list[float]
    base: list[int]
    highest: int

    def scaled(self, low: int, high: int) -> list[float]:
        """Gains on ranks 1..1000 as cwl_eval takes them."""
        gains = [
            0 if level is None else (min(max(level, 0, low), high) - low) / (high - low)
            for level in self.levels
        ]
        return gains + [0.0] * (1000 - len(gains))

    def relevant(self, rel: int = 1) -> list[bool]:
        return [level is not None and level >= rel for level in self.levels]

    def ranks(self, rel: int = 1) -> list[int]:
        return [rank for rank, relevant in enumerate(self.relevant(rel), 1) if relevant]

    def size(self, rel: int = 1) -> int:
        return sum(level >= rel for level in self.base)


def topics(qrels: Qrels, run: Run) -> Iterator[Topic]:
    highest = max(level for judged in qrels.values() for level in judged.values())
    for topic, judged in qrels.items():
        scores = run.get(topic, {})
        order = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)
        levels = [judged.get(doc) for doc in order]
        yield Topic(levels, [scores[doc] for doc in order], list(judged.values()), highest)


def positive(level: int | None) -> int:
    return max(level or 0, 0)


def weighted(
    topic: Topic, low: int, high: int, go_on: Callable[[int, list[float]], float]
) -> float:
    """C/W/L by its definition: weights from continuation probabilities, one rank after the other."""
    gains = topic.scaled(low, high)
    weight, weights = 1.0, []
    for rank in range(1, len(gains) + 1):
        weights.append(weight)
        weight *= go_on(rank, gains)
    return sum(w * g for w, g in zip(weights, gains, strict=True)) / sum(weights)


def nerr8(topic: Topic) -> float:
    return weighted(topic, 0, 3, lambda i, g: 1 - g[i - 1] if i < 7 else 0)


def nerr9(topic: Topic) -> float:
    return weighted(topic, 1, 3, lambda i, g: i / (i + 1) * (1 - g[i - 1]) if i < 7 else 0)


def nerr10(topic: Topic) -> float:
    return weighted(topic, 0, 2, lambda i, g: 0.7 * (1 - g[i - 1]))


def nerr11(topic: Topic) -> float:
    return weighted(topic, 0, 3, lambda i, g: ((i + 3.0 - 1) / (i + 3.0)) ** 2 * (1 - g[i - 1]))


def insq(topic: Topic) -> float:
    return weighted(topic, 0, 3, lambda i, g: ((i + 4.0 - 1) / (i + 4.0)) ** 2)


def inst(topic: Topic) -> float:
    return weighted(
        topic, 0, 3, lambda i, g: ((i + 4.0 - sum(g[:i]) - 1) / (i + 4.0 - sum(g[:i]))) ** 2
    )


def bpm(topic: Topic) -> float:
    gains = topic.scaled(0, 3)
    stop = next(k for k in range(1, 9) if k == 8 or sum(gains[:k]) >= 1.5 - 1e-9)
    return sum(gains[:stop]) / stop


def scaled_dcg(topic: Topic) -> float:
    gains = topic.scaled(0, 3)
    return sum(gains[i] / math.log2(i + 2) for i in range(9)) / sum(
        1 / math.log2(i + 2) for i in range(9)
    )


def err(topic: Topic) -> float:
    total, reach = 0.0, 1.0
    for rank, level in enumerate(topic.levels[:10], 1):
        stop = (2 ** min(positive(level), 2) - 1) / 4
        total += reach * stop / rank
        reach *= 1 - stop
    return total


def rbp(topic: Topic) -> float:
    best = max(1, *topic.base)
    return 0.1 * sum(positive(level) / best * 0.9**i for i, level in enumerate(topic.levels))


def rbp_residual(topic: Topic) -> float:
    unknown = sum(0.5**i for i, level in enumerate(topic.levels) if level is None or level < 0)
    return 0.5 ** len(topic.levels) + 0.5 * unknown


def e_measure(topic: Topic) -> float:
    hits = sum(topic.relevant()[:6])
    if not hits:
        return 1.0
    return 1 - (1 + 4) / (4 / (hits / topic.size()) + 1 / (hits / 6))


def precision_over_cutoffs(topic: Topic) -> float:
    return sum(sum(topic.relevant(2)[:k]) / k for k in (1, 5, 10)) / 3


def vector_mean(topic: Topic) -> float:
    def ndcg(k: int) -> float:
        def dcg(levels: list[int]) -> float:
            return sum(level / max(1, math.log(i, 3)) for i, level in enumerate(levels[:k], 1))

        ideal = dcg(sorted(map(positive, topic.base), reverse=True))
        return dcg([positive(level) for level in topic.levels]) / ideal if ideal else 0.0

    return sum(ndcg(k) for k in range(1, 41)) / 40


def sliding_ratio(topic: Topic) -> float:
    gains = [positive(level) for level in topic.levels]
    ideal = sum(sorted(gains, reverse=True)[:7])
    return sum(gains[:7]) / ideal if ideal else 0.0


def search_length(topic: Topic) -> float:
    return topic.ranks()[0] if topic.ranks() else math.nan


def average_search_length(topic: Topic) -> float:
    missing = topic.size() - len(topic.ranks())
    return (sum(topic.ranks()) + missing * DOCUMENTS) / topic.size() if topic.size() else math.nan


def expected_search_length(topic: Topic) -> float:
    """Every arrangement of the last group is as likely: the mean over the places of its relevant documents."""
    if len(topic.ranks()) < 2:
        return math.nan
    score = topic.scores[topic.ranks()[1] - 1]
    earlier = [r for r, s in zip(topic.relevant(), topic.scores, strict=True) if s > score]
    group = [r for r, s in zip(topic.relevant(), topic.scores, strict=True) if s == score]
    needed = 2 - sum(earlier)
    rng = np.random.default_rng(0)
    lengths = [
        np.flatnonzero(rng.permutation(group))[needed - 1] + 1 - needed for _ in range(20_000)
    ]
    return len(earlier) - sum(earlier) + float(np.mean(lengths))


def normalised_recall(topic: Topic) -> float:
    if not topic.size():
        return math.nan
    missing = topic.size() - len(topic.ranks())
    ranks = topic.ranks() + list(range(DOCUMENTS - missing + 1, DOCUMENTS + 1))
    spent = sum(ranks) - sum(range(1, topic.size() + 1))
    return 1 - spent / (topic.size() * (DOCUMENTS - topic.size()))


def earliness(worths: list[float]) -> float:
    return sum((len(worths) - i) * worth for i, worth in enumerate(worths))


def satisfaction(topic: Topic) -> float:
    s = [
        level / topic.highest if level is not None and level >= 2 else 0.0
        for level in topic.levels[:12]
    ]
    best = earliness(sorted(s, reverse=True))
    if not topic.size(2):
        return math.nan
    return earliness(s) / best if best else 0.0


def frustration(topic: Topic) -> float:
    levels = topic.levels[:12]
    d = [0.0 if positive(level) >= 2 else 1 - positive(level) / topic.highest for level in levels]
    if not levels:
        return math.nan
    return earliness(d) / earliness(sorted(d, reverse=True)) if any(d) else 0.0


def total(topic: Topic) -> float:
    if not topic.levels or not topic.size(2):
        return satisfaction(topic)
    return 0.25 * satisfaction(topic) + 0.75 * (1 - frustration(topic))


def relative_relevance(topic: Topic) -> float:
    if not topic.size():
        return math.nan
    gains = [float(positive(level)) for level in topic.levels]
    length = float(np.linalg.norm(gains) * np.linalg.norm(topic.scores))
    return float(np.dot(gains, topic.scores)) / length if length else 0.0


def ranked_half_life(topic: Topic) -> float:
    gains = [positive(level) for level in topic.levels[:20]]
    half, seen = sum(gains) / 2, 0
    for rank, gain in enumerate(gains, 1):
        if gain and seen + gain >= half:
            return rank - 0.5 + (half - seen) / gain
        seen += gain
    return math.nan


NAIVE: dict[str, Callable[[Topic], float]] = {
    "AvgCut(of='P(rel=2)',cutoffs='1,5,10')": precision_over_cutoffs,
    "NERR8(max_rel=3)@7": nerr8,
    "NERR9(min_rel=1,max_rel=3)@7": nerr9,
    "NERR10(p=0.7,max_rel=2)": nerr10,
    "NERR11(T=1.5,max_rel=3)": nerr11,
    "INSQ(T=2,max_rel=3)": insq,
    "INST(T=2,max_rel=3)": inst,
    "BPM(T=1.5,max_rel=3)@8": bpm,
    "ScaledDCG(max_rel=3)@9": scaled_dcg,
    "ERR(max_rel=2)@10": err,
    "RBP(p=0.9)": rbp,
    "RBP(p=0.9,rel=2)@8": lambda t: (
        0.1 * sum(0.9 ** (rank - 1) for rank in t.ranks(2) if rank <= 8)
    ),
    "RBPResidual(p=0.5)": rbp_residual,
    "F@6": lambda t: 2 * sum(t.relevant()[:6]) / (t.size() + 6),
    "E(beta=2)@6": e_measure,
    "AvgPos(dis='jk',b=3)@40": vector_mean,
    "AvgPos(of='CG')@4": lambda t: sum(positive(x) for k in range(1, 5) for x in t.levels[:k]) / 4,
    "SlidingRatio@7": sliding_ratio,
    "GP@5": lambda t: sum(map(positive, t.levels[:5])) / (5 * t.highest),
    "GR@5": lambda t: sum(map(positive, t.levels[:5])) / (sum(map(positive, t.base)) or 1),
    "SearchLength": search_length,
    f"ASL(missing='last',documents={DOCUMENTS})": average_search_length,
    f"NormRecall(missing='last',documents={DOCUMENTS})": normalised_recall,
    "Satisfaction(rel=2)@12": satisfaction,
    "Frustration(rel=2)@12": frustration,
    "Total(rel=2,weight=0.25)@12": total,
    "RelRelevance": relative_relevance,
    "RHL@20": ranked_half_life,
}


@dataclass(frozen=True)
class Searcher:
    """One topic of a user who knew some documents: the ranking as ids, the levels of all that is judged."""

    ranking: list[str]
    levels: dict[str, int]
    known: set[str]
    expected: int | None

    def answers(self, k: int | None, rel: int, judged_only: bool = False) -> set[str]:
        """R & A: the relevant documents in ranks 1..k."""
        unjudged = [doc for doc in self.ranking if self.levels.get(doc, -1) < 0]
        listed = [doc for doc in self.ranking if not judged_only or doc not in unjudged]
        return self.relevant(rel) & set(listed[:k])

    def relevant(self, rel: int) -> set[str]:
        return {doc for doc, level in self.levels.items() if level >= rel}


def coverage(user: Searcher, k: int | None, rel: int = 1, judged_only: bool = False) -> float:
    familiar = user.known & user.relevant(rel)
    return (
        len(familiar & user.answers(k, rel, judged_only)) / len(familiar) if familiar else math.nan
    )


def novelty(user: Searcher, k: int | None, rel: int = 1, judged_only: bool = False) -> float:
    answers = user.answers(k, rel, judged_only)
    defined = answers and user.known & user.relevant(rel)
    return len(answers - user.known) / len(answers) if defined else math.nan


def relative_recall(user: Searcher, k: int | None, expected: int | None, rel: int = 1) -> float:
    return len(user.answers(k, rel)) / expected if expected else math.nan


def recall_effort(user: Searcher, expected: int | None, rel: int = 1) -> float:
    depths = [
        k
        for k in range(1, len(user.ranking) + 1)
        if expected and len(user.answers(k, rel)) == expected
    ]
    return expected / depths[0] if expected and depths else math.nan


NAIVE_KNOWN: dict[str, Callable[[Searcher], float]] = {
    "Coverage": lambda user: coverage(user, None),
    "Coverage@5": lambda user: coverage(user, 5),
    "Coverage(rel=2,judged_only=True)@5": lambda user: coverage(user, 5, 2, judged_only=True),
    "Novelty": lambda user: novelty(user, None),
    "Novelty@5": lambda user: novelty(user, 5),
    "Novelty(rel=2,judged_only=True)@8": lambda user: novelty(user, 8, 2, judged_only=True),
    "RelativeRecall": lambda user: relative_recall(user, None, user.expected),
    "RelativeRecall@10": lambda user: relative_recall(user, 10, user.expected),
    "RelativeRecall(expected=4,rel=2)@20": lambda user: relative_recall(user, 20, 4, 2),
    "RecallEffort": lambda user: recall_effort(user, user.expected),
    "RecallEffort(expected=3)": lambda user: recall_effort(user, 3),
    "RecallEffort(expected=2,rel=2)": lambda user: recall_effort(user, 2, 2),
}
