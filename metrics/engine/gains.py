"""Gain maps: what a relevance level is worth."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from metrics.engine.errors import MeasureError
from metrics.engine.ranking import Floats, Ints

_PAIR = re.compile(r"\s*(\d{1,9})\s*:\s*([0-9.eE+-]{1,30})\s*")
_SCHEME = re.compile(r"\d{1,15}(\.\d{1,15})?(-\d{1,15}(\.\d{1,15})?){1,20}", re.ASCII)
MAX_GAIN = 1e15
_NAMED = ("linear", "exp")


@dataclass(frozen=True, slots=True)
class GainMap:
    """Level to gain. Levels that a map does not list keep the level as their gain, and nothing below 0 gains.

    `exp` is 2^level - 1. A listed map is written '0:0,1:1,2:10,3:100', or 0-1-10-100 from level 0 on, as Järvelin and
    Kekäläinen write it (TOIS 2002, section 3.2). Every gain its level is `linear`: one map has one name.
    """

    name: str
    pairs: tuple[tuple[int, float], ...] = ()

    def __str__(self) -> str:
        return ",".join(f"{level}:{gain:.15g}" for level, gain in self.pairs) or self.name

    @property
    def lowest(self) -> int:
        """No level below this one gains: 0 where the map gives level 0 a gain, else 1."""
        return 0 if dict(self.pairs).get(0) else 1

    def of(self, level: Ints) -> Floats:
        """Gain of every level; same shape."""
        positive = np.maximum(level, 0).astype(np.float64)
        if self.name == "exp":
            return np.exp2(positive) - 1.0
        gain = positive.copy()
        for listed, worth in self.pairs:
            gain[level == listed] = worth
        return gain

    @classmethod
    def parse(cls, text: str) -> Self:
        """The map that `text` writes: linear, exp, gain-gain-... or level:gain,...; MeasureError otherwise."""
        if text in _NAMED:
            return cls(text)
        if _SCHEME.fullmatch(text):
            pairs = {level: _gain(gain, text) for level, gain in enumerate(text.split("-"))}
        else:
            pairs = _listed(text)
        if all(level == gain for level, gain in pairs.items()):
            return cls("linear")
        return cls("map", tuple(sorted(pairs.items())))


def _listed(text: str) -> dict[int, float]:
    pairs: dict[int, float] = {}
    for part in text.strip("{}").split(","):
        match = _PAIR.fullmatch(part)
        if not match:
            write = "write linear, exp, 0-1-10-100 or pairs such as '0:0,1:1,2:10,3:100'"
            raise MeasureError(f"gains={text[:100]!r}: {write}", code="bad_parameter")
        pairs[int(match[1])] = _gain(match[2], text)
    return pairs


def _gain(number: str, text: str) -> float:
    try:
        gain = float(number)
    except ValueError:
        gain = -1.0
    if not 0 <= gain <= MAX_GAIN:
        message = f"gains={text[:100]!r}: {number!r} is not a gain; a gain is a number from 0 to {MAX_GAIN:g}"
        raise MeasureError(message, code="bad_parameter")
    return gain


LINEAR = GainMap("linear")
