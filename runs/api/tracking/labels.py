"""The API of labels: movable names of runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs import models
from runs.errors import InvalidInput, NotAllowed
from runs.models import Collection, LabelMove, Scope, Team, User
from runs.models.text import check_text
from runs.services.tracking.labels import ANY, delete_label, move_label
from runs.web.access import owned_run, visible_collection
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import shape

_MAX_MOVES = 100
_TEAM = OpenApiParameter(
    "team", OpenApiTypes.STR, description="the team whose label it is, if several have one"
)
_EXPECTED = OpenApiParameter(
    "expected", OpenApiTypes.UUID, description="the run that it names; 409 for another"
)


class Label(TypedDict):
    name: str
    team: str
    run: Annotated[UUID, "the run that it names"]
    tag: Annotated[str, "of this run"]
    moved_at: datetime


class Move(TypedDict):
    """A move of a label."""

    from_run: Annotated[UUID | None, "null where the label was made"]
    to_run: Annotated[UUID | None, "null where it was deleted"]
    at: datetime
    by: Annotated[str | None, "a user name; null for an account that is gone"]
    note: str


class MovedLabel(Label):
    """A label with its past, which members of its team read."""

    moves: Annotated[list[Move], "latest first, at most 100"]


def label_answer(label: models.Label) -> Label:
    return Label(
        name=label.name,
        team=label.team.slug,
        run=label.run_id,
        tag=label.run.tag,
        moved_at=label.moved_at,
    )


class LabelFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    name = django_filters.CharFilter()
    run = django_filters.UUIDFilter()


class LabelSerializer(KnownFields, serializers.Serializer[Any]):
    """Where to move a label."""

    run = serializers.UUIDField(help_text="a run of the label's team")
    team = serializers.SlugField(
        max_length=150, required=False, help_text="the team of the run, which is the default"
    )
    expected = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="the run that the label names now, null for a label that is not there; "
        "409 if this is not so. Left out: whatever it names",
    )
    note = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True, validators=[check_text]
    )


class LabelList(AnswerList[models.Label]):
    """The labels of a collection that the caller sees: of blind collections those of the caller's
    own teams."""

    serializer_class = shape(Label)
    answer = staticmethod(label_answer)
    filterset_class = LabelFilter
    queryset = models.Label.objects.none()

    def get_queryset(self) -> QuerySet[models.Label]:
        collection = visible_collection(self.request, self.kwargs["collection"])
        labels = models.Label.objects.visible_to(self.request.user).filter(collection=collection)
        return labels.select_related("team", "run").order_by("name", "team__slug")


class LabelDetail(APIView):
    """One label with its past; PUT lets it name a run, DELETE deletes it. Members of its team
    may."""

    signed_in = True
    scopes = {"PUT": Scope.SUBMIT, "DELETE": Scope.SUBMIT}
    access = {"GET": Access.TEAM}

    @extend_schema(responses=shape(MovedLabel), parameters=[_TEAM])
    def get(self, request: Request, collection: str, label: str) -> Response:
        own_label = _find_own_label(request, visible_collection(request, collection), label)
        history = LabelMove.objects.filter(
            collection=own_label.collection_id, team=own_label.team_id, name=own_label.name
        )
        moves = [
            Move(
                from_run=move.from_run_id,
                to_run=move.to_run_id,
                at=move.at,
                by=move.by.username if move.by else None,
                note=move.note,
            )
            for move in history.select_related("by")[:_MAX_MOVES]
        ]

        return Response(MovedLabel(**label_answer(own_label), moves=moves))

    @extend_schema(request=LabelSerializer, responses={200: shape(Label), 201: shape(Label)})
    def put(self, request: Request, collection: str, label: str) -> Response:
        visible = visible_collection(request, collection)
        serializer = LabelSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        body = serializer.validated_data
        run = owned_run(request, body["run"])
        if run.collection_id != visible.pk:
            raise Http404(f"collection {visible.slug} has no run {run.pk}")

        if body.get("team", run.team.slug) != run.team.slug:
            message = f"run {run.tag} is team {run.team.slug}'s; a team labels its own runs"
            raise InvalidInput(message, pointer="/team")

        moved, new = move_label(
            run=run,
            name=label,
            user=cast(User, request.user),
            expected=body.get("expected", ANY),
            note=body["note"],
            origin=origin_of(request),
        )

        return Response(label_answer(moved), status.HTTP_201_CREATED if new else status.HTTP_200_OK)

    @extend_schema(responses={204: None}, parameters=[_TEAM, _EXPECTED])
    def delete(self, request: Request, collection: str, label: str) -> Response:
        own_label = _find_own_label(request, visible_collection(request, collection), label)
        text = request.query_params.get("expected", "")
        try:
            expected = UUID(text) if text else None
        except ValueError:
            raise InvalidInput(
                f"expected={text[:40]}: this is not the id of a run", pointer="expected"
            ) from None

        delete_label(
            label=own_label,
            user=cast(User, request.user),
            expected=expected,
            origin=origin_of(request),
        )

        return Response(status=status.HTTP_204_NO_CONTENT)


def _find_own_label(request: Request, collection: Collection, name: str) -> models.Label:
    """Return a label of the caller's teams, of the parameter `team` if the request has it.

    Raise NotAllowed for a label that the caller may only see, InvalidInput (`ambiguous_label`) if
    several of the caller's teams have it.
    """
    visible = models.Label.objects.visible_to(request.user).filter(collection=collection, name=name)
    if slug := request.query_params.get("team"):
        visible = visible.filter(team__slug=slug)
    labels = list(visible.select_related("team", "run", "collection").order_by("team__slug"))
    if not labels:
        raise Http404(f"there is no label {name!r} in collection {collection.slug}")

    own_teams = set(Team.objects.visible_to(request.user).values_list("pk", flat=True))
    own = [label for label in labels if label.team_id in own_teams]
    if not own:
        raise NotAllowed(f"only members of team {labels[0].team} can do this with its label {name}")

    if len(own) > 1:
        teams = ", ".join(label.team.slug for label in own[:10])
        raise InvalidInput(
            f"teams {teams} have a label {name!r}; name one with team=",
            code="ambiguous_label",
            pointer="team",
        )

    return own[0]
