"""Compare systems on one value of each session: paired, in a Latin square, by topic, or as unpaired samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.intervals import row_intervals
from metrics.engine.ranking import Floats
from metrics.engine.sessions.cautions import dependent_cells, of_sessions
from metrics.engine.sessions.designs import Design, paired_values, recognise, samples, topic_values
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS, kruskal_wallis, latin_square
from metrics.engine.significance.cautions import untested
from metrics.engine.significance.effect_sizes import (
    EffectSizes,
    Estimate,
    cliff_delta,
    effect_sizes,
    relative_difference,
)
from metrics.engine.significance.families import Pairs, check_known, compare_family, family_size
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import PairedResult, SamplesTest
from metrics.engine.significance.tiers import Tiers, tiers
from metrics.engine.significance.verdicts import (
    MIN_TOPICS,
    NO_SPREAD,
    REASONS,
    Verdicts,
    adjust,
    cautions_of,
    decide,
)
from metrics.models import SessionEvaluation
from metrics.services.sessions.board import first_judged_by
from metrics.services.sessions.sample import Sample, SessionComparisonQuery, place_of, read_sample
from metrics.services.snapshots import one_snapshot
from metrics.services.values.effort import seconds_of_test
from metrics.services.work import begin
from runs.models import Collection, Qrels

DESIGNS: tuple[Design, ...] = ("paired", "latin_square", "two_way", "unpaired")
_WHY: dict[Design, str] = {
    "paired": "every searcher who searched a topic used every system on it",
    "latin_square": "every searcher searched every topic once, with systems balanced over searchers and topics",
    "two_way": "every topic was searched with every system, but not by the same searchers",
    "unpaired": "some topics were not searched with every system",
}
# The tests that fit a design, the usual one first. In a Latin square the pairs are compared by its own analysis.
_PAIRED = [name for name, test in TESTS.items() if test.paired]
FITTING: dict[Design, list[str]] = {
    "paired": _PAIRED,
    "latin_square": ["latin_square"],
    "two_way": _PAIRED,
    "unpaired": [name for name, test in TESTS.items() if test.compare_samples],
}
# Seconds to solve a system of equations, by the cube of their number; to compare two samples, for each of their values,
# and for each pair of values where p is counted exactly.
_CUBED, _SAMPLES, _VALUE, _COUNTED = 5e-9, 7e-5, 1.5e-7, 2.5e-8


@dataclass(frozen=True)
class Compared:
    """One system that takes part: its sessions, those with a value, its mean over them and both ends of Student's
    interval, NaN for a single session."""

    name: str
    evaluation: SessionEvaluation
    system: str
    sessions: int
    with_value: int
    mean: float | None
    low: float
    high: float


@dataclass(frozen=True)
class PairEffects:
    """The effect sizes of each pair: the difference as a share of the second system's mean, NaN if that is 0; those of
    compared runs for paired values, over cells; Cliff's delta for samples. None if the design has none such."""

    relative: Floats
    paired: EffectSizes | None = None
    delta: Estimate | None = None


@dataclass(frozen=True)
class SessionComparison:
    """The systems best first, and every pair of them or with the baseline.

    `recognised` is the design of the sessions, with the reason in `why`; `design` is the one by which they are
    compared, on this many `cells`: pairs of topic and searcher, topics, or sessions. Bounds of `result` are NaN if the
    test has none. `family` is the number of pairs that p values account for. There are tiers if all pairs are given and
    any can have a verdict.
    """

    query: SessionComparisonQuery
    judged_by: str
    recognised: Design
    why: str
    design: Design
    test: str
    correction: str | None
    family: int
    cells: int
    systems: list[Compared]
    pairs: Pairs
    result: PairedResult
    adjusted: Floats
    verdicts: Verdicts
    effects: PairEffects
    tiers: Tiers | None
    omnibus: dict[str, OmnibusResult]

    @property
    def qrels(self) -> Qrels | None:
        """Return the active judgements, which are the same for every system, or None if the logs contain their own."""
        return self.systems[0].evaluation.qrels

    @property
    def draws(self) -> bool:
        """Return whether the results depend on B and the seed."""
        return self.test in TESTS and TESTS[self.test].draws

    def better(self, place: int) -> int:
        """Return for one pair 1 if its first system is significantly better, -1 if it is worse, 0 without a verdict."""
        return int(self.verdicts.better(self.query.measure.lower_is_better)[place])

    def withheld(self, place: int) -> str:
        return REASONS[self.verdicts.withheld[place]]


