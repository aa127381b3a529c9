"""Translate conditions on parameters, costs and measures into conditions on runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Substr

from metrics.engine.errors import MeasureError
from metrics.engine.measures.external import is_external
from metrics.engine.measures.grammar import name_in_collection
from metrics.models import Evaluation, MetricVector
from metrics.services.snapshots import once_in_snapshot
from runs.errors import InvalidInput
from runs.formats.parameters import canonical_name, fold
from runs.models import Collection, Parameter, ParameterKey, Qrels, Run
from runs.services.tracking.parameters import COST, PARAM

MEASURE = "measure"
SPACES = (PARAM, COST, MEASURE)
# Numbers are equal that agree in 12 digits.
_CLOSE = 5e-12
KINDS = ("number", "folded", "boolean")
_NOUNS = {PARAM: "parameter", COST: "cost"}
_NAMED, _COMPARED = 8, 60
_ISO_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE_LENGTH = 10
# A key that needs no quotes; a backslash hides the next character.
PLAIN_KEY = re.compile(r'(?:\\[.\\]|[^\s"(),:=<>!;\\])+')

Bound = float | date
# A text may have *.
Value = float | bool | str


@dataclass(frozen=True)
class Condition:
    """A condition on one key.

    `sign` is empty (it is set), =, !=, <, <=, >, >= or .. (between both bounds); `at` is its
    place in the filter, from 1. `key_ids` are found by `bound`: one, or one in each of several
    collections.
    """

    space: str
    key: str
    sign: str = ""
    values: tuple[Value | date, ...] = ()
    at: int = field(default=0, compare=False)
    key_ids: tuple[int, ...] = field(default=(), compare=False)


def term_of_key(space: str, key: str) -> str:
    """Return a key as filters, columns and orders name it, or "" if they cannot name it."""
    if PLAIN_KEY.fullmatch(key):
        return f"{space}:{key}"
    return f'{space}:"{key}"' if '"' not in key else ""


@dataclass(frozen=True)
class Board:
    """The subject of conditions: a collection and the runs in it that the reader sees.

    `evaluations` are those with the means that count, None where the reader may not see them.
    """

    collection: Collection
    runs: QuerySet[Run]
    evaluations: QuerySet[Evaluation] | None = None


def visible_board(
    collection: Collection, reader: Any, qrels: Qrels | None = None, scores: str | None = None
) -> Board:
    """Return the board of a reader; without judgements there are no means."""
    runs = Run.objects.visible_to(reader).filter(collection=collection).order_by()
    if qrels is None:
        return Board(collection, runs)
    return Board(
        collection, runs, Evaluation.objects.current(qrels, scores or collection.scores).evaluated()
    )


def visible_keys(board: Board, space: str | None = None) -> QuerySet[ParameterKey]:
    """Return the keys that a run of the reader's has."""
    keys = ParameterKey.objects.filter(collection=board.collection)
    parameters = _rows_of(board.runs).filter(key=OuterRef("pk"))
    kinds_present = (Exists(parameters.filter(**{f"{kind}__isnull": False})) for kind in KINDS)
    return (keys.filter(space=space) if space else keys).filter(
        reduce(or_, (Q(condition) for condition in kinds_present))
    )


def find_key(board: Board, space: str, name: str, where: str) -> ParameterKey:
    """Return a key that a visible run has.

    Raise InvalidInput with near names otherwise; `where` begins the message.
    """
    identity = ("key", board.collection.pk, space, name)
    key = once_in_snapshot(identity, lambda: _key_with_kinds(board.collection, space, name))
    if key and any(
        getattr(key, f"first_{kind}") and _is_seen(board, key.pk, kind) for kind in KINDS
    ):
        return key
    raise InvalidInput(
        f"{where}{_unknown_key(board, space, name)}", code="bad_filter", pointer="filter"
    )


