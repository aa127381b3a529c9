"""Answers and changes of systems, for the API and for the page of a system."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request

from runs import models
from runs.api.serializers import PersonalTeam, TeamField
from runs.errors import InvalidInput
from runs.models import Run
from runs.models.submissions.runs import SYSTEM_RULE, SYSTEM_RULE_MESSAGE
from runs.models.text import check_line, check_text
from runs.services.tracking.systems import (
    MAX_VERSIONS,
    add_versions,
    change_system,
    remove_versions,
)
from runs.web.access import owned_system
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields


class System(TypedDict):
    team: str
    slug: str
    name: str
    description: str
    versions: Annotated[int, "runs that the caller sees, of every collection"]
    created_at: datetime


def system_answer(system: models.System, versions: int) -> System:
    return System(
        team=system.team.slug,
        slug=system.slug,
        name=system.name,
        description=system.description,
        versions=versions,
        created_at=system.created_at,
    )


class SystemSerializer(KnownFields, serializers.Serializer[Any]):
    """A system to create."""

    answered = System
    team = TeamField(default=PersonalTeam())
    slug = serializers.RegexField(
        rf"\A{SYSTEM_RULE}\Z", error_messages={"invalid": SYSTEM_RULE_MESSAGE}
    )
    name = serializers.CharField(
        max_length=200,
        required=False,
        default="",
        allow_blank=True,
        validators=[check_line, check_text],
    )
    description = serializers.CharField(
        max_length=20_000, required=False, default="", allow_blank=True, validators=[check_text]
    )


class SystemChangeSerializer(KnownFields, serializers.Serializer[Any]):
    """What can be changed of a system."""

    answered = System
    name = serializers.CharField(
        max_length=200, required=False, allow_blank=True, validators=[check_line, check_text]
    )
    description = serializers.CharField(
        max_length=20_000, required=False, allow_blank=True, validators=[check_text]
    )
    add = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=MAX_VERSIONS,
        help_text="runs of the system's team that become its next versions, "
        "in the order of their submission",
    )
    remove = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=MAX_VERSIONS,
        help_text="runs that are no versions of it any more; the others keep their numbers",
    )


def change_system_from(request: Request, team: str, system: str, data: Any) -> models.System:
    """Change a system of the caller's teams as a request says: its description and versions."""
    with transaction.atomic():
        owned = owned_system(request, team, system)
        rows = models.System.objects.select_for_update(of=("self",)).select_related("team")
        row = rows.get(pk=owned.pk)

        serializer = SystemChangeSerializer(data=data)
        serializer.is_valid(raise_exception=True)
        changes, origin = dict(serializer.validated_data), origin_of(request)
        added = _runs_of(request, row, changes.pop("add", []), "add")
        removed = _runs_of(request, row, changes.pop("remove", []), "remove")

        change_system(system=row, changes=changes, origin=origin)
        remove_versions(system=row, runs=removed, origin=origin)
        add_versions(system=row, runs=added, origin=origin)

    return row


def _runs_of(request: Request, system: models.System, pks: list[UUID], name: str) -> list[Run]:
    """Return the runs with these ids.

    Raise InvalidInput for one that the caller does not see, or that belongs to another team.
    """
    visible = Run.objects.visible_to(request.user).filter(pk__in=pks).select_related("team")
    runs = {run.pk: run for run in visible}
    for pk in pks:
        if pk not in runs:
            raise InvalidInput(f"there is no run {pk}", code="unknown_run", pointer=f"/{name}")
        if runs[pk].team_id != system.team_id:
            message = (
                f"run {runs[pk].tag} is team {runs[pk].team}'s; "
                "the versions of a system are of its own team"
            )
            raise InvalidInput(message, pointer=f"/{name}")

    return list(runs.values())
