"""The page of a collection with its leaderboard: its parameters, its table, and the progress of its
runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.boards.means import means_figure
from metrics.engine.errors import EvalHubError, MeasureError
from metrics.exports.boards import EXPORTS
from metrics.exports.boards.citation import Citation
from metrics.exports.formats import FORMATS
from metrics.pages.boards.questions import (
    columns_panel,
    filter_choices,
    kept_fields,
    read_added,
    with_shown_measures,
)
from metrics.pages.boards.saved_views import address_of, read_menu
from metrics.pages.boards.selection import comparison_address, group_address, read_selection
from metrics.pages.boards.statistics import BoardStatistics, asked_statistics, read_statistics
from metrics.pages.boards.table import board_table
from metrics.pages.parts import Problem, Query, ShownFigure, changed, fill, query_of
from metrics.pages.shares import share_address
from metrics.questions.answer_cache import all_without_runs, kept_page, of_visible_collection
from metrics.questions.declared import BOARD, HOW_MADE, names_of
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.leaderboard import read_leaderboard
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.boards.versions import ALL, CAPTIONS, VERSIONS, has_versions
from metrics.services.question import measure_in, measures_in, run_id_in
from metrics.tables import Paging, level_lines
from runs.errors import InvalidInput
from runs.models import Collection, Team, can_see_scores
from runs.parameters import choice_in
from runs.web.access import check_scores, counted_collection, visible_collection
from runs.web.parameters import text_of
from runs.web.views import leave_out, page, problem_of, reads

# The measures of a leaderboard and how they order it.
_OF_MEASURES = ("measures", "sort", "order")
_MOVING = ("evaluating", "queued")
CHARTS = ("none", "means", "scatter")
_FEW_ROWS = 15
# The parameters of the page: the leaderboard's, columns to add, chosen runs, the chart with its
# measures, a saved view to open, and the one that was opened.
_OWN = ("select", "chart", "x", "y", "opened")
_READS = (*names_of(BOARD), "add", "compare", "group", "view", *_OWN)
# The parameters of the page that its chart depends on.
_DRAWN = {
    "means": (
        "measures",
        "sort",
        "order",
        "limit",
        "offset",
        "filter",
        "arrange",
        "versions",
        "entries",
        "confidence",
        "scores",
    ),
    "scatter": ("x", "y", "filter", "confidence", "scores", "baseline"),
}


@page
@reads(*_READS)
@kept_page(of_visible_collection)
def collection_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a collection with its leaderboard. Columns to `add` and what a `view` keeps become part
    of its address, and `compare` and `group` redirect."""
    collection = counted_collection(request, slug)
    query = query_of(request, collection)
    if query.get("view"):
        check_scores(request, collection)
        return HttpResponseRedirect(address_of(collection, text_of(request.GET), request.user))
    added = _with_added(request, collection, query)
    if added is not None:
        return HttpResponseRedirect(added)
    if query.pop("group", ""):
        grouped = group_address(collection, query)
        if grouped is not None:
            return HttpResponseRedirect(grouped)
        leave_out(request, ["group"])
    compared = query.pop("compare", "")
    if compared and can_see_scores(request.user, collection):
        address = comparison_address(collection, query, compared)
        if address is not None:
            return HttpResponseRedirect(address)
        # Links of the page leave out the parameter that had an error.
        leave_out(request, ["compare"])
    context, status = _context(request, collection, query, at_once=False)
    context["few"] = bool(compared)
    if "board" in context:
        qrels = context["board"]["board"].qrels
    else:
        qrels = collection.active_qrels if can_see_scores(request.user, collection) else None
    managed = Collection.objects.managed_by(request.user).filter(pk=collection.pk).exists()
    context |= {"qrels": qrels, "levels": level_lines(collection, qrels), "managed": managed}
    if "board" in context:
        context["views"] = read_menu(request, collection, managed)
        context["share"] = share_address(
            "leaderboard", collection=slug, query=context["views"].query
        )
        context["citation"] = _citation(request, collection, context)
    return render(request, "metrics/collection.html", context, status=status)


