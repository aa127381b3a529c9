"""Estimates from sampled judgements as loops over one topic, from the papers' formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

# The stratum and level of each document of a topic's pool; -1 where it was not drawn.
Pool = Mapping[str, tuple[str, int]]
# The level and probability of each drawn document.
Drawn = Mapping[str, tuple[int, float]]


def weights(pool: Pool) -> dict[str, float]:
    """Return the documents of each stratum per drawn one."""
    strata = [stratum for stratum, _ in pool.values()]
    drawn = [stratum for stratum, level in pool.values() if level >= 0]
    return {s: strata.count(s) / drawn.count(s) for s in drawn}


def xinfap(pool: Pool, ranking: Sequence[str], k: int, rel: int) -> float:
    weight = weights(pool)
    total = sum(weight[s] for s, level in pool.values() if level >= rel)
    value = 0.0
    for i, doc in enumerate(ranking[:k], 1):
        stratum, level = pool.get(doc, ("", -1))
        if level < rel:
            continue
        above = [pool[d] for d in ranking[: i - 1] if d in pool]
        expected = 0.0
        for s in {s for s, _ in above}:
            levels = [level for other, level in above if other == s]
            drawn = [level for level in levels if level >= 0]
            relevant = sum(level >= rel for level in drawn)
            expected += len(levels) * (relevant + 1e-5) / (len(drawn) + 3e-5)
        value += weight[stratum] * (1 + expected) / i
    return value / total if total else 0.0


def statap(pool: Pool, ranking: Sequence[str], k: int, rel: int) -> float:
    """Each pair of documents counts by one over the chance that both are drawn."""
    weight = weights(pool)
    size = {s: [other for other, _ in pool.values()].count(s) for s in weight}
    drawn = {s: round(size[s] / weight[s]) for s in weight}

    def of_pair(s: str, t: str) -> float:
        if s != t:
            return weight[s] * weight[t]
        return size[s] * (size[s] - 1) / (drawn[s] * (drawn[s] - 1))

    total = sum(weight[s] for s, level in pool.values() if level >= rel)
    value = 0.0
    relevant = [
        (i, pool[d][0]) for i, d in enumerate(ranking, 1) if d in pool and pool[d][1] >= rel
    ]
    for i, stratum in relevant:
        if i <= k:
            value += weight[stratum] / i
            value += sum(of_pair(stratum, s) for j, s in relevant if j < i) / i
    return value / total if total else 0.0


def statap_of_probabilities(drawn: Drawn, ranking: Sequence[str], k: int, rel: int) -> float:
    total = sum(1 / p for level, p in drawn.values() if level >= rel)
    value, above = 0.0, 0.0
    for i, doc in enumerate(ranking[:k], 1):
        level, p = drawn.get(doc, (-1, 1.0))
        if level >= rel:
            value += (1 + above) / (p * i)
            above += 1 / p
    return value / total if total else 0.0


def _ideal(numbers: Mapping[int, float], k: int) -> float:
    ranking = [
        level
        for level in sorted(numbers, reverse=True)
        for _ in range(math.floor(numbers[level] + 0.5))
    ]
    return sum(level / math.log2(i + 1) for i, level in enumerate(ranking[:k], 1))


def infndcg(pool: Pool, ranking: Sequence[str], k: int) -> float:
    weight = weights(pool)
    numbers: dict[int, float] = {}
    for s, level in pool.values():
        if level > 0:
            numbers[level] = numbers.get(level, 0.0) + weight[s]

    value = 0.0
    listed = [(i, *pool[doc]) for i, doc in enumerate(ranking[:k], 1) if doc in pool]
    for s in {s for _, s, _ in listed}:
        own = [(i, level) for i, other, level in listed if other == s]
        gains = [level / math.log2(i + 1) for i, level in own if level >= 0]
        if gains:
            value += len(own) * sum(gains) / len(gains)
    ideal = _ideal(numbers, k)
    return value / ideal if ideal else 0.0


def infndcg_of_probabilities(drawn: Drawn, ranking: Sequence[str], k: int) -> float:
    numbers: dict[int, float] = {}
    for level, p in drawn.values():
        if level > 0:
            numbers[level] = numbers.get(level, 0.0) + 1 / p
    value = 0.0
    for i, doc in enumerate(ranking[:k], 1):
        level, p = drawn.get(doc, (0, 1.0))
        value += max(level, 0) / (p * math.log2(i + 1))
    ideal = _ideal(numbers, k)
    return value / ideal if ideal else 0.0
