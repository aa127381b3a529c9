"""The controls of a leaderboard as links and fields: its columns, and filters to click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure, parse_measure, parse_measures
from metrics.pages.parts import Query, changed
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.columns import LABEL, MAX_COLUMNS, SUBMITTED, ShownColumn, read_columns
from metrics.services.boards.conditions import visible_board, visible_keys, written
from metrics.services.boards.leaderboard import Leaderboard
from runs.models import Collection, ParameterKey, Team
from runs.parameters import pointed
from runs.services.tracking.parameters import COST, PARAM

# A collection with more measures shows this many of them unless others are chosen.
SHOWN_MEASURES = 5
_TEAMS_OFFERED, _KEYS_OFFERED = 8, 200
_STATES = ("unranked", "stale", "queued", "evaluating", "failed")


def with_shown_measures(collection: Collection, query: Query) -> Query:
    """Return the query with the measures that are shown where it names none: the first five of the collection."""
    if query.get("measures") or len(collection.measures) <= SHOWN_MEASURES:
        return query
    return {**query, "measures": ",".join(collection.measures[:SHOWN_MEASURES])}


@dataclass(frozen=True)
class PanelColumn:
    """A column in the panel: its name, for a measure the name of its definition and a summary, and the addresses of
    the leaderboard with the column one place earlier, later, or without it; empty where there is
    none."""

    name: str
    title: str
    earlier: str
    later: str
    without: str
    definition: str = ""
    summary: str = ""


@dataclass(frozen=True)
class Panel:
    """The chosen columns in their order, measures before the others; the names of columns to add; and the addresses of
    the leaderboard with every measure of the collection, empty where all are shown, and with the
    default columns."""

    measures: list[PanelColumn]
    others: list[PanelColumn]
    offered: list[str]
    complete: str
    reset: str


def columns_panel(collection: Collection, reader: Any, asked: BoardQuery, query: Query) -> Panel:
    names = [measure.name for measure in asked.measures]
    own = [parse_measure(name, collection.documents).name for name in collection.measures]
    missing = set(own) - set(names)
    return Panel(
        [_measure_column(asked, place, query) for place in range(len(names))],
        [_other_column(asked, place, query) for place in range(len(asked.columns))],
        _offered(collection, reader, asked.columns),
        changed(query, measures=",".join(dict.fromkeys([*own, *names])), offset=None)
        if missing
        else "",
        changed(
            query, **dict.fromkeys(("measures", "columns", "sort", "order", "arrange", "offset"))
        ),
    )


def _measure_column(asked: BoardQuery, place: int, query: Query) -> PanelColumn:
    names, measure = [one.name for one in asked.measures], asked.measures[place]
    rest = [name for name in names if name != measure.name]
    # Without the measure that ranks the runs, the first of the others does.
    order = (
        {"sort": None, "order": None} if measure == asked.sort else _same_order(asked, rest, query)
    )
    without = (
        changed(query, measures=",".join(rest), add=None, offset=None, **order) if rest else ""
    )
    earlier, later = (
        changed(query, measures=",".join(moved), add=None, **_same_order(asked, moved, query))
        if moved
        else ""
        for moved in _neighbours(names, place)
    )
    definition = measure.definition
    return PanelColumn(
        measure.name,
        measure.name,
        earlier,
        later,
        without,
        definition.name,
        definition.sections()["summary"],
    )


def _same_order(asked: BoardQuery, names: list[str], query: Query) -> dict[str, str | None]:
    """Return what keeps the ranking where another measure comes first, by which runs are ranked by default."""
    return {} if query.get("sort") or names[:1] == [asked.sort.name] else {"sort": asked.sort.name}


def _other_column(asked: BoardQuery, place: int, query: Query) -> PanelColumn:
    names, column = [one.name for one in asked.columns], asked.columns[place]
    order = {"arrange": None} if asked.arrange and asked.arrange.column == column else {}
    rest = ",".join(name for name in names if name != column.name)
    earlier, later = (
        changed(query, columns=",".join(moved), add=None) if moved else ""
        for moved in _neighbours(names, place)
    )
    without = changed(query, columns=rest, add=None, offset=None, **order)
    return PanelColumn(column.name, column.heading, earlier, later, without)


def _neighbours(names: list[str], place: int) -> tuple[list[str], list[str]]:
    """Return the names with one of them a place earlier, and a place later; an empty list where it is at that end."""
    found: list[list[str]] = []
    for other in (place - 1, place + 1):
        moved = list(names) if 0 <= other < len(names) else []
        if moved:
            moved[place], moved[other] = moved[other], moved[place]
        found.append(moved)
    return found[0], found[1]


def _offered(collection: Collection, reader: Any, shown: tuple[ShownColumn, ...]) -> list[str]:
    """Return the columns that can be added: settings and costs that a visible run has, labels, and the date."""
    keys = visible_keys(visible_board(collection, reader)).filter(role=ParameterKey.Role.SETTING)
    first = keys.order_by("-space", "name").values_list("space", "name")[:_KEYS_OFFERED]
    names = [written(space, name) for space, name in first]
    present = {column.name for column in shown}
    return [name for name in (*names, LABEL, SUBMITTED) if name and name not in present]


def read_added(
    query: Query, collection: Collection, reader: Any
) -> tuple[list[Measure], tuple[ShownColumn, ...]]:
    """Return the measures and other columns of `add`, a list such as nDCG@20,param:k1,label.

    Raise MeasureError or InvalidInput, pointed to `add`, for what is neither, and for too many
    columns.
    """
    parts = [part.strip() for part in _parts(query.get("add", "")) if part.strip()]
    if not parts:
        return [], ()
    board = visible_board(collection, reader)
    measures: list[Measure] = []
    columns = [column.name for column in read_columns(query.get("columns", ""), board)]
    for part in parts:
        if part.startswith((f"{PARAM}:", f"{COST}:")) or part in (LABEL, SUBMITTED):
            columns.append(part)
            continue
        try:
            measures += parse_measures(part, collection.documents)
        except MeasureError as error:
            few = len(columns) <= MAX_COLUMNS
            key = visible_keys(board).filter(name=part).order_by("-space").first() if few else None
            if key is None or not written(key.space, key.name):
                raise pointed(error, "add") from error
            columns.append(written(key.space, key.name))
    return measures, read_columns(",".join(columns), board, "add")


def _parts(text: str) -> list[str]:
    """Return the parts of a text between commas outside brackets and quotes."""
    found, depth, quoted = [""], 0, False
    for character in text:
        if character == "," and not (depth or quoted):
            found.append("")
            continue
        quoted ^= character == '"'
        depth = max(0, depth + (character == "(") - (character == ")"))
        found[-1] += character
    return found


@dataclass(frozen=True)
class Choice:
    """A term that a click adds to the filter, or removes if it is `chosen`."""

    term: str
    address: str
    chosen: bool


def filter_choices(
    collection: Collection, board: Leaderboard, own_teams: set[int], query: Query
) -> list[Choice]:
    """Return useful filter terms: of the reader's own runs, of teams, and of states that occur."""
    teams = (
        Team.objects.filter(runs__collection=collection, runs__deleted_at=None)
        .order_by("slug")
        .distinct()
    )
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
    return Choice(
        term,
        changed(query, filter=" ".join([*kept, *([] if chosen else [term])]), offset=None),
        chosen,
    )


def kept_fields(query: Query, *own: str) -> list[tuple[str, str]]:
    """Return the parameters that a form keeps: all except its own fields and the page."""
    dropped = (*own, "offset", "add")
    return [(name, value) for name, value in query.items() if value and name not in dropped]
