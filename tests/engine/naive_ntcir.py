"""NTCIR's measures as loops over one topic's documents, from the papers and apart from the engine."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tests.engine.naive import Topic

Gain = Callable[[int], Fraction]


def linear(level: int) -> Fraction:
    return Fraction(level)


def exponential(level: int) -> Fraction:
    return Fraction(2**level - 1)


def blended_ratios(topic: Topic, beta: Fraction, gain: Gain, rel: int = 1) -> dict[int, Fraction]:
    """The blended ratio at the rank of each relevant document, in exact fractions."""
    ideal = sorted((gain(level) for level in topic.base if level >= rel), reverse=True)
    ratios = {}
    for rank in topic.ranks(rel):
        seen = [level for level in topic.levels[:rank] if level is not None and level >= rel]
        ratios[rank] = (len(seen) + beta * sum(map(gain, seen))) / (rank + beta * sum(ideal[:rank]))
    return ratios


def q(topic: Topic, beta: Fraction, gain: Gain, k: int | None = None, rel: int = 1) -> float:
    ratios = [
        value
        for rank, value in blended_ratios(topic, beta, gain, rel).items()
        if k is None or rank <= k
    ]
    below = min(topic.size(rel), k or topic.size(rel))
    return float(sum(ratios) / below) if below else 0.0


def ncu_rank_biased(topic: Topic, beta: Fraction, gamma: Fraction) -> float:
    shares = [gamma**place for place in range(topic.size())]
    ratios = blended_ratios(topic, beta, linear).values()
    return (
        float(sum(s * b for s, b in zip(shares, ratios, strict=False)) / sum(shares))
        if shares
        else 0.0
    )


def ncu_graded_uniform(topic: Topic, beta: Fraction, stops: Gain) -> float:
    whole = sum(stops(level) for level in topic.base if level >= 1)
    ratios = blended_ratios(topic, beta, linear)
    return (
        float(sum(stops(topic.levels[rank - 1] or 0) * b for rank, b in ratios.items()) / whole)
        if whole
        else 0.0
    )


def best_rank(topic: Topic, rel: int = 1) -> int:
    """The first rank with the highest level of what was retrieved; 0 where nothing relevant was."""
    levels = [level if level is not None and level >= rel else -1000 for level in topic.levels]
    return levels.index(max(levels)) + 1 if topic.ranks(rel) else 0


def p_plus(topic: Topic, beta: Fraction, gain: Gain) -> float:
    ratios = [
        value
        for rank, value in blended_ratios(topic, beta, gain).items()
        if rank <= best_rank(topic)
    ]
    return float(sum(ratios) / len(ratios)) if ratios else 0.0


def p_measure(topic: Topic, beta: Fraction, gain: Gain, rel: int = 1) -> float:
    return float(blended_ratios(topic, beta, gain, rel).get(best_rank(topic, rel), 0))


def o_measure(topic: Topic, beta: Fraction) -> float:
    ideal = sorted((level for level in topic.base if level >= 1), reverse=True)
    for rank, level in enumerate(topic.levels, 1):
        if level is not None and level >= 1:
            return float((1 + beta * level) / (rank + beta * sum(ideal[:rank])))
    return 0.0


def nerr(topic: Topic, gain: Gain, highest: int, k: int | None = None) -> float:
    def err(levels: list[int | None]) -> Fraction:
        total, reach = Fraction(0), Fraction(1)
        for rank, level in enumerate(levels[:k], 1):
            stop = gain(min(max(level or 0, 0), highest)) / (gain(highest) + 1)
            total += reach * stop / rank
            reach *= 1 - stop
        return total

    ideal = err(sorted((level for level in topic.base), reverse=True))
    return float(err(topic.levels) / ideal) if ideal else 0.0


NAIVE_NTCIR: dict[str, Callable[[Topic], float]] = {
    "Q": lambda t: q(t, Fraction(1), linear),
    "Q@5": lambda t: q(t, Fraction(1), linear, 5),
    "Q(beta=0.5,gains='exp')@8": lambda t: q(t, Fraction(1, 2), exponential, 8),
    "Q(beta=0)": lambda t: q(t, Fraction(0), linear),
    "Q(rel=2)@20": lambda t: q(t, Fraction(1), linear, 20, 2),
    "NCU": lambda t: ncu_rank_biased(t, Fraction(1), Fraction(19, 20)),
    "NCU(stop='rb',gamma=0.5,beta=0)": lambda t: ncu_rank_biased(t, Fraction(0), Fraction(1, 2)),
    "NCU(stop='gu')": lambda t: ncu_graded_uniform(t, Fraction(1), linear),
    "NCU(stop='gu',stops='exp',beta=2)": lambda t: ncu_graded_uniform(t, Fraction(2), exponential),
    "PPlus": lambda t: p_plus(t, Fraction(1), linear),
    "PPlus(beta=3,gains='exp')": lambda t: p_plus(t, Fraction(3), exponential),
    "PMeasure": lambda t: p_measure(t, Fraction(1), linear),
    "PMeasure(rel=2)": lambda t: p_measure(t, Fraction(1), linear, 2),
    "OMeasure": lambda t: o_measure(t, Fraction(1)),
    "OMeasure(beta=0)": lambda t: o_measure(t, Fraction(0)),
    "nERR": lambda t: nerr(t, exponential, 4),
    "nERR(gains='linear',max_rel=2)@10": lambda t: nerr(t, linear, 2, 10),
}
