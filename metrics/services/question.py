"""Read questions: dataclasses with the parameters of an address as their fields.

A field says how its parameter is described, read and written. From the fields come the parser, the
parameters of the OpenAPI description, the body of a POST, and the address that asks the same again:
a new parameter is one more field.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Self
from uuid import UUID

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judging import SCORE_TYPES
from metrics.engine.measures.definition import read_choice, show
from metrics.engine.measures.grammar import Measure, parse_measure, parse_measures
from runs.errors import InvalidInput
from runs.models import Collection
from runs.parameters import (
    MAX_OFFSET,
    choice_in,
    flag_in,
    integer_in,
    number_in,
    one_of,
    pointed,
    several_in,
)
from runs.services.tracking.labels import PREFIX

MAX_LIMIT = 200
MAX_VERSION, MAX_SEED = 10**6, 10**9 - 1
# The limits of B for tests and for rank intervals: the least and the most.
RESAMPLES, RANK_RESAMPLES = (100, 1_000_000), (100, 10_000)
# Each has a letter of its own in tables.
MAX_BASELINES = 10
_LEAST_SHARE = 0.0001
# The default of a parameter with a value that is always computed from the request.
COMPUTED: Any = object()

Names = Callable[[Collection], Sequence[str]]


@dataclass(frozen=True)
class Context:
    """The input of a question: parameters as text, its collection, and the reader.

    `values` has the fields that have been read so far.
    """

    parameters: Mapping[str, str]
    collection: Any
    reader: Any
    values: dict[str, Any]

    @property
    def documents(self) -> int | None:
        """Return the number of documents of the collection, if that is known."""
        return self.collection.documents if self.collection else None


@dataclass(frozen=True)
class Parameter:
    """A parameter with its text as value. Its subclasses are the other kinds of parameters.

    `name` is that of the field where it is not given, and `also` another name of the same
    parameter. `default` is the value where the parameter is empty, unless `usual` computes one from
    the rest of the request.
    """

    type: ClassVar[str] = "string"

    text: str
    _: KW_ONLY
    name: str = ""
    also: str = ""
    default: Any = None
    usual: Callable[[Context], Any] | None = None
    choices: tuple[str, ...] = ()

    def value(self, context: Context) -> Any:
        """Return the value in a request.

        Raise InvalidInput or MeasureError, which name the parameter.
        """
        name = one_of(context.parameters, self.name, self.also) if self.also else self.name
        text = context.parameters.get(name, "").strip()
        if text:
            return self.read(text, name, context)
        return self.usual(context) if self.usual else self.constant

    @property
    def constant(self) -> Any:
        """Return the default as a value of its own: a list for a tuple."""
        return list(self.default) if isinstance(self.default, tuple) else self.default

    def read(self, text: str, name: str, context: Context) -> Any:
        return text

    def write(self, value: Any) -> str:
        """Return the text that is read as this value."""
        return "" if value is None else str(value)

    @property
    def description(self) -> str:
        """Return the text, with the default where that is a number or a word."""
        if isinstance(self.default, bool) or not isinstance(self.default, int | float | str):
            return self.text
        default = f"{self.default:,}" if isinstance(self.default, int) else self.default
        return f"{self.text}, default: {default}" if self.default != "" else self.text


@dataclass(frozen=True)
class Exact(Parameter):
    """A text that is taken as it is; an empty one is a value, too."""

    def value(self, context: Context) -> str | None:
        return context.parameters.get(self.name)


@dataclass(frozen=True)
class Choice(Parameter):
    """One of `choices`."""

    def read(self, text: str, name: str, context: Context) -> str | None:
        return choice_in({name: text}, name, self.choices)


@dataclass(frozen=True)
class Flag(Parameter):
    """True or false."""

    type: ClassVar[str] = "boolean"

    default: Any = False

    def read(self, text: str, name: str, context: Context) -> bool:
        return flag_in({name: text}, name)

    def write(self, value: Any) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number from `low` to `high`."""

    type: ClassVar[str] = "integer"

    _: KW_ONLY
    low: int = 0
    high: int = MAX_OFFSET

    def read(self, text: str, name: str, context: Context) -> int:
        return integer_in({name: text}, name, 0, self.low, self.high)


