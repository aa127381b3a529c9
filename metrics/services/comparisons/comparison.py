"""Compare runs of a collection under several measures and tests."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from metrics.engine.agreement.intervals import RankIntervals, rank_intervals
from metrics.engine.arrays import Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS
from metrics.engine.significance.equivalence import Equivalence, tost
from metrics.engine.significance.families import (
    USUAL_RULE,
    USUAL_TEST,
    USUAL_TEST_OF_A_PAIR,
    Family,
    Pairs,
    Rule,
    check_known,
    compare_family,
)
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import (
    DEFAULTS,
    MAX_RESAMPLES,
    TIES,
    ZEROS,
    Caution,
    Matrix,
    Options,
)
from metrics.engine.significance.practical import PRACTICAL, USUAL_ROPE, Practical
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels, ranked_evaluations
from metrics.services.boards.selection import select_evaluations, tested_measures
from metrics.services.boards.topic_selection import (
    TopicFilter,
    TopicKey,
    Topics,
    TopicSelection,
    select_topics,
)
from metrics.services.question import (
    MAX_SEED,
    SCORES,
    Baselines,
    Choice,
    Context,
    Integer,
    Measures,
    Number,
    Parameter,
    Question,
    RunIds,
    Several,
    Share,
    group,
    parameter,
    run_ids_in,
)
from metrics.services.values.common_values import cautions_of as cautions_of_values
from metrics.services.values.common_values import refuse_pooled
from metrics.services.values.coverage import Coverage, read_coverage, with_judged
from metrics.services.values.judged_views import matrix_of
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.models import Collection, Qrels

MAX_RUNS, MAX_MEASURES = 1_000, 20
# From this many runs on, all runs are tested at once as well.
_MANY = 3
# The ranks of every resample are in memory at once, and a chart of more runs would be unreadable.
MAX_RANKED = 200
RANK_RESAMPLES = 2_000


@dataclass(frozen=True)
class _Family(RunIds):
    """The runs among which `runs` are tested.

    The value is empty for all runs, and None where `runs` are the family.
    """

    names_all: ClassVar[bool] = True

    default: Any = None

    def read(self, text: str, name: str, context: Context) -> list[str] | None:
        runs = context.values["runs"]
        if text == "all" and not runs:
            return None
        if not runs:
            message = (
                "family needs runs=: it names the runs from which those of runs= were selected"
            )
            raise InvalidInput(message, pointer=name)
        return (
            [] if text == "all" else list(dict.fromkeys([*run_ids_in({name: text}, name), *runs]))
        )

    def write(self, value: Any) -> str:
        return "" if value is None else ",".join(value) or "all"


@dataclass(frozen=True)
class _Tests(Several):
    """Names of tests: of significance, or those that are `practical`.

    Both are given in one parameter.
    """

    practical: bool = False
    of: Parameter = Parameter("a test", choices=(*TESTS, *PRACTICAL))

    def value(self, context: Context) -> Sequence[str]:
        tests = [test for test in super().value(context) if (test in PRACTICAL) == self.practical]
        return tuple(tests) if self.practical else tests


@dataclass(frozen=True)
class ComparisonQuery(Question):
    """The parameters of a comparison.

    No runs means all, no baseline means all pairs, and no tests the usual one.

    `family` names the runs from which `runs` were selected, an empty list meaning all: their pairs
    are tested and corrected together, and those of `runs` are shown. None means that `runs` are the
    family. `practical` is requested besides the tests, which decide what is significant.
    """

    measures: list[Measure] = parameter(
        Measures(
            "measure names separated by commas; default: the collection's first",
            names=lambda collection: tested_measures(collection)[:1],
            most=MAX_MEASURES,
            also="measure",
        )
    )
    runs: list[str] = parameter(RunIds())
    family: list[str] | None = parameter(
        _Family(
            "run ids, or all: the runs that `runs` were found among, whose pairs are "
            "corrected together"
        )
    )
    baselines: list[str] = parameter(
        Baselines("run ids separated by commas: compare every other run with each of these only")
    )
    tests: list[str] = parameter(
        _Tests(
            f"one or several of {', '.join([*TESTS, *PRACTICAL])}; default: "
            f"{USUAL_TEST_OF_A_PAIR} of two runs, {USUAL_TEST} of more",
            also="test",
        )
    )
    rule: Rule = group(
        Rule,
        correction=Parameter(
            "of p values for several pairs",
            default=USUAL_RULE.correction,
            choices=tuple(CORRECTIONS),
        ),
        alpha=Share("significance level", default=USUAL_RULE.alpha),
    )
    options: Options = group(
        Options,
        confidence=Share("of the intervals", default=DEFAULTS.confidence),
        resamples=Integer(
            "B of tests that draw", default=DEFAULTS.resamples, low=1, high=MAX_RESAMPLES
        ),
        seed=Integer("of tests that draw", default=DEFAULTS.seed, high=MAX_SEED),
        zeros=Choice(
            "what Wilcoxon's test does with equal values", default=DEFAULTS.zeros, choices=ZEROS
        ),
        ties=Choice(
            "which differences tie for Wilcoxon's test", default=DEFAULTS.ties, choices=TIES
        ),
        min_difference=Number(
            "values no further apart are equal for the sign test", default=DEFAULTS.min_difference
        ),
    )
    practical: Practical = group(
        Practical,
        tests=_Tests("the same, of PRACTICAL", also="test", practical=True),
        margin=Number("the smallest difference that would matter, for tost, which needs it"),
        rope=Number(
            "differences up to this are practically equal, for bayes_t and bayes_bootstrap",
            default=USUAL_ROPE,
        ),
    )
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())
    by: str | None = parameter(
        TopicKey(
            "the key of an attribute of topics, in whose groups two runs are compared; files have "
            "the means of more runs there"
        )
    )
    weights: str | None = parameter(
        TopicKey("of two runs: the key of an attribute of topics by which means are weighted")
    )

    def __post_init__(self) -> None:
        check_known(self.tests, self.rule.correction, PRACTICAL)

    @property
    def tested(self) -> list[str]:
        """Return the runs whose pairs are tested together; an empty list means all."""
        return self.runs if self.family is None else self.family

    @property
    def shown(self) -> list[str]:
        """Return the runs whose pairs are shown; an empty list means all tested runs."""
        return [] if self.family is None else self.runs


@dataclass(frozen=True)
class Entrants:
    """The evaluations that take part, in the order of submission whatever order the request has.

    The baselines are some of them, given by their places in the order of the request. Without a
    `selection` all topics count.
    """

    qrels: Qrels
    scores: str
    evaluations: list[Evaluation]
    baselines: tuple[int, ...]
    selection: TopicSelection | None = None

    @property
    def pairs(self) -> Pairs:
        return Pairs(len(self.evaluations), self.baselines)


@dataclass(frozen=True)
class Compared:
    """Runs compared under one measure.

    `order` gives for each row of `values` (runs, topics) the place of its entrant, best first. The
    topics are those on which all runs have a value, and `left_out` has for every other topic the
    number of runs without one. The baselines of `pairs` are rows. Verdicts of `families` hold for
    what was measured by `coverage`. `equivalence` is None unless it was requested.
    """

    measure: Measure
    order: list[int]
    values: Matrix
    topics: int
    left_out: dict[str, int]
    pairs: Pairs
    families: list[Family]
    omnibus: dict[str, OmnibusResult]
    coverage: Coverage
    equivalence: Equivalence | None = None

    @property
    def cautions(self) -> list[Caution]:
        """Return the cautions about the measure here, whatever the test."""
        return cautions_of_values([self.measure], len(self.left_out))

    def among(self, places: Container[int]) -> Compared:
        """Return some of the entrants with the p values, verdicts and groups of the whole."""
        rows = np.array([row for row, place in enumerate(self.order) if place in places], np.int64)
        first, second = self.pairs.indices()
        pairs = np.flatnonzero(np.isin(first, rows) & np.isin(second, rows))

        baselines = _places(rows, self.pairs.baselines)

        return replace(
            self,
            order=[self.order[row] for row in rows.tolist()],
            values=self.values[rows],
            pairs=Pairs(len(rows), baselines),
            families=[family.of(rows, pairs) for family in self.families],
            # The omnibus tests are about all runs.
            omnibus={},
            coverage=self.coverage.of(rows, pairs),
            equivalence=self.equivalence and self.equivalence.of(pairs),
        )


def _places(values: Ints, wanted: Iterable[int]) -> tuple[int, ...]:
    """Return the place of each wanted value, which occurs once."""
    return tuple(int(np.flatnonzero(values == value)[0]) for value in wanted)


def choose_entrants(*, collection: Collection, query: ComparisonQuery) -> Entrants:
    """Return the evaluated runs that take part under the active judgements, without stale ones.

    Raise StatisticsError for fewer than two runs, more than MAX_RUNS, an unknown one, or a measure
    without values of topics; NotFound without judgements.
    """
    refuse_pooled(query.measures)
    if query.weights and len({*query.runs, *query.baselines}) > 2:
        message = f"weights={query.weights} needs two runs: name them with runs="
        raise StatisticsError(message, code="too_many_runs", pointer="weights")

    qrels = active_qrels(collection)
    scores = query.scores or collection.scores
    named = list(query.tested)
    if named:
        named += query.baselines

    evaluations = select_evaluations(
        collection=collection,
        qrels=qrels,
        scores=scores,
        runs=named,
        most=MAX_RUNS,
        measures=query.measures,
    )
    if len(evaluations) < 2:
        message = f"a comparison needs at least two evaluated runs; found {len(evaluations)}"
        raise StatisticsError(message, code="too_few_runs")

    evaluations.sort(key=lambda evaluation: (evaluation.run.created_at, evaluation.run_id))
    ids = [str(evaluation.run_id) for evaluation in evaluations]
    for baseline in query.baselines:
        if baseline not in ids:
            message = f"baseline {baseline} is not among the compared runs"
            raise StatisticsError(message, code="unknown_run", pointer="baseline")

    return Entrants(
        qrels,
        scores,
        evaluations,
        tuple(map(ids.index, query.baselines)),
        select_topics(qrels, query.topics, scores),
    )


def refuse_groups_of_many(query: ComparisonQuery) -> None:
    """Raise StatisticsError where more than two runs are not shown in groups of topics."""
    runs = {*query.runs, *query.baselines}
    if query.by and len(runs) > 2:
        message = (
            f"by={query.by} needs two runs; found {len(runs):,}: name two, or download a file of the "
            "comparison, which has the means of all runs in each group"
        )
        raise StatisticsError(message, code="too_many_runs", pointer="by")


def refuse_weights(query: ComparisonQuery) -> None:
    """Raise InvalidInput where results with weights of topics are not shown."""
    if query.weights:
        message = (
            "weights= applies to the comparison of two runs itself, on its page and as JSON: leave "
            "it out for files, charts and comparisons by a worker"
        )
        raise InvalidInput(message, pointer="weights")


def with_usual_test(query: ComparisonQuery, entrants: Entrants) -> ComparisonQuery:
    """Return the query with a test: the usual one of so many pairs, unless it names some."""
    if query.tests:
        return query
    usual = USUAL_TEST_OF_A_PAIR if entrants.pairs.number == 1 else USUAL_TEST
    return replace(query, tests=[usual])


def one_of_many(entrants: Entrants, query: ComparisonQuery) -> Caution | None:
    """Return a caution for two runs that are tested alone although there are others."""
    if not query.runs or len(entrants.evaluations) != 2:
        return None

    qrels = entrants.qrels
    runs = ranked_evaluations(qrels.collection, qrels, entrants.scores).count()
    if runs <= 2:
        return None

    message = (
        f"one of {Pairs(runs).number:,} pairs of {runs:,} runs that could have been chosen; p is "
        "for this pair alone: choose the pair in advance, or test it among all runs"
    )

    return Caution("one_of_many_pairs", message)


# notify(measure, test) is called before each family
Notify = Callable[[Measure, str], None]


def compare_entrants(
    entrants: Entrants, query: ComparisonQuery, notify: Notify | None = None
) -> Iterator[Compared]:
    """Yield the comparison under each measure.

    Raise StatisticsError if a measure has fewer than two topics on which every run has a value.
    """
    for measure in query.measures:
        keep_going()
        values, _ = matrix_of(
            [evaluation.pk for evaluation in entrants.evaluations], measure, entrants.qrels
        )
        selection = entrants.selection
        selected = np.ones(values.shape[1], np.bool_) if selection is None else selection.selected
        runs_without = np.where(selected, np.isnan(values).sum(axis=0), 0)
        used = selected & (runs_without == 0)

        topics = int(np.count_nonzero(used))
        if topics < 2:
            message = (
                f"{measure.name}: a comparison needs at least 2 topics with a value of every "
                f"run; found {topics}"
            )
            raise StatisticsError(message, code="too_few_topics")

        left_out = {
            entrants.qrels.topic_ids[i]: int(runs_without[i])
            for i in np.flatnonzero(runs_without).tolist()
        }
        values = values[:, used]
        lower = measure.definition.lower_is_better

        # Best first; of equal runs the earlier one first.
        order = np.argsort((1 if lower else -1) * values.mean(axis=1), kind="stable")
        values = values[order]
        pairs = Pairs(len(values), _places(order, entrants.baselines))
        compare = partial(_families, measure=measure, pairs=pairs, query=query, notify=notify)
        families = compare(values)
        ordered = [entrants.evaluations[place] for place in order.tolist()]
        answered = {evaluation.pk: evaluation.topics_answered for evaluation in ordered}

        coverage = with_judged(
            read_coverage(
                answered, measure, entrants.qrels, selection.selected if selection else None
            ),
            list(answered),
            measure,
            values,
            used,
            pairs,
            compare,
        )

        # Tests of all runs at once: those that belong to a requested test, and the usual two for
        # many runs.
        omnibus_names = {TESTS[test].omnibus for test in query.tests}
        omnibus_names |= {"anova", "friedman"} if len(values) >= _MANY else set()
        omnibus = {
            name: test_all(values) for name, test_all in OMNIBUS.items() if name in omnibus_names
        }

        compared = Compared(
            measure,
            order.tolist(),
            values,
            topics,
            left_out,
            pairs,
            coverage.apply(families, values, pairs, lower_is_better=lower),
            omnibus,
            coverage,
        )
        yield with_equivalence(compared, query)


def _families(
    values: Matrix, *, measure: Measure, pairs: Pairs, query: ComparisonQuery, notify: Notify | None
) -> list[Family]:
    """Compare the pairs under each test."""
    families = []
    for test in query.tests:
        if notify:
            notify(measure, test)

        lower = measure.definition.lower_is_better
        families.append(
            compare_family(values, pairs, test, query.rule, query.options, lower_is_better=lower)
        )

    return families


def with_equivalence(compared: Compared, query: ComparisonQuery) -> Compared:
    """Return the comparison with the test of equivalence of all its pairs, if requested.

    It is made from the values whenever a comparison is read, stored ones too.
    """
    margin = query.practical.margin
    if "tost" not in query.practical.tests or margin is None:
        return compared

    lower = compared.measure.definition.lower_is_better
    first, second = compared.pairs.indices()
    equivalence = tost(compared.values, first, second, margin, query.rule, lower_is_better=lower)

    for lacking, reason in compared.coverage.lacking:
        equivalence = equivalence.withhold(lacking[first] | lacking[second], reason)

    return replace(compared, equivalence=equivalence)


def read_rank_intervals(compared: Compared, options: Options) -> RankIntervals | None:
    """Return the rank interval of each row over samples of the topics.

    Confidence and seed are those of the options.

    Return None for more runs than MAX_RANKED, or too few topics to resample.
    """
    if compared.pairs.runs > MAX_RANKED or compared.topics < MIN_TOPICS:
        return None

    options = replace(options, resamples=RANK_RESAMPLES)
    return rank_intervals(
        compared.values, options, lower_is_better=compared.measure.definition.lower_is_better
    )


def split_omnibus(compared: Compared, rule: Rule) -> list[Caution]:
    """Return a caution if analysis of variance and Friedman's test disagree."""
    if not {"anova", "friedman"} <= set(compared.omnibus) or compared.topics < MIN_TOPICS:
        return []

    anova, friedman = (compared.omnibus[name].p_value for name in ("anova", "friedman"))
    if np.isnan(anova) or (anova < rule.alpha) == (friedman < rule.alpha):
        return []

    message = (
        f"means and ranks disagree: the analysis of variance has p = {anova:.2g}, Friedman's "
        f"test p = {friedman:.2g}"
    )
    return [Caution("omnibus_tests_disagree", message)]
