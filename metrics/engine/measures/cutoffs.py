"""The mean of a measure over several cutoffs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.definition import Cutoff, Parameter

if TYPE_CHECKING:
    from metrics.engine.measures.grammar import Measure


def average_over_cutoffs(
    run: JudgedRun, *, cutoff: None = None, of: Measure, cutoffs: tuple[str, ...]
) -> Floats:
    """Average over cutoffs: the mean of a measure at several ranks, or at several levels of recall.

    Formula: AvgCut(of=M,cutoffs='k1,...,kn') = (M@k1 + ... + M@kn) / n
    Range: that of the measure
    Source: Hull, SIGIR 1993 (of='P'); named by Järvelin and Kekäläinen, TOIS 20(4), 2002, section
    2.3
    Elsewhere: AvgPos is the mean over every rank from 1 to k; 11pt_avg is AvgCut(of='IPrec') over
    recall 0, 0.1, ..., 1
    Undefined: where the measure is at one of the cutoffs
    """
    values: Floats = np.mean(
        [measure.compute(run) for measure in at_each_cutoff(of, cutoffs)], axis=0
    )
    return values


def at_each_cutoff(of: Measure, cutoffs: tuple[str, ...]) -> list[Measure]:
    """Return the measure at each cutoff. Raise MeasureError for one that it does not take."""
    # The grammar is made from the table that this measure is in.
    from metrics.engine.measures.grammar import parse_measure

    return [parse_measure(f"{of}@{cutoff}") for cutoff in cutoffs]


def check_cutoffs(values: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the cutoffs, or None."""
    try:
        measures = at_each_cutoff(values["of"], values["cutoffs"])
    except MeasureError as error:
        return error.message
    return "a cutoff is given twice" if len(set(measures)) < len(measures) else None


def _read_measure(name: str, text: str) -> Measure:
    from metrics.engine.measures.grammar import parse_measure, take_apart

    parts = take_apart(text)
    if parts is None or parts[2] is not None:
        message = f"{name}={text!r}: write the measure without a cutoff; cutoffs lists them"
        raise MeasureError(message, code="bad_parameter")

    try:
        measure = parse_measure(text)
    except MeasureError:
        measure = parse_measure(f"{text}@1")

    if measure.definition.cutoff is Cutoff.NONE:
        raise MeasureError(f"{name}={text!r}: {measure} takes no cutoff", code="bad_parameter")

    if measure.pools:
        message = f"{name}={text!r}: norm='average' has no value for a topic: leave it out"
        raise MeasureError(message, code="bad_parameter")

    return replace(measure, cutoff=None)


class _Cutoffs(tuple[str, ...]):
    """Cutoffs as they are written in a name."""

    def __str__(self) -> str:
        return ",".join(self)


def _read_cutoffs(name: str, text: str) -> _Cutoffs:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) < 2 or not all(re.fullmatch(r"[0-9.]+", part) for part in parts):
        message = f"{name}={text!r}: {name} are two or more, separated by commas: {name}='5,10,20'"
        raise MeasureError(message, code="bad_parameter")
    return _Cutoffs(parts)


OF = Parameter(
    "of", None, _read_measure, "the measure, without a cutoff; must be given", example="'P'"
)
CUTOFFS = Parameter(
    "cutoffs",
    None,
    _read_cutoffs,
    "ranks, or levels of recall, separated by commas; must be given",
    example="'1,5,10'",
)
