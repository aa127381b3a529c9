"""The runs of the caller's teams, over all collections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from metrics.services.boards.matching import matching_everywhere
from metrics.services.queue.status import statuses
from runs.api import answers
from runs.models import Experiment, ExperimentRun, Run
from runs.models.collections.collections import exists_for
from runs.models.collections.disclosure import in_team_of
from runs.web.filters import RunFilter
from runs.web.shapes import shape


class MyRun(answers.Run):
    """A run of one of the caller's teams."""

    experiments: Annotated[list[str], "team/slug of the experiments that it is in"]
    withdrawn_at: Annotated[datetime | None, "null unless it was withdrawn"]


class MyRunFilter(RunFilter):
    """Filters of the caller's runs: `filter` is as for leaderboards, without states and means."""

    collection = django_filters.CharFilter(field_name="collection__slug")
    filter = django_filters.CharFilter(method="that_match")

    class Meta(RunFilter.Meta):
        fields: tuple[str, ...] = (  # type: ignore[assignment]
            "collection",
            *RunFilter.Meta.fields,
            "filter",
        )

    def that_match(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return matching_everywhere(value, self.request.user, runs)


def runs_of(user: Any, *, withdrawn: bool = False) -> QuerySet[Run]:
    """Return the live, or the withdrawn, runs of the user's teams in visible collections."""
    own = Run.objects.filter(in_team_of(user), exists_for(user, "collection__"))
    runs = own.exclude(deleted_at=None) if withdrawn else own.filter(deleted_at=None)
    return runs.select_related("team", "collection").prefetch_related("labels")


def experiments_by_run(user: Any, runs: Iterable[UUID]) -> dict[UUID, list[Experiment]]:
    """Return the experiments of each run that the user sees, by the run's id."""
    experiments = Experiment.objects.visible_to(user)
    pairs = ExperimentRun.objects.filter(
        run__in=list(runs), experiment__in=experiments
    ).select_related("experiment__team")

    grouped: dict[UUID, list[Experiment]] = {}
    for pair in pairs.order_by("experiment__slug", "experiment"):
        grouped.setdefault(pair.run_id, []).append(pair.experiment)
    return grouped


class MyRunList(generics.ListAPIView[Run]):
    """The runs of the caller's teams in all collections, newest first, without any values."""

    signed_in = True
    serializer_class = shape(MyRun)
    filterset_class = MyRunFilter
    queryset = Run.objects.none()
    withdrawn = False

    def get_queryset(self) -> QuerySet[Run]:
        return runs_of(self.request.user, withdrawn=self.withdrawn)

    @extend_schema(operation_id="me_runs_list")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        runs: Sequence[Run] = list(
            self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        )
        states = statuses(runs, request.user)
        experiments = experiments_by_run(request.user, [run.pk for run in runs])

        return self.get_paginated_response(
            [
                MyRun(
                    **answers.run(request, run, states[str(run.pk)]),
                    experiments=[str(experiment) for experiment in experiments.get(run.pk, [])],
                    withdrawn_at=run.deleted_at,
                )
                for run in runs
            ]
        )


class MyWithdrawnRunList(MyRunList):
    """The withdrawn runs of the caller's teams, newest first; until its file is deleted, a day
    later, each can be restored."""

    withdrawn = True

    @extend_schema(operation_id="me_withdrawn_runs_list")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)
