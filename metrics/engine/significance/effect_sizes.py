"""Effect sizes: how large a difference is, as opposed to how significant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.interpolate import CubicSpline

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.cautions import FEW_TOPICS
from metrics.engine.significance.paired_t import mean_and_error
from metrics.engine.significance.pairs import (
    DEFAULTS,
    ROUNDING,
    Matrix,
    Options,
    check,
    chunks,
    noise_of,
)

# Sparck Jones, Journal of Documentation 30(4), 1974, as Tampere RN-2002-2 reads her: up to 5 per
# cent, beyond 10.
_NOTICEABLE, _MATERIAL = 0.05, 0.10
# The largest t with a noncentrality that SciPy computes. More t statistics than knots are read
# from a curve through the knots.
_LARGEST_T, _KNOTS = 1000.0, 512
_MOST_PAIRS = 10_000
# The usual power: the chance to find a difference that exists.
POWER = 0.8
READINGS = ("none", "marginal", "noticeable", "material")


@dataclass(frozen=True)
class Estimate:
    """An effect size of each pair with its confidence interval; NaN where it has none."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class EffectSizes:
    """One entry per pair, the first run minus the second; topics on which the first is better are
    wins.

    `relative` is NaN where the second run's mean is 0, and `reading` an index into READINGS, 0
    there. `deviation` is the standard deviation of the differences over the topics, 0 where they
    agree but for rounding, and `detectable` the difference that these topics would find.
    """

    difference: Floats
    relative: Floats
    reading: Ints
    cohen_d: Estimate
    hedges_g: Estimate
    standardised: Estimate
    cliff_delta: Estimate
    probability_better: Estimate
    wins: Ints
    ties: Ints
    losses: Ints
    deviation: Floats
    detectable: Floats


def effect_sizes(
    values: Matrix,
    first: Ints,
    second: Ints,
    options: Options = DEFAULTS,
    *,
    lower_is_better: bool = False,
) -> EffectSizes:
    """Return every effect size of each pair; the standardised one takes its spread from all runs of
    `values`.

    Raises StatisticsError for fewer than 2 topics.
    """
    check(values, "an effect size")
    difference, error = mean_and_error(values, first, second)
    relative = relative_difference(difference, values.mean(axis=1)[second])
    cohen = cohen_d(difference, error, values.shape[1], options.confidence)

    wins, ties, losses = _outcomes(values, first, second, options.min_difference)
    if lower_is_better:
        wins, losses = losses, wins
    standardised = standardised_difference(values, difference, options.confidence)
    reading = reading_of(relative)

    return EffectSizes(
        difference=difference,
        relative=relative,
        reading=reading,
        cohen_d=cohen,
        hedges_g=hedges_g(cohen, values.shape[1]),
        standardised=standardised,
        cliff_delta=paired_cliff_delta(values, first, second, options.confidence),
        probability_better=probability_better(wins, ties, values.shape[1], options.confidence),
        wins=wins,
        ties=ties,
        losses=losses,
        deviation=error * np.sqrt(values.shape[1]),
        detectable=detectable_difference(error, values.shape[1] - 1, options.confidence),
    )


def relative_difference(difference: Floats, base: Floats) -> Floats:
    """The difference as a share of the second run's mean.

    Formula: (mean_i - mean_j) / |mean_j|; none where that is 0
    Source: Sparck Jones, Journal of Documentation 30(4), 1974: under 5 per cent marginal, over 10
    material, between them noticeable; so in Järvelin and Kekäläinen, University of Tampere
    RN-2002-2
    """
    return np.divide(
        difference, np.abs(base), out=np.full_like(difference, np.nan), where=base != 0
    )


def detectable_difference(error: Floats, freedom: int | Floats, confidence: float) -> Floats:
    """The true difference of which the interval leaves out 0, on the right side, in 8 samples of
    topics of 10.

    Formula: (t(1 - alpha) + t(.8)) sd(d) / sqrt(n), alpha = (1 - confidence) / 2, Student's t with
    n - 1 degrees of freedom; to leave out a margin m instead of it, n (detectable / m)^2 topics are
    needed
    Note: sd(d) is an estimate: with fewer than 25 topics the difference is found in 7 to 8 samples
    of 10.
    Source: Julious, Sample Sizes for Clinical Trials, 2010, chapter 6 (non-inferiority)
    """
    quantiles = special.stdtrit(freedom, (1 + confidence) / 2) + special.stdtrit(freedom, POWER)
    difference: Floats = quantiles * error
    return difference


