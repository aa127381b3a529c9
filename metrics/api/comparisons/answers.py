"""The API's answer for a comparison."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import numpy as np

from metrics import models
from metrics.api.answers import Caution, cautions_of, number, page_addresses
from metrics.api.comparisons.pairs import Pair, SplitPair, pair_answer, split_pair
from metrics.engine.significance import TESTS, families
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import INTERVALS
from metrics.engine.significance.practical import PRACTICAL
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import REASONS, VERDICTS
from metrics.exports.comparisons.methods import weighted_words
from metrics.services.comparisons import shown_pairs, topic_groups
from metrics.services.comparisons.comparison import (
    Compared,
    ComparisonQuery,
    one_of_many,
    split_omnibus,
)
from metrics.services.comparisons.replicates import MethodComparison, compare_methods
from metrics.services.comparisons.shown_pairs import (
    PairSelection,
    choose_pairs,
    coverage_cautions,
    runs_by_row,
    visible_pairs,
)
from metrics.services.comparisons.stored import Answer
from metrics.services.comparisons.topic_groups import compare_in_groups
from metrics.services.comparisons.weights import WeightedPair, compare_with_weights
from metrics.services.values.common_values import not_corrected_again, qrels_cautions
from metrics.services.values.coverage import judged_only
from runs.models import Collection
from runs.web.shapes import Id, OneOf, Url

# The number of topics left out, and of pairs with disagreeing tests, that are listed.
_SHOWN = 50


class ComparisonStatus(TypedDict):
    id: UUID
    url: Annotated[Url, "where the comparison is read"]
    state: Annotated[str, OneOf(models.Comparison.State.choices)]
    progress: Annotated[float, "share of the work that is done"]
    since: datetime
    created_at: datetime
    attempts: int
    seconds: float | None
    error_code: str
    error_message: str


class WaitingComparison(TypedDict):
    """A comparison that a worker computes."""

    comparison: ComparisonStatus


class Groups(TypedDict):
    run: UUID
    tier: int
    groups: Annotated[list[int], "runs that share one are not separated"]
    letters: Annotated[str | None, "the same as letters; null beyond 52 groups"]


class Family(TypedDict):
    about: Literal["means", "ranks"]
    paired: bool
    draws: Annotated[bool, "depends on resamples and seed"]
    correction: Annotated[str | None, "null where p already accounts for all pairs"]
    family: Annotated[int, "number of pairs that p counts for"]
    intervals: Annotated[str, OneOf(INTERVALS), "whether each holds alone, or all at once"]
    significant: Annotated[int, "number of pairs with a verdict"]
    cautions: list[Caution]
    groups: Annotated[list[Groups] | None, "null with a baseline or without a test"]


class Source(TypedDict):
    name: str
    squares: float
    freedom: float
    mean_square: float
    statistic: float | None
    p_value: float | None


class Sphericity(TypedDict):
    greenhouse_geisser: Annotated[
        float, "epsilon, by which p_value has its degrees of freedom multiplied"
    ]
    huynh_feldt: Annotated[float, "Huynh and Feldt's epsilon"]
    p_huynh_feldt: Annotated[float, "with their epsilon instead"]
    p_uncorrected: Annotated[
        float, "with epsilon 1: as if the differences of all pairs had one variance"
    ]


class Omnibus(TypedDict):
    statistic: float | None
    freedom: list[float]
    p_value: Annotated[float | None, "null where the test cannot be made"]
    effect: Annotated[float, "partial eta squared, Kendall's W or epsilon squared"]
    sphericity: Annotated[Sphericity | None, "of anova, else null"]
    sources: list[Source]
    cautions: list[Caution]


class EquivalentPairs(TypedDict):
    correction: str
    family: Annotated[int, "number of pairs that p counts for"]
    equivalent: Annotated[int, "number of pairs that are"]
    cautions: list[Caution]


class LeftOut(TypedDict):
    topic_id: str
    runs_without_value: int


class TopicsUsed(TypedDict):
    used: int
    left_out: int
    reasons: Annotated[list[LeftOut], "the first 50"]


class RunCoverage(TypedDict):
    answered: Annotated[float | None, "share of the judged topics that the run answered"]
    judged: Annotated[
        float | None, "share of the first k documents that are judged, the mean over these topics"
    ]
    k: Annotated[int, "the cutoff of the measure, else 10"]


class ComparedMean(TypedDict):
    run: UUID
    mean: float
    coverage: RunCoverage


class Disagreements(TypedDict):
    count: int
    pairs: Annotated[list[SplitPair], "the first 50"]


class TopicGroup(TypedDict):
    """The difference of the two runs, a minus b, on the topics with one value of the key."""

    group: str
    topics: int
    difference: float
    low: Annotated[float | None, "of Student's interval; null below two topics"]
    high: float | None
    p_value: Annotated[float | None, "of the paired t test"]
    p_adjusted: Annotated[float | None, "corrected by Holm over the groups"]
    verdict: Annotated[str | None, OneOf(VERDICTS), "on a"]
    withheld: Annotated[str | None, OneOf(REASONS[1:]), "why there is no verdict, whatever p is"]


class Interaction(TypedDict):
    """Whether the difference is the same in all groups."""

    statistic: Annotated[float | None, "F; null where there is no test"]
    freedom: list[int]
    p_value: float | None
    significant: bool
    kruskal_wallis: Annotated[Omnibus | None, "the same question of ranks"]


class TopicGroups(TypedDict):
    by: Annotated[str, "the key"]
    sentence: str
    interaction: Interaction
    topics_without: Annotated[int, "compared topics that have no value"]
    cautions: list[Caution]
    groups: list[TopicGroup]


class WeightedDifference(TypedDict):
    """The two runs with weights of topics; the difference is a minus b."""

    by: Annotated[str, "the key"]
    sentence: str
    topics: int
    effective_topics: Annotated[float, "(sum of the weights)^2 / sum of their squares"]
    mean_a: float
    mean_b: float
    difference: float
    low: Annotated[float | None, "null below two effective topics"]
    high: float | None
    p_value: Annotated[float, "of the randomisation test of the weighted differences"]
    exact: bool


class MinF(TypedDict):
    """min F' with the error of topics and that of replicates."""

    difference: Annotated[float, "a minus b"]
    low: Annotated[float | None, "null without any spread"]
    high: float | None
    statistic: float | None
    freedom: Annotated[float | None, "of the denominator; that of the numerator is 1"]
    p_value: float | None
    by_topics: Annotated[float | None, "F with the error of topics alone"]
    by_replicates: Annotated[float | None, "F with the error of replicates alone"]


