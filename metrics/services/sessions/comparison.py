"""Compare systems on one value of each session.

They are crossed by searchers and topics, paired, in a Latin square, by topic, or unpaired samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.sessions.cautions import dependent_cells, left_out, of_sessions
from metrics.engine.sessions.designs import (
    Crossing,
    Design,
    crossings_of,
    paired_values,
    recognise,
    samples,
    topic_values,
)
from metrics.engine.significance import (
    CORRECTIONS,
    OMNIBUS,
    TESTS,
    crossed,
    kruskal_wallis,
    latin_square,
)
from metrics.engine.significance.cautions import untested
from metrics.engine.significance.crossed import mean_interval
from metrics.engine.significance.effect_sizes import (
    EffectSizes,
    Estimate,
    cliff_delta,
    detectable_difference,
    effect_sizes,
    relative_difference,
)
from metrics.engine.significance.families import Pairs, check_known, compare_family, family_size
from metrics.engine.significance.latin_square import Contrast
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
from metrics.engine.significance.welch_t import errors_of_samples
from metrics.models import SessionEvaluation
from metrics.services.sessions.board import first_judged_by
from metrics.services.sessions.sample import (
    OWN_TESTS,
    ComparedFactor,
    Sample,
    SessionComparisonQuery,
    in_words_of,
    place_of,
    read_sample,
)
from metrics.services.snapshots import one_snapshot
from metrics.services.values.effort import seconds_of_test
from metrics.services.work import begin
from runs.models import Collection, Qrels

_WHY: dict[Design, str] = {
    "paired": "every searcher who searched a topic used every system on it",
    "latin_square": (
        "every searcher searched every topic once, with systems balanced over searchers and topics"
    ),
    "two_way": "every topic was searched with every system, but not by the same searchers",
    "unpaired": "some topics were not searched with every system",
}
_WHY_OF: dict[ComparedFactor, dict[Design, str]] = {
    "systems": _WHY,
    "searchers": {
        "paired": "every searcher searched every topic with every system that was used on it",
        "two_way": "every searcher searched every topic, but not with the same systems",
        "unpaired": "some searchers did not search every topic",
    },
    "topics": {
        "paired": (
            "every topic was searched by every searcher with every system that the searcher used"
        ),
        "two_way": "every topic was searched by every searcher, but not with the same systems",
        "unpaired": "some topics were not searched by every searcher",
    },
    "collections": {
        "paired": "every searcher used every system that the searcher used in every collection",
        "two_way": "every searcher searched every collection, but not with the same systems",
        "unpaired": "some searchers did not search every collection",
    },
}
# The tests that fit a design, the usual one first. Crossed and in a Latin square, pairs have its
# own analysis.
_PAIRED = [name for name, test in TESTS.items() if test.paired]
FITTING: dict[Design, list[str]] = {
    "crossed": [OWN_TESTS[0]],
    "paired": _PAIRED,
    "latin_square": [OWN_TESTS[1]],
    "two_way": _PAIRED,
    "unpaired": [name for name, test in TESTS.items() if test.compare_samples],
}
# Seconds to solve a system of equations, by the cube of their number, and at least; to compare two
# samples, for each of their values, and for each pair of values where p is counted exactly; to take
# values into a model that was solved, and for each session and system of a model.
_CUBED = 5e-9
_SOLVED = 1e-3
_SAMPLES = 7e-5
_VALUE = 1.5e-7
_COUNTED = 2.5e-8
_FITTED = 3e-4
_WEIGHED = 3e-7


@dataclass(frozen=True)
class ComparedSystem:
    """One system that takes part.

    It has its sessions, those with a value, its mean over them and both ends of Student's interval,
    NaN for a single session.
    """

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
    """The effect sizes of each pair; None if the design has none such.

    `relative` is the difference as a share of the second system's mean, NaN if that is 0.
    `detectable` is the true difference with an interval that would leave out 0 in 8 of 10 such
    studies, NaN without an interval. `paired` are those of compared runs for paired values, over
    cells, and `delta` is Cliff's delta for samples.
    """

    relative: Floats
    detectable: Floats
    paired: EffectSizes | None = None
    delta: Estimate | None = None


@dataclass(frozen=True)
class SessionComparison:
    """The systems best first, and every pair of them or with the baseline.

    `recognised` is the design of the sessions, with the reason in `why`; `design` is the one by
    which they are compared, on this many `cells`: pairs of topic and searcher, topics, or sessions.
    Bounds of `result` are NaN if the test has none. `family` is the number of pairs that p values
    account for. There are tiers if all pairs are given and any can have a verdict. `crossings` are
    what crossed analyses take: one of all systems, or one for each pair, or none; `crossed` has the
    crossed analysis of each pair, if that is the design.
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
    systems: list[ComparedSystem]
    pairs: Pairs
    result: PairedResult
    adjusted: Floats
    verdicts: Verdicts
    effects: PairEffects
    tiers: Tiers | None
    omnibus: dict[str, OmnibusResult]
    crossings: list[Crossing]
    crossed: list[OmnibusResult]

    @property
    def qrels(self) -> Qrels | None:
        """Return the active judgements, or None where systems have judgements of their own.

        The latter are those of logs, or those of several collections.
        """
        if self.query.compare == "collections":
            return None
        return self.systems[0].evaluation.qrels

    @property
    def draws(self) -> bool:
        """Return whether the results depend on B and the seed."""
        return self.test in TESTS and TESTS[self.test].draws

    def better(self, place: int) -> int:
        """Return 1 if a pair's first system is significantly better, -1 if it is worse, else 0."""
        return int(self.verdicts.better(self.query.measure.lower_is_better)[place])

    def withheld(self, place: int) -> str:
        return REASONS[self.verdicts.withheld[place]]