@page
@reads(*_READS)
@kept_page(of_visible_collection, shared_by=all_without_runs)
def board_piece(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the leaderboard alone, with all of its statistics; its page requests this to refresh
    itself."""
    collection = visible_collection(request, slug)
    context, status = _context(request, collection, query_of(request, collection), at_once=True)
    return render(request, "metrics/_board_piece.html", context, status=status)


def _with_added(request: HttpRequest, collection: Collection, query: Query) -> str | None:
    """Return the address with the added columns after the others, or None if there are none or one
    is invalid."""
    if "add" not in query:
        return None
    try:
        added, columns = read_added(query, collection, request.user)
        shown = with_shown_measures(collection, query)
        measures = (
            [*measures_in(shown, "measures", collection.measures, collection.documents), *added]
            if added
            else []
        )
    except EvalHubError:
        return None
    changes = {
        "measures": ",".join(dict.fromkeys(measure.name for measure in measures))
        or query.get("measures")
    }
    if columns:
        changes["columns"] = ",".join(column.name for column in columns)
    return changed(query, add=None, **changes) + "#shown-columns"


def _context(
    request: HttpRequest, collection: Collection, query: Query, *, at_once: bool
) -> tuple[dict[str, Any], int]:
    """Return the context of the leaderboard. The parameters, the result and its statistics fail
    independently."""
    given, (query, wrong, asked) = query, _readable(request, collection, query)
    context: dict[str, Any] = {"collection": collection, "given": given, "wrong": wrong}
    if asked is None:
        # It says why.
        status = fill(context, "asked", _asked, request, collection, query)
    else:
        context["asked"] = asked
        status = fill(context, "board", _board, request, collection, query, asked)
    if "board_problem" in context and any(query.get(name) for name in _OF_MEASURES):
        # The inputs of these measures are missing; the leaderboard shows the others.
        wrong["measures"] = context.pop("board_problem")
        query = {name: text for name, text in query.items() if name not in _OF_MEASURES}
        context["asked"] = _asked(request, collection, query)
        fill(context, "board", _board, request, collection, query, context["asked"])
    leave_out(request, wrong)
    context |= {
        "query": query,
        "kept": kept_fields(query),
        "filter_kept": kept_fields(query, "filter"),
        "sort_kept": kept_fields(query, "sort", "order", "arrange"),
        "axes_kept": kept_fields(query, "x", "y"),
    }
    context["problem"] = context.get("asked_problem") or context.get("board_problem")
    if "asked" in context:
        context["panel"] = columns_panel(collection, request.user, context["asked"], query)
    if "board" in context:
        context["selection"] = read_selection(context["board"]["board"], query)
        status = max(status, add_table(context, query, at_once=at_once))
        if "statistics" in context:
            context["exports"] = _exports(collection, query, context["statistics"])
        fill(context, "shown", _chart, request, collection, query, context)
        context["charts"] = [
            (
                name,
                changed(query, chart=name if name != "none" else None),
                (query.get("chart") or "none") == name,
            )
            for name in CHARTS
        ]
    return context, max(status, 400) if wrong else status


def _readable(
    request: HttpRequest, collection: Collection, query: Query
) -> tuple[Query, dict[str, Problem], BoardQuery | None]:
    """Return the valid parameters, the error of each invalid one, and what the valid ones ask for:
    the leaderboard is shown anyway. Return None for what they ask if the collection has no
    leaderboard to show."""
    readable, wrong = dict(query), dict[str, Problem]()
    while True:
        try:
            return readable, wrong, _asked(request, collection, readable)
        except (MeasureError, InvalidInput) as error:
            if not (error.pointer and readable.pop(error.pointer, None)):
                return readable, wrong, None
            wrong[error.pointer] = Problem(problem_of(error)[1], error.code)
        except EvalHubError:
            return readable, wrong, None


def _asked(request: HttpRequest, collection: Collection, query: Query) -> BoardQuery:
    """Return what the parameters of the page ask for; raise InvalidInput for each that cannot be
    read."""
    check_scores(request, collection)
    if query.get("add"):
        read_added(query, collection, request.user)
    choice_in(query, "chart", CHARTS)
    for axis in ("x", "y"):
        if query.get(axis):
            measures_in(query, axis, [], collection.documents)
    return shown_query(collection, query, request.user)


def shown_query(collection: Collection, query: Query, reader: Any) -> BoardQuery:
    """Return the measures shown, which always include the one that ranks the leaderboard, and hold
    the baseline in sight."""
    asked = BoardQuery.read(with_shown_measures(collection, query), collection, reader)
    try:
        hold = run_id_in(query, "baseline")
    except InvalidInput:
        hold = None  # the statistics say what is wrong with it
    measures = list(dict.fromkeys([*asked.measures, asked.sort]))
    return replace(asked, measures=measures, pinned=UUID(hold) if hold else None)


def _board(
    request: HttpRequest, collection: Collection, query: Query, asked: BoardQuery
) -> dict[str, Any]:
    board = read_leaderboard(collection=collection, query=asked)
    own_teams = set(Team.objects.of(request.user).values_list("pk", flat=True))
    return {
        "board": board,
        "own_teams": own_teams,
        "paging": Paging(asked.offset, asked.limit, board.total),
        "choices": filter_choices(collection, board, own_teams, query),
        "waiting": [(state, board.states[state]) for state in _MOVING if board.states.get(state)],
        "computing": board.computing,
        "failed": board.states.get("failed", 0),
        "of_systems": asked.versions != ALL or has_versions(collection),
        "versions": [(which, None if which == ALL else which) for which in VERSIONS],
        "caption": CAPTIONS[asked.versions],
    }


def add_table(context: dict[str, Any], query: Query, *, at_once: bool) -> int:
    """Add the statistics of the leaderboard and its table. Return the page's status."""
    part, selection = context["board"], context.get("selection")
    status = fill(context, "statistics", asked_statistics, query)
    if "statistics" in context:
        requested = context["statistics"]
        status = fill(context, "sure", read_statistics, part["board"], requested, query, at_once)
    else:
        context["sure_problem"] = context["statistics_problem"]
    context["table"] = board_table(
        part["board"],
        context.get("sure"),
        own_teams=part["own_teams"],
        query=query,
        shorts=selection.shorts if selection else {},
    )
    return status


def _chart(
    request: HttpRequest, collection: Collection, query: Query, context: dict[str, Any]
) -> ShownFigure | None:
    """Return the chosen chart of the leaderboard; None for none."""
    chart, board = query.get("chart") or CHARTS[0], context["board"]["board"]
    if chart == CHARTS[0]:
        return None
    if chart == "scatter":
        # By default the measure that ranks the runs upwards, and the next one across.
        own = measures_in({}, "measures", collection.measures, collection.documents)
        upwards = measure_in(query, "y", board.sort.name, collection.documents)
        named = list(dict.fromkeys([*board.measures, upwards, *own]))
        others = [measure.name for measure in named if measure != upwards]
        across = measure_in(query, "x", (others or [upwards.name])[0], collection.documents)
        query = {**query, "x": across.name, "y": upwards.name}
        names = list(dict.fromkeys(measure.name for measure in (*named, across)))
        context["axes"] = [
            ("x", "Across", across.name, names),
            ("y", "Upwards", upwards.name, names),
        ]
    kept = {name: text for name, text in query.items() if name in _DRAWN[chart]}
    sure: BoardStatistics | None = context.get("sure")
    if chart == "means" and sure and sure.standings.intervals:
        figure = means_figure(board, sure.standings.intervals, sure.standings.query.confidence)
    else:
        figure = COLLECTION_CHARTS[chart](collection, kept, request.user)
    size = "rows" if chart == "means" and len(figure.rows) > _FEW_ROWS else "column"
    return ShownFigure(figure, "collection-chart", {"collection": collection.slug}, kept, size)


def _citation(request: HttpRequest, collection: Collection, context: dict[str, Any]) -> Citation:
    """Return the leaderboard as an entry of BibTeX, of today."""
    query, board = context["views"].query, context["board"]["board"]
    page_address = request.build_absolute_uri(reverse("collection-page", args=[collection.slug]))
    address = f"{page_address}?{query}" if query else page_address
    return Citation(collection, board.qrels, board.sort, address, timezone.now().date())


def _exports(
    collection: Collection, query: Query, asked: StandingsQuery | None
) -> list[tuple[str, str]]:
    """Return name and address of each other format. The API computes statistics only on request."""
    query = {**with_shown_measures(collection, query), **dict.fromkeys(_OWN, "")}
    named = ",".join(part for part in asked.parts if part != "baseline") if asked else None
    said = {"statistics": named, **({} if asked else dict.fromkeys(HOW_MADE))}
    page_address = changed(query, **said)
    whole = changed(query, **said, offset=None, limit=None)
    files = [
        (FORMATS[kind].title, reverse("leaderboard-export", args=[collection.slug, kind]) + whole)
        for kind in EXPORTS
    ]
    by_topic = reverse("collection-values-export", args=[collection.slug, "csv"])
    by_topic += changed({name: query.get(name, "") for name in ("measures", "scores")})
    return [
        ("JSON", reverse("leaderboard", args=[collection.slug]) + page_address),
        *files,
        ("values of all runs by topic (CSV)", by_topic),
    ]
