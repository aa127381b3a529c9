"""Measures of a user with a goal: T documents' worth of gain, and patience for a while."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.compiled.running import before, running_product, running_sum
from metrics.engine.judgement.judged import JudgedRun, RankedGains, sum_by_topic
from metrics.engine.measures.ratio import ratio
from metrics.engine.measures.weighting import (
    DEPTH,
    goal_weight,
    scaled_gains,
    scaled_levels,
    weighted_gain,
)

_ROUNDING = 1e-9


def insq(
    run: JudgedRun,
    *,
    max_rel: int,
    cutoff: None = None,
    T: float = 1.0,  # noqa: N803 - the papers' letter
    min_rel: int = 0,
) -> Floats:
    """INSQ: gain per document for a user who goes on more surely with every rank.

    Formula: sum of W[i] g[i] over ranks 1..1000, W[i] proportional to the product of C[1..i-1];
    C[i] = ((i + 2T - 1) / (i + 2T))^2; g = (level - min_rel) / (max_rel - min_rel), the level
    clipped to that interval
    Range: 0 to 1
    Source: Moffat, Scholer and Thomas, ADCS 2012; 1000 ranks as in cwl_eval and ir_measures
    Elsewhere: the paper's weights go on for ever; the ranks after 1000 hold about 0.2 % of them for
    T = 1
    """
    return weighted_gain(scaled_gains(run, min_rel, max_rel, DEPTH), goal_weight(T), stops=False)


def inst(
    run: JudgedRun,
    *,
    max_rel: int,
    cutoff: None = None,
    T: float = 1.0,  # noqa: N803 - the papers' letter
    min_rel: int = 0,
) -> Floats:
    """INST: INSQ for a user who comes nearer the goal with every gain.

    Formula: as INSQ with C[i] = ((i + T + t[i] - 1) / (i + T + t[i]))^2, where t[i] = T - (g[1] +
    ... + g[i]) is what is left of the goal
    Range: 0 to 1
    Source: Moffat, Bailey, Scholer and Thomas, ADCS 2015; 1000 ranks as in cwl_eval and ir_measures
    Elsewhere: the paper's weights go on for ever
    """
    ranked = scaled_gains(run, min_rel, max_rel, DEPTH)
    topic, gain = ranked.topic, ranked.gain
    remaining = 2 * T - running_sum(topic, gain)

    # Between two gains W[i] is proportional to height / (i + left - 1)^2, so a stretch sums in
    # closed form.
    distance = ranked.rank + remaining - 1
    height = (2 * T) ** 2 * running_product(topic, (distance / (distance + gain)) ** 2)
    earlier = before(topic, height, (2 * T) ** 2)
    expected = sum_by_topic(topic, gain * earlier / (distance + gain) ** 2, ranked.n_topics)
    changed = height * _stretch(ranked, remaining) - earlier * _stretch(ranked, remaining + gain)
    total_weight = (2 * T) ** 2 * float(_trigamma(2 * T) - _trigamma(DEPTH + 2 * T))

    return expected / (total_weight + sum_by_topic(topic, changed, ranked.n_topics))


def _stretch(ranked: RankedGains, remaining: Floats) -> Floats:
    """Sum of 1 / (j + left - 1)^2 over the ranks j after each document; same shape."""
    total: Floats = _trigamma(ranked.rank + remaining) - _trigamma(DEPTH + remaining)
    return total


def _trigamma(values: Any) -> Any:
    """Sum of 1 / (j + x)^2 over j = 0, 1, ...; same shape."""
    # Takes a tenth of a second to load, and few evaluations need it.
    from scipy import special

    return special.polygamma(1, values)


def bpm(
    run: JudgedRun,
    *,
    cutoff: int,
    max_rel: int,
    T: float = 1.0,  # noqa: N803 - the papers' letter
    min_rel: int = 0,
) -> Floats:
    """Bejeweled player model, static: gain per document for a user who stops at a gain of T or at
    rank k.

    Formula: BPM@k = sum of g[1..s] / s; s is the first rank at which g[1] + ... + g[s] >= T, or k
    if that comes first; g = (level - min_rel) / (max_rel - min_rel), the level clipped to that
    interval
    Range: 0 to 1
    Source: Zhang, Liu, Li, Zhang, Xu and Ma, SIGIR 2017, in the form of cwl_eval and ir_measures
    Elsewhere: cwl_eval adds up gains as rounded fractions and looks at no more than 1000 ranks;
    levels are added as whole numbers here, so that a goal met exactly is met
    """
    parts = scaled_levels(run.level, min_rel, max_rel)
    cumulated = running_sum(run.topic, parts.astype(np.float64))
    met = cumulated >= T * (max_rel - min_rel) - _ROUNDING
    stop = np.full(run.n_topics, cutoff)
    np.minimum.at(stop, run.topic[met], run.rank[met])
    within = run.rank <= stop[run.topic]
    gain = parts[within] / (max_rel - min_rel)

    return ratio(sum_by_topic(run.topic[within], gain, run.n_topics), stop)
