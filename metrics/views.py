"""Pages of values, leaderboards and comparisons, and the pictures in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control

from metrics.api.queries import board_query, choice_in, comparison_query, integer_in, measures_in, standings_query
from metrics.api.unchanged import unchanged_page
from metrics.charts import HEIGHT, PALETTES, WIDTH, as_svg, curve_chart
from metrics.engine.curves import CURVES, MAX_DEPTH, curve_measure
from metrics.engine.errors import PROBLEMS_SHOWN, EvalHubError
from metrics.engine.grammar import Measure, parse_measure
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.models import Evaluation
from metrics.services.comparison import compare_runs
from metrics.services.fingerprints import Fingerprint, of_boards, of_run, of_topics
from metrics.services.leaderboard import read_leaderboard
from metrics.services.standings import read_standings
from metrics.services.status import statuses
from metrics.services.values import RunValues, find_evaluation, is_stale, read_curve, read_values
from metrics.tables import (
    MATRIX_RUNS,
    Paging,
    TopicLine,
    board_lines,
    columns_of,
    curve_lines,
    level_lines,
    matrix_lines,
    mean_cell,
    metadata_lines,
    pair_lines,
    statistics_columns,
    topic_lines,
    with_statistics,
)
from runs.api.access import check_scores, counted_collection, scored_run, visible_collection, visible_run
from runs.models import Collection, Qrels, Run, can_see_scores
from runs.views import page, problem_of

_TOPICS_OF_A_PAGE = 250
_PAIRS_OF_A_PAGE = 100
_MAX_OFFSET = 1_000_000
_MAX_VERSION = 10**6
_PICTURE_SECONDS = 600
# What a page tells as the state of things; every other refusal is an answer to what was asked for.
_STATES = ("blind", "no_active_qrels", "not_evaluated", "too_few_runs", "too_few_topics", "too_many_runs")

Query = dict[str, str]


@dataclass(frozen=True)
class Problem:
    """Why a part of a page is missing."""

    detail: str
    code: str

    @property
    def is_state(self) -> bool:
        return self.code in _STATES


def _collection_fingerprint(request: HttpRequest, slug: str) -> Fingerprint | None:
    """None where the judgements are blind: a tag would tell of every change behind them."""
    found = visible_collection(request, slug)
    return of_boards(found) + of_topics(found) if can_see_scores(request.user, found) else None


def _run_fingerprint(request: HttpRequest, run_id: UUID) -> Fingerprint | None:
    """None where the judgements are blind."""
    found = visible_run(request, run_id)
    if not can_see_scores(request.user, found.collection):
        return None
    return *of_run(found), of_topics(found.collection)


@page
@unchanged_page(_collection_fingerprint)
def collection_page(request: HttpRequest, slug: str) -> HttpResponse:
    """A collection with its leaderboard."""
    collection = counted_collection(request, slug)
    query = _query(request)
    context: dict[str, Any] = {"collection": collection}
    context["measures"] = query.get("measures") or ", ".join(collection.measures)
    status = _fill(context, "board", _board, request, collection, query)
    qrels = context["board"]["board"].qrels if "board" in context else _qrels(request, collection)
    context |= {"qrels": qrels, "levels": level_lines(collection, qrels)}
    return render(request, "metrics/collection.html", context, status=status)


@page
@unchanged_page(_run_fingerprint)
def run_page(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """A run: what it is, its means, its values topic by topic and a curve."""
    run = visible_run(request, run_id)
    query = _query(request)
    context: dict[str, Any] = {
        "run": run,
        "status": statuses([run], request.user)[str(run.pk)],
        "facts": list(metadata_lines(run.metadata)),
        "ir_metadata": list(metadata_lines(run.ir_metadata)),
        "query": query,
        "curves": list(CURVES),
        "max_depth": MAX_DEPTH,
        "problems_shown": PROBLEMS_SHOWN,
        "measures": query.get("measures") or ", ".join(run.collection.measures),
    }
    status = _fill(context, "evaluation", _evaluation, request, run, query)
    if "evaluation" in context:
        evaluation = context["evaluation"]
        context["stale"] = is_stale(evaluation)
        status = max(
            _fill(context, "values", _values, run, evaluation, query),
            _fill(context, "curve", _curve, evaluation, query),
        )
    return render(request, "metrics/run.html", context, status=status)


@page
def curve_picture(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """A curve as SVG."""
    run = scored_run(request, run_id)
    query = _query(request)
    theme = choice_in(query, "theme", tuple(PALETTES)) or "light"
    measure, depth = _curve_query(query)
    evaluation = _evaluation(request, run, query)
    key = f"curve:{evaluation.pk}:{depth}:{theme}:{measure.name.encode().hex()}"
    svg = cache.get(key)
    if svg is None:
        drawn = read_curve(evaluation=evaluation, measure=measure, depth=depth)
        svg = as_svg(curve_chart(drawn, measure=measure.name, run=run.tag, theme=theme))
        cache.set(key, svg, _PICTURE_SECONDS)
    response = HttpResponse(svg, content_type="image/svg+xml")
    patch_cache_control(response, private=True, max_age=_PICTURE_SECONDS)
    return response


@page
@unchanged_page(_collection_fingerprint)
def comparison_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The runs of a collection under one measure and one test."""
    collection = visible_collection(request, slug)
    query = _query(request)
    context: dict[str, Any] = {"collection": collection, "query": query, "tests": TESTS, "corrections": CORRECTIONS}
    context["measure"] = query.get("measure") or collection.measures[0]
    status = _fill(context, "tables", _comparison, request, collection, query)
    return render(request, "metrics/comparison.html", context, status=status)