def _key_with_kinds(collection: Collection, space: str, name: str) -> ParameterKey | None:
    """Return a key with the first parameter of each kind that any run has."""
    # Each kind that exists is read from the beginning of an index, which a database does only when
    # the first row alone is requested.
    parameters = Parameter.objects.filter(key=OuterRef("pk"))
    first = {
        f"first_{kind}": Subquery(_having_kind(parameters, kind).values("pk")[:1]) for kind in KINDS
    }
    return (
        ParameterKey.objects.filter(collection=collection, space=space, name=name)
        .annotate(**first)
        .first()
    )


def _is_seen(board: Board, key: int, kind: str) -> bool:
    """Return whether a visible run has a value of this kind.

    Mostly the run with the first value is visible; in a search for any, a database may look through
    all of them. Where runs are hidden, the time must not tell which run has the first value.
    """
    collection, any_of_them = board.collection, _rows_of_kind(key, kind, board.runs)
    if collection.blind or collection.veiled:
        return any_of_them.exists()

    first = _having_kind(Parameter.objects.filter(key=key), kind).values("owner__run")[:1]
    return board.runs.filter(pk__in=first).exists() or any_of_them.exists()


def _having_kind(rows: QuerySet[Parameter], kind: str) -> QuerySet[Parameter]:
    return rows.filter(**{f"{kind}__isnull": False}).order_by(kind)


def _rows_of_kind(key: int, kind: str, runs: QuerySet[Run]) -> QuerySet[Parameter]:
    return _rows_of(runs).filter(key=key, **{f"{kind}__isnull": False})


def _rows_of(runs: QuerySet[Run]) -> QuerySet[Parameter]:
    """Return the rows of runs for a question that the first of them answers.

    SQLite would collect the keys of all runs for `IN`, and tries them one by one for `EXISTS`.
    """
    return Parameter.objects.filter(Exists(runs.filter(pk=OuterRef("owner__run"))))


def _unknown_key(board: Board, space: str, name: str) -> str:
    """Return that there is no such key, and which visible keys are like it, or come first."""
    names = list(visible_keys(board, space).order_by("name").values_list("name", flat=True))
    folded = {known.casefold()[:_COMPARED]: known for known in names}
    matches = get_close_matches(name.casefold()[:_COMPARED], folded, n=3)
    examples = sorted(folded[match] for match in matches) or names[:_NAMED]

    subject = f"no run here has a {_NOUNS[space]} {name[:60]}"
    if space == PARAM and visible_keys(board, COST).filter(name=name).exists():
        return f"{subject}, but a cost; write cost:{name[:60]}"
    if not examples:
        return f"{subject}; there are no {_NOUNS[space]}s"

    verb = "is" if len(examples) == 1 else "are"
    more = ", ..." if not matches and len(names) > len(examples) else ""
    return f"{subject}; there {verb} {_listed(examples)}{more}"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def bind_key(condition: Condition, board: Board) -> Condition:
    """Return the condition with its key.

    Raise InvalidInput for a key that no visible run has, for a comparison of texts as numbers,
    and for a measure that is not stored.
    """
    where = f"filter, character {condition.at}: "
    if condition.space == MEASURE:
        return Condition(
            MEASURE, _stored_measure(board, condition.key, where), condition.sign, condition.values
        )

    name = canonical_name(condition.key) if condition.space == PARAM else condition.key
    key = find_key(board, condition.space, name, where)

    numeric = condition.sign in ("<", "<=", ">", ">=", "..") and not isinstance(
        condition.values[0], date
    )
    if numeric and not _is_seen(board, key.pk, "number"):
        texts = _rows_of_kind(key.pk, "folded", board.runs).count()
        booleans = _rows_of_kind(key.pk, "boolean", board.runs).count()
        total = texts + booleans
        if not booleans:
            kind = "text"
        else:
            kind = "text, true or false" if texts else "true or false"
        sign = "a range" if condition.sign == ".." else condition.sign
        subject = (
            f"all {total:,} values of {name} are" if total > 1 else f"the only value of {name} is"
        )
        message = f"{where}{subject} {kind}; {sign} compares numbers"
        raise InvalidInput(message, code="bad_filter", pointer="filter")

    return Condition(
        condition.space, name, condition.sign, condition.values, condition.at, (key.pk,)
    )


