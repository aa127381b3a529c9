"""What can be said of systems, and changing them: of the API and of the page of a system."""

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


def system_answer(found: models.System, versions: int) -> System:
    return System(
        team=found.team.slug,
        slug=found.slug,
        name=found.name,
        description=found.description,
        versions=versions,
        created_at=found.created_at,
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
        child=serializers.UUIDField(), required=False, max_length=MAX_VERSIONS,
        help_text="runs of the system's team that become its next versions, in the order of their submission",
    )  # fmt: skip
    remove = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=MAX_VERSIONS,
        help_text="runs that are no versions of it any more; the others keep their numbers",
    )  # fmt: skip


def change_by(request: Request, team: str, system: str, given: Any) -> models.System:
    """Change a system of the caller's teams as a request says: describe it, add and remove versions."""
    with transaction.atomic():
        seen = owned_system(request, team, system)
        found = (
            models.System.objects.select_for_update(of=("self",))
            .select_related("team")
            .get(pk=seen.pk)
        )
        serializer = SystemChangeSerializer(data=given)
        serializer.is_valid(raise_exception=True)
        changes, origin = dict(serializer.validated_data), origin_of(request)
        added, removed = (
            _runs_of(request, found, changes.pop(name, []), name) for name in ("add", "remove")
        )
        change_system(system=found, changes=changes, origin=origin)
        remove_versions(system=found, runs=removed, origin=origin)
        add_versions(system=found, runs=added, origin=origin)
    return found


def _runs_of(request: Request, system: models.System, wanted: list[UUID], name: str) -> list[Run]:
    """Return the runs of these ids. Raise InvalidInput for one that the caller does not see, or of another team."""
    seen = Run.objects.visible_to(request.user).filter(pk__in=wanted).select_related("team")
    found = {run.pk: run for run in seen}
    for pk in wanted:
        if pk not in found:
            raise InvalidInput(f"there is no run {pk}", code="unknown_run", pointer=f"/{name}")
        if found[pk].team_id != system.team_id:
            message = f"run {found[pk].tag} is team {found[pk].team}'s; the versions of a system are of its own team"
            raise InvalidInput(message, pointer=f"/{name}")
    return list(found.values())