@dataclass(frozen=True)
class Number(Parameter):
    """A number from `low` to `high`."""

    type: ClassVar[str] = "number"

    _: KW_ONLY
    low: float = 0.0
    high: float = sys.float_info.max

    def read(self, text: str, name: str, context: Context) -> float:
        return number_in(name, text, self.low, self.high)


@dataclass(frozen=True)
class Share(Number):
    """A number between 0 and 1."""

    low: float = _LEAST_SHARE
    high: float = 1 - _LEAST_SHARE


@dataclass(frozen=True)
class Several(Parameter):
    """Values of one kind with a separator between them; repetitions count once."""

    _: KW_ONLY
    of: Parameter = Parameter("")
    separator: str = ","
    default: Any = ()

    def read(self, text: str, name: str, context: Context) -> list[Any]:
        return several_in(
            {name: text}, name, lambda part: self.of.read(part, name, context), self.separator
        )

    def write(self, value: Any) -> str:
        return self.separator.join(self.of.write(part) for part in value)


@dataclass(frozen=True)
class Gains(Parameter):
    """A gain map, such as 0-1-10-100."""

    def read(self, text: str, name: str, context: Context) -> GainMap:
        try:
            return GainMap.parse(text)
        except MeasureError as error:
            raise pointed(error, name) from error

    def write(self, value: Any) -> str:
        return show(value).strip("'")


@dataclass(frozen=True)
class Measures(Parameter):
    """Measures with commas between them, by default the `names` of a collection; at most `most`."""

    _: KW_ONLY
    names: Names = lambda collection: collection.measures
    most: int | None = None
    default: Any = COMPUTED

    def value(self, context: Context) -> list[Measure]:
        name = one_of(context.parameters, self.name, self.also) if self.also else self.name
        usual = list(self.names(context.collection))
        measures = measures_in(context.parameters, name, usual, context.collection)
        if self.most and len(measures) > self.most:
            message = f"{len(measures)} measures; a comparison takes at most {self.most}"
            raise MeasureError(message, code="too_many_measures", pointer=name)
        return measures

    def write(self, value: Any) -> str:
        return ",".join(measure.name for measure in value)


@dataclass(frozen=True)
class OneMeasure(Parameter):
    """One measure, by default the first of the `names` of a collection."""

    _: KW_ONLY
    names: Names = lambda collection: collection.measures
    default: Any = COMPUTED

    def value(self, context: Context) -> Measure:
        usual, *_ = self.names(context.collection)
        return measure_in(context.parameters, self.name, usual, context.collection)

    def write(self, value: Any) -> str:
        return str(value.name)


@dataclass(frozen=True)
class Word(Parameter):
    """A value of a parameter of measures, such as the base of a discount.

    It is read as in a measure, from its name and a text.
    """

    _: KW_ONLY
    reads: Callable[[str, str], Any]

    def read(self, text: str, name: str, context: Context) -> Any:
        try:
            return self.reads(name, text)
        except MeasureError as error:
            raise pointed(error, name) from error

    def write(self, value: Any) -> str:
        return value if isinstance(value, str) else show(value)


@dataclass(frozen=True)
class Descending(Choice):
    """Whether rows have the largest value first; `usually_descending` decides without one."""

    _: KW_ONLY
    name: str = "order"
    choices: tuple[str, ...] = ("desc", "asc")
    default: Any = True
    usually_descending: Callable[[Context], bool]

    def value(self, context: Context) -> bool:
        order = choice_in(context.parameters, self.name, self.choices)
        return order == "desc" if order else self.usually_descending(context)

    def write(self, value: Any) -> str:
        return "desc" if value else "asc"


@dataclass(frozen=True)
class Statistics(Parameter):
    """Which of `parts` of statistics are requested.

    `all` is those that are `together`, and a baseline that is given is one of them.
    """

    _: KW_ONLY
    name: str = "statistics"
    default: Any = COMPUTED
    parts: tuple[str, ...]
    together: tuple[str, ...]

    def value(self, context: Context) -> tuple[str, ...]:
        choice = read_choice("all", *self.parts)
        named = several_in(context.parameters, self.name, lambda text: choice(self.name, text))
        requested = {*named, "baseline"} if context.parameters.get("baseline") else set(named)
        if "all" in named:
            requested.update(self.together)

        return tuple(part for part in self.parts if part in requested)

    def write(self, value: Any) -> str:
        return ",".join(value)


