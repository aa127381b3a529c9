"""The page of a collection with its leaderboard: parameters, table, chart, and progress of its
runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl
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
    hidden_fields,
    read_added,
    with_shown_measures,
)
from metrics.pages.boards.saved_views import address_of, read_menu
from metrics.pages.boards.selection import (
    baselines_address,
    comparison_address,
    group_address,
    read_selection,
)
from metrics.pages.boards.statistics import BoardStatistics, read_statistics, statistics_question
from metrics.pages.boards.table import board_table
from metrics.pages.parts import PageFigure, Problem, Query, fill, query_of, query_string
from metrics.pages.shares import share_address
from metrics.questions.answer_cache import all_without_runs, cached_page, of_visible_collection
from metrics.questions.declared import BOARD, HOW_MADE, names_of
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.leaderboard import Leaderboard, read_leaderboard
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.boards.topic_selection import with_key
from metrics.services.boards.versions import ALL, CAPTIONS, VERSIONS, has_versions
from metrics.services.question import MAX_BASELINES, MAX_LIMIT, measure_in, measures_in, run_ids_in
from metrics.tables import Paging, figure, level_lines
from runs.errors import InvalidInput
from runs.models import Collection, Run, Team, can_see_scores
from runs.parameters import choice_in
from runs.services.collections.topic_attributes import attribute_keys
from runs.web.access import check_scores, counted_collection, visible_collection
from runs.web.parameters import text_of
from runs.web.views import leave_out, page, problem_of, reads

# The parameters that choose the measures of a leaderboard and its order.
_OF_MEASURES = ("measures", "sort", "order")
_WAITING = ("evaluating", "queued")
CHARTS = {
    "none": "no chart",
    "means": "means with intervals",
    "scatter": "one measure against another",
    "over-time": "best so far over time",
}
# The means of more runs are drawn in a chart that grows with its rows.
_FEW_ROWS = 15
# In the picture of a link to the page.
_PREVIEWED = 10
# In the form of a LaTeX table.
_LATEX_ROWS = 10
# The parameters of the page: the leaderboard's, columns to add, chosen runs, the chart with its
# measures, a saved view to open, and the one that was opened.
_OWN = ("select", "chart", "x", "y", "opened")
_READS = (*names_of(BOARD), "add", "compare", "group", "against", "view", *_OWN)
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
        "topics",
    ),
    "scatter": ("x", "y", "filter", "confidence", "scores", "baseline", "topics"),
    "over-time": ("sort", "filter", "scores", "topics"),
}


@page
@reads(*_READS)
@cached_page(of_visible_collection)
def collection_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a collection with its leaderboard.

    Columns to `add` and what a `view` keeps become part of its address; `compare` and `group`
    redirect to other pages.
    """
    collection = counted_collection(request, slug)
    query = query_of(request, collection)
    if query.get("view"):
        check_scores(request, collection)
        return HttpResponseRedirect(address_of(collection, text_of(request.GET), request.user))

    address = _with_added(request, collection, query)
    if address is not None:
        return HttpResponseRedirect(address)

    if query.pop("group", ""):
        address = group_address(collection, query)
        if address is not None:
            return HttpResponseRedirect(address)
        leave_out(request, ["group"])

    if query.pop("against", ""):
        address = baselines_address(collection, query)
        if address is not None:
            return HttpResponseRedirect(address)
        leave_out(request, ["against"])

    compared = query.pop("compare", "")
    if compared and can_see_scores(request.user, collection):
        address = comparison_address(collection, query, compared, request.user)
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
        shared = {"chart": query.get("chart", "")} if "chart" in context else {}
        # The measures of a scatter plot, if they are the usual ones as well.
        shared |= {axis: measure for axis, _, measure, _ in context.get("axes", ())}
        context["share"] = share_address(
            "leaderboard",
            collection=slug,
            query=query_string(dict(parse_qsl(context["views"].query)), **shared)[1:],
        )
        context["citation"] = _citation(request, collection, context)
        context["preview"] = _preview(request, collection, context["board"]["board"])

    return render(request, "metrics/collection.html", context, status=status)


