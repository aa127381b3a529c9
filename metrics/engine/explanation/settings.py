"""Settings of runs as codes: the values of parameters, their levels, and joint changes."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.significance.pairs import Matrix

# None where a run does not have the parameter.
Plain = float | str | bool | None
# A value with fewer runs is pooled with the others of its kind; more numbers than this are cut
# into thirds.
LEAST_RUNS, MOST_NUMBERS = 3, 6
# Numbers that agree in so many digits are equal.
_DIGITS = 12
_NUMBER, _TEXT, _BOOLEAN, _NOT_SET = range(4)


class Range(NamedTuple):
    """Numbers from `low` to `high`: a third of the runs, about."""

    low: float
    high: float


# What the runs of a level have in common, a part for each parameter; None for the pooled others.
Level = tuple[Plain | Range, ...] | None


@dataclass(frozen=True, eq=False)
class Setting:
    """A parameter, or several that change together.

    `codes` is for each run the place of its value in `values`: a value for each name. They are
    sorted, numbers first and upwards, then texts, booleans, and what is not set.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Plain, ...], ...]
    codes: Ints

    @property
    def name(self) -> str:
        return ", ".join(self.names)

    @cached_property
    def counts(self) -> Ints:
        """Return the number of runs of each value."""
        return np.bincount(self.codes, minlength=len(self.values))

    def numbers_of(self, place: int) -> list[float]:
        """Return the numbers of a value, by which it has neighbours."""
        return [
            value
            for value in self.values[place]
            if isinstance(value, float | int) and _kind(value) == _NUMBER
        ]

    @property
    def names_runs(self) -> bool:
        """Return whether the value is different in every run that has one, such as a seed or a
        commit. Numbers with a fraction may come from a random search: they are settings."""
        values = [value for (value, *_) in self.values if value is not None]
        runs = int(self.counts[: len(values)].sum())
        fractions = any(isinstance(value, float) and not value.is_integer() for value in values)
        return len(values) == runs and 2 * runs > len(self.codes) and not fractions


def encode(name: str, values: Sequence[Plain]) -> Setting:
    """Return one parameter with these values of the runs. Texts are equal regardless of case."""
    keys = [_key(value) for value in values]
    spellings: dict[tuple[int, float, str], Plain] = {}
    for key, value in zip(keys, values, strict=True):
        spellings.setdefault(key, key[1] if isinstance(value, float) else value)

    places = {key: place for place, key in enumerate(sorted(spellings))}
    codes = np.array([places[key] for key in keys], np.int64)
    return Setting((name,), tuple((spellings[key],) for key in places), codes)


def together(settings: Sequence[Setting]) -> Setting:
    """Return several parameters as one, with the values that occur together."""
    rows, codes = _joint([setting.codes for setting in settings])
    values = tuple(
        tuple(
            part
            for setting, code in zip(settings, row, strict=True)
            for part in setting.values[code]
        )
        for row in rows.tolist()
    )

    return Setting(tuple(name for setting in settings for name in setting.names), values, codes)


@dataclass(frozen=True)
class Levels:
    """The levels of a setting; `codes` is for each run the place of its level."""

    labels: tuple[Level, ...]
    codes: Ints

    @property
    def indicators(self) -> Matrix:
        """Return 1 where a run has a level; shape (levels, runs)."""
        indicators: Matrix = (self.codes == np.arange(len(self.labels))[:, None]).astype(np.float64)
        return indicators


def levels_of(settings: Sequence[Setting]) -> Levels:
    """Return the levels of parameters that change together: many numbers in thirds by rank, and
    values with fewer than three runs pooled."""
    parts, codes = zip(*(_in_thirds(setting) for setting in settings), strict=True)
    rows, joint = _joint(codes)
    frequent = np.bincount(joint) >= LEAST_RUNS
    labels: list[Level] = [
        tuple(part[code] for part, code in zip(parts, row, strict=True))
        for row in rows[frequent].tolist()
    ]
    places = np.where(frequent, np.cumsum(frequent) - 1, len(labels))

    return Levels((*labels, *([] if frequent.all() else [None])), places[joint])


def cramers_v(levels: Sequence[Levels]) -> Matrix:
    """Cramér's V of every pair of settings with two levels or more, corrected for chance.

    Formula: sqrt(f / min(k, l)), f = phi^2 - (K - 1)(L - 1) / (n - 1) and at least 0, k = K - 1 -
    (K - 1)^2 / (n - 1) of K levels, l the same of L
    Source: Bergsma, Journal of the Korean Statistical Society 42, 2013
    """
    indicators = np.vstack([setting.indicators for setting in levels])
    sizes, runs = indicators.sum(axis=1), indicators.shape[1]
    number = np.array([len(setting.labels) for setting in levels])
    starts = np.cumsum(number) - number
    shares = np.square(indicators @ indicators.T) / np.outer(sizes, sizes)
    phi = np.add.reduceat(np.add.reduceat(shares, starts, axis=0), starts, axis=1) - 1
    free = number - 1.0
    expected = np.outer(free, free) / (runs - 1)

    largest = free - np.square(free) / (runs - 1)
    strength: Matrix = np.sqrt(np.maximum(phi - expected, 0) / np.minimum.outer(largest, largest))
    np.fill_diagonal(strength, 1.0)
    return np.minimum(strength, 1.0)


def _kind(value: Plain) -> int:
    if value is None:
        return _NOT_SET
    if isinstance(value, bool):
        return _BOOLEAN
    return _TEXT if isinstance(value, str) else _NUMBER


def _key(value: Plain) -> tuple[int, float, str]:
    """Return a key that is equal for equal values, and in their order."""
    if isinstance(value, str):
        return _TEXT, 0.0, unicodedata.normalize("NFC", value).casefold()
    return _kind(value), 0.0 if value is None else float(f"{value:.{_DIGITS}g}"), ""


def _joint(codes: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the combinations that occur, a row each, and the row of each run."""
    rows, places = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    return rows, places.reshape(-1)


def _in_thirds(setting: Setting) -> tuple[list[Plain | Range], Ints]:
    """Return the values of one parameter and their codes; more than six numbers become ranges."""
    values: list[Plain | Range] = [value for (value,) in setting.values]
    numbers = [number for place in range(len(values)) for number in setting.numbers_of(place)]
    if len(numbers) <= MOST_NUMBERS:
        return values, setting.codes

    counts = setting.counts[: len(numbers)]
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    _, thirds = np.unique(np.floor(3 * middles), return_inverse=True)
    last = int(thirds[-1])
    ranges = [
        Range(*(numbers[index] for index in np.flatnonzero(thirds == third)[[0, -1]]))
        for third in range(last + 1)
    ]

    others = np.arange(last + 1, last + 1 + len(values) - len(numbers))
    return [*ranges, *values[len(numbers) :]], np.concatenate([thirds, others])[setting.codes]