@dataclass(frozen=True)
class _Outcome:
    """The results of a comparison of systems.

    It has the number of cells, the number that verdicts are based on and their unit, the result and
    effect sizes of each pair, the tests of all systems at once, and each pair's analysis of a
    crossed design.
    """

    cells: int
    fewest: int
    result: PairedResult
    effects: PairEffects
    omnibus: dict[str, OmnibusResult]
    units: str = ""
    crossed: list[OmnibusResult] = field(default_factory=list)


def compare_systems(
    *, collection: Collection, query: SessionComparisonQuery, others: Sequence[Collection] = ()
) -> SessionComparison:
    """Compare systems, or the collection with `others`, on the measure.

    Use the design of their sessions, or the requested one. `others` are those that the query names.

    Raise StatisticsError for fewer than two systems, too many, an unknown one, a test that does not
    fit the design, or too few values.
    """
    with one_snapshot():
        judged_by = query.judged_by or first_judged_by(collection)
        sample = read_sample(collection, judged_by, query, others)
    return compare_sample(sample, judged_by, query)


def compare_sample(
    sample: Sample, judged_by: str, query: SessionComparisonQuery
) -> SessionComparison:
    """Compare systems, or searchers or topics in their place, on sessions that were read before."""
    pairs = Pairs(len(sample.names), place_of(sample.names, query.baseline, query.compare))
    if query.compare != "systems":
        try:
            return _compare(sample, judged_by, query, pairs, [])
        except StatisticsError as error:
            message = in_words_of(error.message, query.compare)
            raise StatisticsError(message, code=error.code, pointer=error.pointer) from error

    try:
        crossings = crossings_of(sample.values, sample.factors, *pairs.indices())
    except StatisticsError:
        if query.design == "crossed":
            raise
        return _compare(sample, judged_by, query, pairs, [])

    try:
        return _compare(sample, judged_by, query, pairs, crossings)
    except StatisticsError as error:
        # Sessions can look as if they could be crossed, and leave nothing to hold the systems
        # against.
        if query.design or query.test or error.code != StatisticsError.code:
            raise
        return _compare(sample, judged_by, query, pairs, [])


