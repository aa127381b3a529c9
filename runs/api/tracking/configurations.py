"""The API of configurations: how runs were made, side by side, and what changed since a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.configurations import (
    MAX_RUNS,
    MIN_RUNS,
    Change,
    ComparedParameter,
    Configurations,
    read_configurations,
)
from runs.api.tracking.edits import AnyValue
from runs.errors import InvalidInput
from runs.models import Collection
from runs.services.tracking.labels import PREFIX, find_labelled
from runs.web.access import note_filter, visible_collection
from runs.web.parameters import text_of
from runs.web.shapes import Kind, shape

AnyValues = Annotated[
    list[Any],
    Kind(serializers.ListField, child=serializers.JSONField(allow_null=True)),
    "one of each run, null where it is not set",
]


PARAMETERS = [
    OpenApiParameter(
        "runs",
        description=f"run ids separated by commas, {MIN_RUNS} to {MAX_RUNS}; default: those of filter",
    ),
    OpenApiParameter(
        "filter", description="the runs that a filter of the leaderboard selects; default: all"
    ),
    OpenApiParameter("baseline", description="a run id: what changed in the others since"),
]


class ConfiguredRun(TypedDict):
    id: UUID
    team: str
    tag: str
    left_out: Annotated[int, "values that are kept without being searched, and so are not compared"]


class ParameterOfRuns(TypedDict):
    name: str
    unit: str
    values: AnyValues


class SharedParameter(TypedDict):
    name: str
    unit: str
    value: AnyValue


class ChangedParameter(TypedDict):
    name: str
    before: Annotated[AnyValue, "in the baseline"]
    after: AnyValue


class ParameterOfOne(TypedDict):
    name: str
    value: AnyValue


class ChangesOfRun(TypedDict):
    """What changed in a run since the baseline."""

    run: UUID
    changed: list[ChangedParameter]
    added: Annotated[list[ParameterOfOne], "which the baseline has not"]
    removed: Annotated[list[ParameterOfOne], "which only the baseline has"]


class ConfigurationsOfRuns(TypedDict):
    """How runs were made. Numbers that agree in 12 digits are equal; nothing is converted, and case counts."""

    collection: str
    baseline: UUID | None
    compared: Annotated[int, "parameters that differ or are the same"]
    runs: Annotated[list[ConfiguredRun], "the baseline first"]
    differ: list[ParameterOfRuns]
    same: Annotated[list[SharedParameter], "set to one value in every run"]
    ignored: Annotated[
        list[ParameterOfRuns], "those which do not say how a run was made, by their role"
    ]
    changes: NotRequired[
        Annotated[list[ChangesOfRun], "where there is a baseline, of each other run"]
    ]


class ConfigurationsView(APIView):
    """The parameters in which runs differ, those they share, and with a baseline what changed in each run since."""

    problems = (403,)

    @extend_schema(
        operation_id="configurations_retrieve",
        responses=shape(ConfigurationsOfRuns),
        parameters=PARAMETERS,
    )
    def get(self, request: Request, collection: str) -> Response:
        found = visible_collection(request, collection)
        asked = text_of(request.query_params)
        note_filter(request, found, asked.get("filter", ""))
        return Response(
            _answer(found, read_in_snapshot(lambda: configurations_in(asked, found, request.user)))
        )


def configurations_in(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> Configurations:
    """Return the configurations that a query string asks for: of `runs`, which may be named by labels, or of those
    that `filter` selects."""
    runs = [
        _run_id(text, "runs", collection, reader)
        for text in parameters.get("runs", "").split(",")
        if text.strip()
    ]
    text, baseline = parameters.get("filter", "").strip(), parameters.get("baseline", "")
    if runs and text:
        message = "runs names the runs and filter selects them: give only one of them"
        raise InvalidInput(message, code="repeated_parameter", pointer="filter")
    return read_configurations(
        collection=collection,
        reader=reader,
        runs=runs,
        filter=text,
        baseline=_run_id(baseline, "baseline", collection, reader) if baseline else None,
    )


def _run_id(text: str, name: str, collection: Collection, reader: Any) -> str:
    text = text.strip()
    if text.startswith(PREFIX):
        return str(find_labelled(collection=collection, reader=reader, text=text, pointer=name))
    try:
        return str(UUID(text))
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not the id of a run", pointer=name) from error


def _answer(collection: Collection, found: Configurations) -> ConfigurationsOfRuns:
    left_out = zip(found.runs, found.left_out, strict=True)
    answer = ConfigurationsOfRuns(
        collection=collection.slug,
        baseline=found.baseline.pk if found.baseline else None,
        compared=found.compared,
        runs=[
            ConfiguredRun(id=run.pk, team=run.team.slug, tag=run.tag, left_out=number)
            for run, number in left_out
        ],
        differ=[_of_runs(one) for one in found.differ],
        same=[
            SharedParameter(name=one.name, unit=one.unit, value=one.values[0]) for one in found.same
        ],
        ignored=[_of_runs(one) for one in found.ignored],
    )
    if found.baseline:
        changes = ((run.pk, found.changes(place)) for place, run in enumerate(found.runs) if place)
        answer["changes"] = [_changes(run, changed) for run, changed in changes]
    return answer


def _of_runs(one: ComparedParameter) -> ParameterOfRuns:
    return ParameterOfRuns(name=one.name, unit=one.unit, values=list(one.values))


def _changes(run: UUID, changes: list[Change]) -> ChangesOfRun:
    return ChangesOfRun(
        run=run,
        changed=[
            ChangedParameter(name=one.name, before=one.before, after=one.after)
            for one in changes
            if one.kind == "changed"
        ],
        added=[
            ParameterOfOne(name=one.name, value=one.after) for one in changes if one.kind == "added"
        ],
        removed=[
            ParameterOfOne(name=one.name, value=one.before)
            for one in changes
            if one.kind == "removed"
        ],
    )
