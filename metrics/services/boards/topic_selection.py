"""Select topics by their attributes: `topics=type:navigational -language:de words:<4`.

    term    = key ":" value { "," value }      one of these values; * stands for any text
            | key ":" sign number              <, <=, > or >=
            | key ":" number ".." number       between both, which count

Terms are combined as those of a filter (metrics/services/boards/filter_grammar.py). A topic without
the attribute has none of its values. The keys `words` (of the title), `relevant` (documents under
the active judgements) and `topic` (the id) are computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.engine.significance.pairs import Caution
from metrics.models import Evaluation
from metrics.services.boards.filter import All, Either, Not
from metrics.services.boards.filter_grammar import Parser
from metrics.services.question import Context, Parameter, Question, parameter
from metrics.services.values.judged_views import Mean, matrices_of, matrix_of, vectors_of
from runs.errors import InvalidInput
from runs.formats.topics.attribute_list import COMPUTED_KEYS, TOPIC, WORDS
from runs.models import Qrels
from runs.services.collections.collections import read_topic_titles
from runs.services.collections.topic_attributes import attribute_keys, attributes_of

# With fewer topics, a selection comes with a caution.
FEW_SELECTED = 10
_NAMED = 12
_RELEVANT = parse_measure("NumRel")
_KEY = re.compile(r'([^\W\d][^\s()",:<=>]*):')
_SIGN = re.compile(r"<=|>=|[<>≤≥]")
_EQUAL = re.compile(r"!=|==?")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}
_SPELT = {"≤": "<=", "≥": ">="}


@dataclass(frozen=True)
class TopicTerm:
    """A condition on one key: a `matches` of its value, a text."""

    key: str
    matches: Callable[[str], bool]


_Item = TypeVar("_Item")
Term = Any
"""A TopicTerm, or Not, All or Either of terms."""


@dataclass(frozen=True)
class TopicFilter:
    """The text of `topics=`, and the tree that it was parsed to."""

    text: str

    @cached_property
    def term(self) -> Term:
        return _TopicParser(self.text).parse()


@dataclass(frozen=True)
class Topics(Parameter):
    """Which topics count; without a text all of them do."""

    text: str = (
        "which topics count: attributes such as type:navigational -language:de words:<4; "
        "docs/api/topics.md; default: all"
    )

    def read(self, text: str, name: str, context: Context) -> TopicFilter:
        topics = TopicFilter(text)
        # Parse it now: a bad text is reported with the other parameters.
        _ = topics.term
        return topics

    def write(self, value: Any) -> str:
        return value.text if value else ""


@dataclass(frozen=True)
class SelectionQuery(Question):
    """The topics of what has no other parameters of its own."""

    topics: TopicFilter | None = parameter(Topics())

    def select(self, evaluation: Evaluation) -> TopicSelection | None:
        """Return the selected topics of the judgements of an evaluation, None for all.

        Raise what `select_topics` does.
        """
        return select_topics(evaluation.qrels, self.topics, evaluation.scores)


@dataclass(frozen=True)
class TopicKey(Parameter):
    """The key of an attribute, by which topics are grouped."""

    def read(self, text: str, name: str, context: Context) -> str:
        key = text.lower()
        if key == TOPIC:
            message = "every topic would be a group; group by an attribute with fewer values"
            raise InvalidInput(message, code="bad_filter", pointer=name)
        return key


@dataclass(frozen=True)
class TopicSelection:
    """The topics of a version of judgements that count: a flag for each, in their order."""

    text: str
    selected: Flags

    @property
    def topics(self) -> int:
        return int(self.selected.sum())

    @property
    def identity(self) -> bytes:
        """Return bytes that are equal for equal selections."""
        return np.packbits(self.selected).tobytes()

    def means_of(
        self,
        evaluation_ids: list[int],
        measures: list[Measure],
        qrels: Qrels,
        computing: frozenset[str],
    ) -> dict[tuple[int, str], Mean]:
        """Return the mean and the number of topics by (evaluation, measure) on these topics.

        A ratio of averaged vectors, which has no values of topics, has none. Measures that workers
        are `computing` are read only.
        """
        return {
            (pk, measure.name): (None, 0)
            if measure.pools
            else measure.aggregate(row[self.selected])
            for measure, (values, _) in zip(
                measures, matrices_of(evaluation_ids, measures, qrels, computing), strict=True
            )
            for pk, row in zip(evaluation_ids, values, strict=True)
        }

    def covered_topics(
        self,
        evaluation_ids: list[int],
        measure: Measure,
        qrels: Qrels,
        computing: frozenset[str],
    ) -> dict[int, bytes]:
        """Return which of these topics have a value, by evaluation, as equal bytes."""
        values, _ = matrix_of(evaluation_ids, measure, qrels, computing)
        defined = np.logical_not(np.isnan(values[:, self.selected]))
        return {
            pk: np.packbits(row).tobytes() for pk, row in zip(evaluation_ids, defined, strict=True)
        }

    def among(self, topics: list[_Item]) -> list[_Item]:
        """Return the items of the selected topics, of one for each topic in their order."""
        return [topics[place] for place in np.flatnonzero(self.selected).tolist()]

    @property
    def sentence(self) -> str:
        """Return what is selected, for captions and notes."""
        return f"{self.topics:,} of {len(self.selected):,} topics: {self.text}"

    @property
    def cautions(self) -> list[Caution]:
        if self.topics >= FEW_SELECTED:
            return []
        noun = "topic" if self.topics == 1 else "topics"
        message = f"only {self.topics} {noun} selected: differences must be large to be found"
        return [Caution("few_topics", message)]


def select_topics(qrels: Qrels, topics: TopicFilter | None, scores: str) -> TopicSelection | None:
    """Return the selected topics of the judgements, None for all.

    Raise InvalidInput for an unknown key, StatisticsError if no topic is left.
    """
    if topics is None:
        return None

    values = _Values(qrels, scores)
    topic_ids: list[str] = qrels.topic_ids
    selected = np.array(_select(topics.term, values, topic_ids), np.bool_)
    if not selected.any():
        message = f"none of the {len(topic_ids):,} topics is selected by {topics.text[:200]}"
        raise StatisticsError(message, code="too_few_topics", pointer="topics")

    return TopicSelection(topics.text, selected)


def flags_of(selection: TopicSelection | None) -> Flags | None:
    """Return a flag for each topic of the judgements, None for all."""
    return selection.selected if selection else None


def group_topics(
    qrels: Qrels, key: str, scores: str, selection: TopicSelection | None = None
) -> dict[str, Ints]:
    """Return the places of the topics with each value of a key, in the order of the values.

    Topics without a value are in no group.

    Raise InvalidInput for an unknown key.
    """
    values = _Values(qrels, scores).of(key, "by")
    places: dict[str, list[int]] = {}
    for place, topic_id in enumerate(qrels.topic_ids):
        if topic_id in values and (selection is None or selection.selected[place]):
            places.setdefault(values[topic_id], []).append(place)

    numbers = {value: _number(value) for value in places}
    numeric = all(number is not None for number in numbers.values())
    order = sorted(places, key=lambda value: (numbers[value] if numeric else 0.0, value))
    return {value: np.array(places[value], np.int64) for value in order}


def with_key(keys: list[str], key: str) -> list[str]:
    """Return the keys that a form offers, with the one that is chosen: it may be computed."""
    return [*keys, key] if key and key not in keys else keys


def topic_weights(qrels: Qrels, key: str, scores: str, topic_ids: Sequence[str]) -> Floats:
    """Return the values of a key as weights of topics, in their order.

    Raise InvalidInput for an unknown key, and for a topic without a positive finite number.
    """
    values = _Values(qrels, scores).of(key, "weights")
    weights: list[float] = []
    for topic in topic_ids:
        text = values.get(topic)
        number = None if text is None else _number(text)
        if number is None or number <= 0:
            value = "has none" if text is None else f"has {text[:40]!r}"
            message = (
                f"weights: every compared topic needs a positive number as {key[:40]}, and topic "
                f"{topic[:60]} {value}; select the topics that have it, as topics={key[:40]}:>0"
            )
            raise InvalidInput(message, pointer="weights")
        weights.append(number)

    return np.array(weights, np.float64)


class _Values:
    """The values of topics by key, which are read when they are needed."""

    def __init__(self, qrels: Qrels, scores: str) -> None:
        self._qrels, self._scores = qrels, scores
        self._computed: dict[str, dict[str, str]] = {}

    @cached_property
    def _attributes(self) -> dict[str, dict[str, str]]:
        return attributes_of(self._qrels.collection)

    def of(self, key: str, parameter: str = "topics") -> dict[str, str]:
        """Return the value of each topic that has one. Raise InvalidInput for an unknown key."""
        if key in COMPUTED_KEYS:
            if key not in self._computed:
                self._computed[key] = self._compute(key)
            return self._computed[key]

        of_key = {
            topic_id: values[key] for topic_id, values in self._attributes.items() if key in values
        }
        if not of_key:
            raise self._unknown(key, parameter)
        return of_key

    def _compute(self, key: str) -> dict[str, str]:
        topic_ids: list[str] = self._qrels.topic_ids
        if key == TOPIC:
            return {topic_id: topic_id for topic_id in topic_ids}

        if key == WORDS:
            titles = read_topic_titles(self._qrels.collection, topic_ids)
            return {
                topic_id: str(len(title.split())) for topic_id, title in titles.items() if title
            }

        # Every run has the same number of relevant documents.
        current = Evaluation.objects.current(self._qrels, self._scores).evaluated()
        pk = current.order_by("pk").values_list("pk", flat=True).first()
        if pk is None:
            return {}
        numbers = vectors_of([pk], [_RELEVANT])[pk, _RELEVANT.name].values.tolist()
        return {
            topic_id: str(int(number)) for topic_id, number in zip(topic_ids, numbers, strict=True)
        }

    def _unknown(self, key: str, parameter: str) -> InvalidInput:
        keys = attribute_keys(self._qrels.collection)
        named = ", ".join([*keys[:_NAMED], *COMPUTED_KEYS]) + (
            ", ..." if len(keys) > _NAMED else ""
        )
        message = f"{parameter}: no topic has the attribute {key[:40]}; keys are {named}"
        return InvalidInput(message, code="bad_filter", pointer=parameter)


def _select(term: Term, values: _Values, topic_ids: list[str]) -> list[bool]:
    match term:
        case TopicTerm(key, matches):
            of_key = values.of(key)
            matching = {value for value in set(of_key.values()) if matches(value)}
            return [of_key.get(topic) in matching for topic in topic_ids]
        case Not(inner):
            return [not selected for selected in _select(inner, values, topic_ids)]
        case All(terms):
            parts = [_select(inner, values, topic_ids) for inner in terms]
            return [all(part) for part in zip(*parts, strict=True)]
        case Either(terms):
            parts = [_select(inner, values, topic_ids) for inner in terms]
            return [any(part) for part in zip(*parts, strict=True)]

    raise TypeError(f"{term!r} is not a term of topics")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class _TopicParser(Parser):
    """Parse terms on the attributes of topics, combined as those of a filter."""

    name = "topics"
    missing = "a term is missing: a key, a colon and a value, such as type:navigational"

    def _positive(self) -> Term:
        if self._text[self._at] == "(":
            return self._group()

        self._count()
        self._refuse_operator()
        key = _KEY.match(self._text, self._at)
        if key is None:
            raise self._problem(
                "write a key, a colon and a value, such as type:navigational or words:<4"
            )

        self._at = key.end()
        if sign := _SIGN.match(self._text, self._at):
            return self._number_term(key[1].lower(), _SPELT.get(sign[0], sign[0]), sign.end())
        if equal := _EQUAL.match(self._text, self._at):
            term = f"-{key[0]}" if equal[0] == "!=" else key[0]
            raise self._problem(f"write {term}... without {equal[0]}; in a value it needs quotes")
        return self._value_term(key[1].lower())

    def _number_term(self, key: str, sign: str, start: int) -> TopicTerm:
        self._at = start
        text, _ = self._quotable(f"{sign} needs a number")
        bound = _number(text)
        if bound is None:
            raise self._problem(f"{sign} needs a number, not {text[:40]}", start)

        compare = _SIGNS[sign]
        return TopicTerm(
            key, lambda value: (number := _number(value)) is not None and compare(number, bound)
        )

    def _value_term(self, key: str) -> TopicTerm:
        matches = [self._value_match(key)]
        while self._text.startswith(",", self._at):
            self._at += 1
            self._count()
            matches.append(self._value_match(key))

        return TopicTerm(key, lambda value: any(match(value) for match in matches))

    def _value_match(self, key: str) -> Callable[[str], bool]:
        start = self._at
        text, quoted = self._quotable(f"{key}: needs a value, as in {key}:a,b")
        low, dots, high = text.partition("..")
        if dots and not quoted:
            lowest, highest = _number(low), _number(high)
            if lowest is not None and highest is not None:
                if lowest > highest:
                    raise self._problem("a range goes from its lower end to its upper one", start)
                return lambda value: (
                    (number := _number(value)) is not None and lowest <= number <= highest
                )
            if (lowest is not None and not high) or (highest is not None and not low):
                bound = f">={low}" if low else f"<={high}"
                raise self._problem(f"a range has two ends; write {key}:{bound}", start)

        first, *parts = [re.escape(part) for part in text.split("*")]
        # Each part in the middle is taken where it occurs first: going back could take hours.
        middle = "".join(f"(?>.*?{part})" for part in parts[:-1])
        last = f".*{parts[-1]}" if parts else ""
        pattern = re.compile(f"{first}{middle}{last}", re.IGNORECASE | re.DOTALL)
        return lambda value: bool(pattern.fullmatch(value))