def _query(request: HttpRequest) -> Query:
    """The query string as text; ticked runs add up."""
    return {**request.GET.dict(), "runs": ",".join(request.GET.getlist("runs"))}


def _fill(context: dict[str, Any], part: str, build: Callable[..., Any], *arguments: Any) -> int:
    """Put a part of the page into its context, or the problem in its place; returns the page's status."""
    try:
        context[part] = build(*arguments)
    except EvalHubError as error:
        status, detail = problem_of(error)
        problem = Problem(detail, error.code)
        context[f"{part}_problem"] = problem
        return 200 if problem.is_state else status
    return 200


def _qrels(request: HttpRequest, collection: Collection) -> Qrels | None:
    return collection.active_qrels if can_see_scores(request.user, collection) else None


def _board(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    asked, statistics = board_query(query, collection), standings_query(query)
    board = read_leaderboard(collection=collection, query=asked)
    standings = read_standings(board=board, query=statistics) if statistics else None
    lines = board_lines(board)
    return {
        "board": board,
        "columns": columns_of(board.measures, board.sort, board.descending),
        "lines": with_statistics(lines, board, standings) if standings else lines,
        "standings": standings,
        "statistics": statistics_columns(board, standings) if standings else [],
        "paging": Paging(asked.offset, asked.limit, board.total),
        "waiting": [
            (state, board.states[state]) for state in ("queued", "evaluating", "failed") if state in board.states
        ],
    }


def _evaluation(request: HttpRequest, run: Run, query: Query) -> Evaluation:
    check_scores(request, run.collection)
    version = integer_in(query, "qrels", 0, 0, _MAX_VERSION) or None
    return find_evaluation(run=run, version=version)


def _values(run: Run, evaluation: Evaluation, query: Query) -> dict[str, Any]:
    measures = measures_in(query, "measures", run.collection.measures)
    sort = parse_measure(query["sort"]) if query.get("sort") else None
    descending = choice_in(query, "order", ("desc", "asc")) != "asc"
    paging = Paging(integer_in(query, "offset", 0, 0, _MAX_OFFSET), _TOPICS_OF_A_PAGE, evaluation.qrels.topics)
    wanted = list(dict.fromkeys([*measures, *([sort] if sort else [])]))
    values = replace(read_values(evaluation=evaluation, measures=wanted), measures=measures)
    lines = topic_lines(values, sort, descending)[paging.offset : paging.offset + paging.limit]
    return {
        "columns": columns_of(measures, sort, descending),
        "means": _means(values),
        "lines": _titled(run.collection, lines),
        "paging": paging,
    }


def _means(values: RunValues) -> list[tuple[str, Any]]:
    judged = len(values.topic_ids)
    means = values.means
    return [(measure.name, mean_cell(measure, means[measure.name], judged)) for measure in values.measures]


def _titled(collection: Collection, lines: list[TopicLine]) -> list[TopicLine]:
    named = collection.topics.filter(topic_id__in=[line.topic_id for line in lines])
    titles = dict(named.values_list("topic_id", "title"))
    return [replace(line, title=titles.get(line.topic_id, "")) for line in lines]


def _curve_query(query: Query) -> tuple[Measure, int]:
    return curve_measure(query.get("measure") or "nDCG"), integer_in(query, "depth", 100, 1, MAX_DEPTH)


def _curve(evaluation: Evaluation, query: Query) -> dict[str, Any]:
    measure, depth = _curve_query(query)
    lines = curve_lines(read_curve(evaluation=evaluation, measure=measure, depth=depth))
    return {
        "measure": measure.name,
        "depth": depth,
        "choices": list(dict.fromkeys([*CURVES, measure.name])),
        "lines": lines,
        "last": lines[-1],
        "width": WIDTH,
        "height": HEIGHT,
    }


def _comparison(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    comparison = compare_runs(collection=collection, query=comparison_query(query, collection))
    offset = integer_in(query, "offset", 0, 0, _MAX_OFFSET)
    paging = Paging(offset, _PAIRS_OF_A_PAGE, len(comparison.pairs))
    shown = comparison.pairs[offset : offset + _PAIRS_OF_A_PAGE]
    return {
        "comparison": comparison,
        "baseline": next((run for run, _ in comparison.runs if str(run.pk) == comparison.query.baseline), None),
        "matrix": matrix_lines(comparison),
        "matrix_runs": MATRIX_RUNS,
        "lines": pair_lines(comparison, shown),
        "confidence": f"{100 * comparison.query.options.confidence:g} %",
        "significant": sum(pair.significant for pair in comparison.pairs),
        "paging": paging,
    }