def power_in_words(topics: int) -> str:
    """Return in how many samples of so many topics the `detectable_difference` is found.

    With few topics its standard deviation is a poor estimate: of pairs of TREC runs, 69 % with 6
    topics, 76 % with 20.
    """
    return "8 of 10" if topics >= FEW_TOPICS else "7 to 8 of 10"


def detectable_by_half(values: Matrix, first: Ints, second: Ints, confidence: float) -> float:
    """Return the difference that half of the pairs would find: the median of the detectable ones.

    At most 10,000 pairs are read, at equal steps. NaN without pairs.
    """
    if not len(first):
        return np.nan
    step = -(-len(first) // _MOST_PAIRS)
    _, error = mean_and_error(values, first[::step], second[::step])
    return float(np.median(detectable_difference(error, values.shape[1] - 1, confidence)))


def reading_of(relative: Floats) -> Ints:
    """Return Sparck Jones's reading of each relative difference, as an index into READINGS."""
    size = np.abs(relative)
    # A share that is 5 or 10 per cent but for rounding is not beyond it.
    steps = (size > 0, size >= _NOTICEABLE - 1e-12, size > _MATERIAL + 1e-12)
    reading: Ints = np.sum(steps, axis=0, dtype=np.int64)
    return reading


def cohen_d(difference: Floats, error: Floats, topics: int, confidence: float) -> Estimate:
    """Cohen's d of paired values.

    Formula: d_z = mean(d) / sd(d); the interval holds the noncentralities that t = d_z sqrt(n) does
    not rule out
    Source: Cohen, Statistical Power Analysis, 1988; interval: Cumming and Finch (2001)
    """
    t = np.divide(difference, error, out=np.where(difference == 0, 0.0, np.nan), where=error > 0)
    low, high = noncentrality(t, topics - 1, confidence)
    root = np.sqrt(topics)

    # Without spread there is nothing to estimate.
    sure = error > 0
    return Estimate(t / root, np.where(sure, low, t) / root, np.where(sure, high, t) / root)


def hedges_g(cohen: Estimate, topics: int) -> Estimate:
    """Hedges's g: Cohen's d without its bias in small samples.

    Formula: g = J d_z, J = Gamma(m / 2) / (sqrt(m / 2) Gamma((m - 1) / 2)), m = n - 1; none for two
    topics
    Source: Hedges, Journal of Educational Statistics 6(2), 1981
    """
    half = (topics - 1) / 2
    # With two topics the correction would be 0, whatever the values.
    factor = (
        float(np.exp(special.gammaln(half) - special.gammaln(half - 0.5)) / np.sqrt(half))
        if topics > 2
        else np.nan
    )

    return Estimate(cohen.value * factor, cohen.low * factor, cohen.high * factor)


def standardised_difference(values: Matrix, difference: Floats, confidence: float) -> Estimate:
    """The difference in standard deviations that are common to all runs.

    Formula: mean(d) / sqrt(V_E2), V_E2 the residual variance of the two-way analysis of variance
    Source: Sakai, SIGIR Forum 48(1), 2014 (ES of HSD), and Laboratory Experiments in Information
    Retrieval, 2018
    """
    if len(values) < 2:
        missing = np.full_like(difference, np.nan)
        return Estimate(missing, missing, missing)

    parts = two_way(values)
    error = np.full_like(difference, np.sqrt(2 * parts.residual_variance / values.shape[1]))
    t = np.divide(difference, error, out=np.where(difference == 0, 0.0, np.nan), where=error > 0)
    low, high = noncentrality(t, parts.freedom, confidence)
    sure, root = error > 0, np.sqrt(2 / values.shape[1])

    return Estimate(t * root, np.where(sure, low, t) * root, np.where(sure, high, t) * root)


def probability_better(wins: Ints, ties: Ints, topics: int, confidence: float) -> Estimate:
    """The chance that the first run is the better one on a topic, a tie counting as half a win.

    Formula: p = (wins + ties / 2) / n, with Wilson's interval (p + z^2 / 2n +- z sqrt(p (1 - p) / n
    + z^2 / 4n^2)) / (1 + z^2 / n), z the normal quantile of (1 + confidence) / 2
    Assumes: topics that are independent
    Source: Wilson, JASA 22, 1927; a tie as half a win: Vargha and Delaney's measure of stochastic
    superiority, Journal of Educational and Behavioral Statistics 25(2), 2000, of pairs
    Note: Half a win varies less than a win or a loss: with many ties the interval is wider than it
    need be. Topics whose |d| is at most `min_difference` are ties.
    """
    p = (wins + ties / 2) / topics
    z = float(special.ndtri((1 + confidence) / 2))
    middle, denominator = p + z**2 / (2 * topics), 1 + z**2 / topics
    margin = z * np.sqrt(p * (1 - p) / topics + (z / (2 * topics)) ** 2)
    # At 0 and 1 the end is there but for rounding.
    return Estimate(
        p,
        np.maximum((middle - margin) / denominator, 0.0),
        np.minimum((middle + margin) / denominator, 1.0),
    )


def paired_cliff_delta(values: Matrix, first: Ints, second: Ints, confidence: float) -> Estimate:
    """Cliff's delta of each pair of runs on the same topics.

    Formula: delta = P(x_i > y_j) - P(x_i < y_j) over all n^2 pairs of a value of each run; the
    interval is that of `cliff_delta` with the jackknife's variance, which leaves out each topic
    with both of its values, and n - 1 degrees of freedom
    Source: Cliff, Psychological Bulletin 114(3), 1993; interval: Feng and Cliff, Journal of Modern
    Applied Statistical Methods 3(2), 2004; jackknife: Arvesen, Annals of Mathematical Statistics
    40(6), 1969
    Note: It compares values of different topics too, so that it is small where topics differ more
    than runs do; `probability_better` compares topic by topic. Values that differ by rounding only
    are equal. No interval where all values of one run are above all of the other.
    """
    n, noises = values.shape[1], noise_of(values, first, second).tolist()
    orders = {row: np.argsort(values[row]) for row in {*first.tolist(), *second.tolist()}}
    ordered = {row: values[row, order] for row, order in orders.items()}
    deltas, margins = np.empty(len(first)), np.full(len(first), np.nan)
    for place, (i, j, noise) in enumerate(
        zip(first.tolist(), second.tolist(), noises, strict=True)
    ):
        rows, columns = np.empty(n), np.empty(n)
        above, below = _dominance(ordered[i], ordered[j], noise)
        rows[orders[i]] = above - below
        under, over = _dominance(ordered[j], ordered[i], noise)
        columns[orders[j]] = over - under
        differences = values[i] - values[j]
        signs = np.where(np.abs(differences) <= noise, 0.0, np.sign(differences))
        total = rows.sum()
        deltas[place] = total / n**2

        without = (total - rows - columns + signs) / (n - 1) ** 2
        margins[place] = np.square(without - without.mean()).sum() * (n - 1) / n

    return _skew_interval(deltas, margins, n - 1, confidence)


def _skew_interval(
    delta: Floats, variance: Floats, freedom: int | Floats, confidence: float
) -> Estimate:
    """Return deltas with Feng and Cliff's interval within -1 and 1; NaN where delta is an end."""
    t = special.stdtrit(freedom, (1 + confidence) / 2)
    margin = t * np.sqrt(variance * ((1 - delta**2) ** 2 + t**2 * variance))
    middle, denominator = delta - delta**3, 1 - delta**2 + t**2 * variance
    sure = np.where(np.abs(delta) == 1, np.nan, denominator)
    return Estimate(delta, (middle - margin) / sure, (middle + margin) / sure)


def cliff_delta(samples: list[Floats], first: Ints, second: Ints, confidence: float) -> Estimate:
    """Cliff's delta of each pair of samples, which need not be of one size; the rank-biserial
    correlation is the same.

    Formula: delta = P(x_i > x_j) - P(x_i < x_j) over all pairs of a value of each = 2 U / (n_i n_j)
    - 1; the interval has its unbiased variance and Student's t with n_i + n_j - 2 degrees of
      freedom, and is not symmetric
    Source: Cliff, Psychological Bulletin 114(3), 1993; interval: Feng and Cliff, Journal of Modern
    Applied Statistical Methods 3(2), 2004
    Note: Values that differ by rounding only are equal. No interval where a sample has one value,
    or all of one are above all of the other, which leaves the variance nothing to be estimated
    from.
    """
    ordered = [np.sort(sample) for sample in samples]
    estimates = np.full((3, len(first)), np.nan)
    for place, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        a, b = ordered[i], ordered[j]
        noise = ROUNDING * max(float(np.abs(a).max()), float(np.abs(b).max()))
        (above, below), (under, over) = _dominance(a, b, noise), _dominance(b, a, noise)
        n, m = len(a), len(b)
        delta = float((above - below).sum()) / (n * m)
        estimates[:, place] = delta

        if min(n, m) < 2 or abs(delta) == 1:
            estimates[1:, place] = np.nan
            continue

        rows = float(np.square((above - below) / m - delta).sum())
        columns = float(np.square((over - under) / n - delta).sum())
        cells = float((above + below).sum()) - n * m * delta**2
        variance = max((m**2 * rows + n**2 * columns - cells) / (n * m * (n - 1) * (m - 1)), 0.0)
        ends = _skew_interval(np.array([delta]), np.array([variance]), n + m - 2, confidence)
        estimates[1:, place] = ends.low[0], ends.high[0]

    return Estimate(*estimates)


def _dominance(values: Floats, others: Floats, noise: float) -> tuple[Ints, Ints]:
    """Return how many of the others, in order, each value is above, and how many it is below."""
    above = np.searchsorted(others, values - noise, side="left")
    return above, len(others) - np.searchsorted(others, values + noise, side="right")


def noncentrality(t: Floats, freedom: int, confidence: float) -> tuple[Floats, Floats]:
    """Return both ends of the noncentrality of each t statistic; NaN stays NaN."""
    size = np.abs(t)
    in_range = size <= _LARGEST_T
    knots = np.unique(size[in_range])
    if len(knots) > _KNOTS:
        # Knots are closer where the curve bends most.
        knots = np.sinh(np.linspace(np.arcsinh(knots[0]), np.arcsinh(knots[-1]), _KNOTS))

    # Beyond the range of SciPy: the spread of the estimated deviation, and the little that the
    # mean adds to it.
    levels = (1 + confidence) / 2, (1 - confidence) / 2
    shares = [np.abs(1 - np.sqrt(special.chdtri(freedom, level) / freedom)) for level in levels]
    below, above = (np.hypot(size * share, special.ndtri(levels[0])) for share in shares)

    near, far = size - below, size + above
    if len(knots):
        ends = [special.nctdtrinc(freedom, (1 + side * confidence) / 2, knots) for side in (1, -1)]
        near[in_range], far[in_range] = (_through(knots, end, size[in_range]) for end in ends)

    # The interval of -t is the reverse of that of t.
    return np.where(t >= 0, near, -far), np.where(t >= 0, far, -near)


def _through(knots: Floats, heights: Floats, points: Floats) -> Floats:
    if len(knots) < _KNOTS:
        return heights[np.searchsorted(knots, points)]
    return CubicSpline(knots, heights)(points)


def _outcomes(values: Matrix, first: Ints, second: Ints, least: float) -> tuple[Ints, Ints, Ints]:
    """Return on how many topics the first run's value is higher, the same, and lower."""
    counts = []
    for a, b in chunks(first, second, values.shape[1]):
        differences = values[a] - values[b]
        bound = (least + noise_of(values, a, b))[:, None]
        counts.append(
            [
                np.count_nonzero(differences > bound, axis=1),
                np.count_nonzero(differences < -bound, axis=1),
            ]
        )

    wins, losses = np.concatenate(counts, axis=1)
    return wins, values.shape[1] - wins - losses, losses
