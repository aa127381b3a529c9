"""How far two versions of the judgements agree, and what the difference does to the runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from metrics.engine.agreement.assessors import (
    AssessorAgreement,
    assessed_documents,
    assessor_agreement,
)
from metrics.engine.agreement.intervals import Agreement as OrderAgreement
from metrics.engine.agreement.run_bias import (
    OUTLYING,
    GroupDifference,
    VerdictChanges,
    group_difference,
    standardised_residuals,
    verdict_changes,
)
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance import TESTS
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.families import USUAL_RULE, USUAL_TEST, Pairs, Rule, compare_family
from metrics.engine.significance.pairs import Caution, Matrix, Options
from metrics.services.boards.board_question import qrels_version
from metrics.services.boards.selection import tested_measures
from metrics.services.comparisons.judgements import judgements_of
from metrics.services.comparisons.orders import (
    Orders,
    OrdersQuery,
    compare_orders,
    evaluated_runs,
    values_of_orders,
)
from metrics.services.question import (
    MAX_VERSION,
    RANK_RESAMPLES,
    SCORES,
    SEED,
    Choice,
    Integer,
    OneMeasure,
    Parameter,
    Question,
    RunIds,
    Share,
    parameter,
)
from metrics.services.values.effort import seconds_of_test
from metrics.services.work import begin
from runs.attention import present_attention
from runs.errors import InvalidInput
from runs.formats.parameters import flatten
from runs.models import Collection, Qrels, Run

# Divisions of the runs that the permutation test tries.
PERMUTATIONS = 9_999
# Values of a parameter that say that a run uses no model.
_NONE = ("", "0", "false", "no", "none", "null")
# Seconds of an interval for each cell of the tables of all topics, and for each judgement.
_CELL, _JUDGEMENT = 6e-9, 4e-6


@dataclass(frozen=True)
class AgreementQuery(Question):
    """The parameters of the agreement of a version with another one.

    No `other` version means the parent of the version. `uses_model` names a parameter of runs: the
    runs with values that contain `family` are compared with the others.
    """

    measure: Measure = parameter(
        OneMeasure(
            "one measure, for orders and verdicts; default: the collection's first with values "
            "of topics",
            names=tested_measures,
        )
    )
    other: int | None = parameter(
        Integer(
            "the version to compare with, as the reference; default: the parent of the version",
            name="with",
            low=1,
            high=MAX_VERSION,
            default=None,
        )
    )
    runs: list[str] = parameter(RunIds())
    test: str = parameter(
        Choice("of significance, for verdicts", default=USUAL_TEST, choices=tuple(TESTS))
    )
    alpha: float = parameter(Share("significance level", default=USUAL_RULE.alpha))
    uses_model: str = parameter(
        Parameter("a parameter of runs that says which model a run uses", default="")
    )
    family: str = parameter(
        Parameter(
            "runs belong to the family of the judge if the value of uses_model contains this; "
            "without it, if they have a value",
            default="",
        )
    )
    depth: int = parameter(Integer("k of Judged@k", name="k", default=10, low=1, high=1_000))
    confidence: float = parameter(Share("of the intervals", default=0.95))
    resamples: int = parameter(
        Integer("B of the intervals", default=1_000, low=RANK_RESAMPLES[0], high=RANK_RESAMPLES[1])
    )
    seed: int = parameter(SEED)
    scores: str | None = parameter(SCORES)


@dataclass(frozen=True)
class JudgedRun:
    """A run under both versions, on common topics.

    `difference` is the mean under the version minus that under the reference, and `residual` its
    standardised residual, NaN where that is undefined. `judged` and `judged_reference` are means of
    Judged@k. `uses_model` is None unless it was requested.
    """

    run: Run
    mean: float
    reference: float
    difference: float
    residual: float
    judged: float
    judged_reference: float
    uses_model: bool | None

    @property
    def outlying(self) -> bool:
        """Return whether its difference departs from those of the other runs."""
        return abs(self.residual) > OUTLYING


@dataclass(frozen=True)
class RunEffects:
    """What the version does to the runs, against the reference."""

    orders: Orders
    verdicts: VerdictChanges
    runs: list[JudgedRun]
    group: GroupDifference | None

    @property
    def tau(self) -> OrderAgreement:
        return self.orders.pairs[0].agreements.tau

    @property
    def tau_ap(self) -> OrderAgreement:
        """Return the AP correlation with the order under the reference as the truth."""
        return self.orders.pairs[0].agreements.tau_ap

    @property
    def topics(self) -> int:
        return self.orders.topics

    @property
    def outlying(self) -> list[JudgedRun]:
        """Return the runs that the version favours or not, beyond the regression."""
        return [judged for judged in self.runs if judged.outlying]


@dataclass(frozen=True)
class VersionAgreement:
    """The agreement of a version with the reference.

    Topics and levels are those of both. `effects` is None where too few runs are evaluated under
    both versions, and `problem` says so.
    """

    query: AgreementQuery
    qrels: Qrels
    reference: Qrels
    topic_ids: list[str]
    levels: list[int]
    agreement: AssessorAgreement
    effects: RunEffects | None = None
    problem: StatisticsError | None = None
    cautions: list[Caution] = field(default_factory=list)

    @property
    def documents(self) -> int:
        """Return the number of documents that both judge."""
        return int(self.agreement.documents.sum())

    @property
    def topics(self) -> int:
        """Return the number of topics with such documents."""
        return int(np.count_nonzero(self.agreement.documents))


def read_agreement(
    *, collection: Collection, version: int, query: AgreementQuery
) -> VersionAgreement:
    """Return the agreement of a version with another one.

    Raise NotFound for an unknown version, InvalidInput for judgements of single queries, a version
    with itself, or without another one to compare with; StatisticsError for an unknown run and what
    would take too long.
    """
    qrels = qrels_version(collection, version)
    reference = _reference(collection, qrels, query)
    # The reference comes first: its levels are the rows of the confusion.
    sides = [judgements_of(reference), judgements_of(qrels)]
    assessed_sides = sum(len(side.levels) for side in sides)
    levels = len({*reference.levels, *qrels.levels})
    cells = max(reference.topics, qrels.topics) * min(levels**2, assessed_sides)
    begin(
        assessed_sides * _JUDGEMENT + 10 * query.resamples * cells * _CELL,
        f"the agreement on {assessed_sides:,} judgements, B = {query.resamples:,},",
        "use fewer resamples",
        "resamples",
    )

    assessed = assessed_documents(sides)
    options = Options(
        confidence=query.confidence,
        resamples=query.resamples,
        seed=query.seed,
        watch=present_attention().keep_going,
    )
    agreement = assessor_agreement(assessed, options)
    effects, problem = None, None
    try:
        effects = _effects(collection, qrels, reference, query)
    except StatisticsError as error:
        # Judgements can be compared without runs; a request that names some has an answer, or none.
        if query.runs or error.code not in ("too_few_runs", "too_few_topics"):
            raise
        problem = error

    topics = int(np.count_nonzero(agreement.documents))
    cautions = [] if effects is None else list(effects.orders.cautions)
    return VersionAgreement(
        query=query,
        qrels=qrels,
        reference=reference,
        topic_ids=[topic_id.decode() for topic_id in assessed.topic_ids],
        levels=assessed.levels.tolist(),
        agreement=agreement,
        effects=effects,
        problem=problem,
        cautions=list(dict.fromkeys([*few_topics(topics), *cautions])) if topics else cautions,
    )


def _reference(collection: Collection, qrels: Qrels, query: AgreementQuery) -> Qrels:
    if query.other is None:
        if qrels.parent is None:
            message = (
                f"name the version to compare version {qrels.version} with, such as "
                f"with={1 if qrels.version != 1 else 2}"
            )
            raise InvalidInput(message, code="required", pointer="with")
        return qrels_version(collection, qrels.parent.version)

    if query.other == qrels.version:
        message = f"version {qrels.version} agrees with itself; name another one"
        raise InvalidInput(message, pointer="with")

    return qrels_version(collection, query.other)


def _effects(
    collection: Collection, qrels: Qrels, reference: Qrels, query: AgreementQuery
) -> RunEffects:
    versions, scores = [reference, qrels], query.scores or collection.scores
    orders_query = OrdersQuery(
        measures=[query.measure],
        versions=[version.version for version in versions],
        runs=query.runs,
        confidence=query.confidence,
        resamples=query.resamples,
        seed=query.seed,
        scores=query.scores,
    )
    orders = compare_orders(collection=collection, query=orders_query)
    runs, ids = evaluated_runs(collection, versions, scores, orders_query)
    pairs = Pairs(len(runs))
    seconds = 2 * seconds_of_test(query.test, len(runs), orders.topics, pairs.number, 100_000)
    begin(seconds, f"verdicts on {pairs.number:,} pairs", "name fewer runs (runs=)", "runs")

    (before, after), _ = values_of_orders(versions, ids, [query.measure])
    (judged_before, judged_after), _ = values_of_orders(
        versions, ids, [collection.measure(f"Judged@{query.depth}")]
    )

    def verdicts(values: Matrix) -> np.ndarray:
        rule = Rule(alpha=query.alpha)
        options = Options(seed=query.seed, watch=present_attention().keep_going)
        family = compare_family(values, pairs, query.test, rule, options)
        return family.verdicts.higher

    means, reference_means = after.mean(axis=1), before.mean(axis=1)
    differences = means - reference_means
    residuals = standardised_residuals(reference_means, differences)
    used, group = None, None
    if query.uses_model:
        used = _users(runs, query)
        group = group_difference(differences, np.array(used), PERMUTATIONS, query.seed)

    judged_runs = [
        JudgedRun(
            run=run,
            mean=float(means[row]),
            reference=float(reference_means[row]),
            difference=float(differences[row]),
            residual=float(residuals[row]),
            judged=float(judged_after[row].mean()),
            judged_reference=float(judged_before[row].mean()),
            uses_model=used[row] if used else None,
        )
        for row, run in enumerate(runs)
    ]
    return RunEffects(
        orders=orders,
        verdicts=verdict_changes(verdicts(before), verdicts(after)),
        runs=judged_runs,
        group=group,
    )


def _users(runs: Sequence[Run], query: AgreementQuery) -> list[bool]:
    """Return which runs use a model of the family.

    Raise InvalidInput for a parameter that no run has.
    """
    metadata = dict(
        Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("pk", "metadata")
    )
    used, has_parameter = [], False
    for run in runs:
        leaves = {leaf.name: leaf.value for leaf in flatten(metadata[run.pk]).leaves}
        value = leaves.get(query.uses_model)
        has_parameter = has_parameter or value is not None
        text = "" if value is None else str(value).casefold()
        used.append(text not in _NONE and query.family.casefold() in text)

    if not has_parameter:
        message = f"no compared run has the parameter {query.uses_model[:100]!r}"
        raise InvalidInput(message, code="bad_columns", pointer="uses_model")

    return used


def share(part: int, whole: int) -> float:
    """Return a share, NaN of nothing."""
    return part / whole if whole else math.nan
