"""The parameters of session measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.measures.definition import (
    GAINS,
    Parameter,
    read_choice,
    read_integer,
    read_number,
)
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.engine.measures.subtopics import OF_SUBTOPICS
from metrics.engine.sessions.figures import FIGURES, TURN
from metrics.engine.sessions.settings import MAX_DEPTH

EXP = GainMap("exp")
_QUERY_FIGURES = read_choice("mean", "best", "worst", "first", "last", "sum", f"{TURN}2")


def _read_short(name: str, text: str) -> str:
    number = text.removeprefix("min:")
    if text in ("pad", "asis"):
        return text
    if (
        text.startswith("min:")
        and number.isascii()
        and number.isdigit()
        and 1 <= int(number[:9]) <= MAX_DEPTH
    ):
        return f"min:{int(number)}"
    message = (
        f"{name}={text!r}: {name} is 'pad', 'asis' or 'min:m' with a number of documents m from 1 "
        f"to {MAX_DEPTH}"
    )
    raise MeasureError(message, code="bad_parameter")


def _read_query_base(name: str, text: str) -> float | None:
    return None if text == "none" else read_number(1.0, 1000.0)(name, text)


def _read_query_figure(name: str, text: str) -> str:
    number = text.removeprefix(TURN)
    if text.startswith(TURN) and number.isascii() and number.isdigit():
        return f"{TURN}{read_integer(1, MAX_DEPTH)(name, number)}"
    return _QUERY_FIGURES(name, text)


def _read_half_life(name: str, text: str) -> float | None:
    return None if text == "none" else read_number(0.0, 1e9)(name, text)


def _read_measure(name: str, text: str, documents: int | None) -> Measure:
    measure = parse_measure(text, documents)
    if measure.definition.name in OF_SUBTOPICS:
        message = (
            f"{name}={text!r}: measures of subtopics are not made for sessions; InstanceRecall is"
        )
        raise MeasureError(message, code="bad_parameter")

    if measure.pools:
        message = f"{name}={text!r}: norm='average' has no value for a session: leave it out"
        raise MeasureError(message, code="bad_parameter")

    return measure


BASE = Parameter(
    "b", 2.0, read_number(1.0, 1000.0), "base of the logarithm that discounts by rank", True
)
QUERY_BASE = Parameter(
    "bq",
    4.0,
    _read_query_base,
    "base of the logarithm that discounts by query; none: queries count alike",
    True,
)
HALF_LIFE = Parameter(
    "half_life",
    None,
    _read_half_life,
    "seconds from the session's first query to one whose gains count half; none: time does not "
    "count",
)
DD_BASE = Parameter(
    "bq", 4.0, read_number(1.0, 1000.0), "base of the logarithm that discounts by query", True
)
_SHORT_TEXT = (
    "lists of fewer than X documents: padded with zeros, taken 'asis', or padded to m documents "
    "by 'min:m', m at most X"
)
SHORT = Parameter("short", "pad", _read_short, _SHORT_TEXT)
SHORT_LIST = Parameter("short", "asis", _read_short, _SHORT_TEXT)
_DUPLICATES = read_choice("every", "first")
_DUP_TEXT = (
    "a document that several queries of the session return gains every time, or the first time only"
)
DUP = Parameter("dup", "every", _DUPLICATES, _DUP_TEXT)
DUP_LIST = Parameter("dup", "first", _DUPLICATES, _DUP_TEXT)
SCAN = Parameter(
    "scan", "fixed", read_choice("fixed", "recorded"),
    "how far each list is read: X documents, or as many as the session records, X at most",
)  # fmt: skip
IDEAL = Parameter(
    "ideal", "repeated", read_choice("repeated", "once"),
    "ideal session: the ideal ranking in every query, or each document once, the best where a "
    "gain counts most",
)  # fmt: skip
NORM = Parameter(
    "norm",
    "session",
    read_choice("session", "query", "average"),
    "divide by the ideal session, each query by its ideal ranking, or the averaged vectors by the "
    "averaged ideals, which gives a curve but no value of a session",
)
FIGURE = Parameter(
    "figure", "final", read_choice(*FIGURES),
    "the vector's last component, the mean of its components (avgpos), or the mean, best, worst, "
    "first or last query",
)  # fmt: skip
QUERY_FIGURE = Parameter(
    "figure",
    "mean",
    _read_query_figure,
    "what is made of the values; 'turn:2' is the value of the second query",
)
QUERIES = Parameter(
    "queries", 10, read_integer(1, MAX_DEPTH), "how many queries of a session count"
)
EXPONENTIAL = Parameter("gains", EXP, GAINS.read, GAINS.text)
OF = Parameter(
    "of",
    None,
    _read_measure,
    "the measure of runs; must be given",
    names_measure=True,
    example="'AP'",
)


def check_ideal(values: Mapping[str, Any]) -> str | None:
    if values["ideal"] != "once" or values["norm"] != "query":
        return None
    return "ideal='once' is one ideal for all queries, so norm='query' has none to divide by"