def _compare(
    sample: Sample,
    judged_by: str,
    query: SessionComparisonQuery,
    pairs: Pairs,
    crossings: list[Crossing],
) -> SessionComparison:
    plain = recognise(sample.factors)
    if query.compare != "systems":
        # Searchers and topics are the blocks of a square, not what it balances.
        plain = "two_way" if plain == "latin_square" else plain
        if query.design in ("crossed", "latin_square"):
            message = f"{query.compare} are compared by the designs paired, two_way and unpaired"
            raise StatisticsError(message, code="bad_parameter", pointer="design")

    recognised = "crossed" if crossings else plain
    fits = [design for design in (recognised, plain) if query.test in (None, *FITTING[design])]
    design = query.design or (fits or [recognised])[0]

    test = query.test or FITTING[design][0]
    if test not in FITTING[design]:
        message = (
            f"test {test[:40]!r} does not fit the {design} design; choose from: "
            f"{', '.join(FITTING[design])}"
        )
        raise StatisticsError(message, code="unknown_test", pointer="test")

    check_known([], query.rule.correction)
    if design in ("crossed", "latin_square"):
        outcome = _in_factors(
            sample, design, pairs, query, crossings if design == "crossed" else []
        )
    elif compare := TESTS[test].compare_samples:
        outcome = _unpaired(sample, pairs, compare, query)
    else:
        outcome = _paired(sample, design, pairs, test, query)

    result, fewest = outcome.result, outcome.fewest
    simultaneous = test in TESTS and TESTS[test].simultaneous
    correction = None if simultaneous else query.rule.correction
    adjusted = adjust(result.p_value, CORRECTIONS[correction]) if correction else result.p_value
    verdicts = decide(result, adjusted, query.rule.alpha, fewest)
    all_cautions = [
        *result.cautions,
        *of_sessions(cautions_of(verdicts, fewest), design, outcome.units),
    ]

    if design != "crossed":
        all_cautions += dependent_cells(
            *_cells(sample, design), sample.factors, design, bool(crossings)
        )

    cautions = [
        replace(caution, message=in_words_of(caution.message, query.compare))
        for caution in dict.fromkeys(all_cautions)
    ]

    result = replace(result, cautions=tuple(cautions))
    family = family_size(test, pairs) if test in TESTS else pairs.number
    system_tiers = None
    if not pairs.baselines and fewest >= MIN_TOPICS and not verdicts.have(NO_SPREAD).all():
        order = np.arange(pairs.runs, dtype=np.float64)
        system_tiers = tiers(order, *pairs.indices(), verdicts.significant, lower_is_better=True)

    return SessionComparison(
        query=query,
        judged_by=judged_by,
        recognised=recognised,
        why=_why(plain, crossings, query.compare),
        design=design,
        test=test,
        correction=correction,
        family=family,
        cells=outcome.cells,
        systems=_systems(sample, query.options.confidence),
        pairs=pairs,
        result=result,
        adjusted=adjusted,
        verdicts=verdicts,
        effects=outcome.effects,
        tiers=system_tiers,
        omnibus=outcome.omnibus,
        crossings=crossings,
        crossed=outcome.crossed,
    )


def _why(plain: Design, crossings: list[Crossing], compare: ComparedFactor) -> str:
    """Return the reason for the recognised design."""
    if not crossings:
        return _WHY_OF[compare][plain]
    if len(crossings) > 1:
        return "in each pair of systems searchers and topics have several sessions"
    used = "all systems" if crossings[0].searchers_cross else "one system each"
    searched = "all systems" if crossings[0].topics_cross else "one system each"

    return (
        f"searchers used {used}, topics were searched with {searched}, and both have several "
        "sessions"
    )


def _cells(sample: Sample, design: Design) -> tuple[int, Ints, Ints]:
    """Return how many cells a test takes for independent, and the topic and searcher of each.

    Both are -1 where they are unknown, or the cells are topics, which have several searchers.
    """
    sessions = np.flatnonzero(~np.isnan(sample.values))
    topic, searcher = sample.factors.topic[sessions], sample.factors.searcher[sessions]
    if design == "paired":
        cells = paired_values(sample.values, sample.factors)
        return len(cells.topic), cells.topic, cells.searcher

    if design == "two_way":
        people = len(sample.factors.searchers) + 1
        searchers = np.unique(topic * people + searcher + 1) % people - 1
        return (
            topic_values(sample.values, sample.factors).values.shape[1],
            np.full(len(searchers), -1),
            searchers,
        )

    return len(sessions), topic, searcher


def _systems(sample: Sample, confidence: float) -> list[ComparedSystem]:
    systems = []
    for place, name in enumerate(sample.names):
        sessions = np.flatnonzero(sample.factors.system == place)
        values = sample.values[sessions]
        defined = values[~np.isnan(values)]
        mean = float(defined.mean()) if len(defined) else None
        topic, searcher = sample.factors.topic[sessions], sample.factors.searcher[sessions]
        ends = mean_interval(values, topic, searcher, confidence)
        systems.append(
            ComparedSystem(name, *sample.entrants[name], len(sessions), len(defined), mean, *ends)
        )

    return systems


