"""Estimates from sampled judgements, and their standard errors.

Judgements whose sampling is not declared are one stratum for each topic: all of their documents, of
which those of a level below 0 were not drawn.

An estimate changes with each drawn document by its weight times its influence, to the first order
(Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 5.5). The variance of
the sampling is that of the estimated total of the influences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic
from metrics.engine.judgement.sampling import Sampling

# sample_eval's smoothing of the precision in a stratum above a rank.
_RELEVANT, _SAMPLED = 0.00001, 0.00003

# Ranks of an ideal ranking of which each is summed.
_SUMMED_RANKS = 10_000

_Matrix = npt.NDArray[np.float64]


def x_inferred_average_precision(
    run: JudgedRun, *, cutoff: int | None = None, rel: int = 1
) -> Floats:
    """Extended inferred average precision: AP estimated where strata of the pool were judged at
    different rates.

    Formula: xinfAP@k = (1 / R) sum over the judged relevant documents at ranks i = 1..k of w E[i],
    E[i] = 1 / i + (1 / i) sum over the strata of d (r + e) / (n + 3 e), where above rank i stand d
    documents of the stratum, n judged and r relevant ones, and e is 0.00001. The weight w of a
    document is N / J, the documents of its stratum per judged one, and R the sum of w over all
    judged relevant documents. Documents outside the qrels count as non-relevant
    Range: 0 to 1
    Source: Yilmaz, Kanoulas and Aslam, SIGIR 2008; the smoothing is that of NIST's sample_eval
    Elsewhere: sample_eval prints it as infAP, of the first 1,000 documents: xinfAP@1000
    """
    return np.array([estimate.value for estimate in _estimates(run, _x_inferred, cutoff, rel)])


def x_inferred_error(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """Standard error of xinfAP: how far it varies with the documents drawn.

    Formula: xinfAP_se@k = sqrt(sum over the strata of N (N - J) s^2 / J), s^2 the variance of u
    over the J judged documents of N, or u^2 of a single one; u = (z - y xinfAP) / (R sqrt(1 - w y /
    R)), y is 1 for a relevant document and else 0, and z = y E[i] plus what the document adds to E
    at later ranks, for each unit of w. For a run it is sqrt(sum of the topics' squares) / topics. 0
    where no judged document is relevant
    Range: 0 and above
    Source: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, sections 3.7 and
    5.5; MacKinnon and White, Journal of Econometrics 29, 1985 (the root in u)
    """
    return np.array([estimate.error for estimate in _estimates(run, _x_inferred, cutoff, rel)])


def stat_average_precision(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """statAP: AP estimated from documents drawn with known probabilities.

    Formula: statAP@k = (1 / R) sum over the judged relevant documents at ranks i = 1..k of (1 / p)
    (1 + S) / i, where S is the sum of 1 / q over the judged relevant documents above, q their
    probability given that the document at rank i is drawn: their own, or (J - 1) / (N - 1) in the
    same stratum of N documents with J judged. R is the sum of 1 / p over all judged relevant
    documents
    Range: 0 and above
    Source: Aslam and Pavlu, A practical sampling strategy for efficient retrieval evaluation,
    Northeastern University, 2007
    """
    return np.array([estimate.value for estimate in _estimates(run, _stat, cutoff, rel)])


def stat_error(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """Standard error of statAP: how far it varies with the documents drawn.

    Formula: statAP_se@k = sqrt(sum over the judged documents of (1 - p) (u / p)^2); in strata
    sqrt(sum over the strata of N (N - J) s^2 / J), s^2 the variance of u over the J judged
    documents of N, or u^2 of a single one; u = y (z - statAP) / (R sqrt(1 - 1 / (p R))), y is 1 for
    a relevant document and else 0, and z is what the document adds to the sum of statAP at its own
    and at later ranks, for each unit of 1 / p. For a run it is sqrt(sum of the topics' squares) /
    topics. 0 where no judged document is relevant
    Range: 0 and above
    Source: Aslam and Pavlu, 2007 (Horvitz and Thompson's variance); Särndal, Swensson and Wretman,
    Model Assisted Survey Sampling, 1992, sections 3.7 and 5.5; MacKinnon and White, Journal of
    Econometrics 29, 1985 (the root in u)
    """
    return np.array([estimate.error for estimate in _estimates(run, _stat, cutoff, rel)])


def inferred_ndcg(run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR) -> Floats:
    """Inferred nDCG: nDCG estimated from sampled judgements.

    Formula: infNDCG@k = DCG / DCG of the ideal ranking, both cut at k. In strata DCG = sum over the
    strata of d times the mean of G[i] / log2(i + 1) over its judged documents at ranks 1..k, d its
    documents there; with probabilities the sum of G[i] / (p log2(i + 1)). The ideal ranking has the
    estimated number of documents at each level, rounded: the sum of 1 / p, in strata p = J / N for
    J judged documents of N
    Range: 0 and above
    Source: Yilmaz, Kanoulas and Aslam, SIGIR 2008; NIST's sample_eval (strata)
    Elsewhere: sample_eval cuts at 1,000 documents: infNDCG@1000
    """
    return np.array([estimate.value for estimate in _estimates(run, _inferred, cutoff, gains)])


def inferred_ndcg_error(
    run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR
) -> Floats:
    """Standard error of infNDCG: how far it varies with the documents drawn.

    Formula: infNDCG_se@k = sqrt(sum over the strata of N (N - J) s^2 / J), s^2 the variance of u
    over the J judged documents of N, or u^2 of a single one; with probabilities sqrt(sum over the
    judged documents of (1 - p) (u / p)^2). u = (z - infNDCG h) / (I sqrt(1 - h / (p I))), where I
    is the DCG of the ideal ranking, h what another document of the level adds to it, and z what the
    document adds to DCG, for each unit of 1 / p. For a run it is sqrt(sum of the topics' squares) /
    topics. 0 where no judged document gains
    Range: 0 and above
    Source: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, sections 3.7 and
    5.5; MacKinnon and White, Journal of Econometrics 29, 1985 (the root in u)
    """
    return np.array([estimate.error for estimate in _estimates(run, _inferred, cutoff, gains)])


@dataclass(frozen=True)
class _Estimate:
    value: float
    error: float


_NOTHING = _Estimate(0.0, 0.0)


@dataclass(frozen=True)
class _Topic:
    """The retrieved listed documents of a topic in the order of ranks, and its groups.

    Shapes: `rank`, `level` and `group` have one entry per document, `judged`, `size` and `weight`
    one per group; `cell_group`, `cell_level`, `cell_count` and `cell_left` (documents that are not
    retrieved) one per group and judged level.
    """

    rank: Ints
    level: Ints
    group: Ints
    judged: Ints
    size: Ints
    weight: Floats
    cell_group: Ints
    cell_level: Ints
    cell_count: Ints
    cell_left: Ints
    strata: bool

    @property
    def weights(self) -> Floats:
        """Return the weight of each retrieved document."""
        return self.weight[self.group]

    def by_group(self, rows: Flags) -> _Matrix:
        """Return whether each of these documents is in each group; shape (documents, groups)."""
        groups = np.arange(len(self.size))
        return np.where(rows[:, None] & (self.group[:, None] == groups), 1.0, 0.0)

    def estimated(self, cells: Flags) -> float:
        """Return the estimated number of documents of some cells, retrieved or not."""
        return float(np.sum((self.weight[self.cell_group] * self.cell_count)[cells]))

    def error(self, influence: Floats, left: Floats, share: Floats, share_left: Floats) -> float:
        """Return the standard error of the sum of weight times influence over the judged documents.

        `influence` is that of each retrieved document, 0 where it is not judged, `left` that of
        each other document of a cell. A document has a `share` in what the estimate is divided by,
        times its weight. It is drawn towards its own influence by as much, which is corrected as in
        HC2 of MacKinnon and White (Journal of Econometrics 29, 1985).
        """
        groups = len(self.size)
        influence = influence / _remaining(self.weights * share)
        left = left / _remaining(self.weight[self.cell_group] * share_left)
        squares = sum_by_topic(self.group, np.square(influence), groups)
        squares += sum_by_topic(self.cell_group, np.square(left) * self.cell_left, groups)
        if not self.strata:
            return float(np.sqrt(np.sum(self.weight * (self.weight - 1) * squares)))

        sums = sum_by_topic(self.group, influence, groups)
        sums += sum_by_topic(self.cell_group, left * self.cell_left, groups)
        judged, several = np.maximum(self.judged, 1), self.judged > 1
        spread = np.where(several, squares - np.square(sums) / judged, squares)
        spread = np.maximum(spread, 0.0) / np.where(several, judged - 1, 1)
        return float(np.sqrt(np.sum(self.size * (self.size - self.judged) / judged * spread)))


def _remaining(share: Floats) -> Floats:
    # A share of nearly 1 leaves nothing to correct: the influence is 0 then.
    remaining: Floats = np.sqrt(1 - np.minimum(share, 0.75))
    return remaining


def _estimates(
    run: JudgedRun,
    estimate: Callable[[_Topic, int | None, Any], _Estimate],
    cutoff: int | None,
    of: int | GainMap,
) -> list[_Estimate]:
    """Return the estimate of each topic, from which value and error are taken."""

    def compute() -> list[_Estimate]:
        topics = run.once("sampled topics", lambda: _topics(run))
        return [estimate(topic, cutoff, of) for topic in topics]

    return run.once(("estimates", estimate.__name__, cutoff, of), compute)


def _topics(run: JudgedRun) -> list[_Topic]:
    return list(_each_topic(run, run.sampling or _undeclared(run)))


def _undeclared(run: JudgedRun) -> Sampling:
    """Return one stratum for each topic: all that is in the qrels."""
    base, n_topics = run.recall_base, run.n_topics
    judged = base.sum_where(base.level >= 0)
    size = np.maximum(base.sum_where(np.ones(len(base.level), np.bool_)), 1)
    return Sampling(
        rows=run.topic,
        topic=np.arange(n_topics),
        probability=judged / size,
        cell_group=base.topic,
        cell_level=base.level,
        cell_count=base.counts,
        strata=True,
    )


def _each_topic(run: JudgedRun, sampling: Sampling) -> Iterator[_Topic]:
    n_groups = len(sampling.topic)
    counts = sampling.cell_count
    is_judged = sampling.cell_level >= 0
    size = np.bincount(sampling.cell_group, counts, n_groups).astype(np.int64)
    judged = np.bincount(sampling.cell_group, counts * is_judged, n_groups).astype(np.int64)
    weight = np.zeros(n_groups)
    np.divide(1.0, sampling.probability, out=weight, where=sampling.probability > 0)

    topics = np.arange(run.n_topics + 1)
    rows = np.searchsorted(run.topic, topics)
    groups = np.searchsorted(sampling.topic, topics)
    order = np.argsort(sampling.cell_group[is_judged], kind="stable")
    cell_group, cell_level, cell_count = (
        column[is_judged][order]
        for column in (sampling.cell_group, sampling.cell_level, sampling.cell_count)
    )
    cells = np.searchsorted(cell_group, groups)
    retrieved = _retrieved(run, sampling, cell_group, cell_level)

    for topic in range(run.n_topics):
        of_rows, of_groups, of_cells = (
            slice(starts[topic], starts[topic + 1]) for starts in (rows, groups, cells)
        )
        group, level = sampling.rows[of_rows] - of_groups.start, run.level[of_rows]
        yield _Topic(
            rank=run.rank[of_rows],
            level=level,
            group=group,
            judged=judged[of_groups],
            size=size[of_groups],
            weight=weight[of_groups],
            cell_group=cell_group[of_cells] - of_groups.start,
            cell_level=cell_level[of_cells],
            cell_count=cell_count[of_cells],
            cell_left=cell_count[of_cells] - retrieved[of_cells],
            strata=sampling.strata,
        )


def _retrieved(run: JudgedRun, sampling: Sampling, cell_group: Ints, cell_level: Ints) -> Ints:
    """Return how many documents of each cell of judged documents are retrieved."""
    is_judged = run.level >= 0
    width = int(cell_level.max(initial=0)) + 1
    cell = cell_group * width + cell_level
    order = np.argsort(cell)
    row = sampling.rows[is_judged] * width + run.level[is_judged]
    return np.bincount(order[np.searchsorted(cell, row, sorter=order)], minlength=len(cell))


def _x_inferred(topic: _Topic, cutoff: int | None, rel: int) -> _Estimate:
    total = topic.estimated(topic.cell_level >= rel)
    if not total:
        return _NOTHING

    is_relevant, is_judged = topic.level >= rel, topic.level >= 0
    listed = topic.by_group(np.ones(len(topic.rank), np.bool_))
    documents, sampled, relevant = (
        _above(rows) for rows in (listed, topic.by_group(is_judged), topic.by_group(is_relevant))
    )
    share = (relevant + _RELEVANT) / (sampled + _SAMPLED)
    precision = (1 + np.sum(documents * share, axis=1)) / topic.rank
    counts = is_relevant & _within(topic, cutoff)
    value = float(np.sum((topic.weights * precision)[counts])) / total

    # What each judged document adds to the precision of the relevant ones below it.
    per_sampled = np.divide(documents, sampled, out=np.zeros_like(documents), where=sampled > 0)
    per_sampled *= np.where(counts, topic.weights / topic.rank, 0.0)[:, None]
    of_any, of_relevant = (
        np.sum(_below(matrix) * listed, axis=1) for matrix in (per_sampled * share, per_sampled)
    )
    below = np.where(is_relevant, of_relevant, 0.0) - of_any
    below = np.divide(below, topic.weights, out=np.zeros_like(below), where=is_judged)
    influence = np.where(counts, precision, 0.0) - np.where(is_relevant, value, 0.0) + below
    left = np.where(topic.cell_level >= rel, -value, 0.0)

    added = np.where(topic.cell_level >= rel, 1.0, 0.0)
    error = topic.error(influence, left, is_relevant / total, added / total)
    return _Estimate(value, error / total)


def _stat(topic: _Topic, cutoff: int | None, rel: int) -> _Estimate:
    total = topic.estimated(topic.cell_level >= rel)
    if not total:
        return _NOTHING

    is_relevant = topic.level >= rel
    weights = np.where(is_relevant, topic.weights, 0.0)
    counts = is_relevant & _within(topic, cutoff)
    at_rank = np.where(counts, weights / topic.rank, 0.0)
    above, below = _above(weights), _below(at_rank)

    if topic.strata:
        # Two documents of one stratum are drawn together more rarely than independent ones.
        judged, size = topic.judged, topic.size
        together = size * np.maximum(judged - 1, 1) / np.maximum(judged * (size - 1), 1)
        more = np.where(judged > 1, 1 / together - 1, 0.0)
        same = topic.by_group(is_relevant)
        above = above + np.sum(_above(same * weights[:, None]) * more * same, axis=1)
        below = below + np.sum(_below(same * at_rank[:, None]) * more * same, axis=1)

    precision = np.where(counts, (1 + above) / topic.rank, 0.0)
    value = float(np.sum(weights * precision)) / total
    influence = np.where(is_relevant, precision + below - value, 0.0)
    left = np.where(topic.cell_level >= rel, -value, 0.0)

    added = np.where(topic.cell_level >= rel, 1.0, 0.0)
    error = topic.error(influence, left, is_relevant / total, added / total)
    return _Estimate(value, error / total)


def _inferred(topic: _Topic, cutoff: int | None, gains: GainMap) -> _Estimate:
    gain_of_cell = gains.of(topic.cell_level)
    ideal, added = _ideal(topic, cutoff, gain_of_cell)
    if not ideal:
        return _NOTHING

    within = _within(topic, cutoff)
    is_judged = (topic.level >= 0) & within
    gain = np.where(is_judged, gains.of(topic.level), 0.0) / np.log2(topic.rank + 1)
    if topic.strata:
        groups = len(topic.size)
        documents = np.bincount(topic.group[within], minlength=groups)
        sampled = np.bincount(topic.group[is_judged], minlength=groups)
        per_sampled = np.divide(documents, sampled, out=np.zeros(groups), where=sampled > 0)
        mean = sum_by_topic(topic.group, gain, groups) / np.maximum(sampled, 1)
        value = float(np.sum(per_sampled * sampled * mean)) / ideal
        influence = np.zeros(len(gain))
        part = per_sampled[topic.group] * (gain - mean[topic.group])
        np.divide(part, topic.weights, out=influence, where=is_judged)
    else:
        value = float(np.sum(topic.weights * gain)) / ideal
        influence = gain

    # The number of documents at each level is estimated, too.
    added_of_level = dict(zip(topic.cell_level.tolist(), added.tolist(), strict=True))
    added_of_row = np.array(
        [added_of_level[level] if level >= 0 else 0.0 for level in topic.level.tolist()]
    )
    influence = influence - value * added_of_row
    error = topic.error(influence, -value * added, added_of_row / ideal, added / ideal)
    return _Estimate(value, error / ideal)


def _ideal(topic: _Topic, cutoff: int | None, gain_of_cell: Floats) -> tuple[float, Floats]:
    """Return the DCG of the ideal ranking, and what another document of each cell adds to it."""
    gains = np.unique(gain_of_cell[gain_of_cell > 0])[::-1]
    estimated = np.array([topic.estimated(gain_of_cell == gain) for gain in gains])
    ends = np.cumsum(np.floor(estimated + 0.5)).astype(np.int64)
    if cutoff is not None:
        ends = np.minimum(ends, cutoff)

    # A document more moves those of each lower gain down by one rank.
    steps = gains - np.append(gains[1:], 0.0)
    ideal = float(np.sum(steps * _discounted(ends)))
    open_ends = ends < (cutoff or np.inf)
    next_rank = np.where(open_ends, steps / np.log2(ends + 1.5), 0.0)
    added = np.cumsum(next_rank[::-1])[::-1]

    # `gains` descend.
    cell = np.searchsorted(-gains, -gain_of_cell)
    return ideal, np.append(added, 0.0)[np.where(gain_of_cell > 0, cell, len(gains))]


def _discounted(last: Ints) -> Floats:
    """Return the sum of 1 / log2(i + 1) over the ranks i = 1..last, for each of some last ranks.

    Estimated numbers of documents are large where probabilities are small. Beyond the first ranks
    the sum is an integral with its first two corrections (Euler and Maclaurin), to 1e-14.
    """
    near = np.minimum(last, _SUMMED_RANKS)
    sums = np.append(0.0, np.cumsum(1 / np.log2(np.arange(1, near.max(initial=0) + 1) + 1)))
    if (near == last).all():
        return sums[last]

    # Few evaluations need it, and it takes a tenth of a second to load.
    from scipy import special

    start, end = np.log(_SUMMED_RANKS + 1.0), np.log(np.maximum(last, _SUMMED_RANKS) + 1.0)
    beyond = special.expi(end) - special.expi(start) + (1 / end - 1 / start) / 2
    beyond += (np.exp(-start) / start**2 - np.exp(-end) / end**2) / 12
    discounted: Floats = sums[near] + np.log(2) * beyond
    return discounted


def _within(topic: _Topic, cutoff: int | None) -> Flags:
    within: Flags = topic.rank <= (np.inf if cutoff is None else cutoff)
    return within


def _above(values: Floats) -> Floats:
    """Return the sum of the rows above each row."""
    above: Floats = np.cumsum(values, axis=0) - values
    return above


def _below(values: Floats) -> Floats:
    """Return the sum of the rows below each row."""
    return _above(values[::-1])[::-1]
