"""The names of session measures: those of runs, `Name(parameter=value,...)@X`, with X the documents
of each query.

    sDCG  sDCG(b=2,bq=4)@10  nsDCG(b=4,bq=none,dup='first',figure='best')@20  Session(of='AP')@10
    Query(of='nDCG@10')

The canonical name always has the bases and X, and other parameters if they differ from their
default.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

from metrics.engine.arrays import Floats
from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import (
    Measure,
    parse_measure,
    read_measure,
    split_names,
    take_apart,
)
from metrics.engine.measures.spelling import suggest_measure
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.measures import SESSION_MEASURES
from metrics.engine.sessions.settings import DEFAULT_DEPTH, Ideal, Norm, Setting

# The measures that are a vector of the session, and have a curve.
VECTORS = ("sDCG", "nsDCG", "sDCG_shifted", "nsDCG_shifted")
_ALIASES = {alias: d.name for d in SESSION_MEASURES.values() for alias in d.aliases}
_SPELLINGS = dict(zip(SESSION_MEASURES, SESSION_MEASURES, strict=True)) | _ALIASES


@lru_cache(maxsize=10_000)
def parse_session_measure(text: str, documents: int | None = None) -> Measure:
    """Return the session measure that `text` names; raise MeasureError if there is none.

    `documents` is the size of the collection, for a measure of runs within it that needs that and
    names none.
    """
    parts = take_apart(text)
    name = _ALIASES.get(parts[0], parts[0]) if parts else ""
    if parts is None or name not in SESSION_MEASURES:
        raise MeasureError(_unknown(text, name))

    measure = read_measure(SESSION_MEASURES[name], parts[1], parts[2], documents)
    _check_short(measure)
    return measure


def parse_session_measures(text: str, documents: int | None = None) -> list[Measure]:
    """Return the measures of a list separated by commas or blanks, each once, in order. Raise
    MeasureError for an invalid name."""
    return list(dict.fromkeys(parse_session_measure(name, documents) for name in split_names(text)))


def session_values(view: JudgedSessions, measure: Measure) -> Floats:
    """Return the measure's value for every session, NaN where it has none; shape (sessions,).
    `measure.aggregate` makes one figure of them and says how many sessions have a value.

    Raise MeasureError for norm='average', which only averages of sessions have.
    """
    check_has_values(measure)
    return measure.definition.compute(view, cutoff=measure.cutoff, **measure.parameters)


def check_has_values(measure: Measure) -> None:
    """Raise MeasureError for a measure of averages, which has a curve but no value of a session."""
    if measure.parameters.get("norm") == "average":
        message = (
            f"{measure} divides averaged vectors: it has a curve, but no value of a session; use "
            "norm='session'"
        )
        raise MeasureError(message, code="bad_parameter")


def setting_of(measure: Measure) -> tuple[Setting, tuple[Ideal, Norm] | None]:
    """Return the setting of the measure's curve and, if it is normalised, its ideal and norm.

    Raise MeasureError for a measure that is not a vector.
    """
    name = measure.definition.name
    if name not in VECTORS:
        names = ", ".join(VECTORS)
        raise MeasureError(f"{measure} has no curve; these have: {names}", code="no_curve")

    parameters: dict[str, Any] = {
        "short": "pad",
        "dup": "every",
        "scan": "fixed",
        "ideal": "repeated",
        "norm": "session",
        "half_life": None,
    }

    parameters |= measure.parameters
    setting = Setting(
        gains=parameters["gains"],
        depth=int(measure.cutoff or DEFAULT_DEPTH),
        b=parameters["b"],
        bq=parameters["bq"],
        short=parameters["short"],
        duplicates=parameters["dup"],
        scan=parameters["scan"],
        form="shifted" if name.endswith("_shifted") else "source",
        half_life=parameters["half_life"],
    )

    return setting, (parameters["ideal"], parameters["norm"]) if name.startswith("n") else None


def _check_short(measure: Measure) -> None:
    """Refuse to pad lists to more than the X documents that count: a list of X documents would be
    short, and no session would reach an nsDCG of 1."""
    short, depth = str(measure.parameters.get("short", "")), measure.cutoff or DEFAULT_DEPTH
    if short.startswith("min:") and int(short.removeprefix("min:")) > depth:
        message = (
            f"short='{short}': {measure.definition.name}@{depth} counts {depth} documents of each "
            f"query, so m of 'min:m' is at most {depth}"
        )
        raise MeasureError(message, code="bad_parameter")


def _unknown(text: str, name: str) -> str:
    if name == "SDCG":
        return (
            "SDCG is ambiguous: write sDCG for the session measure; what ir_measures calls SDCG "
            "is ScaledDCG"
        )

    with suppress(MeasureError):
        measure = parse_measure(text).name
        return (
            f"{measure} is a measure of runs; sessions take one as in Session(of='AP') and "
            "Query(of='nDCG@10')"
        )

    suggestion = suggest_measure(text, _SPELLINGS, parse_session_measure)
    if suggestion:
        return f"unknown session measure {text[:100]!r}; did you mean {suggestion}?"
    known = ", ".join(SESSION_MEASURES)
    return (
        f"unknown session measure {text[:100]!r}; known are {known}, and Session(of='AP') for a "
        "measure of runs"
    )