@dataclass(frozen=True)
class TopicId(Parameter):
    """The id of a topic, as it is written. It has no default."""

    default: Any = COMPUTED

    def value(self, context: Context) -> str:
        topic = context.parameters.get(self.name)
        if not topic:
            message = f"give the topic, such as {self.name}=301"
            raise InvalidInput(message, code="required", pointer=self.name)

        return topic


@dataclass(frozen=True)
class RunId(Parameter):
    """The id of a run."""

    def read(self, text: str, name: str, context: Context) -> str:
        return read_run_id(text, name)


@dataclass(frozen=True)
class RunIds(Parameter):
    """Ids of runs with commas between them; none means all runs.

    A class with `names_all` reads `all` as all runs.
    """

    names_all: ClassVar[bool] = False

    text: str = "run ids separated by commas; default: all evaluated runs"
    default: Any = ()

    def read(self, text: str, name: str, context: Context) -> Any:
        return run_ids_in({name: text}, name)

    def write(self, value: Any) -> str:
        return ",".join(value)


@dataclass(frozen=True)
class Baselines(Several):
    """Ids of runs with which others are compared, with commas between them."""

    _: KW_ONLY
    name: str = "baseline"
    of: Parameter = RunId("a run id")

    def read(self, text: str, name: str, context: Context) -> list[Any]:
        # A text of commas alone is no run.
        baselines = super().read(text, name, context) or [read_run_id(text, name)]
        if len(baselines) > MAX_BASELINES:
            message = f"{len(baselines)} baselines; at most {MAX_BASELINES}"
            raise InvalidInput(message, code="too_many_runs", pointer=name)
        return baselines


def parameter(kind: Parameter) -> Any:
    """Return the field of a question that has its value from a parameter."""
    metadata = {"part": kind}
    if kind.default is COMPUTED:
        return field(metadata=metadata)
    if isinstance(kind.default, tuple):
        return field(default_factory=lambda: kind.constant, metadata=metadata)
    return field(default=kind.default, metadata=metadata)


def group(make: Callable[..., Any], **kinds: Parameter) -> Any:
    """Return the field of a question that is an object made from parameters.

    They are named as its attributes.
    """
    part = _Group(make, tuple(replace(kind, name=name) for name, kind in kinds.items()))
    return field(default_factory=make, metadata={"part": part})


def nested(question: type[Question]) -> Any:
    """Return the field of a question that has another question, with its parameters."""
    return field(default_factory=question, metadata={"part": question})


@dataclass(frozen=True)
class _Group:
    """Parameters from which one object is made."""

    make: Callable[..., Any]
    kinds: tuple[Parameter, ...]

    def value(self, context: Context) -> Any:
        return self.make(**{kind.name: kind.value(context) for kind in self.kinds})


