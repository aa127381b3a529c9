"""The parameters of comparisons of runs and related requests: one difference, orders of systems, a design."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from metrics.engine.errors import MeasureError
from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import DEFAULTS, MAX_RESAMPLES, TIES, ZEROS, Options
from metrics.engine.significance.practical import PRACTICAL, USUAL_ROPE, Practical
from metrics.models import Comparison
from metrics.questions.parameters import (
    MAX_SEED,
    MAX_VERSION,
    RANK_RESAMPLES,
    RESAMPLES,
    choice_in,
    measure_in,
    measures_in,
    number_in,
    one_of,
    scores_in,
    several_in,
    share_in,
)
from metrics.questions.run_ids import family_in, run_id_in, run_ids_in
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.content import digest_of
from metrics.services.comparisons.design import DesignQuery
from metrics.services.comparisons.orders import OrdersQuery
from metrics.services.comparisons.shown_pairs import PAIR_ORDERS, PairSelection
from metrics.services.values.difference import DifferenceQuery
from metrics.services.values.selection import effectiveness_measures, tested_measures
from runs.api.parameters import MAX_OFFSET, integer_in
from runs.errors import InvalidInput, StoredValueCorrupt
from runs.models import Collection

MAX_COMPARED_MEASURES = 20
# The limits of one answer: pairs of each measure, and pairs times measures times tests.
MAX_PAIRS, MAX_VERDICTS = 5_000, 20_000
_MAX_SIZE, _MAX_TRIALS = 100_000, 1_000
_LEAST_DIFFERENCE = 1e-6
_LONG = ("qrels__topic_ids", "content", "traceback")


def comparison_query(parameters: Mapping[str, str], collection: Collection) -> ComparisonQuery:
    """Return the query of a comparison. `measure` and `test` are read if `measures` and `tests` are not given."""
    named = one_of(parameters, "measures", "measure")
    measures = measures_in(parameters, named, tested_measures(collection)[:1], collection.documents)
    if len(measures) > MAX_COMPARED_MEASURES:
        message = f"{len(measures)} measures; a comparison takes at most {MAX_COMPARED_MEASURES}"
        raise MeasureError(message, code="too_many_measures", pointer=named)
    tests = parameters.get(one_of(parameters, "tests", "test")) or ""
    options = Options(
        confidence=share_in(parameters, "confidence", 0.95),
        resamples=integer_in(parameters, "resamples", DEFAULTS.resamples, 1, MAX_RESAMPLES),
        seed=integer_in(parameters, "seed", DEFAULTS.seed, 0, MAX_SEED),
        min_difference=number_in(
            "min_difference", parameters.get("min_difference") or "0", 0.0, sys.float_info.max
        ),
        zeros=choice_in(parameters, "zeros", ZEROS) or DEFAULTS.zeros,
        ties=choice_in(parameters, "ties", TIES) or DEFAULTS.ties,
    )
    runs = run_ids_in(parameters)
    named_tests = list(dict.fromkeys(test.strip() for test in tests.split(",") if test.strip()))
    return ComparisonQuery(
        measures=list(dict.fromkeys(measures)),
        runs=runs,
        baseline=run_id_in(parameters, "baseline"),
        tests=[test for test in named_tests if test not in PRACTICAL],
        rule=Rule(parameters.get("correction") or "holm", share_in(parameters, "alpha", 0.05)),
        options=options,
        scores=scores_in(parameters),
        family=family_in(parameters, runs),
        practical=practical_in(parameters, named_tests),
    )


def practical_in(parameters: Mapping[str, str], tests: Sequence[str]) -> Practical:
    """Return what is asked beside the tests: those of these names that are in PRACTICAL, and their differences."""
    margin = parameters.get("margin")
    return Practical(
        tests=tuple(test for test in tests if test in PRACTICAL),
        margin=number_in("margin", margin, 0.0, sys.float_info.max) if margin else None,
        rope=number_in("rope", parameters.get("rope") or str(USUAL_ROPE), 0.0, sys.float_info.max),
    )


def pair_selection(parameters: Mapping[str, str], query: ComparisonQuery) -> PairSelection:
    """Return the selection of pairs to show."""
    limit = integer_in(parameters, "limit", 200, 1, MAX_PAIRS)
    shown = limit * len(query.measures) * max(len(query.tests), 1)
    if limit > 1 and shown > MAX_VERDICTS:
        message = (
            f"{shown:,} results requested; the limit is {MAX_VERDICTS:,}: use a smaller limit="
        )
        raise InvalidInput(message, code="too_many_values", pointer="limit")
    return PairSelection(
        run=run_id_in(parameters, "run"),
        sort=choice_in(parameters, "sort", PAIR_ORDERS) or PAIR_ORDERS[0],
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=limit,
    )


def difference_query(parameters: Mapping[str, str], collection: Collection) -> DifferenceQuery:
    return DifferenceQuery(
        measure=measure_in(parameters, "measure", collection.measures[0], collection.documents),
        runs=run_ids_in(parameters),
        by_difference=choice_in(parameters, "order", ("topic", "difference")) == "difference",
        scores=scores_in(parameters),
    )


def judged_versions(parameters: Mapping[str, str]) -> list[int]:
    """Return the numbers of versions of the judgements, separated by commas; an empty list means the active version."""
    return several_in(
        parameters, "qrels", lambda text: integer_in({"qrels": text}, "qrels", 0, 1, MAX_VERSION)
    )


def orders_query(parameters: Mapping[str, str], collection: Collection) -> OrdersQuery:
    """Return the query of orders; `qrels` is a list of versions separated by commas."""
    return OrdersQuery(
        measures=measures_in(
            parameters, "measures", tested_measures(collection), collection.documents
        ),
        versions=judged_versions(parameters),
        runs=run_ids_in(parameters),
        confidence=share_in(parameters, "confidence", 0.95),
        resamples=integer_in(parameters, "resamples", 1_000, *RANK_RESAMPLES),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
        scores=scores_in(parameters),
    )


def design_query(parameters: Mapping[str, str], collection: Collection) -> DesignQuery:
    differences = several_in(parameters, "differences", lambda text: _positive("differences", text))
    return DesignQuery(
        measures=measures_in(
            parameters, "measures", effectiveness_measures(collection), collection.documents
        ),
        runs=run_ids_in(parameters),
        test=parameters.get("test") or "paired_t",
        alpha=share_in(parameters, "alpha", 0.05),
        power=share_in(parameters, "power", 0.8),
        differences=differences or [0.05, 0.1],
        sizes=several_in(
            parameters, "sizes", lambda text: integer_in({"sizes": text}, "sizes", 0, 1, _MAX_SIZE)
        ),
        trials=integer_in(parameters, "trials", 50, 1, _MAX_TRIALS),
        width=_positive("width", parameters.get("width") or "0.01"),
        resamples=integer_in(parameters, "resamples", 10_000, *RESAMPLES),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
        scores=scores_in(parameters),
    )


def _positive(name: str, text: str) -> float:
    return number_in(name, text, _LEAST_DIFFERENCE, 1 / _LEAST_DIFFERENCE)


def stored_comparison(request: HttpRequest | Request, comparison: UUID) -> Comparison:
    """Return a stored comparison. Raise NotFound if the user may not see the scores, so that not even its state is
    revealed."""
    visible = (
        Comparison.objects.visible_to(request.user)
        .select_related("qrels__collection")
        .defer(*_LONG)
    )
    found = visible.filter(pk=comparison).first()
    if found is None:
        raise Http404(f"there is no comparison {comparison}")
    if digest_of(found.query) != found.digest:
        message = f"what comparison {comparison} was asked is damaged, and nothing is shown of it; request it again"
        raise StoredValueCorrupt(message)
    return found