class Methods(TypedDict):
    """Two methods: a claim about them holds for other replicates, such as seeds, as well."""

    replicates_a: Annotated[int, "of the first run of the pair; 0 for a run without replicates"]
    replicates_b: int
    sentence: str
    test: Annotated[MinF | None, "null where one has fewer than two"]


class ComparedMeasure(TypedDict):
    measure: str
    judged_only: Annotated[str | None, "the measure of `on_judged`, where it has a name of its own"]
    lower_is_better: bool
    topics: TopicsUsed
    cautions: list[Caution]
    means: Annotated[list[ComparedMean], "best first"]
    omnibus: dict[str, Omnibus]
    tests: dict[str, Family]
    equivalence: Annotated[EquivalentPairs | None, "null without tost"]
    disagreements: Annotated[
        Disagreements | None,
        "pairs on which tests of means and of ranks disagree; null for tests of one kind",
    ]
    topic_groups: NotRequired[Annotated[TopicGroups, "of two runs, with by="]]
    weighted: NotRequired[Annotated[WeightedDifference, "of two runs, with weights="]]
    methods: NotRequired[
        Annotated[Methods, "of two runs where one has replicates: for other replicates as well"]
    ]
    count: Annotated[int, "pairs of all pages"]
    pairs: list[Pair]


