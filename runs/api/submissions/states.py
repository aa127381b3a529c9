"""The states of many runs in one request, and when to ask for them again."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.queue.status import RunStatus, detailed_statuses, seconds_until_next
from runs.api import answers
from runs.errors import InvalidInput
from runs.models import Run, SessionSet
from runs.web.shapes import Id, shape

MAX_RUNS = 200


class RunState(answers.RunStatus):
    """The status of one of many runs."""

    id: Id


class RunStates(TypedDict):
    runs: Annotated[list[RunState], "in the order of the request"]
    missing: Annotated[list[Id], "ids of no run, of a withdrawn one, or of one that you cannot see"]


class RunStateList(APIView):
    """The states of up to 200 runs; while one is on its way, `Retry-After` says when to ask
    again."""

    @extend_schema(
        operation_id="runs_states",
        responses=shape(RunStates),
        parameters=[
            OpenApiParameter(
                "id", OpenApiTypes.STR, required=True, description="ids of runs with commas between"
            )
        ],
    )
    def get(self, request: Request) -> Response:
        ids = list(dict.fromkeys(_ids_in(request.query_params.get("id", ""))))
        visible = Run.objects.visible_to(request.user).select_related("collection")
        runs = {run.pk: run for run in visible.filter(pk__in=ids)}

        statuses = detailed_statuses(list(runs.values()), request.user)

        states, missing = [], []
        for pk in ids:
            if pk in runs:
                states.append(RunState(**answers.run_status(statuses[str(pk)]), id=str(pk)))
            else:
                missing.append(str(pk))

        response = Response(RunStates(runs=states, missing=missing))
        set_retry_after(response, Run, statuses, request)
        return response


def _ids_in(text: str) -> list[UUID]:
    """Return the ids between commas. Raise InvalidInput for none, too many, and any other text."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not 1 <= len(parts) <= MAX_RUNS:
        raise InvalidInput(
            f"id has {len(parts)} ids; name 1 to {MAX_RUNS} runs, as in id=ID,ID", pointer="id"
        )

    ids = []
    for part in parts:
        try:
            ids.append(UUID(part))
        except ValueError:
            raise InvalidInput(
                f"id={part[:40]}: this is not the id of a run", pointer="id"
            ) from None

    return ids


def set_retry_after(
    response: Response,
    kind: type[Run | SessionSet],
    statuses: dict[str, RunStatus],
    request: Request,
) -> None:
    """Set `Retry-After`, in whole seconds, if one of these statuses will change by itself."""
    seconds = seconds_until_next(kind, list(statuses.values()), request.user)
    if seconds is not None:
        response["Retry-After"] = str(round(seconds))
