"""The pairs of a comparison that are shown, with effect sizes and the verdict of every test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance import TESTS
from metrics.engine.significance.cautions import are_skewed, are_tied
from metrics.engine.significance.effect_sizes import READINGS, Estimate, effect_sizes
from metrics.engine.significance.equivalence import Claim, topics_for_tost
from metrics.engine.significance.families import Family
from metrics.engine.significance.fragility import fragility
from metrics.engine.significance.moments import moments_of, ties_of
from metrics.engine.significance.pairs import Caution
from metrics.engine.significance.posterior import POSTERIORS
from metrics.engine.significance.verdicts import REASONS
from metrics.services.comparisons.comparison import Compared, ComparisonQuery
from metrics.services.comparisons.stored import Answer
from metrics.services.question import Choice, Integer, Question, RunId, parameter
from runs.errors import InvalidInput
from runs.models import Qrels, Run

# By the means of the runs, by the first test's p, or by the size of the difference.
PAIR_ORDERS = ("means", "p_value", "difference")
# The limits of one answer: pairs of each measure, and pairs times measures times tests.
MAX_PAIRS, MAX_VERDICTS = 5_000, 20_000
PAIR_CAUTIONS = ("skewed_differences", "heavy_ties")
# Effect sizes are computed for this many pairs at a time.
_AT_ONCE = 500
# Of the topics that carry a verdict, so many are named.
MOST_CARRYING = 10


@dataclass(frozen=True)
class PairSelection(Question):
    """The pairs to show: those with one run, in one of PAIR_ORDERS, from `offset` on.

    `run` is the id of the run, and `limit` the number of pairs.
    """

    run: str | None = parameter(RunId("only the pairs with this run (its id)"))
    sort: str = parameter(
        Choice("the order of the pairs", default=PAIR_ORDERS[0], choices=PAIR_ORDERS)
    )
    limit: int | None = parameter(
        Integer(f"pairs of a page, at most {MAX_PAIRS:,}", default=200, low=1, high=MAX_PAIRS)
    )
    offset: int = parameter(Integer("pairs to pass over", default=0))

    @classmethod
    def of(cls, parameters: Mapping[str, str], query: ComparisonQuery) -> PairSelection:
        """Return the pairs that parameters select.

        Raise InvalidInput for more results than one answer has.
        """
        selection = cls.read(parameters)
        limit = selection.limit or 1
        results = limit * len(query.measures) * max(len(query.tests), 1)
        if limit > 1 and results > MAX_VERDICTS:
            message = (
                f"{results:,} results requested; the limit is {MAX_VERDICTS:,}: use a smaller "
                "limit="
            )
            raise InvalidInput(message, code="too_many_values", pointer="limit")
        return selection


@dataclass(frozen=True)
class Bounded:
    """A value and its interval; NaN where it has none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """The result of one test for `a` against `b`.

    `better` is 1 where `a` is significantly better, -1 where it is worse, 0 without a verdict;
    `withheld`, one of REASONS, says why there is none whatever p is. `leaning` is 1 where the
    test's own statistic favours `a`, -1 where it favours `b`.
    """

    test: str
    low: float
    high: float
    statistic: float
    p_value: float
    p_adjusted: float
    exact: bool
    better: int
    withheld: str
    leaning: int

    @property
    def significant(self) -> bool:
        return self.better != 0


@dataclass(frozen=True)
class PairClaim:
    """A claim about a pair: its p, the corrected p, and whether it holds at the level."""

    p_value: float
    p_adjusted: float
    holds: bool


@dataclass(frozen=True)
class PairEquivalence:
    """The claims that two runs differ by less than the margin, by two one-sided tests.

    `a` is not worse than `b`, `b` is not worse than `a`, and both.

    `low` and `high` are of the interval of 1 - 2 alpha, and `topics` is the number that would show
    two runs of this spread equivalent that do not differ, in 8 of 10 samples; None beyond a
    million, and without spread.
    """

    low: float
    high: float
    a: PairClaim
    b: PairClaim
    both: PairClaim
    withheld: str
    topics: int | None