class Practical(TypedDict):
    tests: Annotated[list[str], OneOf(PRACTICAL)]
    margin: Annotated[float | None, "the smallest difference that would matter, for tost"]
    rope: Annotated[float, "differences up to this are practically equal, for the posteriors"]


class PairFamily(TypedDict):
    kind: Literal["all_pairs", "baseline", "baselines"]
    baseline: Id | None
    baselines: NotRequired[
        Annotated[list[Id | None], "of several, in the order of the request; null if withdrawn"]
    ]
    runs: Annotated[int, "that were tested together; `runs` of the answer may be some of them"]
    pairs: Annotated[int, "that were tested together"]


class ComparedRun(TypedDict):
    id: UUID
    team: str
    tag: str


class Comparison(TypedDict):
    """Pairs of runs under some measures and tests, and everything needed to compute the numbers
    again."""

    comparison: Annotated[ComparisonStatus | None, "null for one made on the spot"]
    collection: str
    qrels: int
    scores: str
    engine_version: str
    stale: bool
    tests: list[str]
    practical: Annotated[Practical | None, "what is requested beside the tests"]
    family: PairFamily
    correction: str
    alpha: float
    confidence: float
    resamples: int
    seed: int
    zeros: str
    ties: str
    min_difference: float
    topics_filter: NotRequired[Annotated[str, "the topics that count, if not all"]]
    cautions: list[Caution]
    runs: list[ComparedRun]
    measures: list[ComparedMeasure]
    sort: str
    next: Url | None
    previous: Url | None


def status_answer(stored: models.Comparison, url: str) -> ComparisonStatus:
    """Return the progress of a stored comparison; `url` is where it is read."""
    return ComparisonStatus(
        id=stored.pk,
        url=url,
        state=stored.state,
        progress=stored.progress,
        since=stored.since,
        created_at=stored.created_at,
        attempts=stored.attempts,
        seconds=stored.seconds,
        error_code=stored.error_code,
        error_message=stored.error_message,
    )


def comparison_answer(
    collection: Collection,
    answer: Answer,
    selection: PairSelection,
    url: str,
    status: ComparisonStatus | None,
) -> Comparison:
    """Return a comparison with one page of the pairs of each measure; `url` is the request's."""
    query, entrants, options = answer.query, answer.entrants, answer.query.options
    results = [_measure(answer, compared, selection) for compared in answer.results]
    pairs = max((result["count"] for result in results), default=0)
    page = page_addresses(url, selection.offset, selection.limit or pairs, pairs)

    cautions = []
    if answer.gone:
        message = (
            f"{len(answer.gone)} of the compared runs have been withdrawn: "
            "not shown, but counted by the p values"
        )
        cautions.append(Caution(code="runs_deleted", message=message))

    chosen_alone = one_of_many(entrants, query)
    cautions += cautions_of([chosen_alone] if chosen_alone else [])
    if entrants.selection:
        cautions += cautions_of(entrants.selection.cautions)

    # The runs are in the order of the first measure.
    best_first = answer.results[0]
    runs = list(runs_by_row(answer, best_first).values())

    result = Comparison(
        comparison=status,
        collection=collection.slug,
        qrels=entrants.qrels.version,
        scores=entrants.scores,
        engine_version=answer.engine_version,
        stale=answer.stale,
        tests=query.tests,
        practical=_practical(query),
        family=_pair_family(answer),
        correction=query.rule.correction,
        alpha=query.rule.alpha,
        confidence=options.confidence,
        resamples=options.resamples,
        seed=options.seed,
        zeros=options.zeros,
        ties=options.ties,
        min_difference=options.min_difference,
        cautions=cautions,
        runs=[ComparedRun(id=run.pk, team=run.team.slug, tag=run.tag) for run in runs],
        measures=results,
        sort=selection.sort,
        next=page.next,
        previous=page.previous,
    )
    if entrants.selection:
        result["topics_filter"] = entrants.selection.text

    return result


