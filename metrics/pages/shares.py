"""The page of share links: who sees something, a link to it, and the links of the user and of the
collections that the user organises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.shares import shared_in
from runs.errors import InvalidInput, NotFound
from runs.models import Run, Scope, ShareLink, User
from runs.services.sharing.shares import Shared, create_share, may_share, revoke_share, shared_by
from runs.web.forms import FormPage, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.parameters import text_of
from runs.web.permissions import Access

_NAMES = ("kind", "collection", "run", "comparison", "query")
_DAYS = {"7": "7 days", "30": "30 days", "90": "90 days", "366": "a year"}
_SHOWN = 200


class SharesPage(FormPage):
    """The share links that the user manages, and a form to share what the address names.

    `action` creates or revokes a link.
    """

    scopes = {"POST": Scope.MANAGE}
    # Of what is shared; members of a team share its runs, too.
    access = {"GET": Access.SIGNED_IN, "POST": Access.ORGANISERS}
    reads = _NAMES
    fields = ("action", "key", "days", *_NAMES)

    def get(self, request: Request) -> HttpResponse:
        parameters = text_of(request.query_params)
        fields = _form_of(request, parameters) if parameters.get("kind") else {}
        return _page(request, **fields)

    def post(self, request: Request) -> HttpResponse:
        form = {name: str(request.data.get(name, "")) for name in self.fields}
        user, origin, fields = cast(User, request.user), origin_of(request), dict[str, Any]()
        try:
            if form["action"] == "revoke":
                managed = ShareLink.objects.managed_by(user)

                link = managed.filter(key=form["key"], revoked_at=None).first()
                if link is None:
                    raise NotFound(
                        f"there is no share link {form['key'][:20]!r} that you may revoke"
                    )

                revoke_share(link=link, origin=origin)
                messages.success(request, f"Link {link.key} revoked.")

                return redirect_to(request, reverse("shares-page"))

            if form["action"] != "create":
                raise NotFound(f"there is no action {form['action'][:40]!r}")

            fields = _form_of(request, form)
            if form["days"] not in _DAYS:
                raise InvalidInput(f"days is one of {', '.join(_DAYS)}", pointer="/days")

            until = timezone.now() + timedelta(days=int(form["days"]))
            link, secret = create_share(
                shared=fields["shared"], by=user, expires_at=until, origin=origin
            )
        except (EvalHubError, APIException) as error:
            refusal = refusal_of(error)
            return _page(request, refusal.status, refused=refusal, **fields)

        address = request.build_absolute_uri(reverse("open-share", args=[link.key]))

        # The secret is shown this once: only a hash of it is stored.
        return _page(request, 201, **fields, new_link=link, address=f"{address}{secret}/")


def _form_of(request: Request, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return what the address or the form names: its title, its ordinary address, and the fields
    that the form keeps."""
    shared = shared_in(request, parameters)
    return {
        "shared": shared,
        "title": _title(shared, _tags([shared.target])),
        "plain": request.build_absolute_uri(_plain_address(shared)),
        "may_share": may_share(request.user, shared),
        "hidden_fields": {name: parameters[name] for name in _NAMES if parameters.get(name)},
    }


def share_address(kind: str, **parameters: str) -> str:
    """Return the address of the form that shares something."""
    query = {"kind": kind, **{name: text for name, text in parameters.items() if text}}
    return f"{reverse('shares-page')}?{urlencode(query)}"


def _title(shared: Shared, tags: Mapping[str, str]) -> str:
    if shared.kind == ShareLink.Kind.RUN:
        return f"run {tags.get(shared.target, shared.target)} of {shared.collection.name}"
    return f"{shared.kind} of {shared.collection.name}"


def _tags(runs: Iterable[str]) -> dict[str, str]:
    pairs = Run.objects.filter(pk__in=[run for run in runs if run]).values_list("pk", "tag")
    return {str(pk): tag for pk, tag in pairs}


def _plain_address(shared: Shared) -> str:
    """Return the address of the ordinary page."""
    if shared.kind == ShareLink.Kind.RUN:
        path = reverse("run-page", args=[shared.target])
    elif shared.target:
        path = reverse("stored-comparison-page", args=[shared.target])
    else:
        name = "comparison-page" if shared.kind == ShareLink.Kind.COMPARISON else "collection-page"
        path = reverse(name, args=[shared.collection.slug])

    return f"{path}?{shared.query}" if shared.query else path


@dataclass(frozen=True)
class ShareLine:
    """A link on the page: what it opens, and the ordinary address of that page."""

    link: ShareLink
    title: str
    address: str


def _page(request: Request, status: int = 200, **parts: Any) -> HttpResponse:
    managed = ShareLink.objects.managed_by(request.user)
    links = managed.select_related("collection", "created_by")[:_SHOWN]

    tags = _tags(link.target for link in links)
    lines = []
    for link in links:
        shared = shared_by(link)
        lines.append(ShareLine(link, _title(shared, tags), _plain_address(shared)))

    context = {"links": lines, "days": _DAYS, **parts}
    response = render(request, "metrics/shares.html", context, status=status)
    response["Cache-Control"] = "no-store"

    return response
