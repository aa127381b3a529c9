"""The page that creates a collection."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.serializers import CollectionSerializer
from runs.models import Collection, Scope, Team
from runs.services.collections.collections import create_collection
from runs.web.forms import FormPage, Refusal, fields_of, refusal_of, see
from runs.web.origin import origin_of

# Who sees a collection, in the words of its forms.
VISIBILITIES = {
    Collection.Visibility.PUBLIC.value: ("Public", "everyone who can reach this server, also without an account"),
    Collection.Visibility.TEAM.value: ("Our team", "the members of the team; all of them can submit runs"),
    Collection.Visibility.PRIVATE.value: ("Private", "the owners of the team only; its members can neither see it nor "
                                          "submit to it"),
}  # fmt: skip
_FIELDS = ("name", "slug", "team", "visibility", "description", "blind")


class NewCollectionPage(FormPage):
    """Create a collection for one of the teams that the reader owns; its topics and judgements come next."""

    scopes = {"POST": Scope.MANAGE}
    fields = _FIELDS

    def get(self, request: Request) -> HttpResponse:
        return _page(request)

    def post(self, request: Request) -> HttpResponse:
        given = fields_of(request, *_FIELDS)
        given["slug"] = given.get("slug") or slugify(given.get("name", ""))[:64]
        try:
            serializer = CollectionSerializer(data=given, context={"request": request})
            serializer.is_valid(raise_exception=True)
            made = create_collection(origin=origin_of(request), **serializer.validated_data)
        except (EvalHubError, APIException) as error:
            return _page(request, given, refusal_of(error))
        messages.success(
            request._request,
            f"Collection {made.name} created. Upload its topics and judgements next.",
        )
        return see(request, reverse("manage-topics-page", args=[made.slug]))


def _page(
    request: Request, given: dict[str, str] | None = None, refused: Refusal | None = None
) -> HttpResponse:
    teams = list(Team.objects.led_by(request.user))
    shared = [team for team in teams if team.personal_of_id is None]
    # A lab's collection belongs to the lab: a personal team is proposed where there is no other.
    proposed = {
        "team": (shared or teams)[0].slug if teams else "",
        "visibility": "team" if shared else "public",
    }
    context: dict[str, Any] = {
        "teams": teams,
        "visibilities": VISIBILITIES,
        "given": given or proposed,
        "refused": refused,
    }
    return render(
        request._request,
        "runs/new_collection.html",
        context,
        status=refused.status if refused else 200,
    )
