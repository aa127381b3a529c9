"""The page that creates a collection."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.serializers import CollectionSerializer
from runs.models import Collection, Scope, Team
from runs.services.collections.collections import create_collection
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of

# Who sees a collection, in the words of its forms.
VISIBILITIES = {
    Collection.Visibility.PUBLIC.value: (
        "Public",
        "everyone who can reach this server, also without an account",
    ),
    Collection.Visibility.TEAM.value: (
        "Our team",
        "the members of the team; all of them can submit runs",
    ),
    Collection.Visibility.PRIVATE.value: (
        "Private",
        "the owners of the team only; its members can neither see it nor submit to it",
    ),
}
_FIELDS = ("name", "slug", "team", "visibility", "description", "blind")


class NewCollectionPage(FormPage):
    """Create a collection for a team that the reader owns; topics and judgements come next."""

    scopes = {"POST": Scope.MANAGE}
    fields = _FIELDS

    def get(self, request: Request) -> HttpResponse:
        return _page(request)

    def post(self, request: Request) -> HttpResponse:
        fields = fields_of(request, *_FIELDS)
        fields["slug"] = fields.get("slug") or slugify(fields.get("name", ""))[:64]
        try:
            serializer = CollectionSerializer(data=fields, context={"request": request})
            serializer.is_valid(raise_exception=True)
            collection = create_collection(origin=origin_of(request), **serializer.validated_data)
        except (EvalHubError, APIException) as error:
            return _page(request, fields, refusal_of(error))

        messages.success(
            request,
            f"Collection {collection.name} created. Upload its topics and judgements next.",
        )
        return redirect_to(request, reverse("manage-topics-page", args=[collection.slug]))


def _page(
    request: Request, fields: dict[str, str] | None = None, refusal: Refusal | None = None
) -> HttpResponse:
    teams = list(Team.objects.led_by(request.user))
    shared = [team for team in teams if team.personal_of_id is None]

    # A lab's collection belongs to the lab: a personal team is proposed if there is no other.
    proposed = {
        "team": (shared or teams)[0].slug if teams else "",
        "visibility": "team" if shared else "public",
    }
    context = {"teams": teams, "visibilities": VISIBILITIES, "form_values": fields or proposed}

    return render_form(request, "runs/new_collection.html", context, refusal)
