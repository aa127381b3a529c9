"""Filter the rows of a leaderboard: the tree of a filter, and its database conditions.

metrics/services/boards/filter_grammar.py parses the text that users write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import reduce
from operator import and_, or_
from typing import Any
from uuid import UUID

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Left
from django.db.models.lookups import IContains

from metrics.services.boards.conditions import Board, Condition, bind_key, condition_on_runs
from metrics.services.boards.states import BOARD_STATES
from runs.models import (
    Artifact,
    Experiment,
    ExperimentRun,
    Label,
    Note,
    Parameter,
    ParameterSet,
    Run,
    RunLink,
    RunParent,
    System,
)
from runs.models.collections.disclosure import in_team_of
from runs.models.tracking.experiments import SLUG_RULE
from runs.models.tracking.labels import NAME_RULE
from runs.services.tracking.parameters import PARAM

# The length of a description that is searched: searching takes the product of both lengths, for
# every run.
SEARCHED = 2_000


@dataclass(frozen=True)
class Text:
    """A word or phrase in the tag, the team's short name or the beginning of the description."""

    text: str


@dataclass(frozen=True)
class Field:
    """A field of FIELDS that has one of the values."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Not:
    term: Term


@dataclass(frozen=True)
class All:
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Either:
    terms: tuple[Term, ...]


Term = Text | Field | Condition | Not | All | Either


@dataclass(frozen=True)
class FilterField:
    """Describe a field: its values in words, how one is read, and its condition on runs.

    `read` returns None for a value that the field does not accept.
    """

    takes: str
    read: Callable[[str], str | None]
    ask: Callable[[str, Any], Q]


def filtered(
    runs: QuerySet[Any], term: Term, reader: Any, evaluations: QuerySet[Any] | None = None
) -> QuerySet[Any]:
    """Return the rows of `runs_with_states` that the filter shows to this reader.

    Its conditions are those of `with_keys`, and `evaluations` are those with the means that count.
    """
    return runs.filter(_condition(term, reader, evaluations))


def with_keys(term: Term, board: Board) -> Term:
    """Return the filter with the key of each condition.

    Raise InvalidInput for one that says nothing about the runs of this board.
    """
    return replaced(term, lambda condition: bind_key(condition, board))


def replaced(term: Term, change: Callable[[Condition], Term]) -> Term:
    """Return the filter with something else in place of each condition."""
    match term:
        case Condition():
            return change(term)
        case Not(inner):
            return Not(replaced(inner, change))
        case All(terms):
            return All(tuple(replaced(inner, change) for inner in terms))
        case Either(terms):
            return Either(tuple(replaced(inner, change) for inner in terms))

    return term


def asks_for(term: Term, name: str) -> bool:
    """Return whether the filter uses a field or a space.

    With `own`, its rows depend on the reader.
    """
    match term:
        case Field(used) | Condition(used):
            return used == name
        case Not(inner):
            return asks_for(inner, name)
        case All(terms) | Either(terms):
            return any(asks_for(inner, name) for inner in terms)

    return False


def _condition(term: Term, reader: Any, evaluations: QuerySet[Any] | None) -> Q:
    match term:
        case Text(text):
            described = Q(_Somewhere(Left("description", SEARCHED), text))
            return Q(tag__somewhere=text) | Q(team__slug__somewhere=text) | described
        case Field(name, values):
            return reduce(or_, (FIELDS[name].ask(value, reader) for value in values))
        case Condition():
            return condition_on_runs(term, evaluations)
        case Not(inner):
            return ~_condition(inner, reader, evaluations)
        case All(terms):
            return reduce(and_, (_condition(inner, reader, evaluations) for inner in terms))
        case Either(terms):
            return reduce(or_, (_condition(inner, reader, evaluations) for inner in terms))


class _Somewhere(IContains):
    """Match the text in any case, anywhere in the column; * stands for any text."""

    def process_rhs(self, compiler: Any, connection: Any) -> tuple[str, list[str | int]]:
        sql, parameters = super().process_rhs(compiler, connection)
        # All other special characters of a pattern are escaped by now.
        return sql, [str(parameter).replace("*", "%") for parameter in parameters]


class _Whole(_Somewhere):
    """Match the text in any case against the whole column; * stands for any text."""

    param_pattern = "%s"


for _column in (CharField, TextField):
    _column.register_lookup(_Somewhere, "somewhere")
    _column.register_lookup(_Whole, "whole")


def _read_date(text: str) -> str | None:
    try:
        return text if date.fromisoformat(text).isoformat() == text else None
    except ValueError:
        return None


def _read_choice(*choices: str) -> Callable[[str], str | None]:
    return lambda text: text.lower() if text.lower() in choices else None


def _midnight(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(), UTC)


def _own(value: str, reader: Any) -> Q:
    is_own = in_team_of(reader)
    return is_own if value == "yes" else ~is_own


def _with_parameters(_reader: Any) -> Q:
    parameters = Parameter.objects.filter(owner=OuterRef("pk"), key__space=PARAM)
    return Q(pk__in=ParameterSet.objects.filter(Exists(parameters)).values("run"))


# What `has:` asks for. Whoever sees a run sees all of these.
_HAVING: dict[str, Callable[[Any], Q]] = {
    "parameters": _with_parameters,
    "parents": lambda reader: Q(pk__in=RunParent.objects.visible_to(reader).values("child")),
    "artifacts": lambda _reader: Q(pk__in=Artifact.objects.filter(deleted_at=None).values("run")),
    "links": lambda _reader: Q(pk__in=RunLink.objects.values("run")),
    "notes": lambda _reader: Q(pk__in=Note.objects.exclude(run=None).values("run")),
}


_LABEL = re.compile(rf"(?:[a-z0-9_-]+/)?{NAME_RULE}")


def _labelled(text: str, reader: Any) -> Q:
    """Match runs that a label of this name names; of one team where it is written as team/name."""
    slug, _, name = text.rpartition("/")
    named = Label.objects.visible_to(reader).filter(
        name=name, **({"team__slug": slug} if slug else {})
    )

    return Q(pk__in=named.values("run"))


_EXPERIMENT = re.compile(rf"(?:[A-Za-z0-9_-]+/)?{SLUG_RULE}")


def _grouped(text: str, reader: Any) -> Q:
    """Match runs of visible experiments of this short name, or of one team as team/name."""
    team, _, slug = text.rpartition("/")
    named = Experiment.objects.visible_to(reader).filter(
        slug=slug, **({"team__slug": team} if team else {})
    )

    # Read first: who sees an experiment is a deep query, and SQLite's parser has a limit.
    experiments = list(named.values_list("pk", flat=True))
    return Q(pk__in=ExperimentRun.objects.filter(experiment__in=experiments).values("run"))


def _made_from(text: str, reader: Any) -> Q:
    """Match runs whose parent has this id or tag; of one team where it is written as team/tag."""
    edges = RunParent.objects.visible_to(reader)
    try:
        named = edges.filter(parent=UUID(text))
    except ValueError:
        slug, _, tag = text.rpartition("/")
        named = edges.filter(
            parent__tag__whole=tag, **({"parent__team__slug": slug} if slug else {})
        )

    return Q(pk__in=named.values("child"))


def _of_system(text: str, _reader: Any) -> Q:
    """Match the versions of a system; of one team where it is written as team/name."""
    slug, _, name = text.rpartition("/")
    named = System.objects.filter(slug__whole=name, **({"team__slug": slug} if slug else {}))
    return Q(system__in=named)


LATEST = "latest"
_VERSION = re.compile(r"[1-9][0-9]{0,7}")


def _read_version(text: str) -> str | None:
    return text.lower() if text.lower() == LATEST or _VERSION.fullmatch(text) else None


def _of_version(text: str, _reader: Any) -> Q:
    """Match versions of this number, or those without a later one in their collection."""
    if text != LATEST:
        return Q(version=int(text))

    versions = Run.objects.filter(
        system=OuterRef("system"), collection=OuterRef("collection"), deleted_at=None
    )
    return Q(system__isnull=False) & ~Q(Exists(versions.filter(version__gt=OuterRef("version"))))


_DAY = "a date such as 2026-01-31"
FIELDS: dict[str, FilterField] = {
    # Only the team's short name is searched: the full name is on no public page, and a search could
    # be used to guess it.
    "team": FilterField(
        "the short name of a team", str, lambda text, _reader: Q(team__slug__whole=text)
    ),
    "tag": FilterField("a part of a tag", str, lambda text, _reader: Q(tag__somewhere=text)),
    "status": FilterField(
        f"one of {', '.join(BOARD_STATES)}",
        _read_choice(*BOARD_STATES),
        lambda state, _reader: Q(board_state=state),
    ),
    "after": FilterField(_DAY, _read_date, lambda day, _reader: Q(created_at__gte=_midnight(day))),
    "before": FilterField(_DAY, _read_date, lambda day, _reader: Q(created_at__lt=_midnight(day))),
    "label": FilterField(
        "a label, as main or team/main",
        lambda text: text if _LABEL.fullmatch(text) else None,
        _labelled,
    ),
    "own": FilterField("yes or no", _read_choice("yes", "no"), _own),
    "has": FilterField(
        f"one of {', '.join(_HAVING)}",
        _read_choice(*_HAVING),
        lambda value, reader: _HAVING[value](reader),
    ),
    "experiment": FilterField(
        "the short name of an experiment, as study or team/study",
        lambda text: text if _EXPERIMENT.fullmatch(text) else None,
        _grouped,
    ),
    "system": FilterField("the short name of a system, as splade or team/splade", str, _of_system),
    "version": FilterField("latest or a number", _read_version, _of_version),
    "parent": FilterField("the tag or the id of a run that others were made from", str, _made_from),
}
