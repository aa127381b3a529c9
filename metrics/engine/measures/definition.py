"""The definition of a measure: its function, its parameters, and how its values become one value of
the run."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from metrics.engine.arrays import Floats
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import EXP, LINEAR, GainMap
from metrics.engine.judgement.sampling import Design
from metrics.engine.measures.spelling import closest

MAX_CUTOFF = 1_000_000
# The depth of a greedy ideal ranking, in which each rank takes a pass over all judgements.
IDEAL_DEPTH = 100
# How a section Range begins: "0 to 1", "1 and above", "above 0.5", "0 or 1". An end that some
# values pass does not count.
_RANGE = re.compile(
    r"(?:above )?(?P<low>-?[\d.]+)(?: (?:to|or) (?P<high>[\d.]+)(?!.* above | for ))?"
)
_SECTION = re.compile(r"^(Formula|Range|Source|Elsewhere|Undefined): ", re.MULTILINE)


class Cutoff(Enum):
    """The form of a cutoff: whether a measure's name ends in @k, or in @r for a level of recall or
    a share of R."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"
    SHARE = "share"


class Aggregate(Enum):
    """How a measure's per-topic values become one value of the run."""

    MEAN = "mean"
    SUM = "sum"
    GEOMETRIC = "geometric mean"
    ERROR = "standard error of the mean"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a measure: `read` converts its text to a value or raises MeasureError."""

    name: str
    default: Any
    read: Callable[..., Any]
    text: str
    always_shown: bool = False
    names_measure: bool = False  # `read` then takes the collection's number of documents as well
    example: str = ""  # a parameter with an example must be given
    symbol: str = ""  # its letter in formulas, which is read as its name

    def show(self, value: Any) -> str:
        return f"{self.name}={show(value)}"


@dataclass(frozen=True)
class MeasureDefinition:
    """One line of the MEASURES table. `compute(judged_run, cutoff=..., **parameters)` gives shape
    (topics,)."""

    name: str
    compute: Callable[..., Floats]
    cutoff: Cutoff
    parameters: tuple[Parameter, ...] = ()
    aggregate: Aggregate = Aggregate.MEAN
    aliases: tuple[str, ...] = ()
    trec_eval: str | None = None
    # Known by trec_eval alone: the canonical name is written as trec_eval writes it.
    trec_style: bool = False
    # Other names that imply parameters: ("SetRelP", "relative=True").
    forms: tuple[tuple[str, str], ...] = ()
    # The parameter that a number after trec_eval's name sets if it is not a cutoff.
    trec_parameter: str | None = None
    lower_is_better: bool = False
    max_share: float = 1.0  # highest @r of Cutoff.SHARE
    max_cutoff: int = MAX_CUTOFF
    default_cutoff: int | None = None  # of Cutoff.OPTIONAL, where none is written
    # Returns what is wrong with the parameters together.
    check: Callable[[Mapping[str, Any]], str | None] | None = None
    # Returns whether these parameters need `documents`.
    needs_documents: Callable[[Mapping[str, Any]], bool] | None = None
    # The figure of all topics with norm='average', called as `compute` is.
    pooled: Callable[..., float] | None = None
    # Of the values, where these come from tables.
    version: int = 0
    # How judgements may be sampled. Most measures take documents outside a sample for not relevant.
    designs: tuple[Design, ...] = ()

    def values(
        self, arguments: Mapping[str, Any], documents: int | None = None
    ) -> tuple[tuple[str, Any], ...]:
        """Return every parameter with its value. Raise MeasureError if one is missing or they
        contradict each other.

        `documents` is the size of the collection, for a measure that needs it if the arguments do
        not contain it.
        """
        if (
            documents
            and "documents" not in arguments
            and self.needs_documents
            and self.needs_documents(arguments)
        ):
            arguments = {**arguments, "documents": documents}

        for parameter in self.parameters:
            if parameter.example and parameter.name not in arguments:
                example = f"{self.name}({parameter.name}={parameter.example})"
                raise MeasureError(
                    f"{self.name} needs {parameter.name}: {example}", code="bad_parameter"
                )

        values = {
            parameter.name: arguments.get(parameter.name, parameter.default)
            for parameter in self.parameters
        }
        problem = self.check(values) if self.check else None
        if values.get("level") is not None and values["rel"] != REL.default:
            problem = "level is the only level that counts, rel the lowest one: give one of them"

        if problem:
            raise MeasureError(f"{self.name}: {problem}", code="bad_parameter")
        return tuple(values.items())

    def sections(self) -> dict[str, str]:
        """Return the function's docstring by section: summary, formula, range, source, elsewhere,
        undefined."""
        parts = _SECTION.split(inspect.cleandoc(self.compute.__doc__ or ""))
        named = {
            key.lower(): " ".join(text.split())
            for key, text in zip(parts[1::2], parts[2::2], strict=True)
        }

        return {"summary": " ".join(parts[0].split()), **named}

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Return the lowest and the highest value of a topic, as the function's docstring says;
        infinite without one."""
        match = _RANGE.match(self.sections().get("range", ""))
        low, high = match.group("low", "high") if match else (None, None)
        return float(low) if low else -math.inf, float(high) if high else math.inf


