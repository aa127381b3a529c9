"""What a measure is made of: its function, its parameters, and how its values become one figure."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from metrics.engine.errors import MeasureError
from metrics.engine.gains import LINEAR, GainMap
from metrics.engine.ranking import Floats

MAX_CUTOFF = 1_000_000
_SECTION = re.compile(r"^(Formula|Range|Source|Elsewhere|Undefined): ", re.MULTILINE)


class Cutoff(Enum):
    """Whether a measure's name ends in @k, or in @r for a level of recall or a share of R."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"
    SHARE = "share"


class Aggregate(Enum):
    """How a measure's per-topic values become one figure."""

    MEAN = "mean"
    SUM = "sum"
    GEOMETRIC = "geometric mean"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a measure: `read` turns what was written into a value or raises MeasureError."""

    name: str
    default: Any
    read: Callable[[str, str], Any]
    text: str
    always_shown: bool = False

    def show(self, value: Any) -> str:
        return f"{self.name}={show(value)}"


@dataclass(frozen=True, slots=True)
class MeasureDefinition:
    """One line of the MEASURES table. `compute(judged_run, cutoff=..., **parameters)` gives shape (topics,)."""

    name: str
    compute: Callable[..., Floats]
    cutoff: Cutoff
    parameters: tuple[Parameter, ...] = ()
    aggregate: Aggregate = Aggregate.MEAN
    aliases: tuple[str, ...] = ()
    trec_eval: str | None = None
    trec_style: bool = False  # known by trec_eval alone, so its canonical name is written as trec_eval writes it

    def sections(self) -> dict[str, str]:
        """The function's docstring by section: summary, formula, range, source, elsewhere, undefined."""
        parts = _SECTION.split(inspect.cleandoc(self.compute.__doc__ or ""))
        named = {key.lower(): " ".join(text.split()) for key, text in zip(parts[1::2], parts[2::2], strict=True)}
        return {"summary": " ".join(parts[0].split()), **named}


def show(value: Any) -> str:
    """A parameter's value as the canonical name writes it."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float | int):
        return f"{value:.15g}"
    return f"'{value}'"


def read_integer(low: int, high: int) -> Callable[[str, str], int]:
    """A reader of whole numbers in [low, high]."""

    def read(name: str, text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,9}", text) and low <= int(text) <= high:
            return int(text)
        raise MeasureError(f"{name}={text}: {name} is a whole number from {low} to {high}", code="bad_parameter")

    return read


def read_number(low: float, high: float) -> Callable[[str, str], float]:
    """A reader of finite numbers in the open interval (low, high)."""

    def read(name: str, text: str) -> float:
        if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
            number = float(text)
            if math.isfinite(number) and low < number < high:
                return number
        raise MeasureError(f"{name}={text}: {name} is a number above {low:g} and below {high:g}", code="bad_parameter")

    return read


def read_choice(*choices: str) -> Callable[[str, str], str]:
    """A reader of one word out of a few."""

    def read(name: str, text: str) -> str:
        if text in choices:
            return text
        known = ", ".join(repr(choice) for choice in choices)
        raise MeasureError(f"{name}={text!r}: {name} is one of {known}", code="bad_parameter")

    return read


def read_flag(name: str, text: str) -> bool:
    if text in ("True", "true", "1"):
        return True
    if text in ("False", "false", "0"):
        return False
    raise MeasureError(f"{name}={text}: {name} is True or False", code="bad_parameter")


def read_gains(name: str, text: str) -> GainMap:
    return GainMap.parse(text)


MAX_LEVEL = 1000

REL = Parameter("rel", 1, read_integer(-MAX_LEVEL, MAX_LEVEL), "lowest level that counts as relevant")
GAINS = Parameter("gains", LINEAR, read_gains, "gain of each level: 'linear', 'exp' (2^level - 1) or 'level:gain,...'")
DISCOUNT = Parameter(
    "dis", "log2", read_choice("log2", "jk", "session"),
    "discount: 'log2' is log2(i + 1), 'jk' is none below rank b then log_b(i), 'session' is 1 + log_b(i)",
)  # fmt: skip
BASE = Parameter("b", 2.0, read_number(1.0, 1000.0), "base of the logarithm of dis='jk' and dis='session'")
IDEAL = Parameter(
    "ideal", "recall_base", read_choice("recall_base", "retrieved"),
    "ideal ranking: of all that is judged, or the best order of what the run retrieved",
)  # fmt: skip
JUDGED_ONLY = Parameter("judged_only", False, read_flag, "leave unjudged documents out before ranking")
