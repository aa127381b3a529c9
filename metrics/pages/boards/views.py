"""The page of a collection with its leaderboard: its parameters, its table, and the progress of its runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from metrics.charts.boards.means import means_figure
from metrics.engine.errors import EvalHubError, MeasureError
from metrics.pages.boards.questions import Chip, columns_offered, filter_choices, kept_fields, measure_chips
from metrics.pages.boards.selection import comparison_address, read_selection
from metrics.pages.boards.statistics import BoardStatistics, asked_statistics, read_statistics
from metrics.pages.boards.table import BoardTable
from metrics.pages.parts import Problem, Query, ShownFigure, changed, fill, query_of
from metrics.questions.boards import board_query
from metrics.questions.declared import BOARD, HOW_MADE, names_of
from metrics.questions.parameters import measure_in, measures_in
from metrics.questions.unchanged import of_asked_board, unchanged_page
from metrics.services.boards.fingerprints import Fingerprint, of_listed, of_parameters
from metrics.services.boards.leaderboard import BoardQuery, Leaderboard, read_leaderboard
from metrics.tables import Paging, level_lines
from runs.api.access import check_scores, counted_collection, visible_collection
from runs.errors import InvalidInput
from runs.models import Collection, Team, can_see_scores
from runs.views import leave_out, page, problem_of, reads

# The measures of a leaderboard and how they order it.
_OF_MEASURES = ("measures", "sort", "order")
_EXPORTS = {"csv": "CSV", "tex": "LaTeX", "md": "Markdown", "trec_eval": "trec_eval"}
_MOVING = ("evaluating", "queued")
# The parameters of the page: the leaderboard's, measures to add to its own, and selected runs.
_READS = (*names_of(BOARD), "add", "runs", "compare")
# The parameters of the page that its chart depends on.
_DRAWN = ("measures", "sort", "order", "limit", "offset", "filter", "arrange", "confidence", "scores")


def _fingerprint(request: HttpRequest, slug: str) -> Fingerprint | None:
    """Return the fingerprint of the page, or None while the judgements are blind: a tag would reveal every change
    behind them."""
    found = visible_collection(request, slug)
    board = of_asked_board(request, found) if can_see_scores(request.user, found) else None
    return board + of_listed(found) + of_parameters(found) if board else None


@page
@reads(*_READS)
@unchanged_page(_fingerprint, snapshot=True)
def collection_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a collection with its leaderboard. Measures to `add` become part of its address, and `compare` redirects."""
    collection = counted_collection(request, slug)
    query = query_of(request, collection)
    added = _with_added(collection, query)
    if added is not None:
        return HttpResponseRedirect(added)
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
    return render(request, "metrics/collection.html", context, status=status)


