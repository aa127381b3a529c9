"""Which differences a collection can detect with its topics, and how many topics it would need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metrics.engine.design.discriminative_power import DiscriminativePower, discriminative_power
from metrics.engine.design.swap_rates import SwapRates, swap_rates
from metrics.engine.design.topic_set_size import (
    detectable_difference,
    half_width,
    power_of_anova,
    power_of_equivalence,
    power_of_non_inferiority,
    power_of_t,
    topics_for_anova,
    topics_for_equivalence,
    topics_for_interval,
    topics_for_non_inferiority,
    topics_for_t,
    variance_of,
)
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance import TESTS
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.equivalence import tost
from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import Caution, Options, all_pairs
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.selection import effectiveness_measures, select_evaluations
from metrics.services.boards.topic_selection import (
    TopicFilter,
    Topics,
    TopicSelection,
    flags_of,
    select_topics,
)
from metrics.services.question import (
    RESAMPLES,
    SCORES,
    SEED,
    Integer,
    Measures,
    Number,
    Parameter,
    Question,
    RunIds,
    Several,
    Share,
    parameter,
)
from metrics.services.values.common_values import (
    CommonValues,
    cautions_of,
    check_names,
    qrels_cautions,
    read_common_values,
    refuse_pooled,
)
from metrics.services.values.effort import (
    check_values,
    seconds_of_plans,
    seconds_of_swaps,
    seconds_of_test,
)
from metrics.services.work import begin
from runs.models import Collection, Qrels, Run

MAX_RUNS = 200
_SIZES = 5
_MAX_SIZE, _MAX_TRIALS, _LEAST_DIFFERENCE = 100_000, 1_000, 1e-6


@dataclass(frozen=True)
class DesignQuery(Question):
    """The parameters of a design; no runs means all, no sizes means five up to half of the topics.

    `differences` are those that a test should find with `power` at `alpha`; `trials` is the number
    of pairs of topic sets of each size, and `width` the width of the bins of their differences.
    """

    measures: list[Measure] = parameter(
        Measures(
            "measure names separated by commas; default: the collection's own",
            names=effectiveness_measures,
        )
    )
    runs: list[str] = parameter(RunIds())
    test: str = parameter(Parameter(", ".join(TESTS), default="paired_t"))
    alpha: float = parameter(Share("significance level", default=0.05))
    power: float = parameter(Share("the chance to find a difference", default=0.8))
    differences: list[float] = parameter(
        Several(
            "to be found, separated by commas; default: 0.05,0.1",
            of=Number("a difference", low=_LEAST_DIFFERENCE, high=1 / _LEAST_DIFFERENCE),
            default=(0.05, 0.1),
        )
    )
    sizes: list[int] = parameter(
        Several(
            "of topic sets, separated by commas; default: five up to half of the topics",
            of=Integer("a size", low=1, high=_MAX_SIZE),
        )
    )
    trials: int = parameter(
        Integer("pairs of topic sets of each size", default=50, low=1, high=_MAX_TRIALS)
    )
    width: float = parameter(
        Number(
            "of the bins of differences",
            default=0.01,
            low=_LEAST_DIFFERENCE,
            high=1 / _LEAST_DIFFERENCE,
        )
    )
    resamples: int = parameter(
        Integer("B of a test that draws", default=10_000, low=RESAMPLES[0], high=RESAMPLES[1])
    )
    seed: int = parameter(SEED)
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())


@dataclass(frozen=True)
class Smallness:
    """Showing that two runs which do not differ at all differ by less than a margin, with `tost`.

    For non-inferiority (`not_worse`) and equivalence: the power with the given topics, and the
    number of topics needed for the requested power, None beyond a million. `share` is that of the
    pairs of these runs that are equivalent on these topics, each tested alone.
    """

    power_not_worse: float
    topics_not_worse: int | None
    power_equivalent: float
    topics_equivalent: int | None
    share: float


@dataclass(frozen=True)
class Detection:
    """The power for the given topics, and the number of topics for the requested power.

    `topics_interval` is the number with which an interval is expected to be no wider than the
    difference. Numbers of topics are None beyond a million. `smallness` takes the difference for a
    margin; it is None for an alpha of a half or more, which `tost` cannot have.
    """

    difference: float
    power_t: float
    topics_t: int | None
    power_anova: float
    topics_anova: int | None
    topics_interval: int | None
    smallness: Smallness | None


@dataclass(frozen=True)
class TopicSets:
    """The `detectable` difference with the requested power.

    `variance` is the residual variance after runs and topics.

    `half_width` is the expected half width of the interval of a difference.
    """

    variance: float
    detectable: float
    half_width: float
    detections: list[Detection]


@dataclass(frozen=True)
class MeasureDesign:
    """The results of one measure; `topic_sets` is None if runs and topics explain every value."""

    measure: Measure
    topics: int
    power: DiscriminativePower
    topic_sets: TopicSets | None
    swaps: SwapRates
    cautions: list[Caution]


@dataclass(frozen=True)
class Design:
    """The results of all measures on the same runs."""

    query: DesignQuery
    qrels: Qrels
    scores: str
    runs: list[Run]
    measures: list[MeasureDesign]
    selection: TopicSelection | None = None


def read_design(*, collection: Collection, query: DesignQuery) -> Design:
    """Return discriminative power, topic set sizes and swap rates of some measures.

    They are of the selected topics, or of all.

    Stale runs are left out.

    Raise StatisticsError for fewer than two runs or topics, sizes that do not fit, an unknown test
    or run, and requests that would take too long.
    """
    check_names(query.test)
    refuse_pooled(query.measures)
    if query.power <= query.alpha:
        message = (
            f"power {query.power:g} must be above alpha, {query.alpha:g}, the rate of false "
            "positives"
        )
        raise StatisticsError(message, code="bad_parameter", pointer="power")

    qrels, scores = active_qrels(collection), query.scores or collection.scores
    selection = select_topics(qrels, query.topics, scores)

    evaluations = select_evaluations(
        collection=collection,
        qrels=qrels,
        scores=scores,
        runs=query.runs,
        most=MAX_RUNS,
        measures=query.measures,
    )
    if len(evaluations) < 2:
        message = f"a design needs at least two evaluated runs; found {len(evaluations)}"
        raise StatisticsError(message, code="too_few_runs")

    _check_work(query, len(evaluations), selection.topics if selection else qrels.topics)
    values = read_common_values(
        [evaluation.pk for evaluation in evaluations], query.measures, qrels, flags_of(selection)
    )
    designs = [
        _design(measure, common, query, qrels, selection)
        for measure, common in zip(query.measures, values, strict=True)
    ]

    runs = [evaluation.run for evaluation in evaluations]
    return Design(query, qrels, scores, runs, designs, selection)


def _check_work(query: DesignQuery, runs: int, topics: int) -> None:
    number, pairs = len(query.measures), runs * (runs - 1) // 2
    check_values(runs, topics, number)
    seconds = number * seconds_of_test(query.test, runs, topics, pairs, query.resamples)
    advice = "use fewer measures, runs (runs=) or resamples, or another test"
    begin(seconds, f"{query.test} of {runs} runs by {number} measures", advice, "measures")
    draws = number * query.trials * (len(query.sizes) or _SIZES)
    advice = "use fewer measures, runs (runs=), sizes or trials"
    begin(seconds_of_swaps(runs, topics, draws), f"swap rates of {runs} runs", advice, "trials")
    plans = number * len(query.differences)
    begin(
        seconds_of_plans(plans), f"{plans} topic set sizes", "use fewer differences", "differences"
    )


def _design(
    measure: Measure,
    common: CommonValues,
    query: DesignQuery,
    qrels: Qrels,
    selection: TopicSelection | None,
) -> MeasureDesign:
    cautions = [*qrels_cautions([measure], qrels), *cautions_of([measure], common.left_out)]
    options = Options(resamples=query.resamples, seed=query.seed)
    half = common.topics // 2
    sizes = query.sizes or sorted({half * step // _SIZES for step in range(1, _SIZES + 1)} - {0})

    return MeasureDesign(
        measure,
        common.topics,
        discriminative_power(common.values, query.test, query.alpha, options),
        _topic_sets(common, query),
        swap_rates(common.values, sizes, trials=query.trials, seed=query.seed, width=query.width),
        [*cautions, *((selection and selection.cautions) or few_topics(common.topics))],
    )


def _topic_sets(common: CommonValues, query: DesignQuery) -> TopicSets | None:
    (runs, topics), variance = common.values.shape, variance_of(common.values)
    if variance <= 0:
        return None

    return TopicSets(
        variance,
        detectable_difference(topics, variance, query.alpha, query.power),
        half_width(topics, variance, 1 - query.alpha),
        [
            Detection(
                difference,
                power_of_t(topics, difference, variance, query.alpha),
                _fewest(topics_for_t, difference, variance, query.alpha, query.power),
                power_of_anova(topics, runs, difference, variance, query.alpha),
                _fewest(topics_for_anova, runs, difference, variance, query.alpha, query.power),
                _fewest(topics_for_interval, difference, variance, 1 - query.alpha),
                _smallness(common, difference, variance, query) if query.alpha < 0.5 else None,
            )
            for difference in query.differences
        ],
    )


def _smallness(
    common: CommonValues, margin: float, variance: float, query: DesignQuery
) -> Smallness:
    pairs = all_pairs(len(common.values))
    equivalence = tost(common.values, *pairs, margin, Rule("none", query.alpha))
    return Smallness(
        power_of_non_inferiority(common.topics, margin, variance, query.alpha),
        _fewest(topics_for_non_inferiority, margin, variance, query.alpha, query.power),
        power_of_equivalence(common.topics, margin, variance, query.alpha),
        _fewest(topics_for_equivalence, margin, variance, query.alpha, query.power),
        float(equivalence.both.holds.mean()),
    )


def _fewest(find: Callable[..., int], *arguments: float) -> int | None:
    """Return the smallest sufficient number of topics, or None beyond a million."""
    try:
        return find(*arguments)
    except StatisticsError:
        return None
