"""The API of configurations: how runs were made, side by side, and changes since a baseline."""

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
        description=f"run ids separated by commas, {MIN_RUNS} to {MAX_RUNS}; "
        "default: those of filter",
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
    """How runs were made. Numbers that agree in 12 digits are equal; nothing is converted, and case
    counts."""

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
    """The parameters in which runs differ, those they share, and with a baseline what changed in
    each run since."""

    problems = (403,)

    @extend_schema(
        operation_id="configurations_retrieve",
        responses=shape(ConfigurationsOfRuns),
        parameters=PARAMETERS,
    )
    def get(self, request: Request, collection: str) -> Response:
        visible = visible_collection(request, collection)
        parameters = text_of(request.query_params)
        note_filter(request, visible, parameters.get("filter", ""))
        configurations = read_in_snapshot(
            lambda: configurations_in(parameters, visible, request.user)
        )

        return Response(_answer(visible, configurations))


def configurations_in(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> Configurations:
    """Return the configurations that a query string asks for.

    They are of `runs`, which may be named by labels, or of the runs that `filter` selects.
    """
    runs = [
        _run_id(text, "runs", collection, reader)
        for text in parameters.get("runs", "").split(",")
        if text.strip()
    ]

    filter_text, baseline = parameters.get("filter", "").strip(), parameters.get("baseline", "")
    if runs and filter_text:
        message = "runs names the runs and filter selects them: give only one of them"
        raise InvalidInput(message, code="repeated_parameter", pointer="filter")

    return read_configurations(
        collection=collection,
        reader=reader,
        runs=runs,
        filter=filter_text,
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


def _answer(collection: Collection, configurations: Configurations) -> ConfigurationsOfRuns:
    answer = ConfigurationsOfRuns(
        collection=collection.slug,
        baseline=configurations.baseline.pk if configurations.baseline else None,
        compared=configurations.compared,
        runs=[
            ConfiguredRun(id=run.pk, team=run.team.slug, tag=run.tag, left_out=number)
            for run, number in zip(configurations.runs, configurations.left_out, strict=True)
        ],
        differ=[_parameter_of_runs(parameter) for parameter in configurations.differ],
        same=[
            SharedParameter(name=parameter.name, unit=parameter.unit, value=parameter.values[0])
            for parameter in configurations.same
        ],
        ignored=[_parameter_of_runs(parameter) for parameter in configurations.ignored],
    )

    if configurations.baseline:
        # The baseline is the first run.
        answer["changes"] = [
            _changes_of_run(run.pk, configurations.changes(place))
            for place, run in enumerate(configurations.runs)
            if place
        ]

    return answer


def _parameter_of_runs(parameter: ComparedParameter) -> ParameterOfRuns:
    return ParameterOfRuns(name=parameter.name, unit=parameter.unit, values=list(parameter.values))


def _changes_of_run(run: UUID, changes: list[Change]) -> ChangesOfRun:
    answer = ChangesOfRun(run=run, changed=[], added=[], removed=[])
    for change in changes:
        name, before, after = change.name, change.before, change.after
        if change.kind == "changed":
            answer["changed"].append(ChangedParameter(name=name, before=before, after=after))
        elif change.kind == "added":
            answer["added"].append(ParameterOfOne(name=name, value=after))
        elif change.kind == "removed":
            answer["removed"].append(ParameterOfOne(name=name, value=before))

    return answer
