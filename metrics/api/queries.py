"""Reading what a request asks for out of its query string, with an error that names the parameter."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from rest_framework.request import Request

from metrics.engine.errors import InvalidInput, MeasureError
from metrics.engine.grammar import Measure, parse_measure, parse_measures
from metrics.engine.judging import SCORE_TYPES
from metrics.services.comparison import ComparisonQuery
from metrics.services.leaderboard import BoardQuery
from runs.models import Collection

MAX_LIMIT = 200
_MAX_OFFSET = 1_000_000
_LEAST_SHARE = 0.0001


def measures_in(parameters: Mapping[str, str], name: str, default: list[str]) -> list[Measure]:
    """The measures of one parameter, or the default ones."""
    try:
        return parse_measures(parameters.get(name, "")) or [parse_measure(text) for text in default]
    except MeasureError as error:
        raise MeasureError(error.message, code=error.code, pointer=name) from error


def measure_in(parameters: Mapping[str, str], name: str, default: str) -> Measure:
    return measures_in({name: parameters.get(name) or default}, name, [default])[0]


def integer_in(parameters: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = parameters.get(name) or str(default)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        raise InvalidInput(f"{name}={text[:40]}: {name} is a whole number from {low} to {high}", pointer=name)
    return int(text)


def choice_in(parameters: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    text = parameters.get(name)
    if text and text not in choices:
        raise InvalidInput(f"{name}={text[:40]!r}: {name} is one of {', '.join(choices)}", pointer=name)
    return text or None


def scores_in(parameters: Mapping[str, str]) -> str | None:
    return choice_in(parameters, "scores", SCORE_TYPES)


def board_query(parameters: Mapping[str, str], collection: Collection) -> BoardQuery:
    """`sort` is a measure; `order` is desc or asc, by default the one that puts the best run first."""
    measures = measures_in(parameters, "measures", collection.measures)
    sort = measure_in(parameters, "sort", measures[0].name)
    order = choice_in(parameters, "order", ("desc", "asc"))
    return BoardQuery(
        measures=measures,
        sort=sort,
        descending=order == "desc" or (order is None and not sort.definition.lower_is_better),
        scores=scores_in(parameters),
        offset=integer_in(parameters, "offset", 0, 0, _MAX_OFFSET),
        limit=integer_in(parameters, "limit", 50, 1, MAX_LIMIT),
    )


def comparison_query(parameters: Mapping[str, str], collection: Collection) -> ComparisonQuery:
    runs = [run for run in parameters.get("runs", "").split(",") if run]
    return ComparisonQuery(
        measure=measure_in(parameters, "measure", collection.measures[0]),
        runs=[_run_id(run, "runs") for run in runs],
        baseline=_run_id(parameters["baseline"], "baseline") if parameters.get("baseline") else None,
        test=parameters.get("test") or "paired_t",
        correction=parameters.get("correction") or "holm",
        alpha=_share_in(parameters, "alpha", 0.05),
        confidence=_share_in(parameters, "confidence", 0.95),
        scores=scores_in(parameters),
    )


def _run_id(text: str, name: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not the id of a run", pointer=name) from error


def _share_in(parameters: Mapping[str, str], name: str, default: float) -> float:
    text = parameters.get(name) or str(default)
    try:
        share = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        share = -1.0
    if not _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
        message = f"{name}={text[:40]}: {name} is a number from {_LEAST_SHARE} to {1 - _LEAST_SHARE}"
        raise InvalidInput(message, pointer=name)
    return share


def query_of(request: Request) -> dict[str, str]:
    """The query string as text; the last of repeated parameters counts, repeated `measures` and `runs` add up."""
    joined = {name: ",".join(request.query_params.getlist(name)) for name in ("measures", "runs")}
    return {**request.query_params.dict(), **{name: text for name, text in joined.items() if text}}
