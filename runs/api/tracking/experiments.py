"""The API of experiments: named sets of runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

import django_filters
from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from runs import models
from runs.api.serializers import PersonalTeam, TeamField
from runs.models import ExperimentRun, Scope, Team, User
from runs.models.submissions.submissions import seen_by
from runs.models.text import check_line, check_text
from runs.services.tracking.experiments import (
    MAX_RUNS,
    change_experiment,
    change_runs,
    create_experiment,
    delete_experiment,
)
from runs.web import idempotency
from runs.web.access import experiments_of, visible_experiment
from runs.web.filters import choice_filter
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import OneOf, Url, shape

_Visibility = models.Experiment.Visibility
_VISIBILITY = "`team`: the members of its team; `collection`: everyone who sees all of its runs"


class Experiment(TypedDict):
    id: UUID
    url: Url
    team: str
    slug: Annotated[str, "as in the filter experiment:slug"]
    name: str
    goal: str
    visibility: Annotated[str, OneOf(_Visibility.choices), _VISIBILITY]
    baseline: Annotated[UUID | None, "one of its runs, with which the others are compared"]
    count: Annotated[int, "its runs that the caller sees"]
    created_at: datetime


class GroupedRun(TypedDict):
    """A run of an experiment."""

    id: UUID
    collection: str
    team: str
    tag: str
    added_at: datetime


class ExperimentWithRuns(Experiment):
    """An experiment with those of its runs that the caller sees."""

    runs: Annotated[list[GroupedRun], "in the order in which they were added"]


class ExperimentChangeSerializer(KnownFields, serializers.Serializer[Any]):
    """The fields of an experiment that can be changed."""

    answered = ExperimentWithRuns
    name = serializers.CharField(max_length=200, validators=[check_line])
    goal = serializers.CharField(
        max_length=10_000, required=False, default="", allow_blank=True, validators=[check_text]
    )
    visibility = serializers.ChoiceField(
        choices=_Visibility.choices, required=False, default=_Visibility.TEAM
    )
    baseline = serializers.UUIDField(
        required=False, allow_null=True, help_text="one of its runs, or null for none"
    )


class ExperimentSerializer(KnownFields, serializers.Serializer[Any]):
    """An experiment to create."""

    answered = ExperimentWithRuns
    slug = serializers.CharField(max_length=64, help_text="unique in its team")
    name = serializers.CharField(
        max_length=200, required=False, validators=[check_line], help_text="default: the slug"
    )
    goal = serializers.CharField(
        max_length=10_000, required=False, default="", allow_blank=True, validators=[check_text]
    )
    team = TeamField(default=PersonalTeam())
    visibility = serializers.ChoiceField(
        choices=_Visibility.choices, required=False, default=_Visibility.TEAM
    )
    runs = serializers.ListField(
        child=serializers.UUIDField(), required=False, default=list, max_length=MAX_RUNS
    )

    def validate_slug(self, slug: str) -> str:
        for check in models.Experiment._meta.get_field("slug").validators:
            check(slug)
        return slug


class ExperimentRunsSerializer(KnownFields, serializers.Serializer[Any]):
    """The runs to put into an experiment, and those to take out."""

    add = serializers.ListField(
        child=serializers.UUIDField(), required=False, default=list, max_length=MAX_RUNS
    )
    remove = serializers.ListField(
        child=serializers.UUIDField(), required=False, default=list, max_length=MAX_RUNS
    )


def experiment_answer(request: Request, experiment: Any) -> Experiment:
    """Return the answer for an experiment that `experiments_of` returned."""
    return Experiment(
        id=experiment.pk,
        url=reverse("experiment", args=[experiment.pk], request=request),
        team=experiment.team.slug,
        slug=experiment.slug,
        name=experiment.name,
        goal=experiment.goal,
        visibility=experiment.visibility,
        baseline=experiment.shown_baseline,
        count=experiment.run_count,
        created_at=experiment.created_at,
    )


def _with_runs(request: Request, pk: UUID) -> ExperimentWithRuns:
    experiment = visible_experiment(request, pk)
    members = ExperimentRun.objects.filter(seen_by(request.user, "run__"), experiment=experiment)
    rows = members.values_list(
        "run", "run__collection__slug", "run__team__slug", "run__tag", "added_at"
    )
    runs = [
        GroupedRun(id=run, collection=collection, team=team, tag=tag, added_at=added_at)
        for run, collection, team, tag, added_at in rows
    ]

    return ExperimentWithRuns(**experiment_answer(request, experiment), runs=runs)


class ExperimentFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    slug = django_filters.CharFilter()
    visibility = choice_filter(_Visibility.values)
    run = django_filters.UUIDFilter(method="with_run")
    collection = django_filters.CharFilter(method="with_collection")

    def with_run(self, experiments: QuerySet[Any], name: str, value: UUID) -> QuerySet[Any]:
        """Return the experiments that have a run, if the caller sees it."""
        members = ExperimentRun.objects.filter(seen_by(self.request.user, "run__"), run=value)
        return experiments.filter(pk__in=members.values("experiment"))

    def with_collection(self, experiments: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Return the experiments that have a run of a collection, if the caller sees it."""
        members = ExperimentRun.objects.filter(
            seen_by(self.request.user, "run__"), run__collection__slug=value
        )
        return experiments.filter(pk__in=members.values("experiment"))


