"""Pages of suites: the list, one suite with its leaderboard, and two of its systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe

from evalhub.suites.charts.forest import forest_figure
from evalhub.suites.exports.suites import (
    KINDS,
    board_headline,
    board_table,
    citation_of,
    comparison_table,
)
from evalhub.suites.models import SuiteVersion
from evalhub.suites.questions.lookup import (
    board_of,
    comparison_of,
    manages,
    of_suite,
    of_suite_page,
    suites_of,
    versions_of,
    visible_results,
    visible_version,
)
from evalhub.suites.services.board import ORDERS, SuiteBoardQuery, SuiteQuery
from evalhub.suites.services.comparison import SuiteComparisonQuery
from metrics.charts.rendering import render_inline
from metrics.exports.formats import FORMATS
from metrics.pages.parts import fill
from metrics.questions.answer_cache import cached_page
from metrics.services.snapshots import read_in_snapshot
from runs.models import Team
from runs.services.collections.topic_attributes import attribute_keys
from runs.web.parameters import text_of
from runs.web.views import page, reads

_OF_A_PAGE = 50


@page
@reads("page")
def suites_page(request: HttpRequest) -> HttpResponse:
    """List the suites with collections that the reader sees."""
    suites = suites_of(request.user).order_by("name", "slug")
    suites_of_page = Paginator(suites, _OF_A_PAGE).get_page(request.GET.get("page"))
    versions = SuiteVersion.objects.prefetch_related("members__collection").in_bulk(
        [suite.newest for suite in suites_of_page]
    )
    rows = [(suite, versions[suite.newest]) for suite in suites_of_page]
    makes = Team.objects.led_by(request.user).exists()
    return render(
        request, "suites/list.html", {"page": suites_of_page, "rows": rows, "makes": makes}
    )


@page
@reads(*SuiteBoardQuery.names())
@cached_page(of_suite_page)
def suite_page(request: HttpRequest, suite: str) -> HttpResponse:
    """Show the leaderboard of a suite, and below it its collections and how to cite it."""
    version = visible_version(request, suite, SuiteQuery.read(text_of(request.GET)).version)
    visible = visible_results(request, version)
    members = list(version.members.select_related("collection", "qrels").order_by("position"))
    keys = {key for member in members for key in attribute_keys(member.collection)}
    context: dict[str, Any] = {
        "suite": version.suite,
        "version": version,
        "versions": list(versions_of(request, suite)),
        "members": [(member, member.collection_id in visible) for member in members],
        "topic_keys": sorted(keys),
        "grouped": bool(members[0].group),
        "manager": manages(request.user, version.suite),
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
        "orders": ORDERS,
        "query": text_of(request.GET),
    }
    if all(member.collection_id in visible for member in members):
        context["citation"] = citation_of(request, version)

    status = fill(context, "answer", _board, request, suite)
    return render(request, "suites/suite.html", context, status=status)


def _board(request: HttpRequest, slug: str) -> dict[str, Any]:
    board = read_in_snapshot(lambda: board_of(request, slug))
    cautions = [caution.message for caution in board.values.cautions]
    return {
        "board": board,
        "headline": board_headline(board),
        "table": board_table(board),
        "cautions": cautions,
    }


@page
@reads(*SuiteComparisonQuery.names())
@cached_page(of_suite)
def suite_comparison_page(request: HttpRequest, suite: str) -> HttpResponse:
    """Show the difference of two systems in each collection and over all."""
    version = visible_version(request, suite, SuiteQuery.read(text_of(request.GET)).version)
    context: dict[str, Any] = {
        "suite": version.suite,
        "version": version,
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
    }
    status = fill(context, "answer", _comparison, request, suite)
    return render(request, "suites/comparison.html", context, status=status)


def _comparison(request: HttpRequest, slug: str) -> dict[str, Any]:
    comparison = read_in_snapshot(lambda: comparison_of(request, slug))
    figure = forest_figure(comparison)
    drawings = [
        (kind, mark_safe(render_inline(figure, size, linked=False)))  # noqa: S308 -- titled() writes it
        for kind, size in (("wide", "column"), ("narrow", "narrow"))
    ]
    table = comparison_table(comparison)
    first, *more = table.notes
    return {
        "comparison": comparison,
        "first": first,
        "more": more,
        "figure": figure,
        "drawings": drawings,
        # The page has the sentences above it.
        "table": replace(table, notes=()),
        "cautions": [caution.message for caution in comparison.values.cautions],
    }
