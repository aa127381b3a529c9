"""The page of a collection's parameters: its keys with their values, and their descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from metrics.pages.parts import Query, fill, query_of, query_string
from metrics.pages.tracking.parameter_charts import parameter_charts
from metrics.questions.answer_cache import Subject, all_organisers, cached_page
from metrics.services.boards.columns import shown_value
from metrics.services.boards.conditions import term_of_key, visible_board, visible_keys
from metrics.services.boards.filter_grammar import MAX_WORD
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.configurations import MAX_RUNS, MIN_RUNS
from metrics.services.tracking.parameters import DEFAULT_LIMIT, Facet, read_facets
from metrics.tables import Paging
from runs.api.serializers import ParameterKeySerializer
from runs.errors import NotFound
from runs.formats.parameters import MAX_KEY
from runs.models import Collection, ParameterKey, Scope, can_see_scores
from runs.parameters import MAX_OFFSET, integer_in
from runs.services.tracking.parameters import change_key
from runs.web.access import managed_collection, note_filter, visible_collection
from runs.web.forms import FormPage, redirect_to
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.views import page, problem_of, reads

_VALUES = 8
_CUT = 60


@dataclass(frozen=True)
class ValueLink:
    """A value with its number of runs, and their address if there is a leaderboard to see."""

    text: str
    runs: int
    address: str


@dataclass(frozen=True)
class KeyLine:
    """A key on the page; `column` is the address of the leaderboard with it, `without` that of the
    runs without it."""

    facet: Facet
    missing: int
    types: str
    values: list[ValueLink]
    more: int
    column: str
    without: str

    @property
    def key(self) -> ParameterKey:
        return self.facet.key

    @property
    def anchor(self) -> str:
        return anchor_of(self.key)

    @property
    def range(self) -> str:
        if self.facet.low is None or self.facet.low == self.facet.high:
            return ""
        return f"{shown_value(self.facet.low)} to {shown_value(self.facet.high)}"


def anchor_of(key: ParameterKey) -> str:
    """Return the id of a key's row.

    It is the name, because a number of the row would tell how many keys others have.
    """
    return quote(str(key), safe="")


def _scored_collection(request: HttpRequest, slug: str) -> Subject | None:
    """Return the collection, or None while the judgements are blind."""
    collection = visible_collection(request, slug)
    return Subject(collection) if can_see_scores(request.user, collection) else None


@page
@reads("filter", "q", "offset", "x", "by", "measure")
@cached_page(_scored_collection, shared_by=all_organisers)
def parameters_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the parameters and costs of the runs that the reader sees."""
    collection = visible_collection(request, slug)
    context: dict[str, Any] = {"collection": collection}
    return _page(request, collection, context)


def _page(
    request: HttpRequest, collection: Collection, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    query = query_of(request)
    context |= {
        "query": query,
        "scored": can_see_scores(request.user, collection),
        "manages": Collection.objects.managed_by(request.user).filter(pk=collection.pk).exists(),
        "roles": ParameterKey.Role.choices,
        "endpoint": request.build_absolute_uri(reverse("runs", args=[collection.slug])),
    }

    status_of_answer = fill(
        context, "answer", _answer, request, collection, query, context["scored"]
    )

    if "answer_problem" in context:
        # The keys are shown even if the question is wrong.
        context["refused"] = context["answer_problem"]
        fill(context, "answer", _answer, request, collection, {}, context["scored"])
    elif context["scored"] and context["answer"]["runs"] and collection.active_qrels:
        status_of_answer = max(
            status_of_answer,
            fill(context, "charts", parameter_charts, collection, query, request.user),
        )

    return render(request, "metrics/parameters.html", context, status=max(status, status_of_answer))


def _answer(
    request: HttpRequest, collection: Collection, query: Query, scored: bool
) -> dict[str, Any]:
    note_filter(request, collection, query.get("filter", ""))
    offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
    facets = read_in_snapshot(
        lambda: read_facets(
            collection=collection,
            reader=request.user,
            filter=query.get("filter", ""),
            name=query.get("q", "")[:MAX_KEY],
            offset=offset,
        )
    )

    board = reverse("collection-page", args=[collection.slug]) if scored else ""
    few = MIN_RUNS <= facets.runs <= MAX_RUNS
    compared = reverse("configurations-page", args=[collection.slug]) + query_string(
        {"filter": query.get("filter", "")}
    )

    return {
        "configurations": compared if few else "",
        "lines": [_line(facet, facets.runs, board) for facet in facets.results],
        "runs": facets.runs,
        "paging": Paging(offset, DEFAULT_LIMIT, facets.count),
    }


def _line(facet: Facet, runs: int, board: str) -> KeyLine:
    name = term_of_key(facet.key.space, facet.key.name)
    values = facet.values[:_VALUES]
    linked = bool(board and name)

    return KeyLine(
        facet=facet,
        missing=runs - facet.runs,
        types=", ".join(
            f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in facet.types.items()
        ),
        values=[
            ValueLink(_text(value), count, filter_address(board, name, value) if linked else "")
            for value, count in values
        ],
        more=facet.distinct - len(values),
        column=board + query_string({"columns": name}) if linked else "",
        without=board + query_string({"filter": f"-{name}"})
        if linked and facet.runs < runs
        else "",
    )


def _text(value: float | str | bool) -> str:
    text = shown_value(value)
    return text[:_CUT] + "…" * (len(text) > _CUT)


def filter_address(board: str, name: str, value: float | str | bool) -> str:
    """Return the address of the runs with a value; empty for a value that no filter can name."""
    if isinstance(value, str):
        if '"' in value or not value.strip() or len(value) > MAX_WORD or not value.isprintable():
            return ""
        return board + query_string({"filter": f'{name}="{value}"', "columns": name})
    return board + query_string({"filter": f"{name}={shown_value(value)}", "columns": name})


class DescribeParameter(FormPage):
    """Describe a key: its unit, its meaning, and whether it is part of the configuration."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.SIGNED_IN}
    fields = ("space", "name", "unit", "note", "role")

    def get(self, request: Request, slug: str) -> HttpResponse:
        """Redirect to the page with the form."""
        return redirect_to(
            request, reverse("parameters-page", args=[visible_collection(request, slug).slug])
        )

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = managed_collection(request, slug)
        space, name = (str(request.data.get(field, "")) for field in ("space", "name"))
        changes: dict[str, Any] = {
            field: request.data[field]
            for field in ("unit", "note", "role")
            if field in request.data
        }

        with transaction.atomic():
            visible = visible_keys(visible_board(collection, request.user), space).filter(name=name)
            keys = ParameterKey.objects.select_for_update().filter(
                pk__in=list(visible.values_list("pk", flat=True))
            )
            key = keys.first()
            if key is None:
                raise NotFound(f"no run of this collection has {space[:10]}:{name[:60]}")

            serializer = ParameterKeySerializer(key, changes, partial=True)
            try:
                serializer.is_valid(raise_exception=True)
            except ValidationError as error:
                status, detail = problem_of(error)
                parts = {
                    "collection": collection,
                    "undescribed": detail,
                    "form_values": {**changes, "name": name, "space": space},
                }
                return _page(request, collection, parts, status)

            change_key(key=key, changes=serializer.validated_data, origin=origin_of(request))

        return redirect_to(request, reverse("parameters-page", args=[slug]) + f"#{anchor_of(key)}")
