"""Gain maps: the gain of each relevance level."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.cautions import Caution
from metrics.engine.errors import MeasureError

_PAIR = re.compile(r"\s*(\d{1,9})\s*:\s*([0-9.eE+-]{1,30})\s*")
_SCHEME = re.compile(r"\d{1,15}(\.\d{1,15})?(-\d{1,15}(\.\d{1,15})?){1,20}", re.ASCII)
MAX_GAIN = 1e15
NAMED = ("linear", "exp", "tenfold", "binary")


@dataclass(frozen=True)
class GainMap:
    """Level to gain; nothing below 0 gains.

    `linear` gains the level, `exp` 2^level - 1, `tenfold` 10^(level - 1), MAX_GAIN at most, and
    nothing at level 0; `binary` gains 1 at every level from 1 on.
    A `scheme` lists the gains from level 0 on, 0-1-10-100 as Järvelin and Kekäläinen write it (TOIS
    2002, section 3.2); a level beyond it gains as much as the last one listed. A `map` lists pairs,
    '1:1,2:10,3:100'; a level that is not among them keeps its level as gain, as in trec_eval. Pairs
    that give every level itself are `linear`.
    """

    name: str
    pairs: tuple[tuple[int, float], ...] = ()

    def __str__(self) -> str:
        if self.name == "scheme":
            # Without an exponent: its minus would be read as a separator of the list.
            return "-".join(np.format_float_positional(gain, trim="-") for _, gain in self.pairs)
        return ",".join(f"{level}:{gain:.15g}" for level, gain in self.pairs) or self.name

    @property
    def lowest(self) -> int:
        """Return the level below which no level gains: 0 if the map gives level 0 a gain, else
        1."""
        return 0 if dict(self.pairs).get(0) else 1

    def of(self, level: Ints) -> Floats:
        """Return the gain of every level; same shape."""
        positive = np.maximum(level, 0).astype(np.float64)
        if self.name == "exp":
            return np.exp2(positive) - 1.0
        if self.name == "tenfold":
            return np.where(
                positive > 0, np.minimum(10.0 ** (np.minimum(positive, 17) - 1), MAX_GAIN), 0.0
            )
        if self.name == "binary":
            return np.minimum(positive, 1.0)

        gain = positive.copy()
        for listed, worth in self.pairs:
            gain[level == listed] = worth
        if self.name == "scheme":
            last, worth = self.pairs[-1]
            gain[level > last] = worth

        return gain

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the map that `text` describes: a name, gain-gain-... or level:gain,... Raise
        MeasureError otherwise."""
        if text in NAMED:
            return cls(text)
        if _SCHEME.fullmatch(text):
            return cls(
                "scheme",
                tuple(
                    (level, _read_gain(gain, text)) for level, gain in enumerate(text.split("-"))
                ),
            )

        pairs = _read_pairs(text)
        if all(level == gain for level, gain in pairs.items()):
            return cls("linear")
        return cls("map", tuple(sorted(pairs.items())))

    def cautions(self, levels: Iterable[int], measure: str) -> list[Caution]:
        """Return the cautions about `measure`, a name, under these levels."""
        present = np.unique(np.array([level for level in levels if level >= 0], np.int64))
        gain, listed = self.of(present), dict(self.pairs)
        cautions = []
        if self.name == "scheme" and (present > max(listed)).any():
            last, worth = self.pairs[-1]
            beyond = ", ".join(map(str, present[present > last].tolist()))
            message = (
                f"{measure}: judged levels beyond its gains ({beyond}) gain as much as level "
                f"{last}: {worth:g}"
            )
            cautions.append(Caution("gains_completed", message))

        highest = np.maximum.accumulate(gain) if len(gain) else gain
        if (gain < highest).any():
            lower = int(np.flatnonzero(gain < highest)[0])
            above = int(np.argmax(gain[:lower]))
            message = (
                f"{measure}: level {present[lower]} gains {gain[lower]:g}, less than level "
                f"{present[above]} with {gain[above]:g}"
            )
            if self.name == "map" and int(present[lower]) not in listed:
                message += "; a level that gains= does not list keeps its level as gain"
            cautions.append(Caution("gain_order", message))

        return cautions


def _read_pairs(text: str) -> dict[int, float]:
    pairs: dict[int, float] = {}
    for part in text.strip("{}").split(","):
        match = _PAIR.fullmatch(part)
        if not match:
            write = f"write {', '.join(NAMED)}, 0-1-10-100 or pairs such as '0:0,1:1,2:10,3:100'"
            raise MeasureError(f"gains={text[:100]!r}: {write}", code="bad_parameter")
        pairs[int(match[1])] = _read_gain(match[2], text)

    return pairs


def _read_gain(number: str, text: str) -> float:
    try:
        gain = float(number)
    except ValueError:
        gain = -1.0

    if not 0 <= gain <= MAX_GAIN:
        message = (
            f"gains={text[:100]!r}: {number!r} is not a gain; a gain is a number from 0 to "
            f"{MAX_GAIN:g}"
        )
        raise MeasureError(message, code="bad_parameter")
    return gain


LINEAR, EXP = GainMap("linear"), GainMap("exp")