@page
@reads(*_READS)
@cached_page(of_visible_collection, shared_by=all_without_runs)
def board_piece(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the leaderboard alone, with all of its statistics: its page refreshes itself with it."""
    collection = visible_collection(request, slug)
    context, status = _context(request, collection, query_of(request, collection), at_once=True)
    return render(request, "metrics/_board_piece.html", context, status=status)


def _with_added(request: HttpRequest, collection: Collection, query: Query) -> str | None:
    """Return the address with the added columns after the others, or None if there are none, or
    one is invalid."""
    if "add" not in query:
        return None

    try:
        added, columns = read_added(query, collection, request.user)
        measures = []
        if added:
            present = with_shown_measures(collection, query)
            measures = measures_in(present, "measures", collection.measures, collection)
    except EvalHubError:
        return None

    names = dict.fromkeys(measure.name for measure in (*measures, *added))
    changes = {"measures": ",".join(names) or query.get("measures")}
    if columns:
        changes["columns"] = ",".join(column.name for column in columns)

    return query_string(query, add=None, **changes) + "#shown-columns"


def _context(
    request: HttpRequest, collection: Collection, query: Query, *, at_once: bool
) -> tuple[dict[str, Any], int]:
    """Return the context of the leaderboard and the status of its page.

    The parameters, the leaderboard and its statistics fail independently.
    """
    requested = query
    query, problems, question = _readable(request, collection, query)
    context: dict[str, Any] = {
        "collection": collection,
        "form_values": requested,
        "field_errors": problems,
    }

    if question is None:
        # Reading the parameters once more puts the reason into the context.
        status = fill(context, "question", _question, request, collection, query)
    else:
        context["question"] = question
        status = fill(context, "board", _board, request, collection, query, question)

    if "board_problem" in context and any(query.get(name) for name in _OF_MEASURES):
        # A judgement set can lack what these measures need; the leaderboard shows the others.
        problems["measures"] = context.pop("board_problem")
        query = {name: text for name, text in query.items() if name not in _OF_MEASURES}
        context["question"] = _question(request, collection, query)
        fill(context, "board", _board, request, collection, query, context["question"])

    leave_out(request, problems)
    context |= {
        "query": query,
        "hidden_fields": hidden_fields(query),
        "filter_hidden_fields": hidden_fields(query, "filter"),
        "sort_hidden_fields": hidden_fields(query, "sort", "order", "arrange"),
        "topics_hidden_fields": hidden_fields(query, "topics", "by"),
        "axes_hidden_fields": hidden_fields(query, "x", "y"),
    }

    context["problem"] = context.get("question_problem") or context.get("board_problem")
    if "question" in context:
        context["panel"] = columns_panel(collection, request.user, context["question"], query)
        context["topic_keys"] = with_key(attribute_keys(collection), context["question"].by or "")

    if "board" in context:
        context["selection"] = read_selection(context["board"]["board"], query)
        status = max(status, add_table(context, query, at_once=at_once))
        if "statistics_question" in context:
            parameters = _file_parameters(collection, query, context["statistics_question"])
            context["exports"] = _exports(collection, query, parameters)
            context["latex"] = _latex_form(collection, parameters, context["board"]["board"])

        fill(context, "chart", _chart, request, collection, query, context)
        chosen = query.get("chart") or "none"
        context["charts"] = [
            (
                name,
                title,
                query_string(query, chart=None if name == "none" else name),
                name == chosen,
            )
            for name, title in CHARTS.items()
        ]

    return context, max(status, 400) if problems else status


def _readable(
    request: HttpRequest, collection: Collection, query: Query
) -> tuple[Query, dict[str, Problem], BoardQuery | None]:
    """Return the valid parameters, the problem of each invalid one, and the question of the valid
    ones, or None if the collection has no leaderboard to show."""
    readable, problems = dict(query), dict[str, Problem]()
    # Each round drops one parameter that cannot be read; the leaderboard is shown without it.
    while True:
        try:
            return readable, problems, _question(request, collection, readable)
        except (MeasureError, InvalidInput) as error:
            if not (error.pointer and readable.pop(error.pointer, None)):
                return readable, problems, None
            problems[error.pointer] = Problem(problem_of(error)[1], error.code)
        except EvalHubError:
            return readable, problems, None


def _question(request: HttpRequest, collection: Collection, query: Query) -> BoardQuery:
    """Return the question of the page; raise InvalidInput for a parameter that cannot be read."""
    check_scores(request, collection)
    if query.get("add"):
        read_added(query, collection, request.user)

    choice_in(query, "chart", tuple(CHARTS))

    for axis in ("x", "y"):
        if query.get(axis):
            measures_in(query, axis, [], collection)

    return page_question(collection, query, request.user)


def page_question(collection: Collection, query: Query, reader: Any) -> BoardQuery:
    """Return the question about the leaderboard, with the measure that ranks it among those shown,
    and the first baseline held in sight."""
    question = BoardQuery.read(with_shown_measures(collection, query), collection, reader)

    first = next(iter(_baselines(query)), None)
    measures = list(dict.fromkeys([*question.measures, question.sort]))
    return replace(question, measures=measures, pinned=UUID(first) if first else None)


def _baselines(query: Query) -> list[str]:
    try:
        return run_ids_in(query, "baseline")
    except InvalidInput:
        return []  # the statistics say what is wrong with them


def baseline_tags(collection: Collection, query: Query) -> dict[str, str]:
    """Return the tags of several baselines by their ids: only the first one is always in sight."""
    baselines = _baselines(query)[:MAX_BASELINES]
    if len(baselines) < 2:
        return {}

    runs = Run.objects.filter(collection=collection, pk__in=baselines)
    return {str(pk): tag for pk, tag in runs.values_list("pk", "tag")}


def _board(
    request: HttpRequest, collection: Collection, query: Query, question: BoardQuery
) -> dict[str, Any]:
    board = read_leaderboard(collection=collection, query=question)
    own_teams = set(Team.objects.of(request.user).values_list("pk", flat=True))
    return {
        "board": board,
        "own_teams": own_teams,
        "baseline_tags": baseline_tags(collection, query),
        "paging": Paging(question.offset, question.limit, board.total),
        "choices": filter_choices(collection, board, own_teams, query),
        "waiting": [(state, board.states[state]) for state in _WAITING if board.states.get(state)],
        "computing": board.computing,
        "failed": board.states.get("failed", 0),
        "of_systems": question.versions != ALL or has_versions(collection),
        "versions": [(which, None if which == ALL else which) for which in VERSIONS],
        "caption": CAPTIONS[question.versions],
    }


def add_table(context: dict[str, Any], query: Query, *, at_once: bool) -> int:
    """Add the statistics of the leaderboard and its table. Return the page's status."""
    part, selection = context["board"], context.get("selection")
    status = fill(context, "statistics_question", statistics_question, query)

    if "statistics_question" in context:
        question = context["statistics_question"]
        status = fill(
            context, "statistics", read_statistics, part["board"], question, query, at_once
        )
    else:
        context["statistics_problem"] = context["statistics_question_problem"]

    context["table"] = board_table(
        part["board"],
        context.get("statistics"),
        own_teams=part["own_teams"],
        query=query,
        shorts=selection.shorts if selection else {},
        tags=part["baseline_tags"],
    )

    return status


def _chart(
    request: HttpRequest, collection: Collection, query: Query, context: dict[str, Any]
) -> PageFigure | None:
    """Return the chosen chart of the leaderboard, or None if none is chosen."""
    chart, board = query.get("chart") or "none", context["board"]["board"]
    if chart == "none":
        return None

    if chart == "scatter":
        # By default the measure that ranks the runs upwards, and the next one across.
        own = measures_in({}, "measures", collection.measures, collection)
        upwards = measure_in(query, "y", board.sort.name, collection)
        named = list(dict.fromkeys([*board.measures, upwards, *own]))
        others = [measure.name for measure in named if measure != upwards]
        across = measure_in(query, "x", (others or [upwards.name])[0], collection)
        query = {**query, "x": across.name, "y": upwards.name}
        names = list(dict.fromkeys(measure.name for measure in (*named, across)))
        context["axes"] = [
            ("x", "Across", across.name, names),
            ("y", "Upwards", upwards.name, names),
        ]

    parameters = {name: text for name, text in query.items() if name in _DRAWN[chart]}

    statistics: BoardStatistics | None = context.get("statistics")
    # The intervals of the table are those of the chart, and need not be computed again.
    if chart == "means" and statistics and statistics.standings.intervals:
        figure = means_figure(
            board, statistics.standings.intervals, statistics.standings.query.confidence
        )
    else:
        figure = COLLECTION_CHARTS[chart](collection, parameters, request.user)

    size = "rows" if chart == "means" and len(figure.rows) > _FEW_ROWS else "column"
    return PageFigure(figure, "collection-chart", {"collection": collection.slug}, parameters, size)


def _preview(request: HttpRequest, collection: Collection, board: Leaderboard) -> dict[str, str]:
    """Return what programs show for a link to the page: a description and the address of a picture.

    They have no account, and neither has the reader for whom the picture is named: it is theirs to
    see.
    """
    description = f"{board.ranked:,} runs ranked by {board.sort.name} on {board.topics:,} topics."
    best = board.rows[0] if board.rows and board.rows[0].rank == 1 else None
    if best:
        mean = figure(board.sort, best.values[board.sort.name][0])
        description += f" Best: {best.run.tag}, {mean}."

    image = ""
    if best and not request.user.is_authenticated:
        names = {"collection": collection.slug, "chart": "means", "form": "png"}
        address = reverse("collection-chart", kwargs=names)
        image = request.build_absolute_uri(f"{address}?limit={_PREVIEWED}")

    return {"description": description, "image": image}


def _citation(request: HttpRequest, collection: Collection, context: dict[str, Any]) -> Citation:
    """Return a BibTeX entry of the leaderboard as it is today."""
    query, board = context["views"].query, context["board"]["board"]
    page_address = request.build_absolute_uri(reverse("collection-page", args=[collection.slug]))
    address = f"{page_address}?{query}" if query else page_address
    return Citation(collection, board.qrels, board.sort, address, timezone.now().date())


@dataclass(frozen=True)
class LatexForm:
    """The form of a LaTeX table: the measures to choose from, and the parameters that it keeps."""

    action: str
    rows: int
    most: int
    measures: list[str]
    hidden_fields: list[tuple[str, str]]


def _latex_form(
    collection: Collection, parameters: dict[str, str | None], board: Leaderboard
) -> LatexForm:
    # Without the measure that ranks the runs, the first of the others would.
    parameters = {**parameters, "sort": board.sort.name, "measures": None}
    return LatexForm(
        action=reverse("leaderboard-export", args=[collection.slug, "tex"]),
        rows=min(_LATEX_ROWS, board.ranked),
        most=MAX_LIMIT,
        measures=[measure.name for measure in board.measures],
        hidden_fields=[(name, text) for name, text in parameters.items() if text],
    )


def _file_parameters(
    collection: Collection, query: Query, question: StandingsQuery | None
) -> dict[str, str | None]:
    """Return the parameters of the API for all rows of the leaderboard."""
    parameters: dict[str, str | None] = {
        **with_shown_measures(collection, query),
        **dict.fromkeys((*_OWN, "limit", "offset")),
    }

    # The API computes only the statistics that are named.
    if question is None:
        parameters |= {"statistics": None, **dict.fromkeys(HOW_MADE)}
    else:
        parts = [part for part in question.parts if part != "baseline"]
        parameters["statistics"] = ",".join(parts)

    return parameters


def _exports(
    collection: Collection, query: Query, parameters: dict[str, str | None]
) -> list[tuple[str, str]]:
    """Return title and address of each other format of the leaderboard."""
    whole = query_string({}, **parameters)
    pages = {name: query.get(name) for name in ("limit", "offset")}
    page_address = query_string({}, **(parameters | pages))
    files = [
        (FORMATS[kind].title, reverse("leaderboard-export", args=[collection.slug, kind]) + whole)
        for kind in EXPORTS
    ]
    by_topic = reverse("collection-values-export", args=[collection.slug, "csv"])
    by_topic += query_string({name: query.get(name, "") for name in ("measures", "scores")})

    return [
        ("JSON", reverse("leaderboard", args=[collection.slug]) + page_address),
        *files,
        ("Values by topic (CSV)", by_topic),
    ]
