"""Saved views: the menu on the leaderboard, their short addresses, and the page that manages
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.saved_views import (
    canonical_query,
    changeable_view,
    parameters_of,
    view_query,
    visible_view,
    with_view,
)
from runs.errors import InvalidInput, NotFound
from runs.models import Collection, Scope, Team, User, View
from runs.models.sharing.saved_views import MAX_NAME
from runs.models.text import check_line
from runs.services.sharing.saved_views import change_view, create_view, delete_view
from runs.web.access import scored_collection
from runs.web.forms import FormPage, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.parameters import text_of
from runs.web.views import page, reads

# On the menu; the page of the views has all of them.
_LISTED = 12


@dataclass(frozen=True)
class ViewMenu:
    """The views that the reader sees, the one that was opened, and the leaderboard's parameters.

    `scopes` are value and text of the readers with whom the user may share a view; empty without
    an account.
    """

    views: list[View]
    more: bool
    opened: View | None
    may_change: bool
    query: str
    scopes: list[tuple[str, str]]

    @property
    def changed(self) -> bool:
        """Return whether the leaderboard differs from the view that was opened."""
        return self.opened is not None and self.opened.query != self.query


def read_menu(request: HttpRequest, collection: Collection, managed: bool) -> ViewMenu:
    parameters = text_of(request.GET)
    visible = (
        View.objects.visible_to(request.user)
        .filter(collection=collection)
        .select_related("team", "collection")
    )
    views = list(visible[: _LISTED + 1])

    opened = None
    may_change = False

    if code := parameters.get("opened"):
        # A view that was opened may be one that the menu leaves out.
        listed = next((view for view in views if view.code == code), None)
        opened = listed or visible.filter(code=code).first()
        changeable = View.objects.changeable_by(request.user)
        may_change = opened is not None and changeable.filter(code=code).exists()

    return ViewMenu(
        views=views[:_LISTED],
        more=len(views) > _LISTED,
        opened=opened,
        may_change=may_change,
        query=view_query(parameters),
        scopes=_scopes(request.user, collection, managed),
    )


def _scopes(user: Any, collection: Collection, managed: bool) -> list[tuple[str, str]]:
    """Return the scopes that the user can give to a view, as values and texts of a form."""
    if not user.is_authenticated:
        return []

    teams = Team.objects.of(user).filter(personal_of=None).values_list("slug", flat=True)
    shared = [(f"team:{slug}", f"members of team {slug}") for slug in teams]
    everyone = [("collection", "everyone who sees this leaderboard")] if managed else []
    return [("me", "only me"), *shared, *everyone]


def address_of(collection: Collection, parameters: Mapping[str, str], reader: Any) -> str:
    """Return the address of the leaderboard with the parameters of the view that is named, and
    with its code."""
    merged = with_view(parameters, collection, reader)
    query = {name: text for name, text in merged.items() if text}
    query["opened"] = parameters["view"]
    return f"{reverse('collection-page', args=[collection.slug])}?{urlencode(query)}"


@page
@reads()
def view_page(request: HttpRequest, code: str) -> HttpResponse:
    """Redirect the short address of a view to its leaderboard."""
    view = visible_view(request.user, code)
    address = address_of(view.collection, {"view": view.code}, request.user)
    return HttpResponseRedirect(address, status=303)


class ViewsPage(FormPage):
    """The saved views of a leaderboard; `action` saves, updates, changes or deletes the view
    `code`."""

    signed_in = False
    scopes = {"POST": Scope.SUBMIT}
    fields = ("action", "code", "name", "query", "share")

    def get(self, request: Request, slug: str) -> HttpResponse:
        return _page(request, scored_collection(request, slug, values=False))

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = scored_collection(request, slug, values=False)
        form = {name: str(request.data.get(name, "")) for name in self.fields}
        try:
            return _act(request, collection, form)
        except (EvalHubError, APIException) as error:
            refusal = refusal_of(error)
            return _page(request, collection, refusal.status, refused=refusal, form_values=form)


def _act(request: Request, collection: Collection, form: dict[str, str]) -> HttpResponse:
    user, origin, action = cast(User, request.user), origin_of(request), form["action"]
    scope, _, team = form["share"].partition(":")

    if action == "create":
        new = create_view(
            collection=collection,
            owner=user,
            name=_name_in(form),
            query=canonical_query(form["query"], collection, user),
            scope=_scope_in(scope or "me"),
            team=team,
            origin=origin,
        )
        return redirect_to(request, reverse("view-page", args=[new.code]))

    view = changeable_view(user, form["code"])
    if view.collection_id != collection.pk:
        raise NotFound(f"there is no view {form['code'][:20]!r} of collection {collection.slug}")
    if action == "update":
        changes = {"query": canonical_query(form["query"], collection, user)}
        change_view(view=view, user=user, changes=changes, origin=origin)
        return redirect_to(request, reverse("view-page", args=[view.code]))

    if action == "change":
        shared = {"scope": _scope_in(scope), "team": team} if scope else {}
        change_view(view=view, user=user, changes={"name": _name_in(form), **shared}, origin=origin)
        messages.success(request, f"View “{view.name}” changed.")
    elif action == "delete":
        delete_view(view=view, origin=origin)
        messages.success(request, f"View “{view.name}” deleted.")
    else:
        raise NotFound(f"there is no action {action[:40]!r}")

    return redirect_to(request, reverse("views-page", args=[collection.slug]))


def _name_in(form: Mapping[str, str]) -> str:
    name = form["name"].strip()
    if not name:
        raise InvalidInput("give the view a name", code="required", pointer="/name")
    if len(name) > MAX_NAME:
        raise InvalidInput(f"name: {len(name):,} characters; at most {MAX_NAME}", pointer="/name")

    try:
        check_line(name)
    except ValidationError as error:
        raise InvalidInput(
            f"name: {error.message}", code="control_character", pointer="/name"
        ) from error

    return name


def _scope_in(scope: str) -> str:
    if scope not in View.Scope.values:
        raise InvalidInput(
            f"share={scope[:20]!r} is not one of {', '.join(View.Scope.values)}", pointer="/share"
        )
    return scope


@dataclass(frozen=True)
class ViewLine:
    """A view on its page: its parameters, and `share`, the value of its readers in the form."""

    view: View
    parameters: dict[str, str]
    share: str
    may_change: bool


def _page(
    request: Request, collection: Collection, status: int = 200, **parts: Any
) -> HttpResponse:
    user = request.user
    views = (
        View.objects.visible_to(user)
        .filter(collection=collection)
        .select_related("team", "owner", "collection")
    )
    changeable = set(
        View.objects.changeable_by(user).filter(collection=collection).values_list("pk", flat=True)
    )
    managed = Collection.objects.managed_by(user).filter(pk=collection.pk).exists()
    lines = [
        ViewLine(
            view=view,
            parameters=parameters_of(view),
            share=f"{view.scope}:{view.team.slug}" if view.team else view.scope,
            may_change=view.pk in changeable,
        )
        for view in views
    ]

    scopes = _scopes(user, collection, managed)
    context = {"collection": collection, "lines": lines, "scopes": scopes, **parts}

    return render(request, "metrics/saved_views.html", context, status=status)