def _pair_family(answer: Answer) -> PairFamily:
    entrants = answer.entrants
    baselines = [
        None if place in answer.gone else run
        for place, run in zip(entrants.baselines, answer.query.baselines, strict=True)
    ]
    family = PairFamily(
        kind="baseline" if baselines else "all_pairs",
        baseline=baselines[0] if len(baselines) == 1 else None,
        runs=len(entrants.evaluations),
        pairs=entrants.pairs.number,
    )
    if len(baselines) > 1:
        family["kind"] = "baselines"
        family["baselines"] = baselines

    return family


def _measure(answer: Answer, compared: Compared, selection: PairSelection) -> ComparedMeasure:
    count, chosen = choose_pairs(answer, compared, selection)
    topics = shown_pairs.topics_of(answer, compared)
    left_out = list(compared.left_out.items())
    unsuited = qrels_cautions([compared.measure], answer.entrants.qrels)
    means = compared.values.mean(axis=1).tolist()
    coverage, condensed = compared.coverage, judged_only(compared.measure)

    # Only tests of both kinds, of means and of ranks, can disagree.
    split = None
    if len({TESTS[family.test].ranks for family in compared.families}) == 2:
        places = families.disagreements(compared.families)
        places = places[visible_pairs(answer, compared)[places]]
        pairs = shown_pairs.shown_pairs(answer, compared, places[:_SHOWN])
        split = Disagreements(count=len(places), pairs=[split_pair(pair) for pair in pairs])

    result = ComparedMeasure(
        measure=compared.measure.name,
        judged_only=condensed.name if condensed else None,
        lower_is_better=compared.measure.definition.lower_is_better,
        topics=TopicsUsed(
            used=compared.topics,
            left_out=len(left_out),
            reasons=[
                LeftOut(topic_id=topic_id, runs_without_value=runs)
                for topic_id, runs in left_out[:_SHOWN]
            ],
        ),
        cautions=cautions_of(
            [
                *unsuited,
                *compared.cautions,
                *coverage_cautions(answer, compared),
                *split_omnibus(compared, answer.query.rule),
            ]
        ),
        means=[
            ComparedMean(
                run=run.pk,
                mean=means[row],
                coverage=RunCoverage(
                    answered=number(float(coverage.answered[row])),
                    judged=number(float(coverage.judged[row])),
                    k=coverage.k,
                ),
            )
            for row, run in runs_by_row(answer, compared).items()
        ],
        omnibus={name: omnibus_answer(result) for name, result in compared.omnibus.items()},
        tests={family.test: _family(answer, compared, family) for family in compared.families},
        equivalence=_equivalence(answer, compared),
        disagreements=split,
        count=count,
        pairs=[
            pair_answer(pair, topics) for pair in shown_pairs.shown_pairs(answer, compared, chosen)
        ],
    )
    if groups := compare_in_groups(answer, compared):
        result["topic_groups"] = _topic_groups(groups, compared)
    if pair := compare_with_weights(answer, compared):
        result["weighted"] = _weighted(pair)
    if methods := compare_methods(answer, compared):
        result["methods"] = _methods(methods)

    return result


def _methods(methods: MethodComparison) -> Methods:
    a, b = methods.replicates
    result = Methods(replicates_a=a, replicates_b=b, sentence=methods.sentence, test=None)
    if test := methods.test:
        result["test"] = MinF(
            difference=test.difference,
            low=number(test.low),
            high=number(test.high),
            statistic=number(test.statistic),
            freedom=number(test.freedom),
            p_value=number(test.p_value),
            by_topics=number(test.by_topics),
            by_replicates=number(test.by_replicates),
        )

    return result


def _weighted(pair: WeightedPair) -> WeightedDifference:
    weighted = pair.result
    return WeightedDifference(
        by=pair.key,
        sentence=weighted_words(pair),
        topics=pair.topics,
        effective_topics=weighted.effective_topics,
        mean_a=weighted.mean_a,
        mean_b=weighted.mean_b,
        difference=weighted.difference,
        low=number(weighted.low),
        high=number(weighted.high),
        p_value=weighted.p_value,
        exact=weighted.exact,
    )


