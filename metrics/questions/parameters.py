"""Read single parameters of a query string, with an error that names the parameter."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rest_framework.request import Request

from metrics.engine.errors import MeasureError
from metrics.engine.grammar import Measure, parse_measure, parse_measures
from metrics.engine.judging import SCORE_TYPES
from metrics.engine.measures.definition import (
    Parameter,
)
from metrics.engine.spelling import closest
from metrics.engine.what_if import MAX_COMBINATIONS
from metrics.questions.run_ids import without_labels
from runs.api.parameters import text_of
from runs.errors import InvalidInput
from runs.models import Collection

MAX_LIMIT = 200
MAX_VERSION = 10**6
MAX_SEED = 10**9 - 1
# The limits of B for tests and for rank intervals: the least and the most.
RESAMPLES, RANK_RESAMPLES = (100, 1_000_000), (100, 10_000)
_LEAST_SHARE = 0.0001
_TRUE = ("true", "True", "1")
_FLAGS = (*_TRUE, "false", "False", "0")
_T = TypeVar("_T")


def query_of(request: Request, collection: Collection | None = None) -> dict[str, str]:
    """Return the query string as text; with the collection it is about, runs that are named by labels have their
    ids."""
    given = text_of(request.query_params)
    return without_labels(given, collection, request.user) if collection else given


def measures_in(
    parameters: Mapping[str, str], name: str, default: list[str], documents: int | None = None
) -> list[Measure]:
    """Return the measures of one parameter, or the default ones; `documents` is the size of the collection, if
    known."""
    try:
        return parse_measures(parameters.get(name, ""), documents) or [
            parse_measure(one, documents) for one in default
        ]
    except MeasureError as error:
        raise pointed(error, name) from error


def measure_in(
    parameters: Mapping[str, str], name: str, default: str, documents: int | None = None
) -> Measure:
    return measures_in({name: parameters.get(name) or default}, name, [default], documents)[0]


def choice_in(parameters: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    text = parameters.get(name)
    if text and text not in choices:
        near = closest(text, choices)
        meant = f"; did you mean {near!r}?" if near else ""
        raise InvalidInput(
            f"{name}={text[:40]!r}: {name} is one of {', '.join(choices)}{meant}", pointer=name
        )
    return text or None


def flag_in(parameters: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    flag = choice_in(parameters, name, _FLAGS)
    return flag in _TRUE if flag else default


def scores_in(parameters: Mapping[str, str]) -> str | None:
    return choice_in(parameters, "scores", SCORE_TYPES)


def share_in(parameters: Mapping[str, str], name: str, default: float) -> float:
    return number_in(name, parameters.get(name) or str(default), _LEAST_SHARE, 1 - _LEAST_SHARE)


def number_in(name: str, text: str, low: float, high: float) -> float:
    """Return the number that `text` contains. Raise InvalidInput if it is not a number from `low` to `high`."""
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        bounds = f"from {low:g} to {high:g}" if high < sys.float_info.max else f"of {low:g} or more"
        raise InvalidInput(f"{name}={text[:40]}: {name} is a number {bounds}", pointer=name)
    return number


def one_of(parameters: Mapping[str, str], name: str, other: str) -> str:
    """Return which of two alternative names of a parameter is given."""
    if parameters.get(name) and parameters.get(other):
        message = f"{name} and {other} are the same parameter: give only one of them"
        raise InvalidInput(message, code="repeated_parameter", pointer=other)
    return name if parameters.get(name) else other


def several_in(
    parameters: Mapping[str, str], name: str, read: Callable[[str], _T], separator: str = ","
) -> list[_T]:
    """Return the values of a list without repetitions, read one by one; errors name the parameter."""
    parts = [part.strip() for part in parameters.get(name, "").split(separator)]
    parts = list(dict.fromkeys(part for part in parts if part))
    if len(parts) > MAX_COMBINATIONS:
        message = f"{name}: {len(parts)} values; at most {MAX_COMBINATIONS} at once"
        raise InvalidInput(message, code="too_many_values", pointer=name)
    try:
        return [read(part) for part in parts]
    except MeasureError as error:
        raise pointed(error, name) from error


def word_in(parameters: Mapping[str, str], known: Parameter) -> Any:
    try:
        return known.read(known.name, parameters.get(known.name) or known.default)
    except MeasureError as error:
        raise pointed(error, known.name) from error


def pointed(error: MeasureError, name: str) -> MeasureError:
    return MeasureError(error.message, code=error.code, pointer=name)
