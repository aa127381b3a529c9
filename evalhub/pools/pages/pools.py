"""Pages of pools: lists, one pool with its statistics, and what organisers do with it."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.questions.lookup import visible_phase
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.pools.charts.growth import growth_figure
from evalhub.pools.exports.files import FORMS
from evalhub.pools.models import Pool
from evalhub.pools.questions.lookup import managed_pool, manages, pools_of, visible_pool
from evalhub.pools.services.pools import delete_draft, freeze_pool, show_pool
from evalhub.pools.services.recipes import recipe_of
from evalhub.pools.services.statistics import PoolStatistics, read_statistics
from metrics.charts.rendering import render_inline
from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.models import Collection, Scope, User
from runs.web.access import sees_scores, visible_collection
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.views import page, reads

_OF_A_PAGE = 50
# Larger overlaps are in the API.
_MOST_OVERLAPS = 20
_MOST_ROWS = 200


@page
@reads("page")
def collection_pools_page(request: HttpRequest, collection: str) -> HttpResponse:
    """List the pools of a collection."""
    visible = visible_collection(request, collection)
    managed = Collection.objects.managed_by(request.user).filter(pk=visible.pk).exists()
    pools = pools_of(request.user).filter(collection=visible).order_by("-number")
    new = reverse("new-pool-page", args=[collection]) if managed else ""

    return _list(request, pools, {"collection": visible, "new": new})


@page
@reads("page")
def phase_pools_page(request: HttpRequest, campaign: str, phase: str) -> HttpResponse:
    """List the pools of a phase."""
    visible = visible_phase(request, campaign, phase)
    pools = pools_of(request.user).filter(phase=visible).order_by("-number")
    organised = is_organiser(visible.campaign, request.user)
    new = reverse("new-phase-pool-page", args=[campaign, phase]) if organised else ""

    return _list(request, pools, {"collection": visible.collection, "phase": visible, "new": new})


def _list(request: HttpRequest, pools: Any, context: dict[str, Any]) -> HttpResponse:
    listed = Paginator(pools, _OF_A_PAGE).get_page(request.GET.get("page"))
    rows = [(pool, recipe_of(pool.recipe).in_words()) for pool in listed]
    return render(request, "pools/list.html", {**context, "page": listed, "rows": rows})


@page
def pool_page(request: HttpRequest, pool: UUID) -> HttpResponse:
    """Show a pool: what it was made of, its statistics, and for organisers its files."""
    visible = visible_pool(request, pool)
    scored = sees_scores(request, visible.collection)
    qrels = visible.collection.active_qrels if scored else None
    statistics = read_statistics(visible, qrels)

    return render(request, "pools/pool.html", _about(request, visible, statistics))


def _about(request: HttpRequest, pool: Pool, statistics: PoolStatistics) -> dict[str, Any]:
    contributors, relevant = statistics.runs, statistics.unique_relevant
    runs = [
        {
            "row": row,
            "contributed": int(statistics.contributed[place]),
            "unique": int(statistics.unique[place]),
            "unique_relevant": int(relevant[place]) if relevant is not None else None,
        }
        for place, row in enumerate(contributors)
    ]

    overlap = []
    if len(contributors) <= _MOST_OVERLAPS:
        overlap = list(zip(contributors, statistics.overlap.tolist(), strict=True))

    figure = growth_figure(statistics.growth, title=str(pool))
    drawings = [
        (kind, mark_safe(render_inline(figure, size, linked=False)))  # noqa: S308 -- titled() writes it
        for kind, size in (("wide", "column"), ("narrow", "narrow"))
    ]
    strata = recipe_of(pool.recipe).strata
    return {
        "pool": pool,
        "method": recipe_of(pool.recipe).in_words(),
        "recipe": recipe_of(pool.recipe),
        "manager": manages(request.user, pool),
        "statistics": statistics,
        "strata": [
            (stratum, count, strata[stratum - 1] if 0 < stratum <= len(strata) else None)
            for stratum, count in statistics.strata.items()
        ],
        "runs": runs[:_MOST_ROWS],
        "more_runs": max(0, len(runs) - _MOST_ROWS),
        "overlap": overlap,
        "topics": pool.topics[:_MOST_ROWS],
        "more_topics": max(0, len(pool.topics) - _MOST_ROWS),
        "table": depth_table(
            [row.run.tag for row in contributors], [row.depth for row in contributors], pool.depths
        ),
        "figure": figure,
        "drawings": drawings,
        "forms": list(FORMS),
    }


def depth_table(tags: list[str], depths: list[Any], table: dict[str, Any]) -> dict[str, Any]:
    """Return the table of runs and depths as a template reads it, in the order of the rounds."""
    rows = list(zip(tags, depths, table["documents"], strict=True))
    return {"depths": table["depths"], "rows": rows[:_MOST_ROWS], "more": len(rows) - _MOST_ROWS}


class PoolActPage(FormPage):
    """Freeze a draft, show a frozen pool, or delete a draft; the page says what it means."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    fields = ("action",)

    def get(self, request: Request, pool: UUID) -> HttpResponse:
        return self.show(request, managed_pool(request, pool))

    def show(self, request: Request, pool: Pool, refusal: Refusal | None = None) -> HttpResponse:
        response = render_form(request, "pools/act.html", {"pool": pool}, refusal)
        response["Cache-Control"] = "no-store"
        return response

    def post(self, request: Request, pool: UUID) -> HttpResponse:
        managed = managed_pool(request, pool)
        address = reverse("pool-page", args=[pool])
        try:
            done = self.act(request, managed)
        except (EvalHubError, APIException) as error:
            return self.show(request, managed_pool(request, pool), refusal_of(error))

        if not Pool.objects.filter(pk=pool).exists():
            address = reverse("collection-pools-page", args=[managed.collection.slug])
        messages.success(request, done)
        return redirect_to(request, address)

    def act(self, request: Request, pool: Pool) -> str:
        action, origin = request.data.get("action"), origin_of(request)
        if action == "freeze":
            freeze_pool(pool=pool, user=cast(User, request.user), origin=origin)
            return "The pool is frozen; its files are ready for assessors."
        if action in ("show", "hide"):
            show_pool(pool=pool, shown=action == "show", origin=origin)
            readers = "all who see the results of the collection" if action == "show" else "you"
            return f"The pool is now shown to {readers}."
        if action == "delete":
            delete_draft(pool=pool, origin=origin)
            return "The draft is deleted."
        raise InvalidInput("press one of the buttons", pointer="/action")