@dataclass(frozen=True)
class PairChances:
    """The chances that `a` is better than `b`, practically equal, and worse.

    Better and worse mean by more than the region.

    They sum to one; NaN where the differences have no spread.
    """

    better: float
    equal: float
    worse: float


@dataclass(frozen=True)
class Fragile:
    """How many topics carry the lead, and the significance by the first test.

    The latter is None where it is still significant with five topics left.

    `topics` are these topics, at most MOST_CARRYING, most in favour of the winner first: their
    places among the topics of the comparison.
    """

    sign: int | None
    significance: int | None
    topics: list[int]


@dataclass(frozen=True)
class PairOnJudged:
    """The means of two runs on judged documents alone, and the verdict of each test."""

    mean_a: float
    mean_b: float
    difference: float
    verdicts: list[Verdict]


@dataclass(frozen=True)
class ShownPair:
    """Two runs and their means.

    Every difference is `a` minus `b`; wins are topics on which `a` is better.

    `cautions` are those of PAIR_CAUTIONS that concern their differences, whether they are
    significant or not. `on_judged` is None unless the runs are judged unevenly.
    """

    a: Run
    b: Run
    mean_a: float
    mean_b: float
    difference: float
    relative: float
    reading: str
    cohen_d: Bounded
    hedges_g: Bounded
    standardised: Bounded
    cliff_delta: Bounded
    probability_better: Bounded
    wins: int
    ties: int
    losses: int
    deviation: float
    detectable: float
    fragility: Fragile
    verdicts: list[Verdict]
    equivalence: PairEquivalence | None
    chances: dict[str, PairChances]
    cautions: list[str]
    on_judged: PairOnJudged | None


def run_of(answer: Answer, compared: Compared, row: int) -> Run:
    return answer.entrants.evaluations[compared.order[row]].run


def topics_of(answer: Answer, compared: Compared) -> list[str]:
    """Return the ids of the topics on which the runs are compared."""
    qrels = answer.entrants.qrels
    if "topic_ids" in qrels.get_deferred_fields():
        # Of a stored comparison: checked against the rest of the row, which is read along at once.
        qrels.topic_ids = Qrels.objects.get(pk=qrels.pk).topic_ids
    selection = answer.entrants.selection
    selected = qrels.topic_ids if selection is None else selection.among(qrels.topic_ids)
    return [topic for topic in selected if topic not in compared.left_out]


def names_of(runs: list[Run]) -> dict[Run, str]:
    """Return the tags of runs, with the team where another of these runs has the same tag."""
    counts = Counter(run.tag for run in runs)
    return {run: run.tag if counts[run.tag] == 1 else f"{run.team.slug}/{run.tag}" for run in runs}


def coverage_cautions(answer: Answer, compared: Compared) -> list[Caution]:
    """Return what was not measured of the runs, and what follows for the first test's verdicts."""
    runs = runs_by_row(answer, compared)
    names = names_of(list(runs.values()))
    return compared.coverage.cautions(
        compared.pairs,
        compared.families[0].verdicts,
        {row: names[run] for row, run in runs.items()},
    )


def runs_by_row(answer: Answer, compared: Compared) -> dict[int, Run]:
    """Return the runs that are not withdrawn by their rows, best first."""
    evaluations = answer.entrants.evaluations
    return {
        row: evaluations[place].run
        for row, place in enumerate(compared.order)
        if place not in answer.gone
    }


def visible_pairs(answer: Answer, compared: Compared) -> Flags:
    """Return which pairs consist of two runs that are not withdrawn."""
    shown = np.zeros(compared.pairs.runs, np.bool_)
    shown[list(runs_by_row(answer, compared))] = True
    first, second = compared.pairs.indices()
    visible: Flags = shown[first] & shown[second]

    return visible


