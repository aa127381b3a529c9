"""The API of systems, whose versions are runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict
from uuid import UUID

import django_filters
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, cautions_of, number
from metrics.questions.declared import SCORES
from metrics.questions.parameters import scores_in
from metrics.questions.systems import default_measure
from metrics.services.question import measure_in
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.progress import read_progress_of
from runs import models
from runs.api.tracking.edits import ChangedValue
from runs.api.tracking.systems import (
    System,
    SystemChangeSerializer,
    SystemSerializer,
    change_system_from,
    system_answer,
)
from runs.models import Collection, Run, Scope
from runs.services.tracking.systems import Version, collections_of, create_system, versions_of
from runs.web.access import check_scores, sees_scores, visible_system
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import text_of
from runs.web.shapes import shape


class SystemCollection(TypedDict):
    collection: str
    versions: Annotated[int, "that the caller sees"]
    last: Annotated[int, "the number of the last of these"]


class SystemVersion(TypedDict):
    """A version of a system in one collection."""

    version: Annotated[int, "counts from 1; withdrawn ones keep their number"]
    run: UUID
    tag: str
    created_at: datetime
    changed: Annotated[
        list[ChangedValue], "parameters and costs that differ from those of the version before it"
    ]


class VersionStep(TypedDict):
    """An evaluated version under one measure."""

    version: int
    run: UUID
    mean: float
    low: Annotated[float | None, "of the 95% interval of the mean"]
    high: float | None
    best_so_far: float
    equal_versions_reach: Annotated[
        float,
        "the best mean that as many versions equal to the first reach in 95% of samples of the "
        "topics",
    ]


class SystemProgress(TypedDict):
    """The evaluated versions of a collection, the first one first."""

    measure: str
    qrels: int
    scores: str
    topics: Annotated[int, "on which all versions have a value"]
    versions: list[VersionStep]
    best_so_far: float
    beyond_chance: Annotated[
        bool, "whether the best lies beyond what as many equal versions would reach"
    ]
    expected_best: Annotated[
        float | None,
        "mean of the best version on topics on which it was not chosen; null for a single version",
    ]
    cautions: list[Caution]


class SystemWithVersions(System):
    collections: Annotated[list[SystemCollection], "that of the newest version first"]
    collection: Annotated[str | None, "whose versions are listed"]
    results: Annotated[list[SystemVersion], "the first one first; the last 1,000"]
    progress: Annotated[
        SystemProgress | None,
        "null without evaluated versions, and while their judgements are blind",
    ]


class SystemFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    slug = django_filters.CharFilter()
    collection = django_filters.CharFilter(method="with_runs_in")

    def with_runs_in(
        self, systems: QuerySet[models.System], name: str, value: str
    ) -> QuerySet[models.System]:
        """Return the systems with a run in a collection that the reader sees."""
        runs = Run.objects.visible_to(self.request.user).filter(
            collection__slug=value, system__isnull=False
        )
        return systems.filter(pk__in=runs.values("system"))


class SystemList(AnswerList[models.System]):
    """The systems of the caller's teams, and those of which the caller sees a run; POST creates
    one."""

    scopes = {"POST": Scope.MANAGE}
    serializer_class = shape(System)
    answer = staticmethod(lambda system: system_answer(system, system.version_count))
    filterset_class = SystemFilter
    queryset = models.System.objects.none()

    def get_queryset(self) -> QuerySet[models.System]:
        if getattr(self, "swagger_fake_view", False):
            return self.queryset

        user = self.request.user
        versions = (
            Run.objects.visible_to(user).filter(system=OuterRef("pk")).order_by().values("system")
        )
        version_count = Coalesce(Subquery(versions.annotate(n=Count("pk")).values("n")), 0)
        systems = models.System.objects.visible_to(user).annotate(version_count=version_count)

        return systems.select_related("team").order_by("team__slug", "slug")

    @extend_schema(request=SystemSerializer, responses={201: shape(System)})
    def post(self, request: Request) -> Response:
        serializer = SystemSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        system = create_system(origin=origin_of(request), **serializer.validated_data)

        return Response(system_answer(system, 0), status.HTTP_201_CREATED)


class SystemDetail(APIView):
    """One system with its versions in one collection.

    PATCH describes it, and adds and removes versions.
    """

    scopes = {"PATCH": Scope.MANAGE}
    problems = (403,)

    @extend_schema(
        responses=shape(SystemWithVersions),
        parameters=[
            OpenApiParameter(
                "collection",
                OpenApiTypes.STR,
                description="whose versions to list; default: that of the newest one",
            ),
            OpenApiParameter(
                "measure",
                OpenApiTypes.STR,
                description="of the progress; default: the collection's first",
            ),
            SCORES,
        ],
    )
    def get(self, request: Request, team: str, system: str) -> Response:
        return Response(
            read_in_snapshot(lambda: _answer(request, visible_system(request, team, system)))
        )

    @extend_schema(request=SystemChangeSerializer, responses=shape(SystemWithVersions))
    def patch(self, request: Request, team: str, system: str) -> Response:
        changed_system = change_system_from(request, team, system, request.data)
        return Response(_answer(request, changed_system))


def _answer(request: Request, system: models.System) -> SystemWithVersions:
    counts = collections_of(system, request.user)
    slug = request.query_params.get("collection", "") if request.method == "GET" else ""
    named = [count.collection for count in counts if count.collection.slug == slug or not slug]
    if slug and not named:
        raise Http404(f"there is no version of {system} in a collection {slug[:64]!r}")

    collection = named[0] if named else None
    versions = versions_of(system, collection, request.user) if collection else []
    progress = _progress(request, system, collection) if collection else None

    return SystemWithVersions(
        **system_answer(system, sum(count.versions for count in counts)),
        collections=[
            SystemCollection(
                collection=count.collection.slug, versions=count.versions, last=count.last
            )
            for count in counts
        ],
        collection=collection.slug if collection else None,
        results=[_version(version) for version in versions],
        progress=progress,
    )


def _progress(
    request: Request, system: models.System, collection: Collection
) -> SystemProgress | None:
    """Return the means of the versions, or None if there are none that the caller sees.

    Raise Blind if the caller names a measure and must not see them.
    """
    parameters = text_of(request.query_params) if request.method == "GET" else {}
    named = bool(parameters.get("measure"))
    if named:
        check_scores(request, collection)

    if not (named or collection.active_qrels) or not sees_scores(request, collection):
        return None

    measure = measure_in(parameters, "measure", default_measure(collection), collection)
    progress = read_progress_of(
        system=system,
        collection=collection,
        measure=measure,
        reader=request.user,
        scores=scores_in(parameters),
    )
    if progress is None:
        return None

    return SystemProgress(
        measure=measure.name,
        qrels=progress.qrels.version,
        scores=progress.scores,
        topics=progress.topics,
        versions=[
            VersionStep(
                version=step.run.version or 0,
                run=step.run.pk,
                mean=step.mean,
                low=number(step.low),
                high=number(step.high),
                best_so_far=step.best,
                equal_versions_reach=step.reach,
            )
            for step in progress.steps
        ],
        best_so_far=progress.steps[-1].best,
        beyond_chance=progress.beyond,
        expected_best=progress.expected,
        cautions=cautions_of(progress.cautions),
    )


def _version(version: Version) -> SystemVersion:
    run = version.run
    changed = [
        ChangedValue(space=change.space, name=change.name, before=change.before, after=change.after)
        for change in version.changed
    ]

    return SystemVersion(
        version=run.version or 0,
        run=run.pk,
        tag=run.tag,
        created_at=run.created_at,
        changed=changed,
    )
