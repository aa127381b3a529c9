"""Axes of parameters: the places of values, and the ticks.

Nothing is converted: a text that looks like a number is a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeGuard

from metrics.services.boards.columns import Cell, ShownColumn, shown_value
from metrics.services.tracking.configurations import NOT_SET, typed_text
from metrics.services.tracking.measured import MAX_TEXTS, MeasuredRun

# Positions are whole numbers up to this one, so that the ticks of Vega can be looked up by them.
LENGTH = 10_000
OTHER, TEXT = "other values", "text"
# Numbers have a logarithmic axis from this ratio of the largest to the smallest.
_LOGARITHMIC_FROM = 100
# No more different numbers than this are ticks themselves.
_OWN_TICKS, _ROUND_TICKS = 8, 6


@dataclass(frozen=True)
class ParameterAxis:
    """The axis of a column: the place of each value, from 0 to LENGTH, and the ticks.

    `texts` are the places of texts, true and false; `at` returns that of a number, if there are
    any. Values without a place of their own are at `rest`, and runs without a value at `unset`.
    """

    column: ShownColumn
    texts: dict[str, int]
    at: Callable[[float], int] | None
    logarithmic: bool
    ticks: list[tuple[int, str]]
    rest: int
    unset: int

    def place(self, value: Cell) -> int:
        if value is None:
            return self.unset
        if is_number(value):
            return self.at(float(value)) if self.at else self.rest
        return self.texts.get(text_of(value), self.rest)


def is_number(value: Cell) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parameter_axis(
    column: ShownColumn,
    runs: Sequence[MeasuredRun],
    *,
    lower_is_better: bool,
    start: int = 0,
    most: int = MAX_TEXTS,
) -> ParameterAxis:
    """Return the axis of a column.

    Numbers, or texts by their mean, have the room from `start` up, and all other values are below.
    Texts have an axis if no value is a number: at most `most`, the most frequent ones.
    """
    values = [run.values[column.name] for run in runs]
    numbers = sorted({float(value) for value in values if is_number(value)})
    others = {value for value in values if not is_number(value)}
    ticks: list[tuple[int, str]] = [(0, NOT_SET)] if None in others else []
    rest = start // 2

    if numbers:
        at, logarithmic = _number_scale(numbers, start)
        ticks += [(at(number), text) for number, text in number_ticks(numbers, logarithmic)]
        if others - {None}:
            ticks.append((rest, TEXT))
        return ParameterAxis(column, {}, at, logarithmic, sorted(ticks), rest, 0)

    # The best text is at the top.
    means = text_means(column, runs, most)
    names = sorted(
        (name for name in means if name != NOT_SET), key=means.__getitem__, reverse=lower_is_better
    )
    step = (LENGTH - start) / max(1, len(names) - 1)
    places = {name: round(start + step * place) for place, name in enumerate(names)}
    ticks += [(place, name) for name, place in places.items()]

    return ParameterAxis(column, places, None, False, sorted(ticks), places.get(OTHER, rest), 0)


def text_means(column: ShownColumn, runs: Sequence[MeasuredRun], most: int) -> dict[str, float]:
    """Return the mean of the runs of each text, true and false; those beyond `most` are one."""
    means: dict[str, list[float]] = {}
    for run in runs:
        means.setdefault(text_of(run.values[column.name]), []).append(run.mean)

    named = sorted(
        (name for name in means if name != NOT_SET), key=lambda name: (-len(means[name]), name)
    )
    frequent = named if len(named) <= most else named[: most - 1]
    runs_of_text = {name: means[name] for name in frequent}
    if others := [mean for name in named[len(frequent) :] for mean in means[name]]:
        runs_of_text[OTHER] = others

    if NOT_SET in means:
        runs_of_text[NOT_SET] = means[NOT_SET]

    return {name: math.fsum(values) / len(values) for name, values in runs_of_text.items()}


def text_of(value: Cell) -> str:
    """Return a value as it is shown on axes and in legends."""
    return NOT_SET if value is None or isinstance(value, datetime) else typed_text(value)


def _number_scale(numbers: list[float], start: int) -> tuple[Callable[[float], int], bool]:
    """Return the position of a number, and whether the scale is logarithmic."""
    low, high = numbers[0], numbers[-1]
    logarithmic = low > 0 and high / low >= _LOGARITHMIC_FROM

    scaled: Callable[[float], float] = math.log if logarithmic else float
    span = scaled(high) - scaled(low)

    def at(number: float) -> int:
        share = (scaled(number) - scaled(low)) / span if span else 0.5
        return round(start + (LENGTH - start) * share)

    return at, logarithmic


def number_ticks(numbers: list[float], logarithmic: bool = False) -> list[tuple[float, str]]:
    """Return the ticks of sorted numbers: all of them if they are few, or round numbers."""
    if len(numbers) <= _OWN_TICKS:
        return [(number, shown_value(number)) for number in numbers]

    low, high = numbers[0], numbers[-1]

    if logarithmic:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        factors = (1, 2, 5) if len(powers) <= _ROUND_TICKS // 2 + 1 else (1,)
        round_numbers = [factor * 10.0**power for power in powers for factor in factors]
    else:
        rough = (high - low) / _ROUND_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        round_numbers = [
            step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)
        ]

    return [(number, f"{number:.6g}") for number in round_numbers if low <= number <= high]


def apart(
    ticks: Iterable[tuple[int, str]], gap: Callable[[str, str], float]
) -> list[tuple[int, str]]:
    """Return the ticks that have room, from the first on; `gap` is their distance."""
    placed: list[tuple[int, str]] = []
    for place, text in ticks:
        if not placed or abs(place - placed[-1][0]) >= gap(placed[-1][1], text):
            placed.append((place, text))
    return placed