def show(value: Any) -> str:
    """Return a parameter's value as the canonical name writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float | int):
        return f"{value:.15g}"

    text = str(value)
    return f'"{text}"' if "'" in text else f"'{text}'"


def read_integer(low: int, high: int) -> Callable[[str, str], int]:
    """Return a reader of whole numbers in [low, high]."""

    def read(name: str, text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,15}", text) and low <= int(text) <= high:
            return int(text)
        raise MeasureError(
            f"{name}={text}: {name} is a whole number from {low} to {high}", code="bad_parameter"
        )

    return read


def read_number(low: float, high: float, *, ends: bool = False) -> Callable[[str, str], float]:
    """Return a reader of finite numbers between low and high; `ends` says whether these two are
    among them."""
    bounds = f"from {low:g} to {high:g}" if ends else f"above {low:g} and below {high:g}"

    def read(name: str, text: str) -> float:
        if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
            number = float(text)
            if math.isfinite(number) and (low < number < high or (ends and number in (low, high))):
                return number + 0.0  # -0 is 0, so that it has one name
        raise MeasureError(f"{name}={text}: {name} is a number {bounds}", code="bad_parameter")

    return read


def read_choice(*choices: str) -> Callable[[str, str], str]:
    """Return a reader of one word out of a few."""

    def read(name: str, text: str) -> str:
        if text in choices:
            return text

        listing, nearest = ", ".join(repr(choice) for choice in choices), closest(text, choices)
        suggestion = f"; did you mean {nearest!r}?" if nearest else ""
        raise MeasureError(
            f"{name}={text!r}: {name} is one of {listing}{suggestion}", code="bad_parameter"
        )

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
MAX_WORTH = 1e6

REL = Parameter(
    "rel", 1, read_integer(-MAX_LEVEL, MAX_LEVEL), "lowest level that counts as relevant"
)
LEVEL = Parameter(
    "level",
    None,
    read_integer(1, MAX_LEVEL),
    "the only level that counts as relevant; left out: rel and all above it",
)
GAINS = Parameter(
    "gains", LINEAR, read_gains,
    "gain of each level: 'linear', 'exp' (2^level - 1), 'tenfold' (0, 1, 10, 100, ...), 'binary' "
    "(0, 1, 1, 1, ...), from level 0 on as in '0-1-10-100' (higher levels gain as much as the "
    "last), or 'level:gain,...' (other levels gain their level)",
)  # fmt: skip
CASCADE_GAINS = replace(GAINS, default=EXP)
BLENDING = Parameter(
    "beta",
    1.0,
    read_number(0.0, MAX_WORTH, ends=True),
    "importance of the cumulated gain relative to precision",
)
STOP = Parameter(
    "stop", "rb", read_choice("rb", "gu"),
    "at which relevant documents users stop: 'rb' rank-biased, fewer at each one than at the one "
    "before; 'gu' graded-uniform, more at higher levels",
    True,
)  # fmt: skip
GAMMA = Parameter(
    "gamma",
    0.95,
    read_number(0.0, 1.0),
    "users at a relevant document per user at the one before; for 'rb'",
)
STOPS = Parameter(
    "stops", LINEAR, read_gains, "weight of each level, written as gains are; for stop='gu'"
)
DISCOUNT = Parameter(
    "dis", "log2", read_choice("log2", "jk", "session"),
    "discount: 'log2' is log2(i + 1), 'jk' is none below rank b then log_b(i), 'session' is 1 + "
    "log_b(i)",
)  # fmt: skip
BASE = Parameter(
    "b", 2.0, read_number(1.0, 1000.0), "base of the logarithm of dis='jk' and dis='session'"
)
IDEAL = Parameter(
    "ideal", "recall_base", read_choice("recall_base", "retrieved"),
    "ideal ranking: of all that is judged, or the best order of what the run retrieved",
)  # fmt: skip
NORM = Parameter(
    "norm", "topic", read_choice("topic", "average"),
    "mean over topics: 'topic' is the mean of the topics' ratios, 'average' the ratio of the "
    "averaged vectors",
)  # fmt: skip
SEEN = Parameter(
    "over", "all", read_choice("all", "seen"),
    "divide by all relevant documents, or by those seen: retrieved within the cutoff",
)  # fmt: skip
RELATIVE = Parameter("relative", False, read_flag, "divide by the highest value that R allows")
BPREF_NORM = Parameter(
    "norm", "min", read_choice("min", "R", "10"),
    "non-relevant documents that count: 'min' the first min(R, N), 'R' the first R, '10' the "
    "first R + 10 (bpref-10)",
)  # fmt: skip
INTERPOLATION = Parameter(
    "interp", "ceiling", read_choice("ceiling", "interval"),
    "highest precision at recall r and above, or between r and r + 0.1",
)  # fmt: skip
RECALL_ROUNDING = Parameter(
    "rounding", "10", read_choice("10", "9", "exact"),
    "r * R as a number of documents for interp='ceiling': '10' rounded, '9' with 0.9 added and "
    "cut (trec_eval 9 and before), 'exact' rounded up",
)  # fmt: skip
SET_BETA = Parameter(
    "beta",
    1.0,
    read_number(0.0, MAX_WORTH),
    "importance of recall relative to precision, also written b",
    symbol="b",
)
UTILITY = tuple(
    Parameter(name, default, read_number(-MAX_WORTH, MAX_WORTH), f"worth of a {kind} document")
    for name, default, kind in (
        ("a", 1.0, "relevant retrieved"),
        ("b", -1.0, "non-relevant retrieved"),
        ("c", 0.0, "relevant not retrieved"),
        ("d", 0.0, "non-relevant not retrieved"),
    )
)
JUDGED_ONLY = Parameter(
    "judged_only",
    False,
    read_flag,
    "leave documents that are unjudged, or judged at a level below 0, out before ranking",
)
MAX_DOCUMENTS = 10**12
_SIZE = "documents in the collection; left out: the number that the collection has"
UTILITY_DOCUMENTS = Parameter(
    "documents", None, read_integer(1, MAX_DOCUMENTS), f"{_SIZE} (trec_eval -N); for d"
)
MAX_GOAL = 1e6
PERSISTENCE = Parameter(
    "p", 0.8, read_number(0.0, 1.0), "probability of going on to the next document", True
)
CASCADE_P = Parameter(
    "p", 0.9, read_number(0.0, 1.0), "probability of going on after a document without gain"
)
OVERLAP_P = Parameter(
    "p", 0.95, read_number(0.0, 1.0), "weight of each rank relative to the one above"
)
NORMALIZE = Parameter(
    "normalize", True, read_flag, "divide by what the ideal ranking has with itself"
)
GAIN_REL = Parameter(
    "rel",
    None,
    read_integer(-MAX_LEVEL, MAX_LEVEL),
    "lowest level that gains 1, the rest 0; left out: graded gains",
)
GOAL = Parameter(
    "T",
    1.0,
    read_number(0.0, MAX_GOAL),
    "gain the user is after, in documents of the highest level",
)
MIN_REL = Parameter(
    "min_rel", 0, read_integer(-MAX_LEVEL, MAX_LEVEL), "level that gains 0, as any below it"
)
MAX_REL = Parameter(
    "max_rel",
    None,
    read_integer(-MAX_LEVEL, MAX_LEVEL),
    "level that gains 1, as any above it; must be given",
    example="3",
)
ERR_MAX_REL = Parameter("max_rel", 4, read_integer(1, MAX_LEVEL), "highest level, as any above it")
VECTOR = Parameter(
    "of", "nDCG", read_choice("nDCG", "DCG", "nCG", "CG"), "the vector that is averaged", True
)
EXAMINED = Parameter(
    "count", "nonrelevant", read_choice("nonrelevant", "all"),
    "documents that count: those examined in vain, or all that are examined",
)  # fmt: skip
NEEDED_RELEVANT = Parameter(
    "n", 1, read_integer(1, MAX_CUTOFF), "how many relevant documents the user is after"
)
_MISSING_TEXT = (
    "relevant documents that were not retrieved: leave the value undefined, {}put them next after "
    "what was retrieved, at random in the rest of the collection, or last in it"
)
MISSING = Parameter(
    "missing", "undefined", read_choice("undefined", "ignore", "next", "random", "last"),
    _MISSING_TEXT.format("ignore them, "),
)  # fmt: skip
# Without those that are not retrieved, nothing says where the first one is.
FIRST_MISSING = Parameter(
    "missing",
    "undefined",
    read_choice("undefined", "next", "random", "last"),
    _MISSING_TEXT.format(""),
)
DOCUMENTS = Parameter(
    "documents",
    None,
    read_integer(1, MAX_DOCUMENTS),
    f"{_SIZE}; for missing='random' and missing='last'",
)
ALL_DOCUMENTS = Parameter(
    "documents",
    None,
    read_integer(1, MAX_DOCUMENTS),
    f"{_SIZE}, without which it must be given",
    example="528155",
)
EXPECTED = Parameter(
    "expected", None, read_integer(1, MAX_CUTOFF),
    "how many relevant documents the user expected to find; left out: the number given for the "
    "topic with the run's known documents",
)  # fmt: skip
ALPHA = Parameter(
    "alpha", 0.5, read_number(0.0, 1.0, ends=True),
    "redundancy intolerance: the share of its worth that a subtopic loses with every document "
    "about it",
)  # fmt: skip
# At 0.99 the greedy ideal ranking of nNRBP is more than 3,600 documents deep.
BETA = Parameter(
    "beta", 0.5, read_number(0.0, 0.99), "patience: probability of going on to the next document"
)
WEIGHT = Parameter("weight", 0.5, read_number(0.0, 1.0), "weight of satisfaction")


def always(arguments: Mapping[str, Any]) -> bool:
    return True


def looks_beyond_the_ranking(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("missing") in ("random", "last")


def counts_unretrieved(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments.get("d"))


def check_levels(values: Mapping[str, Any]) -> str | None:
    return None if values["min_rel"] < values["max_rel"] else "min_rel must be below max_rel"


def check_utility(values: Mapping[str, Any]) -> str | None:
    if (values["d"] != 0) == (values["documents"] is not None):
        return None
    return "d and documents, the size of the collection, go together"


def check_interpolation(values: Mapping[str, Any]) -> str | None:
    if values["interp"] != "interval" or values["rounding"] == RECALL_ROUNDING.default:
        return None
    return "interp='interval' rounds nothing: rounding belongs to interp='ceiling'"


def check_missing(values: Mapping[str, Any]) -> str | None:
    if looks_beyond_the_ranking(values) == (values["documents"] is not None):
        return None
    return "missing='random' or 'last' and documents, the size of the collection, go together"


def check_one_gain(values: Mapping[str, Any]) -> str | None:
    if values["rel"] is None or values["gains"] == LINEAR:
        return None
    return "rel makes every gain 0 or 1, so it leaves gains without a meaning: give one of them"


def check_stop(values: Mapping[str, Any]) -> str | None:
    if values["stop"] == "rb" and values["stops"] != LINEAR:
        return "stops belongs to stop='gu'"
    if values["stop"] == "gu" and values["gamma"] != GAMMA.default:
        return "gamma belongs to stop='rb'"
    return None


def check_vector(values: Mapping[str, Any]) -> str | None:
    """Return what is wrong: a parameter without effect would give a measure a second name."""
    if values["dis"] != "log2" and not values["of"].endswith("DCG"):
        return f"of='{values['of']}' has no discount: dis and b belong to nDCG and DCG"
    if values["ideal"] != "recall_base" and not values["of"].startswith("n"):
        return f"of='{values['of']}' has no ideal: that belongs to nDCG and nCG"
    if values["norm"] != "topic" and not values["of"].startswith("n"):
        return f"of='{values['of']}' is not divided by an ideal: norm belongs to nDCG and nCG"
    return None