def _stored_measure(board: Board, text: str, where: str) -> str:
    try:
        name = name_in_collection(text)
    except MeasureError:
        name = text

    stored: list[str] = board.collection.measures
    if is_external(name):
        try:
            return board.collection.measure(name).name
        except MeasureError as error:
            message = f"{where}{error.message}"
            raise InvalidInput(message, code="bad_filter", pointer="filter") from error

    if name not in stored:
        message = (
            f"measure:{text[:60]} is not stored for this collection; stored are {', '.join(stored)}"
        )
        raise InvalidInput(f"{where}{message}", code="bad_filter", pointer="filter")
    return name


def condition_on_runs(condition: Condition, evaluations: QuerySet[Evaluation] | None) -> Q:
    """Return the condition on runs; `evaluations` are those whose means count."""
    if condition.space == MEASURE:
        counting = Evaluation.objects.none() if evaluations is None else evaluations
        means = MetricVector.objects.filter(
            measure=condition.key, mean__isnull=False, evaluation__in=counting
        )
        return Q(pk__in=means.filter(_numbers(condition, "mean")).values("evaluation__run"))

    keys = condition.key_ids
    rows = (
        Parameter.objects.filter(key=keys[0])
        if len(keys) == 1
        else Parameter.objects.filter(key__in=keys)
    )

    if condition.sign in ("", "!="):
        is_set = reduce(
            or_, (_runs_with(rows.filter(**{f"{kind}__isnull": False})) for kind in KINDS)
        )
        return is_set & ~_equal(condition.values, rows) if condition.sign else is_set
    if condition.sign == "=":
        return _equal(condition.values, rows)
    if isinstance(condition.values[0], date):
        return _runs_with(_dated(condition, rows))
    return _runs_with(rows.filter(_numbers(condition, "number")))


def _runs_with(rows: QuerySet[Parameter]) -> Q:
    return Q(pk__in=rows.values("owner__run"))


def _equal(values: Iterable[Value | date], rows: QuerySet[Parameter]) -> Q:
    return reduce(or_, (_runs_with(rows.filter(_equals(value))) for value in values))


def _equals(value: Value | date) -> Q:
    if isinstance(value, bool):
        return Q(boolean=value)
    if isinstance(value, float):
        return _close(value, "number")

    text = fold(str(value))
    return Q(folded__whole=text) if "*" in text else Q(folded=text)


def _close(value: float, column: str) -> Q:
    reach = abs(value) * _CLOSE
    return Q(**{f"{column}__gte": value - reach, f"{column}__lte": value + reach})


def _numbers(condition: Condition, column: str) -> Q:
    """Return the condition on a column of numbers that are set."""
    numbers = [
        value
        for value in condition.values
        if isinstance(value, float) and not isinstance(value, bool)
    ]

    if condition.sign == "":
        return Q(**{f"{column}__isnull": False})
    if condition.sign in ("=", "!="):
        # Values that are not numbers equal none of them.
        equal = reduce(or_, (_close(number, column) for number in numbers), Q(pk__in=[]))
        return equal if condition.sign == "=" else ~equal
    if condition.sign == "..":
        low, high = numbers
        return Q(**{f"{column}__gte": low, f"{column}__lte": high})

    lookup = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[condition.sign]
    return Q(**{f"{column}__{lookup}": numbers[0]})


def _dated(condition: Condition, rows: QuerySet[Parameter]) -> QuerySet[Parameter]:
    """Return the texts that begin with an ISO date in the range."""
    days = [value.isoformat() for value in condition.values if isinstance(value, date)]
    rows = rows.filter(folded__regex=_ISO_DATE).annotate(day=Substr("folded", 1, _DATE_LENGTH))
    if condition.sign == "..":
        return rows.filter(day__gte=days[0], day__lte=days[1])

    lookup = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[condition.sign]
    return rows.filter(**{f"day__{lookup}": days[0]})
