"""The controls of a leaderboard as links and fields: the chosen measures, and filters to click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metrics.engine.grammar import Measure
from metrics.pages.parts import Query, changed
from metrics.services.boards.columns import SUBMITTED, ShownColumn
from metrics.services.boards.conditions import visible_board, visible_keys
from metrics.services.boards.leaderboard import Leaderboard
from runs.models import Collection, ParameterKey, Team

_TEAMS_OFFERED, _KEYS_OFFERED = 8, 40
_STATES = ("unranked", "stale", "queued", "evaluating", "failed")


@dataclass(frozen=True)
class Chip:
    """A chosen measure: its name, and the address of the leaderboard without it, empty for the last one."""

    measure: Measure
    without: str

    @property
    def summary(self) -> str:
        return self.measure.definition.sections()["summary"]


@dataclass(frozen=True)
class Choice:
    """A term that a click adds to the filter, or removes if it is `chosen`."""

    term: str
    address: str
    chosen: bool


def measure_chips(measures: list[Measure], sort: Measure, query: Query) -> list[Chip]:
    chips = []
    for measure in measures:
        rest = ",".join(other.name for other in measures if other != measure)
        order = {"sort": None, "order": None} if measure == sort else {}
        without = changed(query, measures=rest, add=None, offset=None, **order) if rest else ""
        chips.append(Chip(measure, without))
    return chips


def filter_choices(collection: Collection, board: Leaderboard, own_teams: set[int], query: Query) -> list[Choice]:
    """Return useful filter terms: of the reader's own runs, of teams, and of states that occur."""
    teams = Team.objects.filter(runs__collection=collection, runs__deleted_at=None).order_by("slug").distinct()
    found = dict(teams.values_list("pk", "slug")[: _TEAMS_OFFERED + 1])
    terms = ["own:yes"] if own_teams & found.keys() else []
    terms += [f"team:{slug}" for slug in found.values()] if 1 < len(found) <= _TEAMS_OFFERED else []
    unranked = board.ranked < sum(board.states.values())
    terms += ["status:ranked", *(f"status:{state}" for state in _STATES)] if unranked else []
    return [_choice(term, query) for term in terms]


def _choice(term: str, query: Query) -> Choice:
    """Return a choice of one value of a field; choosing another value replaces it."""
    text = query.get("filter", "").strip()
    terms, name = text.split(), term.partition(":")[0]
    chosen = term in terms
    if "OR" in terms or "(" in text:
        kept = [f"({text})"]
    else:
        kept = [other for other in terms if not other.startswith(f"{name}:")]
    return Choice(term, changed(query, filter=" ".join([*kept, *([] if chosen else [term])]), offset=None), chosen)


def columns_offered(collection: Collection, reader: Any, shown: tuple[ShownColumn, ...]) -> list[ShownColumn]:
    """Return the columns to choose from: the shown ones and the first settings and costs that a visible run has."""
    keys = visible_keys(visible_board(collection, reader)).filter(role=ParameterKey.Role.SETTING)
    first = keys.order_by("-space", "name")[:_KEYS_OFFERED]
    found = [*shown, *(ShownColumn(key.space, key.name, key.unit, key.pk) for key in first)]
    named = [column for column in dict.fromkeys(found) if column.name]
    return [*named, *([] if ShownColumn(SUBMITTED, "") in named else [ShownColumn(SUBMITTED, "")])] if named else []


def kept_fields(query: Query, *own: str) -> list[tuple[str, str]]:
    """Return the parameters that a form keeps: all except its own fields and the page."""
    dropped = (*own, "offset", "add")
    return [(name, value) for name, value in query.items() if value and name not in dropped]