def choose_pairs(answer: Answer, compared: Compared, selection: PairSelection) -> tuple[int, Ints]:
    """Return how many pairs the selection has on all pages, and the pairs of this page."""
    first, second = compared.pairs.indices()
    selected = visible_pairs(answer, compared)
    if selection.run is not None:
        ids = [str(run_of(answer, compared, row).pk) for row in range(compared.pairs.runs)]
        named = np.array([run == selection.run for run in ids], np.bool_)
        selected &= named[first] | named[second]

    chosen = np.flatnonzero(selected)
    if selection.sort != PAIR_ORDERS[0]:
        result = compared.families[0].result
        key = result.p_value if selection.sort == "p_value" else -np.abs(result.difference)
        chosen = chosen[np.argsort(key[chosen], kind="stable")]

    stop = None if selection.limit is None else selection.offset + selection.limit
    return len(chosen), chosen[selection.offset : stop]


def shown_pairs(answer: Answer, compared: Compared, chosen: Ints) -> Iterator[ShownPair]:
    """Return the chosen pairs with all their values."""
    lower = compared.measure.definition.lower_is_better
    means = compared.values.mean(axis=1)
    ends = compared.pairs.indices()

    for start in range(0, len(chosen), _AT_ONCE):
        chunk = chosen[start : start + _AT_ONCE]
        first, second = (side[chunk] for side in ends)
        sizes = effect_sizes(
            compared.values, first, second, answer.query.options, lower_is_better=lower
        )

        alpha = answer.query.rule.alpha
        fragilities = list(_fragilities(compared, first, second, chunk, alpha))
        verdicts = [_verdicts(family, chunk, lower) for family in compared.families]
        equivalences = _equivalences(compared, chunk, sizes.deviation, alpha)
        chances = _chances(compared, first, second, answer.query)
        cautions = list(_cautions(compared, first, second))
        on_judged = list(_on_judged(compared, first, second, chunk, lower))

        for i, (row_a, row_b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            yield ShownPair(
                a=run_of(answer, compared, row_a),
                b=run_of(answer, compared, row_b),
                mean_a=float(means[row_a]),
                mean_b=float(means[row_b]),
                difference=float(sizes.difference[i]),
                relative=float(sizes.relative[i]),
                reading=READINGS[sizes.reading[i]],
                cohen_d=_bounded(sizes.cohen_d, i),
                hedges_g=_bounded(sizes.hedges_g, i),
                standardised=_bounded(sizes.standardised, i),
                cliff_delta=_bounded(sizes.cliff_delta, i),
                probability_better=_bounded(sizes.probability_better, i),
                wins=int(sizes.wins[i]),
                ties=int(sizes.ties[i]),
                losses=int(sizes.losses[i]),
                deviation=float(sizes.deviation[i]),
                detectable=float(sizes.detectable[i]),
                fragility=fragilities[i],
                verdicts=[of_test[i] for of_test in verdicts],
                equivalence=equivalences[i],
                chances=chances[i],
                cautions=cautions[i],
                on_judged=on_judged[i],
            )


def _bounded(estimate: Estimate, pair: int) -> Bounded:
    return Bounded(
        float(estimate.value[pair]), float(estimate.low[pair]), float(estimate.high[pair])
    )


def _cautions(compared: Compared, first: Ints, second: Ints) -> Iterator[list[str]]:
    """Return the codes of each pair's cautions, in the order of PAIR_CAUTIONS."""
    values, topics = compared.values, compared.topics
    skewed = are_skewed(moments_of(values, first, second).skewness, topics)

    tied = are_tied(ties_of(values, first, second), topics)
    for concerned in zip(skewed.tolist(), tied.tolist(), strict=True):
        yield [code for code, concerns in zip(PAIR_CAUTIONS, concerned, strict=True) if concerns]


def _on_judged(
    compared: Compared, first: Ints, second: Ints, chosen: Ints, lower_is_better: bool
) -> Iterator[PairOnJudged | None]:
    """Return the pairs that are judged unevenly on judged documents alone, None for others."""
    on_judged = compared.coverage.on_judged
    if on_judged is None:
        yield from [None] * len(chosen)
        return

    uneven = compared.coverage.uneven(compared.pairs)[chosen].tolist()
    verdicts = zip(
        *(_verdicts(family, chosen, lower_is_better) for family in on_judged.families), strict=True
    )

    means = zip(on_judged.means[first].tolist(), on_judged.means[second].tolist(), strict=True)
    for is_uneven, (a, b), of_tests in zip(uneven, means, verdicts, strict=True):
        yield PairOnJudged(a, b, a - b, list(of_tests)) if is_uneven else None


def _fragilities(
    compared: Compared, first: Ints, second: Ints, chosen: Ints, alpha: float
) -> Iterator[Fragile]:
    """Return what carries the verdict of the first test, if it is one of means."""
    family = compared.families[0]
    of_means = family.significant[chosen] & (not TESTS[family.test].ranks)
    p_adjusted = np.where(of_means, family.adjusted[chosen], 1.0)
    fragility_of_pairs = fragility(compared.values, first, second, p_adjusted, alpha)

    rows = zip(
        fragility_of_pairs.sign.tolist(),
        fragility_of_pairs.significance.tolist(),
        fragility_of_pairs.order,
        strict=True,
    )
    for sign, significance, order in rows:
        most = min(MOST_CARRYING, significance if significance >= 0 else max(sign, 0))
        yield Fragile(
            sign if sign >= 0 else None,
            significance if significance >= 0 else None,
            order[:most].tolist(),
        )


def _equivalences(
    compared: Compared, chosen: Ints, deviation: Floats, alpha: float
) -> list[PairEquivalence | None]:
    if compared.equivalence is None:
        return [None] * len(chosen)

    equivalence = compared.equivalence.of(chosen)
    topics = topics_for_tost(deviation, equivalence.margin, alpha).tolist()
    return [
        PairEquivalence(
            low=float(equivalence.low[pair]),
            high=float(equivalence.high[pair]),
            a=_claim(equivalence.a, pair),
            b=_claim(equivalence.b, pair),
            both=_claim(equivalence.both, pair),
            withheld=REASONS[equivalence.withheld[pair]],
            topics=None if math.isnan(needed) else int(needed),
        )
        for pair, needed in enumerate(topics)
    ]


def _claim(claim: Claim, pair: int) -> PairClaim:
    return PairClaim(
        float(claim.p_value[pair]), float(claim.adjusted[pair]), bool(claim.holds[pair])
    )


def _chances(
    compared: Compared, first: Ints, second: Ints, query: ComparisonQuery
) -> list[dict[str, PairChances]]:
    """Return the chances of each pair by each posterior that is requested."""
    by_pair: list[dict[str, PairChances]] = [{} for _ in first]
    for name in query.practical.posteriors:
        chances = POSTERIORS[name](
            compared.values, first, second, query.practical.rope, query.options
        )
        better, worse = chances.higher.tolist(), chances.lower.tolist()
        if compared.measure.definition.lower_is_better:
            better, worse = worse, better

        columns = zip(better, chances.equal.tolist(), worse, strict=True)
        for chances_of_pair, shares in zip(by_pair, columns, strict=True):
            chances_of_pair[name] = PairChances(*shares)

    return by_pair


def _verdicts(family: Family, chosen: Ints, lower_is_better: bool) -> list[Verdict]:
    result, verdicts = family.result, family.verdicts
    withheld = [REASONS[reason] for reason in verdicts.withheld[chosen].tolist()]
    leaning = (-1 if lower_is_better else 1) * result.leaning[chosen].astype(np.int64)

    figures = (
        result.low,
        result.high,
        result.statistic,
        result.p_value,
        family.adjusted,
        result.exact,
    )

    numbers = (column[chosen].tolist() for column in (*figures, verdicts.better(lower_is_better)))
    return [
        Verdict(family.test, *figures_of_pair)
        for figures_of_pair in zip(*numbers, withheld, leaning.tolist(), strict=True)
    ]