def _may_create(request: Request, body: Any) -> bool:
    return bool(Team.objects.of(request.user).filter(slug=body["team"]).exists())


class ExperimentList(AnswerList[models.Experiment]):
    """The experiments that the caller sees, newest first; POST creates one of one of the caller's
    teams."""

    serializer_class = shape(Experiment)
    scopes = {"POST": Scope.SUBMIT}
    filterset_class = ExperimentFilter
    queryset = models.Experiment.objects.none()

    def get_queryset(self) -> QuerySet[models.Experiment]:
        return experiments_of(self.request.user)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response([experiment_answer(request, row) for row in page])

    @extend_schema(
        request=ExperimentSerializer,
        responses={201: shape(ExperimentWithRuns)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_create)
    def post(self, request: Request) -> Response:
        serializer = ExperimentSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        body = serializer.validated_data
        fields = {name: body[name] for name in ("slug", "goal", "visibility")}
        fields["name"] = body.get("name") or body["slug"]

        with transaction.atomic():
            experiment = create_experiment(
                team=body["team"],
                user=cast(User, request.user),
                fields=fields,
                runs=body["runs"],
                origin=origin_of(request),
            )

            data = _with_runs(request, experiment.pk)
            response = Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})
            idempotency.remember(request, lambda: response)

        return response


class ExperimentDetail(APIView):
    """One experiment with its runs; PATCH changes its name, goal, visibility and baseline, DELETE
    deletes it and no run."""

    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}

    @extend_schema(responses=shape(ExperimentWithRuns))
    def get(self, request: Request, experiment: UUID) -> Response:
        return Response(_with_runs(request, experiment))

    @extend_schema(request=ExperimentChangeSerializer, responses=shape(ExperimentWithRuns))
    def patch(self, request: Request, experiment: UUID) -> Response:
        visible = visible_experiment(request, experiment)
        serializer = ExperimentChangeSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        change_experiment(
            experiment=visible,
            user=cast(User, request.user),
            changes=serializer.validated_data,
            origin=origin_of(request),
        )

        return Response(_with_runs(request, experiment))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, experiment: UUID) -> Response:
        visible = visible_experiment(request, experiment)
        delete_experiment(
            experiment=visible, user=cast(User, request.user), origin=origin_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class ExperimentRuns(APIView):
    """Put runs into an experiment and take others out; the runs themselves stay as they are."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(request=ExperimentRunsSerializer, responses=shape(ExperimentWithRuns))
    def post(self, request: Request, experiment: UUID) -> Response:
        visible = visible_experiment(request, experiment)
        serializer = ExperimentRunsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        change_runs(
            experiment=visible,
            user=cast(User, request.user),
            add=serializer.validated_data["add"],
            remove=serializer.validated_data["remove"],
            origin=origin_of(request),
        )

        return Response(_with_runs(request, experiment))
