"""The controls of a leaderboard as links and fields: its columns, and filters to click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure
from metrics.pages.parts import Query, query_string
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.columns import LABEL, MAX_COLUMNS, SUBMITTED, ShownColumn, read_columns
from metrics.services.boards.conditions import term_of_key, visible_board, visible_keys
from metrics.services.boards.leaderboard import Leaderboard
from runs.models import Collection, ParameterKey, Team
from runs.parameters import pointed
from runs.services.tracking.parameters import COST, PARAM

# A collection with more measures shows this many of them unless others are chosen.
SHOWN_MEASURES = 5
_TEAMS_OFFERED, _KEYS_OFFERED = 8, 200
_STATES = ("unranked", "stale", "queued", "evaluating", "failed")


def with_shown_measures(collection: Collection, query: Query) -> Query:
    """Return the query with the first five measures of the collection where it names none."""
    if query.get("measures") or len(collection.measures) <= SHOWN_MEASURES:
        return query
    return {**query, "measures": ",".join(collection.measures[:SHOWN_MEASURES])}


@dataclass(frozen=True)
class PanelColumn:
    """A column in the panel: its name, and for a measure the name and summary of its definition.

    `earlier`, `later` and `without` are the addresses of the leaderboard with the column moved by
    a place, or removed; empty where that is impossible.
    """

    name: str
    title: str
    earlier: str
    later: str
    without: str
    definition: str = ""
    summary: str = ""


@dataclass(frozen=True)
class Panel:
    """The chosen columns in their order, measures before the others, and the columns to add.

    `complete` is the address of the leaderboard with every measure of the collection, empty where
    all are shown; `reset` that with the default columns.
    """

    measures: list[PanelColumn]
    others: list[PanelColumn]
    offered: list[str]
    complete: str
    reset: str


def columns_panel(collection: Collection, reader: Any, question: BoardQuery, query: Query) -> Panel:
    names = [measure.name for measure in question.measures]
    own = [collection.measure(name).name for name in collection.measures]
    complete = ""
    if set(own) - set(names):
        complete = query_string(
            query, measures=",".join(dict.fromkeys([*own, *names])), offset=None
        )

    return Panel(
        measures=[_measure_column(question, place, query) for place in range(len(names))],
        others=[_other_column(question, place, query) for place in range(len(question.columns))],
        offered=_offered(collection, reader, question.columns),
        complete=complete,
        reset=query_string(
            query, **dict.fromkeys(("measures", "columns", "sort", "order", "arrange", "offset"))
        ),
    )


def _measure_column(question: BoardQuery, place: int, query: Query) -> PanelColumn:
    names = [measure.name for measure in question.measures]
    measure = question.measures[place]
    rest = [name for name in names if name != measure.name]

    # Without the measure that ranks the runs, the first of the others ranks them.
    sorting = _same_order(question, rest, query)
    if measure == question.sort:
        sorting = {"sort": None, "order": None}

    without = ""
    if rest:
        without = query_string(query, measures=",".join(rest), add=None, offset=None, **sorting)

    def address(moved: list[str]) -> str:
        if not moved:
            return ""
        sorting = _same_order(question, moved, query)
        return query_string(query, measures=",".join(moved), add=None, **sorting)

    earlier, later = _neighbours(names, place)
    definition = measure.definition

    return PanelColumn(
        name=measure.name,
        title=measure.name,
        earlier=address(earlier),
        later=address(later),
        without=without,
        definition="" if measure.is_external else definition.name,
        summary=definition.sections()["summary"],
    )


def _same_order(question: BoardQuery, names: list[str], query: Query) -> dict[str, str | None]:
    """Return the parameter that keeps the ranking if another measure comes first."""
    # By default the first measure ranks the runs.
    if query.get("sort") or names[:1] == [question.sort.name]:
        return {}
    return {"sort": question.sort.name}


def _other_column(question: BoardQuery, place: int, query: Query) -> PanelColumn:
    names = [column.name for column in question.columns]
    column = question.columns[place]
    sorts = question.arrange and question.arrange.column == column
    arrangement = {"arrange": None} if sorts else {}
    rest = ",".join(name for name in names if name != column.name)
    earlier, later = (
        query_string(query, columns=",".join(moved), add=None) if moved else ""
        for moved in _neighbours(names, place)
    )
    without = query_string(query, columns=rest, add=None, offset=None, **arrangement)

    return PanelColumn(column.name, column.heading, earlier, later, without)


def _neighbours(names: list[str], place: int) -> tuple[list[str], list[str]]:
    """Return the names with one of them moved a place earlier, and a place later.

    A list is empty where the name is already at that end.
    """
    orders: list[list[str]] = []
    for other in (place - 1, place + 1):
        order = list(names) if 0 <= other < len(names) else []
        if order:
            order[place], order[other] = order[other], order[place]
        orders.append(order)

    return orders[0], orders[1]


def _offered(collection: Collection, reader: Any, shown: tuple[ShownColumn, ...]) -> list[str]:
    """Return the columns to add: settings and costs of a visible run, labels, and the date."""
    keys = visible_keys(visible_board(collection, reader)).filter(role=ParameterKey.Role.SETTING)
    first = keys.order_by("-space", "name").values_list("space", "name")[:_KEYS_OFFERED]
    names = [term_of_key(space, name) for space, name in first]
    present = {column.name for column in shown}
    others = (*collection.declared_measures, *names, LABEL, SUBMITTED)
    return [name for name in others if name and name not in present]


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
        # What names a parameter, a cost or another column needs no look-up.
        if part.startswith((f"{PARAM}:", f"{COST}:")) or part in (LABEL, SUBMITTED):
            columns.append(part)
            continue

        try:
            measures += collection.measures_named(part)
        except MeasureError as error:
            # What is no measure may be the name of a setting or cost alone.
            key = None
            if len(columns) <= MAX_COLUMNS:
                key = visible_keys(board).filter(name=part).order_by("-space").first()
            column = term_of_key(key.space, key.name) if key else ""
            if not column:
                raise pointed(error, "add") from error
            columns.append(column)

    return measures, read_columns(",".join(columns), board, "add")


def _parts(text: str) -> list[str]:
    """Return the parts of a text between commas outside brackets and quotes."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        if character == "," and not (depth or quoted):
            parts.append("")
            continue
        quoted ^= character == '"'
        depth = max(0, depth + (character == "(") - (character == ")"))
        parts[-1] += character

    return parts