def _paired(
    sample: Sample, design: Design, pairs: Pairs, test: str, query: SessionComparisonQuery
) -> _Outcome:
    """Return the paired test on cells, which are pairs of topic and searcher, or topics."""
    paired = (paired_values if design == "paired" else topic_values)(sample.values, sample.factors)
    values, cells = paired.values, paired.values.shape[1]
    if cells < 2:
        message = (
            "a paired comparison needs at least 2 cells in which every system has a value; "
            f"found {cells}"
        )
        raise StatisticsError(message, code="too_few_topics")

    seconds = seconds_of_test(test, pairs.runs, cells, pairs.number, query.options.resamples)
    begin(seconds, "this comparison", "use fewer resamples or systems", "resamples")
    family = compare_family(values, pairs, test, query.rule, query.options)
    cautions = of_sessions(family.result.cautions, design)
    lower = query.measure.lower_is_better
    sizes = effect_sizes(values, *pairs.indices(), query.options, lower_is_better=lower)
    omnibus = {}
    if pairs.runs > 2:
        for name in ("anova", "friedman"):
            whole = OMNIBUS[name](values)
            omnibus[name] = replace(whole, cautions=of_sessions(whole.cautions, design))

    result = replace(family.result, cautions=cautions)
    return _Outcome(
        cells, cells, result, PairEffects(sizes.relative, sizes.detectable, paired=sizes), omnibus
    )


def _in_factors(
    sample: Sample,
    design: Design,
    pairs: Pairs,
    query: SessionComparisonQuery,
    crossings: list[Crossing],
) -> _Outcome:
    """Return the crossed analysis, or that of a Latin square, of all systems and of each pair."""
    sessions = np.flatnonzero(~np.isnan(sample.values))
    if crossings:
        sessions = np.unique(np.concatenate([crossing.sessions for crossing in crossings]))

    values, factors = sample.values[sessions], sample.factors.take(sessions)
    values_by_system = samples(values, factors)
    if min(map(len, values_by_system)) < 1:
        raise StatisticsError("a system has no session with a value", code="too_few_topics")

    first, second = pairs.indices()
    contrasts = _contrasts(sample, sessions, design, pairs, crossings, query.options.confidence)
    omnibus: dict[str, OmnibusResult] = {design: contrasts[0].analysis} if pairs.runs == 2 else {}
    if pairs.runs > 2 and len(crossings) < 2:
        method = crossed if crossings else latin_square
        omnibus[design] = method.analyse(values, factors.system, factors.topic, factors.searcher)

    analyses = [contrast.analysis for contrast in contrasts]
    difference = np.array([contrast.difference for contrast in contrasts])
    low = np.array([contrast.low for contrast in contrasts])
    high = np.array([contrast.high for contrast in contrasts])
    # A missing statistic is None, and becomes NaN.
    statistic = np.array([analysis.statistic for analysis in analyses], np.float64)
    p_value = np.array([analysis.p_value for analysis in analyses])
    freedom = np.array([analysis.freedom[1] for analysis in analyses])

    fewest = min(analyses, key=lambda analysis: analysis.freedom[1])
    cautions = (*fewest.cautions, *untested(p_value, "the factors leave no residual"))
    means = np.array([system_values.mean() for system_values in values_by_system])
    confidence = query.options.confidence

    error = (high - low) / (2 * special.stdtrit(freedom, (1 + confidence) / 2))
    detectable = detectable_difference(error, freedom, confidence)
    effects = PairEffects(relative_difference(difference, means[second]), detectable)
    result = PairedResult(
        difference, low, high, statistic, p_value, np.zeros(len(first), np.bool_), cautions
    )

    if not crossings:
        return _Outcome(len(values), len(values), result, effects, omnibus)

    result = replace(result, cautions=(*cautions, *left_out(crossings)))
    fewest_cells, units = min((crossing.fewest, crossing.fewest_are) for crossing in crossings)
    return _Outcome(
        len(values),
        fewest_cells,
        result,
        effects,
        omnibus,
        units,
        analyses,
    )