@page
@reads(*_READS)
@unchanged_page(_fingerprint, snapshot=True)
def board_piece(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the leaderboard alone, with all of its statistics; its page requests this to refresh itself."""
    collection = visible_collection(request, slug)
    context, status = _context(request, collection, query_of(request, collection), at_once=True)
    return render(request, "metrics/_board_piece.html", context, status=status)


def _with_added(collection: Collection, query: Query) -> str | None:
    """Return the address with the added measures among the others, or None if there are none or one is invalid."""
    if "add" not in query:
        return None
    try:
        added = measures_in(query, "add", [], collection.documents)
        measures = [*measures_in(query, "measures", collection.measures, collection.documents), *added] if added else []
    except MeasureError:
        return None
    names = ",".join(dict.fromkeys(measure.name for measure in measures))
    return changed(query, measures=names or query.get("measures"), add=None) + "#leaderboard"


def _context(
    request: HttpRequest, collection: Collection, query: Query, *, at_once: bool
) -> tuple[dict[str, Any], int]:
    """Return the context of the leaderboard. The parameters, the result and its statistics fail independently."""
    given, (query, wrong) = query, _readable(request, collection, query)
    context: dict[str, Any] = {"collection": collection, "given": given, "wrong": wrong}
    status = fill(context, "asked", _asked, request, collection, query)
    if "asked" in context:
        status = fill(context, "board", _board, request, collection, query, context["asked"])
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
        "columns_kept": kept_fields(query, "columns"),
    }
    fill(context, "chips", _chips, collection, query)
    context["problem"] = context.get("asked_problem") or context.get("board_problem")
    if "board" in context:
        status = max(status, fill(context, "sure", read_statistics, context["board"]["board"], query, at_once))
        fill(context, "exports", _exports, collection, query)
        context["selection"] = read_selection(context["board"]["board"], query)
        context |= _shown(context, collection, query)
    return context, max(status, 400) if wrong else status


def _readable(request: HttpRequest, collection: Collection, query: Query) -> tuple[Query, dict[str, Problem]]:
    """Return the valid parameters, and the error of each invalid one: the leaderboard is shown anyway."""
    readable, wrong = dict(query), dict[str, Problem]()
    while True:
        try:
            _asked(request, collection, readable)
        except (MeasureError, InvalidInput) as error:
            if error.pointer and readable.pop(error.pointer, None):
                wrong[error.pointer] = Problem(problem_of(error)[1], error.code)
                continue
        except EvalHubError:
            pass  # the state of the collection, which the leaderboard shows
        return readable, wrong


def _chips(collection: Collection, query: Query) -> list[Chip]:
    measures = measures_in(query, "measures", collection.measures, collection.documents)
    sort = measure_in(query, "sort", measures[0].name, collection.documents)
    return measure_chips(list(dict.fromkeys([*measures, sort])), sort, query)


def _asked(request: HttpRequest, collection: Collection, query: Query) -> BoardQuery:
    """Return the measures shown, which always include the one that ranks the leaderboard."""
    check_scores(request, collection)
    measures_in(query, "add", [], collection.documents)
    asked = board_query(query, collection, request.user)
    return replace(asked, measures=list(dict.fromkeys([*asked.measures, asked.sort])))


def _board(request: HttpRequest, collection: Collection, query: Query, asked: BoardQuery) -> dict[str, Any]:
    board = read_leaderboard(collection=collection, query=asked)
    own_teams = set(Team.objects.of(request.user).values_list("pk", flat=True))
    return {
        "board": board,
        "own_teams": own_teams,
        "paging": Paging(asked.offset, asked.limit, board.total),
        "choices": filter_choices(collection, board, own_teams, query),
        "columns_offered": columns_offered(collection, request.user, board.columns),
        "columns_shown": {column.name for column in board.columns},
        "waiting": [(state, board.states[state]) for state in _MOVING if board.states.get(state)],
        "failed": board.states.get("failed", 0),
    }


def _shown(context: dict[str, Any], collection: Collection, query: Query) -> dict[str, Any]:
    """Return the table, and the same data as a chart."""
    board: Leaderboard = context["board"]["board"]
    sure: BoardStatistics | None = context.get("sure")
    shown = None
    if sure and sure.standings.intervals:
        figure = means_figure(board, sure.standings.intervals, sure.standings.query.confidence)
        kept = {name: text for name, text in query.items() if name in _DRAWN}
        shown = ShownFigure(figure, "collection-chart", {"collection": collection.slug}, kept, "rows")
    table = BoardTable(board, sure, own_teams=context["board"]["own_teams"], query=query)
    return {"table": table, "shown": shown}


def _exports(collection: Collection, query: Query) -> list[tuple[str, str]]:
    """Return name and address of each other format. The API computes statistics only on request."""
    query = {**query, "runs": ""}
    asked = asked_statistics(query)
    named = ",".join(part for part in asked.parts if part != "baseline") if asked else None
    said = {"statistics": named, **({} if asked else dict.fromkeys(HOW_MADE))}
    page_address = changed(query, **said)
    whole = changed(query, **said, offset=None, limit=None)
    files = [
        (name, reverse("leaderboard-export", args=[collection.slug, kind]) + whole) for kind, name in _EXPORTS.items()
    ]
    by_topic = reverse("collection-values-export", args=[collection.slug, "csv"])
    by_topic += changed({name: query.get(name, "") for name in ("measures", "scores")})
    return [
        ("JSON", reverse("leaderboard", args=[collection.slug]) + page_address),
        *files,
        ("values of all runs by topic (CSV)", by_topic),
    ]