@dataclass(frozen=True)
class Choice:
    """A term that a click adds to the filter, or removes if it is `chosen`."""

    term: str
    address: str
    chosen: bool


def filter_choices(
    collection: Collection, board: Leaderboard, own_teams: set[int], query: Query
) -> list[Choice]:
    """Return useful filter terms: the reader's own runs, teams, and states that occur."""
    teams = (
        Team.objects.filter(runs__collection=collection, runs__deleted_at=None)
        .order_by("slug")
        .distinct()
    )
    slugs = dict(teams.values_list("pk", "slug")[: _TEAMS_OFFERED + 1])
    terms = ["own:yes"] if own_teams & slugs.keys() else []
    if 1 < len(slugs) <= _TEAMS_OFFERED:
        terms += [f"team:{slug}" for slug in slugs.values()]

    if board.ranked < sum(board.states.values()):
        terms += ["status:ranked", *(f"status:{state}" for state in _STATES)]

    return [_choice(term, query) for term in terms]


def _choice(term: str, query: Query) -> Choice:
    """Return the choice of one value of a field, which replaces another value of the field."""
    text = query.get("filter", "").strip()
    terms, name = text.split(), term.partition(":")[0]
    chosen = term in terms

    if "OR" in terms or "(" in text:
        other_terms = [f"({text})"]
    else:
        other_terms = [other for other in terms if not other.startswith(f"{name}:")]

    terms = other_terms if chosen else [*other_terms, term]
    return Choice(term, query_string(query, filter=" ".join(terms), offset=None), chosen)


def hidden_fields(query: Query, *own: str) -> list[tuple[str, str]]:
    """Return the parameters that a form keeps: all except its own fields and the offset."""
    dropped = (*own, "offset", "add")
    return [(name, value) for name, value in query.items() if value and name not in dropped]