def _contrasts(
    sample: Sample,
    sessions_taken: Ints,
    design: Design,
    pairs: Pairs,
    crossings: list[Crossing],
    confidence: float,
) -> list[Contrast]:
    """Return the analysis of each pair, on the sessions taken, or on its own crossing."""
    factors = sample.factors
    # In one order, so that pairs with the same searches have the same model.
    by_topic = np.lexsort((factors.searcher[sessions_taken], factors.topic[sessions_taken]))
    order = sessions_taken[by_topic]
    sessions = [order[factors.system[order] == system] for system in range(pairs.runs)]

    # For each system, the first one with the same topics and searchers.
    searched: dict[bytes, int] = {}
    first_alike = []
    for system, own_sessions in enumerate(sessions):
        searches = np.stack([factors.topic[own_sessions], factors.searcher[own_sessions]])
        first_alike.append(searched.setdefault(searches.tobytes(), system))

    first, second = pairs.indices()
    pairs_of_systems = list(zip(first.tolist(), second.tolist(), strict=True))
    keys = pairs_of_systems
    if len(crossings) == 1:
        keys = [(first_alike[i], first_alike[j]) for i, j in pairs_of_systems]

    # The equations of every topic, searcher and system are solved a few times for each model, and
    # for all systems.
    unknowns = len(factors.topics) + len(factors.searchers) + len(factors.systems)
    if len(crossings) > 1:
        unknowns = max(crossing.topics + crossing.searchers for crossing in crossings) + 2

    models = len(set(keys)) + (pairs.runs > 2)
    seconds = (
        (_CUBED * unknowns**3 + _SOLVED) * models
        + _FITTED * pairs.number
        + _WEIGHED * sessions_taken.size * pairs.runs
    )

    begin(seconds, "this analysis", "name fewer systems, or another design", "systems")

    fitted: dict[tuple[int, int], crossed.Model] = {}
    contrasts = []
    for index, ((i, j), key) in enumerate(zip(pairs_of_systems, keys, strict=True)):
        if len(crossings) > 1:
            own_sessions = crossings[index].sessions
        else:
            own_sessions = np.concatenate([sessions[i], sessions[j]])

        part = (
            (factors.system[own_sessions] == j).astype(np.int64),
            factors.topic[own_sessions],
            factors.searcher[own_sessions],
        )

        if not crossings:
            contrasts.append(latin_square.contrast(sample.values[own_sessions], *part, confidence))
            continue
        if key not in fitted:
            fitted[key] = crossed.Model.of(*part)

        contrasts.append(fitted[key].compare(sample.values[own_sessions], confidence))

    return contrasts


def _unpaired(
    sample: Sample, pairs: Pairs, compare: SamplesTest, query: SessionComparisonQuery
) -> _Outcome:
    """Return a test of samples for each pair, and Kruskal and Wallis's for several systems."""
    values_by_system = samples(sample.values, sample.factors)
    first, second = pairs.indices()
    sizes = np.array([len(system_values) for system_values in values_by_system], np.float64)
    small, large = np.minimum(sizes[first], sizes[second]), np.maximum(sizes[first], sizes[second])
    products = np.where(small <= 8, small * large, 0.0)
    seconds = float((_SAMPLES + _VALUE * (small + large) + _COUNTED * products).sum())
    begin(seconds, "this comparison", "name fewer systems or sets", "systems")
    result = compare(values_by_system, first, second, query.options)
    result = replace(result, cautions=of_sessions(result.cautions, "unpaired"))
    means = np.array([system_values.mean() for system_values in values_by_system])
    delta = cliff_delta(values_by_system, first, second, query.options.confidence)
    detectable = detectable_difference(
        *errors_of_samples(values_by_system, first, second), query.options.confidence
    )
    effects = PairEffects(
        relative_difference(result.difference, means[second]), detectable, delta=delta
    )
    omnibus = {}

    if pairs.runs > 2:
        whole = kruskal_wallis.analyse_samples(values_by_system)
        omnibus["kruskal_wallis"] = replace(whole, cautions=of_sessions(whole.cautions, "unpaired"))

    return _Outcome(
        sum(map(len, values_by_system)), min(map(len, values_by_system)), result, effects, omnibus
    )
