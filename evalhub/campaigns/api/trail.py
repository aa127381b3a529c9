"""The API of the audit trail of a campaign, as JSON and as a file, for its organisers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from evalhub.campaigns.questions.lookup import organised_campaign
from evalhub.campaigns.services.trail import ACTIONS, Subject, events_of, subjects_of
from runs.errors import InvalidInput
from runs.formats.comma_separated import write_csv
from runs.models import AuditEvent
from runs.web.fields import JSONObject
from runs.web.filters import MomentFilter, choice_filter
from runs.web.lists import AnswerList
from runs.web.permissions import Access
from runs.web.shapes import shape

_FORMATS = ("json", "csv")
# Limit of the rows of a file.
MAX_ROWS = 20_000


class CampaignEvent(TypedDict):
    """An act in a campaign, or what the service did by the clock. The address of its request is for staff alone."""

    time: datetime
    action: str
    actor: Annotated[str, "user name; empty: the service itself, or a command on the server"]
    about: Annotated[str, "in words"]
    phase: Annotated[str | None, "slug; null: of no phase"]
    team: Annotated[str | None, "slug; null: of no team"]
    object_type: str
    object_id: str
    before: JSONObject
    after: JSONObject
    request_id: str


# Columns of a file.
_COLUMNS = list(CampaignEvent.__annotations__)


class TrailFilter(django_filters.FilterSet):  # type: ignore[misc]
    action = choice_filter(ACTIONS)
    actor = django_filters.CharFilter()
    after = MomentFilter(field_name="time", lookup_expr="gte")
    before = MomentFilter(field_name="time", lookup_expr="lt")

    class Meta:
        model = AuditEvent
        fields = ("action", "actor", "after", "before")


class CampaignTrail(AnswerList[AuditEvent]):
    """Every act in a campaign, newest first, for its organisers; with `format=csv` all of them as a file."""

    access = {"GET": Access.ORGANISERS}
    serializer_class = shape(CampaignEvent)
    filterset_class = TrailFilter
    signed_in = True
    problems = (403,)
    queryset = AuditEvent.objects.none()
    subjects: dict[tuple[str, str], Subject]

    def get_queryset(self) -> QuerySet[AuditEvent]:
        if getattr(self, "swagger_fake_view", False):
            return AuditEvent.objects.none()

        campaign = organised_campaign(self.request, self.kwargs["campaign"])
        self.subjects = subjects_of(campaign)
        choices = {name: self.request.query_params.get(name, "") for name in ("phase", "team")}

        return events_of(campaign, self.subjects, **choices)

    def answer(self, event: AuditEvent) -> CampaignEvent:
        return event_answer(event, self.subjects[event.object_type, event.object_id])

    @extend_schema(
        responses={
            (200, "application/json"): shape(CampaignEvent),
            (200, "text/csv"): OpenApiTypes.STR,
        },
        parameters=[
            OpenApiParameter(
                "phase", description="slug: of the phase, its entries, releases and snapshots"
            ),
            OpenApiParameter("team", description="slug: of the team and its entries"),
            OpenApiParameter("format", enum=_FORMATS, description="default: json"),
        ],
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        form = request.query_params.get("format", "json")
        if form not in _FORMATS:
            raise InvalidInput(
                f"format={form[:40]}: use json or csv", code="bad_parameter", pointer="format"
            )

        if form == "json":
            return super().get(request, *args, **kwargs)

        rows = self.filter_queryset(self.get_queryset())
        if rows.count() > MAX_ROWS:
            message = (
                f"more than {MAX_ROWS:,} events: "
                "choose some by action, phase, team, after or before"
            )
            raise InvalidInput(message, code="too_many_rows", pointer="format")

        text = "".join(write_csv(_COLUMNS, (_csv_row(self.answer(event)) for event in rows)))
        response = HttpResponse(text, content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{kwargs["campaign"]}-trail.csv"'

        return response


def event_answer(event: AuditEvent, subject: Subject) -> CampaignEvent:
    return CampaignEvent(
        time=event.time,
        action=event.action,
        actor=event.actor,
        about=subject.words,
        phase=subject.phase,
        team=subject.team,
        object_type=event.object_type,
        object_id=event.object_id,
        before=event.before,
        after=event.after,
        request_id=event.request_id,
    )


def _csv_row(event: CampaignEvent) -> list[Any]:
    """Return the cells of an event, with its time in UTC, and before and after as JSON."""
    time = event["time"].astimezone(UTC).isoformat().replace("+00:00", "Z")
    changes = {name: json.dumps(event[name], sort_keys=True) for name in ("before", "after")}
    return [{**event, "time": time, **changes}[name] for name in _COLUMNS]
