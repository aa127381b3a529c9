"""Parse the filter of a leaderboard, which is written as in search boxes.

    either    = all { "OR" all }
    all       = term { term }                           side by side: both
    term      = [ "-" ] ( "(" either ")" | condition | field | word | phrase )
    field     = name ":" value { "," value }
    condition = ( "param" | "cost" | "measure" ) ":" key [ compare ] | name compare
    compare   = ( "=" | "!=" ) value { "," value } | "=" bound ".." bound
              | ( "<" | "<=" | ">" | ">=" ) bound
    bound     = number | date                           -1.5e3, 2026-01-31
    value     = number | "true" | "false" | word | phrase
    key       = phrase, or a word without " ( ) , : = < > ! ;
                and with \\. for a dot that is part of a name
    phrase    = '"' any text '"'

A word has no = < > and no colon behind anything but a number: what looks like a field or a
comparison is one. A name that is compared without a space, as in k1>0.9, is a measure if it reads
as one, and otherwise a parameter. In a text * stands for any text. A word ends at a blank, a quote or a bracket, in
a field also at a comma.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import date

from metrics.engine.errors import MeasureError
from metrics.engine.measures.external import is_external
from metrics.engine.measures.grammar import name_in_collection
from metrics.engine.measures.spelling import closest
from metrics.services.boards.conditions import MEASURE, PLAIN_KEY, SPACES, Bound, Condition, Value
from metrics.services.boards.filter import FIELDS, All, Either, Field, Not, Term, Text, asks_for
from runs.errors import InvalidInput
from runs.services.tracking.parameters import PARAM

MAX_LENGTH, MAX_TERMS, MAX_DEPTH, MAX_STARS, MAX_WORD = 1_000, 30, 5, 5, 100
_BLANKS = re.compile(r"\s*")
_OR = re.compile(r'OR(?=[\s()"]|$)')
_PHRASE = re.compile(r'"([^"]*)"')
_WORD = re.compile(r'[^\s()"]+')
# Text before a colon is a field, except a number, as in 12:30.
_FIELD = re.compile(r'([^\W\d][^\s()",:<=>]*):')
# A comparison without a space: k1=0.9, nDCG@10>0.5. Or its sign between blanks.
_COMPARED = re.compile(r'([^\s()"<=>!]*)(!?[<=>]=?|≤|≥)([^\s()"]*)')
_VALUE = re.compile(r'[^\s()",]+')
_SIGN = re.compile(r"!=|<=|>=|==|[=<>≤≥]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS = {"==": "=", "≤": "<=", "≥": ">="}
_KEYS = {PARAM: "a parameter, such as param:k1", MEASURE: "a measure, such as measure:AP>0.3"}
_MISSING = 'a term is missing: a word, a "phrase", or a field such as team:name'
# Operators of other search boxes, which are not meant as text.
_NOT_HERE = {
    "AND": "terms side by side are both meant: leave AND out, or write it in quotes",
    "NOT": "write - before what is not meant, or NOT in quotes",
    "OR": "OR belongs between two terms; as a text it needs quotes",
}


def parse_filter(text: str) -> Term | None:
    """Return the tree of a filter, or None for an empty one.

    InvalidInput says where the text is wrong and what is allowed there.
    """
    return Parser(text).parse() if text.strip() else None


def asks_for_values(text: str) -> bool:
    """Return whether a filter asks for means or states.

    Raise InvalidInput for one that cannot be read.
    """
    term = parse_filter(text)
    return term is not None and (asks_for(term, "status") or asks_for(term, MEASURE))


def _advice_for(comparison: re.Match[str]) -> str:
    """Return the advice for a comparison without a space that is none of a name; empty if it is.

    It names the field with a colon.
    """
    left, sign, right = comparison.groups()
    # Names that are only like a field, such as stemmer, are of parameters.
    name = left.lower() if left.lower() in FIELDS else left.lower().removesuffix("s")
    if name in FIELDS and sign in ("=", "=="):
        return (
            f"write {name}:{right[:40] or '...'} for {comparison[0][:40]}; text with {sign} needs "
            "quotes"
        )
    if not left:
        return (
            f"{sign} must directly follow what it compares, as in k1>0.9; text with "
            f"{sign} needs quotes"
        )
    if not PLAIN_KEY.fullmatch(left) and not is_external(left):
        return f'{left[:40]} is not a name; write the parameter in quotes, as in param:"a, b"=1'
    return ""


def _is_measure(text: str) -> bool:
    try:
        name_in_collection(text)
    except MeasureError:
        return False
    return True


def _bound_of(text: str) -> Bound | None:
    """Return the number or the date that a comparison names, or None."""
    if _NUMBER.fullmatch(text):
        return float(text) if math.isfinite(float(text)) else None

    try:
        return date.fromisoformat(text) if date.fromisoformat(text).isoformat() == text else None
    except ValueError:
        return None


def _is_range(text: str) -> bool:
    low, dots, high = text.partition("..")
    return bool(dots) and _bound_of(low) is not None and _bound_of(high) is not None


def _value_of(text: str, quoted: bool) -> Value:
    """Return the number, the boolean or the text that a value is; in quotes it is a text."""
    if not quoted and text.lower() in ("true", "false"):
        return text.lower() == "true"
    number = None if quoted else _bound_of(text)
    return number if isinstance(number, float) else text


class Parser:
    """Parse from left to right; `_at` is the current position.

    A subclass reads other terms, of a parameter with another `name`, and says what is `missing`.
    """

    name = "filter"
    missing = _MISSING

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            message = f"the text has {len(text):,} characters; at most {MAX_LENGTH:,} are read"
            raise InvalidInput(message, code="bad_filter", pointer=self.name)

        self._text = text
        self._at = 0
        self._terms = 0
        self._depth = 0

    def parse(self) -> Term:
        term = self._either()
        if self._at < len(self._text):
            raise self._problem("no bracket is open that this one could close")
        return term

    def _either(self) -> Term:
        terms = [self._all()]
        while self._take(_OR):
            terms.append(self._all())
        return terms[0] if len(terms) == 1 else Either(tuple(terms))

    def _all(self) -> Term:
        terms = []
        while not self._ends():
            terms.append(self._term())

        if not terms:
            raise self._problem(self.missing)
        return terms[0] if len(terms) == 1 else All(tuple(terms))

    def _ends(self) -> bool:
        self._take(_BLANKS)
        return (
            self._at == len(self._text)
            or self._text[self._at] == ")"
            or bool(_OR.match(self._text, self._at))
        )

    def _term(self) -> Term:
        if self._text[self._at] != "-":
            return self._positive()

        self._at += 1
        if self._at == len(self._text) or re.match(r"[\s)-]", self._text[self._at]):
            raise self._problem(
                "- goes directly before the term that is not meant; a text that begins "
                "with - needs quotes"
            )
        return Not(self._positive())

    def _positive(self) -> Term:
        if self._text[self._at] == "(":
            return self._group()

        self._count()
        comparison = _COMPARED.match(self._text, self._at)
        field = _FIELD.match(self._text, self._at)
        if field and not (comparison and is_external(comparison[1])):
            return (
                self._condition(field[1]) if field[1].lower() in SPACES else self._field(field[1])
            )
        if comparison:
            if advice := _advice_for(comparison):
                raise self._problem(advice)

            name, start = comparison[1], self._at + 1
            self._at += len(name)
            return self._compared(MEASURE if _is_measure(name) else PARAM, name, start)

        self._refuse_operator()
        return Text(self._value(_WORD, _MISSING))

    def _refuse_operator(self) -> None:
        word = _WORD.match(self._text, self._at)
        if word and word[0] in _NOT_HERE:
            raise self._problem(_NOT_HERE[word[0]])

    def _group(self) -> Term:
        start = self._at
        self._at += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._problem(f"brackets can be nested at most {MAX_DEPTH} deep", start)

        term = self._either()
        if self._at == len(self._text):
            raise self._problem("this bracket is never closed", start)
        self._at += 1
        self._depth -= 1

        return term

    def _field(self, word: str) -> Term:
        name = word.lower()
        if name not in FIELDS:
            suggestion = closest(name, (*FIELDS, *SPACES))
            field_names = (
                f"fields are {', '.join(f'{field_names}:' for field_names in (*FIELDS, *SPACES))}"
            )
            advice = f"did you mean {suggestion}:? Text" if suggestion else f"{field_names}; text"
            raise self._problem(
                f"there is no field {word[:40]}: here; {advice} with a colon needs quotes"
            )

        self._at += len(word) + 1
        values = [self._field_value(name)]
        while self._at < len(self._text) and self._text[self._at] == ",":
            self._at += 1
            self._count()
            values.append(self._field_value(name))

        return Field(name, tuple(dict.fromkeys(values)))

    def _condition(self, word: str) -> Condition:
        start, space = self._at + 1, word.lower()
        self._at += len(word) + 1
        phrase = self._text.startswith('"', self._at)
        match = (_PHRASE if phrase else PLAIN_KEY).match(self._text, self._at)

        key = (match[1] if phrase else match[0]).strip() if match else ""
        if match is None or not key:
            raise self._problem(
                f"{space}: needs the name of "
                f"{_KEYS.get(space, 'a cost, such as cost:latency_ms<20')}"
            )

        self._at = match.end()
        return self._compared(space, key, start)

    def _compared(self, space: str, key: str, start: int) -> Condition:
        """Return the condition on a key, before whose comparison the current position is."""
        sign_at, sign_match = self._at, _SIGN.match(self._text, self._at)
        if sign_match is None:
            if not re.match(r"[\s)]|$", self._text[self._at :]):
                raise self._problem(
                    "a comparison such as >0.9 or a space must follow here; other characters need quotes"
                )
            return Condition(space, key, at=start)

        sign, self._at = _SIGNS.get(sign_match[0], sign_match[0]), sign_match.end()
        if re.match(r"[=<>!]", self._text[self._at :]):
            raise self._problem(f"after {sign} a value must follow", sign_at)

        bounded = sign not in ("=", "!=")
        needs = (
            f"{sign} needs a number or a date such as 2026-01-31"
            if bounded
            else f"{sign} needs a value"
        )

        if not _VALUE.match(self._text, self._at) and not self._text.startswith('"', self._at):
            raise self._problem(needs, sign_at)

        texts = [self._quotable(needs)]
        while not bounded and self._text.startswith(",", self._at):
            self._at += 1
            self._count()
            texts.append(self._quotable(needs))

        if len(texts) > 1 and any(not quoted and _is_range(text) for text, quoted in texts):
            raise self._problem("use a range alone: write param:k=1..2 OR param:k=4", sign_at)

        text, quoted = texts[0]

        bounds = [
            None if quoted else _bound_of(part)
            for part in (text.split("..", 1) if sign == "=" else [text])
        ]
        if len(texts) == 1 and (bounded or len(bounds) == 2) and None not in bounds:
            return self._bounded(
                space, key, ".." if len(bounds) == 2 else sign, bounds, start, sign_at
            )
        if bounded:
            raise self._problem(needs, sign_at)

        # True and 1.0 are equal, and still two values.
        values = [_value_of(text, quoted) for text, quoted in texts]
        distinct = dict.fromkeys((type(value), value) for value in values)
        if space != PARAM and any(kind is not float for kind, _ in distinct):
            raise self._problem(f"a {space} is a number; {sign} needs one such as 0.5", sign_at)
        return Condition(space, key, sign, tuple(value for _, value in distinct), start)

    def _bounded(
        self, space: str, key: str, sign: str, bounds: list[Bound | None], start: int, sign_at: int
    ) -> Condition:
        values = tuple(value for value in bounds if value is not None)
        if space != PARAM and any(isinstance(value, date) for value in values):
            raise self._problem(f"a {space} is a number, not a date", sign_at)
        if len({type(value) for value in values}) > 1:
            raise self._problem("both ends of a range are numbers, or both are dates", sign_at)
        if values[0] > values[-1]:  # type: ignore[operator]
            raise self._problem("a range goes from its lower end to its upper one", sign_at)
        return Condition(space, key, sign, values, start)

    def _quotable(self, missing: str) -> tuple[str, bool]:
        """Return a value and whether it is in quotes."""
        quoted = self._text.startswith('"', self._at)
        return self._value(_VALUE, missing), quoted

    def _field_value(self, name: str) -> str:
        start, takes = self._at, FIELDS[name].takes
        text = self._value(_VALUE, f"{name}: needs {takes}")
        value = FIELDS[name].read(text)
        if value is None:
            raise self._problem(f"{name}:{text[:40]} is not known; {name}: takes {takes}", start)
        return value

    def _value(self, pattern: re.Pattern[str], missing: str) -> str:
        """Return the phrase or word at the current position."""
        start, phrase = self._at, self._text.startswith('"', self._at)
        match = (_PHRASE if phrase else pattern).match(self._text, self._at)
        if match is None:
            raise self._problem("this quote is never closed" if phrase else missing)

        self._at = match.end()
        text = re.sub(r"\*+", "*", match[1] if phrase else match[0])
        if not text.strip():
            raise self._problem("there is nothing between these quotes", start)
        if len(text) > MAX_WORD:
            raise self._problem(f"a text has at most {MAX_WORD} characters", start)
        if text.count("*") > MAX_STARS:
            raise self._problem(f"a text has at most {MAX_STARS} *", start)
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
            raise self._problem("this text has a control character", start)
        return text

    def _count(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise self._problem(f"a filter has at most {MAX_TERMS} terms and values")

    def _take(self, pattern: re.Pattern[str]) -> bool:
        """Return whether the pattern matches at the current position, and if so move behind it."""
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match is not None

    def _problem(self, message: str, at: int | None = None) -> InvalidInput:
        place = (self._at if at is None else at) + 1
        return InvalidInput(
            f"{self.name}, character {place}: {message}", code="bad_filter", pointer=self.name
        )
