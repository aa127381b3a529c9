"""Reading what a request asks for out of its query string, with an error that names the parameter."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rest_framework.request import Request

from metrics.engine.curves import MAX_DEPTH, curve_measures
from metrics.engine.errors import MeasureError
from metrics.engine.gains import GainMap
from metrics.engine.grammar import Measure, parse_measure, parse_measures
from metrics.engine.judging import SCORE_TYPES
from metrics.engine.measures.definition import (
    BASE,
    DISCOUNT,
    INTERPOLATION,
    MAX_CUTOFF,
    RECALL_ROUNDING,
    REL,
    Parameter,
    check_interpolation,
    read_choice,
    read_integer,
)
from metrics.engine.precision_recall import MAX_POINTS
from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import DEFAULTS, MAX_RESAMPLES, TIES, ZEROS, Options
from metrics.engine.what_if import FAMILIES, MAX_COMBINATIONS, PRESETS, USERS, Grid, too_many_combinations
from metrics.models import Evaluation
from metrics.questions.run_ids import family_in, run_id_in, run_ids_in
from metrics.services.boards.filter_grammar import parse_filter
from metrics.services.boards.leaderboard import BoardQuery
from metrics.services.boards.standings import PARTS, StandingsQuery
from metrics.services.boards.what_if import WhatIfQuery
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.design import DesignQuery
from metrics.services.comparisons.orders import OrdersQuery
from metrics.services.comparisons.shown_pairs import PAIR_ORDERS, PairSelection
from metrics.services.values.curves import CurveQuery, RecallQuery
from metrics.services.values.difference import DifferenceQuery
from metrics.services.values.values import find_evaluation
from runs.api.parameters import MAX_OFFSET, integer_in, text_of
from runs.errors import InvalidInput
from runs.models import Collection, Run

MAX_LIMIT = 200
MAX_VALUES = 1_000_000
MAX_COMPARED_MEASURES = 20
# Of one answer: pairs of each measure, and pairs times measures times tests.
MAX_PAIRS, MAX_VERDICTS = 5_000, 20_000
MAX_VERSION = 10**6
MAX_SEED = 10**9 - 1
_LEAST_SHARE = 0.0001
_TRUE = ("true", "True", "1")
_FLAGS = (*_TRUE, "false", "False", "0")
_MAX_SIZE, _MAX_TRIALS = 100_000, 1_000
_LEAST_DIFFERENCE = 1e-6
RESAMPLES, _RANK_RESAMPLES = (100, 1_000_000), (100, 10_000)
_GRID = ("family", "gains", "dis", "b", "depths")
_T = TypeVar("_T")


def measures_in(
    parameters: Mapping[str, str], name: str, default: list[str], documents: int | None = None
) -> list[Measure]:
    """The measures of one parameter, or the default ones; `documents` is the size of the collection, where known."""
    try:
        return parse_measures(parameters.get(name, ""), documents) or [parse_measure(one, documents) for one in default]
    except MeasureError as error:
        raise pointed(error, name) from error


def measure_in(parameters: Mapping[str, str], name: str, default: str, documents: int | None = None) -> Measure:
    return measures_in({name: parameters.get(name) or default}, name, [default], documents)[0]


def choice_in(parameters: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    text = parameters.get(name)
    if text and text not in choices:
        raise InvalidInput(f"{name}={text[:40]!r}: {name} is one of {', '.join(choices)}", pointer=name)
    return text or None


def flag_in(parameters: Mapping[str, str], name: str) -> bool:
    return choice_in(parameters, name, _FLAGS) in _TRUE


def scores_in(parameters: Mapping[str, str]) -> str | None:
    return choice_in(parameters, "scores", SCORE_TYPES)


def board_query(parameters: Mapping[str, str], collection: Collection, reader: Any) -> BoardQuery:
    """`sort` is a measure; `order` is desc or asc, by default the one that puts the best run first."""
    measures = measures_in(parameters, "measures", collection.measures, collection.documents)
    sort = measure_in(parameters, "sort", measures[0].name, collection.documents)
    order = choice_in(parameters, "order", ("desc", "asc"))
    return BoardQuery(
        measures=measures,
        sort=sort,
        descending=order == "desc" or (order is None and not sort.definition.lower_is_better),
        scores=scores_in(parameters),
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=integer_in(parameters, "limit", 50, 1, MAX_LIMIT),
        filter=parse_filter(parameters.get("filter", "")),
        reader=reader,
    )


def standings_query(parameters: Mapping[str, str]) -> StandingsQuery | None:
    """The statistics of a board; None where neither `statistics` nor a `baseline` asks for any."""
    parts = _several(parameters, "statistics", lambda text: read_choice("all", *PARTS)("statistics", text))
    baseline = run_id_in(parameters, "baseline")
    if not (parts or baseline):
        return None
    if "baseline" in parts and not baseline:
        raise InvalidInput("statistics=baseline needs the id of a run: baseline=...", pointer="baseline")
    wanted = {*parts, "baseline"} if baseline else set(parts)
    if "all" in parts:
        wanted |= {"intervals", "tiers", "ranks"}
    return StandingsQuery(
        parts=tuple(part for part in PARTS if part in wanted),
        baseline=baseline,
        test=parameters.get("test") or "paired_t",
        correction=parameters.get("correction") or "holm",
        alpha=share_in(parameters, "alpha", 0.05),
        confidence=share_in(parameters, "confidence", 0.95),
        resamples=integer_in(parameters, "resamples", 100_000, *RESAMPLES),
        rank_resamples=integer_in(parameters, "rank_resamples", 2_000, *_RANK_RESAMPLES),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
    )


def comparison_query(parameters: Mapping[str, str], collection: Collection) -> ComparisonQuery:
    """`measure` and `test` are read where `measures` and `tests` are left out."""
    named = _one_of(parameters, "measures", "measure")
    measures = measures_in(parameters, named, collection.measures[:1], collection.documents)
    if len(measures) > MAX_COMPARED_MEASURES:
        message = f"{len(measures)} measures; a comparison takes at most {MAX_COMPARED_MEASURES}"
        raise MeasureError(message, code="too_many_measures", pointer=named)
    tests = parameters.get(_one_of(parameters, "tests", "test")) or "paired_t"
    options = Options(
        confidence=share_in(parameters, "confidence", 0.95),
        resamples=integer_in(parameters, "resamples", DEFAULTS.resamples, 1, MAX_RESAMPLES),
        seed=integer_in(parameters, "seed", DEFAULTS.seed, 0, MAX_SEED),
        min_difference=_size_in(parameters, "min_difference"),
        zeros=choice_in(parameters, "zeros", ZEROS) or DEFAULTS.zeros,
        ties=choice_in(parameters, "ties", TIES) or DEFAULTS.ties,
    )
    runs = run_ids_in(parameters)
    return ComparisonQuery(
        measures=list(dict.fromkeys(measures)),
        runs=runs,
        baseline=run_id_in(parameters, "baseline"),
        tests=list(dict.fromkeys(test.strip() for test in tests.split(",") if test.strip())) or ["paired_t"],
        rule=Rule(parameters.get("correction") or "holm", share_in(parameters, "alpha", 0.05)),
        options=options,
        scores=scores_in(parameters),
        family=family_in(parameters, runs),
    )


def _one_of(parameters: Mapping[str, str], name: str, other: str) -> str:
    """The one of two names of a parameter that is given."""
    if parameters.get(name) and parameters.get(other):
        message = f"{name} and {other} are the same parameter here: give one of them"
        raise InvalidInput(message, code="repeated_parameter", pointer=other)
    return name if parameters.get(name) else other


def pair_selection(parameters: Mapping[str, str], query: ComparisonQuery) -> PairSelection:
    """Which pairs of a comparison to show."""
    limit = integer_in(parameters, "limit", 200, 1, MAX_PAIRS)
    shown = limit * len(query.measures) * len(query.tests)
    if limit > 1 and shown > MAX_VERDICTS:
        message = f"{shown:,} results asked for; at most {MAX_VERDICTS:,}: ask for fewer with limit="
        raise InvalidInput(message, code="too_many_values", pointer="limit")
    return PairSelection(
        run=run_id_in(parameters, "run"),
        sort=choice_in(parameters, "sort", PAIR_ORDERS) or PAIR_ORDERS[0],
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=limit,
    )


def share_in(parameters: Mapping[str, str], name: str, default: float) -> float:
    return _number(name, parameters.get(name) or str(default), _LEAST_SHARE, 1 - _LEAST_SHARE)


def _size_in(parameters: Mapping[str, str], name: str) -> float:
    """A finite number of 0 or more; 0 where left out."""
    return _number(name, parameters.get(name) or "0", 0.0, sys.float_info.max)


def _number(name: str, text: str, low: float, high: float) -> float:
    """The number that `text` writes; InvalidInput where it is none or not from `low` to `high`."""
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        bounds = f"from {low:g} to {high:g}" if high < sys.float_info.max else f"of {low:g} or more"
        raise InvalidInput(f"{name}={text[:40]}: {name} is a number {bounds}", pointer=name)
    return number


def curve_query(parameters: Mapping[str, str]) -> CurveQuery:
    """`measure` is read where `measures` is left out, as an address of one curve says."""
    name = _one_of(parameters, "measures", "measure")
    try:
        measures = curve_measures(parameters.get(name) or "nDCG")
    except MeasureError as error:
        raise pointed(error, name) from error
    return CurveQuery(
        measures=measures,
        depth=integer_in(parameters, "depth", 100, 1, MAX_DEPTH),
        confidence=share_in(parameters, "confidence", 0.95),
        per_topic=flag_in(parameters, "per_topic"),
        with_readings=flag_in(parameters, "readings"),
    )


def recall_query(parameters: Mapping[str, str]) -> RecallQuery:
    """`rel` is levels separated by commas, or all."""
    interp, rounding = (_word_in(parameters, known) for known in (INTERPOLATION, RECALL_ROUNDING))
    problem = check_interpolation({"interp": interp, "rounding": rounding})
    if problem:
        raise MeasureError(problem, code="bad_parameter", pointer="rounding")
    rel = parameters.get("rel") or "1"
    return RecallQuery(
        points=integer_in(parameters, "points", 11, 2, MAX_POINTS),
        levels=None if rel == "all" else _several({"rel": rel}, "rel", lambda level: REL.read("rel", level)),
        interp=interp,
        rounding=rounding,
        confidence=share_in(parameters, "confidence", 0.95),
        per_topic=flag_in(parameters, "per_topic"),
    )


def difference_query(parameters: Mapping[str, str], collection: Collection) -> DifferenceQuery:
    return DifferenceQuery(
        measure=measure_in(parameters, "measure", collection.measures[0], collection.documents),
        runs=run_ids_in(parameters),
        by_difference=choice_in(parameters, "order", ("topic", "difference")) == "difference",
        scores=scores_in(parameters),
    )


def what_if_query(parameters: Mapping[str, str], collection: Collection) -> WhatIfQuery:
    """Combinations named by `measures`, those of `preset`, and the product of the rest; the two users for none."""
    product = _grid(parameters).measures() if any(parameters.get(name) for name in _GRID) else []
    named = measures_in(parameters, "measures", [], collection.documents)
    asked = _several(parameters, "preset", lambda text: read_choice(*PRESETS)("preset", text))
    if not (product or named or asked):
        asked = list(USERS)
    presets = {parse_measure(PRESETS[preset]): preset for preset in asked}
    combinations = list(dict.fromkeys([*named, *presets, *product]))
    if len(combinations) > MAX_COMBINATIONS:
        raise too_many_combinations()
    return WhatIfQuery(combinations, presets, run_ids_in(parameters), scores_in(parameters))


def orders_query(parameters: Mapping[str, str], collection: Collection) -> OrdersQuery:
    """`qrels` is versions separated by commas."""
    return OrdersQuery(
        measures=measures_in(parameters, "measures", collection.measures, collection.documents),
        versions=_several(parameters, "qrels", lambda text: integer_in({"qrels": text}, "qrels", 0, 1, MAX_VERSION)),
        runs=run_ids_in(parameters),
        confidence=share_in(parameters, "confidence", 0.95),
        resamples=integer_in(parameters, "resamples", 1_000, *_RANK_RESAMPLES),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
        scores=scores_in(parameters),
    )


def design_query(parameters: Mapping[str, str], collection: Collection) -> DesignQuery:
    differences = _several(parameters, "differences", lambda text: _positive("differences", text))
    return DesignQuery(
        measures=measures_in(parameters, "measures", collection.measures, collection.documents),
        runs=run_ids_in(parameters),
        test=parameters.get("test") or "paired_t",
        alpha=share_in(parameters, "alpha", 0.05),
        power=share_in(parameters, "power", 0.8),
        differences=differences or [0.05, 0.1],
        sizes=_several(parameters, "sizes", lambda text: integer_in({"sizes": text}, "sizes", 0, 1, _MAX_SIZE)),
        trials=integer_in(parameters, "trials", 50, 1, _MAX_TRIALS),
        width=_positive("width", parameters.get("width") or "0.01"),
        resamples=integer_in(parameters, "resamples", 10_000, *RESAMPLES),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
        scores=scores_in(parameters),
    )


def _positive(name: str, text: str) -> float:
    return _number(name, text, _LEAST_DIFFERENCE, 1 / _LEAST_DIFFERENCE)


def _grid(parameters: Mapping[str, str]) -> Grid:
    bases = _several(parameters, "b", lambda text: BASE.read("b", text))
    discounts = _several(parameters, "dis", lambda text: DISCOUNT.read("dis", text)) or (["jk"] if bases else [])
    if bases and set(discounts) == {"log2"}:
        message = "b needs dis=jk or dis=session: log2(i + 1) has its base"
        raise MeasureError(message, code="bad_parameter", pointer="b")
    given: dict[str, list[Any]] = {
        "families": _several(parameters, "family", lambda text: read_choice(*FAMILIES)("family", text)),
        "gains": _several(parameters, "gains", GainMap.parse, ";"),
        "discounts": discounts,
        "bases": bases,
        "depths": _several(parameters, "depths", _depth),
    }
    return Grid(**{name: tuple(values) for name, values in given.items() if values})


def _depth(text: str) -> int | None:
    return None if text == "all" else read_integer(1, MAX_CUTOFF)("depths", text)


def _several(parameters: Mapping[str, str], name: str, read: Callable[[str], _T], separator: str = ",") -> list[_T]:
    """The values of a list, each once, read one by one; an error has the parameter's name."""
    parts = [part.strip() for part in parameters.get(name, "").split(separator)]
    parts = list(dict.fromkeys(part for part in parts if part))
    if len(parts) > MAX_COMBINATIONS:
        message = f"{name}: {len(parts)} values; at most {MAX_COMBINATIONS} at once"
        raise InvalidInput(message, code="too_many_values", pointer=name)
    try:
        return [read(part) for part in parts]
    except MeasureError as error:
        raise pointed(error, name) from error


def _word_in(parameters: Mapping[str, str], known: Parameter) -> Any:
    try:
        return known.read(known.name, parameters.get(known.name) or known.default)
    except MeasureError as error:
        raise pointed(error, known.name) from error


def pointed(error: MeasureError, name: str) -> MeasureError:
    return MeasureError(error.message, code=error.code, pointer=name)


def check_size(values: int) -> None:
    """InvalidInput where the curves of all topics make too long an answer."""
    if values > MAX_VALUES:
        message = f"{values:,} values of single topics asked for; at most {MAX_VALUES:,}: ask for fewer ranks or curves"
        raise InvalidInput(message, code="too_many_values", pointer="per_topic")


def evaluation_in(parameters: Mapping[str, str], run: Run) -> Evaluation:
    """The evaluation of the run to read, by `qrels` and `scores`."""
    version = integer_in(parameters, "qrels", 0, 0, MAX_VERSION) or None
    return find_evaluation(run=run, scores=scores_in(parameters), version=version)


def query_of(request: Request) -> dict[str, str]:
    """The query string as text."""
    return text_of(request.query_params)