@dataclass(frozen=True)
class _Outcome:
    """The number of cells, the number that verdicts are based on, the result and effect sizes of each pair, and the
    tests of all systems at once."""

    cells: int
    fewest: int
    result: PairedResult
    effects: PairEffects
    omnibus: dict[str, OmnibusResult]


def compare_systems(*, collection: Collection, query: SessionComparisonQuery) -> SessionComparison:
    """Compare systems on the measure, by the design of their sessions or the requested one.

    Raise StatisticsError for fewer than two systems, too many, an unknown one, a test that does not fit the design, or
    too few values.
    """
    with one_snapshot():
        judged_by = query.judged_by or first_judged_by(collection)
        sample = read_sample(collection, judged_by, query)
    return compare_sample(sample, judged_by, query)


def compare_sample(sample: Sample, judged_by: str, query: SessionComparisonQuery) -> SessionComparison:
    """Compare systems on sessions that were read before."""
    recognised = recognise(sample.factors)
    design = query.design or recognised
    test = query.test or FITTING[design][0]
    if test not in FITTING[design]:
        message = f"test {test[:40]!r} does not fit the {design} design; choose from: {', '.join(FITTING[design])}"
        raise StatisticsError(message, code="unknown_test", pointer="test")
    check_known([], query.rule.correction)
    pairs = Pairs(len(sample.names), place_of(sample.names, query.baseline))
    if design == "latin_square":
        found = _in_square(sample, pairs, query)
    elif compare := TESTS[test].compare_samples:
        found = _unpaired(sample, pairs, compare, query)
    else:
        found = _paired(sample, design, pairs, test, query)
    result, fewest = found.result, found.fewest
    simultaneous = test in TESTS and TESTS[test].simultaneous
    correction = None if simultaneous else query.rule.correction
    adjusted = adjust(result.p_value, CORRECTIONS[correction]) if correction else result.p_value
    verdicts = decide(result, adjusted, query.rule.alpha, fewest)
    told = (*result.cautions, *of_sessions(cautions_of(verdicts, fewest), design))
    result = replace(result, cautions=tuple(dict.fromkeys(told)))
    family = family_size(test, pairs) if test in TESTS else pairs.number
    separated = None
    if pairs.baseline is None and fewest >= MIN_TOPICS and not verdicts.have(NO_SPREAD).all():
        order = np.arange(pairs.runs, dtype=np.float64)
        separated = tiers(order, *pairs.indices(), verdicts.significant, lower_is_better=True)
    return SessionComparison(
        query, judged_by, recognised, _WHY[recognised], design, test, correction, family, found.cells,
        _systems(sample, query.options.confidence), pairs, result, adjusted, verdicts, found.effects, separated,
        found.omnibus,
    )  # fmt: skip


def _systems(sample: Sample, confidence: float) -> list[Compared]:
    counts = np.bincount(sample.factors.system, minlength=len(sample.names)).tolist()
    systems = []
    for name, count, values in zip(sample.names, counts, samples(sample.values, sample.factors), strict=True):
        mean = float(np.mean(values)) if len(values) else None
        low, high = (float(end[0]) for end in row_intervals(values[None, :], confidence))
        systems.append(Compared(name, *sample.entrants[name], count, len(values), mean, low, high))
    return systems