def _topic_groups(groups: topic_groups.TopicGroups, compared: Compared) -> TopicGroups:
    differences = groups.differences
    interaction, verdicts = differences.interaction, differences.verdicts
    better = verdicts.better(compared.measure.definition.lower_is_better).tolist()

    return TopicGroups(
        by=groups.key,
        sentence=groups.sentence,
        interaction=Interaction(
            statistic=number(interaction.statistic),
            freedom=list(interaction.freedom),
            p_value=number(interaction.p_value),
            significant=groups.depends,
            kruskal_wallis=omnibus_answer(interaction.ranks) if interaction.ranks else None,
        ),
        topics_without=groups.without,
        cautions=cautions_of(groups.cautions),
        groups=[
            TopicGroup(
                group=name,
                topics=int(differences.topics[place]),
                difference=float(differences.difference[place]),
                low=number(float(differences.low[place])),
                high=number(float(differences.high[place])),
                p_value=number(float(differences.p_value[place])),
                p_adjusted=number(float(differences.adjusted[place])),
                verdict={1: VERDICTS[0], -1: VERDICTS[1]}.get(better[place]),
                withheld=REASONS[verdicts.withheld[place]] or None,
            )
            for place, name in enumerate(groups.names)
        ],
    )


def _practical(query: ComparisonQuery) -> Practical | None:
    practical = query.practical
    if not practical.tests:
        return None

    return Practical(tests=list(practical.tests), margin=practical.margin, rope=practical.rope)


def _equivalence(answer: Answer, compared: Compared) -> EquivalentPairs | None:
    equivalence = compared.equivalence
    if equivalence is None:
        return None

    return EquivalentPairs(
        correction=equivalence.correction,
        family=equivalence.size,
        equivalent=int(np.count_nonzero(equivalence.both.holds & visible_pairs(answer, compared))),
        cautions=cautions_of(equivalence.cautions),
    )


def omnibus_answer(result: OmnibusResult) -> Omnibus:
    """Return a test of all runs at once, with its sources of variation."""
    sphericity = None
    if corrected := result.sphericity:
        sphericity = Sphericity(
            greenhouse_geisser=corrected.greenhouse_geisser,
            huynh_feldt=corrected.huynh_feldt,
            p_huynh_feldt=corrected.p_huynh_feldt,
            p_uncorrected=corrected.p_uncorrected,
        )

    return Omnibus(
        statistic=result.statistic,
        freedom=list(result.freedom),
        p_value=number(result.p_value),
        effect=result.effect,
        sphericity=sphericity,
        sources=[
            Source(
                name=source.name,
                squares=source.squares,
                freedom=source.freedom,
                mean_square=source.mean_square,
                statistic=source.statistic,
                p_value=source.p_value,
            )
            for source in result.sources
        ],
        cautions=cautions_of(result.cautions),
    )


def _family(answer: Answer, compared: Compared, family: families.Family) -> Family:
    test = TESTS[family.test]
    cautions = [
        *not_corrected_again(family.test, answer.query.rule.correction),
        *family.result.cautions,
    ]

    groups = None
    if tiers := family.tiers:
        letters = letters_of(tiers)
        groups = [
            Groups(
                run=run.pk,
                tier=int(tiers.tier[row]),
                groups=[group + 1 for group in tiers.groups[row]],
                letters=letters[row] if letters else None,
            )
            for row, run in runs_by_row(answer, compared).items()
        ]

    return Family(
        about="ranks" if test.ranks else "means",
        paired=test.paired,
        draws=test.draws,
        correction=family.correction,
        family=family.size,
        intervals=test.intervals,
        significant=int(np.count_nonzero(family.significant & visible_pairs(answer, compared))),
        cautions=cautions_of(cautions),
        groups=groups,
    )