class Question:
    """The base of questions. Fields that are no parameters keep their defaults."""

    @classmethod
    def read(
        cls, parameters: Mapping[str, str], collection: Any = None, reader: Any = None
    ) -> Self:
        """Return the question that parameters ask.

        Raise InvalidInput or MeasureError, which name a parameter.
        """
        context = Context(parameters, collection, reader, {})
        for name, part in cls._parts():
            if isinstance(part, Parameter | _Group):
                context.values[name] = part.value(context)
            else:
                context.values[name] = part.read(parameters, collection, reader)

        return cls(**context.values)

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """Return the parameters in the order of the fields."""
        kinds: list[Parameter] = []
        for _, part in cls._parts():
            if isinstance(part, Parameter):
                kinds.append(part)
            else:
                kinds += part.kinds if isinstance(part, _Group) else part.parameters()

        # Two fields may share a list of names.
        unique: dict[str, Parameter] = {}
        for kind in kinds:
            unique.setdefault(kind.name, kind)

        return list(unique.values())

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the parameters, and other names of the same."""
        return [name for kind in cls.parameters() for name in (kind.name, kind.also) if name]

    def values(self) -> list[tuple[Parameter, Any]]:
        """Return the value of each parameter."""
        values: list[tuple[Parameter, Any]] = []
        for name, part in self._parts():
            value = getattr(self, name)
            if isinstance(part, Parameter):
                values.append((part, value))
            elif isinstance(part, _Group):
                values += [(kind, getattr(value, kind.name)) for kind in part.kinds]
            else:
                values += value.values()

        return values

    def address(self) -> dict[str, str]:
        """Return the parameters that ask this question, without those that have their defaults."""
        texts: dict[str, str] = {}
        for kind, value in self.values():
            if not kind.usual and value == kind.constant:
                continue

            if text := kind.write(value):
                texts[kind.name] = f"{texts[kind.name]},{text}" if kind.name in texts else text

        return texts

    @classmethod
    def _parts(cls) -> tuple[tuple[str, Parameter | _Group | type[Question]], ...]:
        return _parts_of(cls)  # type: ignore[arg-type]


class StatisticsQuestion(Question):
    """The base of questions about statistics of a leaderboard.

    They are requested by the names of their `parts`, or by a `baseline`; the other parameters
    are options of these.
    """

    # What a baseline is named by.
    NAMED_BY: ClassVar[str]

    parts: tuple[str, ...]

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names of parameters that have no effect where no statistics are requested."""
        return [name for name in cls.names() if name not in ("statistics", "baseline")]

    @classmethod
    def requested(cls, parameters: Mapping[str, str]) -> Self | None:
        """Return the statistics that are requested, or None if there are none."""
        if not (parameters.get("statistics") or parameters.get("baseline")):
            return None

        question = cls.read(parameters)
        if "baseline" in question.parts and not parameters.get("baseline", "").strip():
            message = f"statistics=baseline needs the {cls.NAMED_BY}: baseline=..."
            raise InvalidInput(message, pointer="baseline")
        return question if question.parts else None

    @classmethod
    def check_options(cls, parameters: Mapping[str, str]) -> None:
        """Raise InvalidInput for options where no statistics are requested."""
        if parameters.get("statistics") or parameters.get("baseline"):
            return

        for name in cls.option_names():
            if parameters.get(name):
                message = (
                    f"{name} is an option of statistics: request some, such as statistics=tiers, "
                    "or a baseline"
                )
                raise InvalidInput(message, code="required", pointer="statistics")


@cache
def _parts_of(
    question: type[Question],
) -> tuple[tuple[str, Parameter | _Group | type[Question]], ...]:
    """Return the fields that are read from a request, with their names."""
    parts = []
    for attribute in fields(question):  # type: ignore[arg-type]
        part = attribute.metadata.get("part")
        if isinstance(part, Parameter) and not part.name:
            part = replace(part, name=attribute.name)
        if part:
            parts.append((attribute.name, part))

    return tuple(parts)


# Single parameters


def measures_in(
    parameters: Mapping[str, str],
    name: str,
    default: list[str],
    collection: Collection | None = None,
) -> list[Measure]:
    """Return the measures of one parameter, or the default ones.

    Without a collection they are computed measures.
    """
    text = parameters.get(name, "")
    try:
        if collection is None:
            return parse_measures(text) or [parse_measure(usual) for usual in default]
        return collection.measures_named(text) or [collection.measure(usual) for usual in default]
    except MeasureError as error:
        raise pointed(error, name) from error


def measure_in(
    parameters: Mapping[str, str], name: str, default: str, collection: Collection | None = None
) -> Measure:
    return measures_in({name: parameters.get(name) or default}, name, [default], collection)[0]


def run_ids_in(parameters: Mapping[str, str], name: str = "runs") -> list[str]:
    """Return the named runs; an empty list means all."""
    return [read_run_id(run, name) for run in parameters.get(name, "").split(",") if run]


def run_id_in(parameters: Mapping[str, str], name: str) -> str | None:
    return read_run_id(parameters[name], name) if parameters.get(name) else None


def read_run_id(text: str, name: str) -> str:
    """Return the id of a run in the usual spelling. Raise InvalidInput for what is no id."""
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        if text.strip().startswith(PREFIX):
            message = (
                f"{text[:120]} names no run that you see here, or runs of several teams: write "
                f"{PREFIX}TEAM/NAME"
            )
            raise InvalidInput(message, code="unknown_label", pointer=name) from error
        raise InvalidInput(f"{text[:40]!r} is not the id of a run", pointer=name) from error


SCORES = Choice("float64 or float32; default: the collection's own", choices=SCORE_TYPES)
SEED = Integer("of everything that is drawn", default=0, high=MAX_SEED)
VERSION = Integer("a qrels version; default: the active one", name="qrels", high=MAX_VERSION)
