"""The API of saved views: the parameters of a leaderboard under a name and a short address."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from metrics.questions.saved_views import (
    canonical_query,
    changeable_view,
    parameters_of,
    visible_view,
)
from runs import models
from runs.models import Scope, User
from runs.models.sharing.saved_views import MAX_NAME, MAX_QUERY
from runs.models.text import check_line
from runs.services.sharing.saved_views import change_view, create_view, delete_view
from runs.web.access import scored_collection
from runs.web.fields import ChoiceField
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import OneOf, Url, shape


class View(TypedDict):
    code: str
    name: str
    collection: str
    scope: Annotated[
        str, OneOf(models.View.Scope.values), "who sees it: its owner, a team, or all readers"
    ]
    team: Annotated[str | None, "of scope team"]
    owner: Annotated[str | None, "a user name; null for an account that is gone"]
    query: Annotated[str, "the query string of the leaderboard"]
    parameters: Annotated[dict[str, str], "the same, one by one"]
    page: Annotated[Url, "its short address"]
    created_at: datetime
    changed_at: datetime


def view_answer(request: Request, view: models.View) -> View:
    return View(
        code=view.code,
        name=view.name,
        collection=view.collection.slug,
        scope=view.scope,
        team=view.team.slug if view.team else None,
        owner=view.owner.username if view.owner else None,
        query=view.query,
        parameters=parameters_of(view),
        page=reverse("view-page", [view.code], request=request),
        created_at=view.created_at,
        changed_at=view.changed_at,
    )


class ViewSerializer(KnownFields, serializers.Serializer[Any]):
    """A view to save, or what of it changes."""

    answered = View
    name = serializers.CharField(max_length=MAX_NAME, validators=[check_line])
    query = serializers.CharField(
        max_length=3 * MAX_QUERY,
        allow_blank=True,
        help_text="the query string of a leaderboard, such as filter=team:lab&columns=param:k1",
    )
    scope = ChoiceField(choices=models.View.Scope.choices, default=models.View.Scope.ME)
    team = serializers.SlugField(max_length=64, required=False, help_text="the team of scope team")


class ViewFilter(django_filters.FilterSet):  # type: ignore[misc]
    scope = django_filters.ChoiceFilter(choices=models.View.Scope.choices)
    team = django_filters.CharFilter(field_name="team__slug")


class ViewList(AnswerList[models.View]):
    """The saved views of a leaderboard that the caller sees; POST saves one."""

    serializer_class = shape(View)
    filterset_class = ViewFilter
    queryset = models.View.objects.none()
    scopes = {"POST": Scope.SUBMIT}

    def get_queryset(self) -> QuerySet[models.View]:
        if getattr(self, "swagger_fake_view", False):
            return self.queryset

        collection = scored_collection(self.request, self.kwargs["collection"], values=False)
        views = models.View.objects.visible_to(self.request.user).filter(collection=collection)
        return views.select_related("collection__team", "team", "owner")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response([view_answer(request, view) for view in page])

    @extend_schema(request=ViewSerializer, responses={201: shape(View)})
    def post(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection, values=False)
        serializer = ViewSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)

        fields = serializer.validated_data
        fields["query"] = canonical_query(fields["query"], test_collection, request.user)
        view = create_view(
            collection=test_collection,
            owner=cast(User, request.user),
            origin=origin_of(request),
            **fields,
        )

        return Response(view_answer(request, view), status.HTTP_201_CREATED)


class ViewDetail(APIView):
    """One saved view; PATCH changes name, query or scope, DELETE deletes it.

    Its owner, members of its team, and of a view for all readers the organisers may.
    """

    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}

    @extend_schema(responses=shape(View))
    def get(self, request: Request, code: str) -> Response:
        return Response(view_answer(request, visible_view(request.user, code)))

    @extend_schema(request=ViewSerializer, responses=shape(View))
    def patch(self, request: Request, code: str) -> Response:
        view = changeable_view(request.user, code)
        serializer = ViewSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)

        changes = serializer.validated_data
        if "query" in changes:
            changes["query"] = canonical_query(changes["query"], view.collection, request.user)

        change_view(
            view=view, user=cast(User, request.user), changes=changes, origin=origin_of(request)
        )
        return Response(view_answer(request, view))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, code: str) -> Response:
        delete_view(view=changeable_view(request.user, code), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