def _paired(sample: Sample, design: Design, pairs: Pairs, test: str, query: SessionComparisonQuery) -> _Outcome:
    """Return the paired test on cells, which are pairs of topic and searcher, or topics."""
    paired = (paired_values if design == "paired" else topic_values)(sample.values, sample.factors)
    values, cells = paired.values, paired.values.shape[1]
    if cells < 2:
        message = f"a paired comparison needs at least 2 cells in which every system has a value; found {cells}"
        raise StatisticsError(message, code="too_few_topics")
    seconds = seconds_of_test(test, pairs.runs, cells, pairs.number, query.options.resamples)
    begin(seconds, "this comparison", "use fewer resamples or systems", "resamples")
    family = compare_family(values, pairs, test, query.rule, query.options)
    cautions = (*of_sessions(family.result.cautions, design), *dependent_cells(paired))
    lower = query.measure.lower_is_better
    sizes = effect_sizes(values, *pairs.indices(), query.options, lower_is_better=lower)
    found = {name: OMNIBUS[name](values) for name in ("anova", "friedman")} if pairs.runs > 2 else {}
    omnibus = {name: replace(one, cautions=of_sessions(one.cautions, design)) for name, one in found.items()}
    result = replace(family.result, cautions=cautions)
    return _Outcome(cells, cells, result, PairEffects(sizes.relative, paired=sizes), omnibus)


def _in_square(sample: Sample, pairs: Pairs, query: SessionComparisonQuery) -> _Outcome:
    """Return the analysis of all systems, and of each pair the same analysis of its own sessions."""
    taking = np.flatnonzero(~np.isnan(sample.values))
    values, factors = sample.values[taking], sample.factors.take(taking)
    found = samples(values, factors)
    if min(map(len, found)) < 1:
        raise StatisticsError("a system has no session with a value", code="too_few_topics")
    # The equations of every topic, searcher and system are solved five times for each analysis.
    unknowns = sum(len(names) for names in (factors.topics, factors.searchers, factors.systems))
    analyses = 1 if pairs.runs == 2 else 1 + pairs.number
    begin(_CUBED * unknowns**3 * analyses, "this analysis", "name fewer systems", "systems")
    first, second = pairs.indices()
    each = []
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        own = np.flatnonzero((factors.system == i) | (factors.system == j))
        first_one = np.where(factors.system[own] == i, 0, 1)
        confidence = query.options.confidence
        one = latin_square.contrast(values[own], first_one, factors.topic[own], factors.searcher[own], confidence)
        each.append(one)
    whole = each[0].analysis
    if pairs.runs > 2:
        whole = latin_square.analyse(values, factors.system, factors.topic, factors.searcher)
    difference, low, high = np.array([(one.difference, one.low, one.high) for one in each]).T
    statistic = np.array([np.nan if one.analysis.statistic is None else one.analysis.statistic for one in each])
    p_value = np.array([one.analysis.p_value for one in each])
    fewest = min(each, key=lambda one: one.analysis.freedom[1]).analysis
    cautions = (*fewest.cautions, *untested(p_value, "the factors leave no residual"))
    result = PairedResult(difference, low, high, statistic, p_value, np.zeros(len(first), np.bool_), cautions)
    means = np.array([one.mean() for one in found])
    effects = PairEffects(relative_difference(difference, means[second]))
    return _Outcome(len(values), len(values), result, effects, {"latin_square": whole})


def _unpaired(sample: Sample, pairs: Pairs, compare: SamplesTest, query: SessionComparisonQuery) -> _Outcome:
    """Return a test of samples for each pair, and for three systems or more Kruskal and Wallis's test."""
    found = samples(sample.values, sample.factors)
    first, second = pairs.indices()
    sizes = np.array([len(one) for one in found], np.float64)
    small, large = np.minimum(sizes[first], sizes[second]), np.maximum(sizes[first], sizes[second])
    counted = np.where(small <= 8, small * large, 0.0)
    seconds = float((_SAMPLES + _VALUE * (small + large) + _COUNTED * counted).sum())
    begin(seconds, "this comparison", "name fewer systems or sets", "systems")
    result = compare(found, first, second, query.options)
    result = replace(result, cautions=of_sessions(result.cautions, "unpaired"))
    means = np.array([one.mean() for one in found])
    delta = cliff_delta(found, first, second, query.options.confidence)
    effects = PairEffects(relative_difference(result.difference, means[second]), delta=delta)
    omnibus = {}
    if pairs.runs > 2:
        whole = kruskal_wallis.analyse_samples(found)
        omnibus["kruskal_wallis"] = replace(whole, cautions=of_sessions(whole.cautions, "unpaired"))
    return _Outcome(sum(map(len, found)), min(map(len, found)), result, effects, omnibus)
