"""The general settings of a collection: its name, team, visibility and the meaning of levels."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.request import Request

from runs.errors import InvalidInput
from runs.models import Collection, Team
from runs.pages.collections.collections import VISIBILITIES
from runs.pages.collections.manage.sections import ChangingSection, change_fields, tag_of
from runs.web.forms import fields_of

_LEVEL = re.compile(r"\s*(-?[0-9]{1,4})\s*=\s*(.*\S)\s*")


class GeneralPage(ChangingSection):
    """Edit the description of a collection."""

    address, template = "manage-page", "runs/manage/general.html"
    fields = ("name", "description", "team", "visibility", "level_labels", "seen")

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        stored = {
            "name": collection.name,
            "description": collection.description,
            "team": collection.team.slug,
            "visibility": collection.visibility,
            "level_labels": labels_as_lines(collection.level_labels),
        }

        teams = list(Team.objects.led_by(request.user))
        if collection.team not in teams:
            # Staff manage collections of teams that they do not own.
            teams.append(collection.team)

        fields = fields_of(request, *stored) if request.method == "POST" else {}
        return {
            "teams": teams,
            "visibilities": VISIBILITIES,
            "seen": tag_of(collection),
            "form_values": {**stored, **fields},
        }

    def change(self, request: Request, collection: Collection) -> str:
        fields: dict[str, Any] = fields_of(request, "name", "description", "team", "visibility")
        if fields.get("team") == collection.team.slug:
            # Unchanged: staff may leave a team that is not theirs.
            del fields["team"]

        if "level_labels" in request.data:
            fields["level_labels"] = labels_in(str(request.data["level_labels"]))
        change_fields(request, collection, fields, str(request.data.get("seen", "")))
        return "Changes saved."


def labels_as_lines(labels: dict[str, Any]) -> str:
    return "\n".join(f"{level} = {label}" for level, label in labels.items())


def labels_in(text: str) -> dict[str, str]:
    """Return the labels of lines such as `1 = relevant`.

    Raise InvalidInput, with the number of the line, for a line of another form.
    """
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue

        match = _LEVEL.fullmatch(line)
        if not match:
            message = (
                f"line {number}: write a level, an equals sign and what it means, "
                "as in: 1 = relevant"
            )
            raise InvalidInput(message, pointer="/level_labels")

        level = str(int(match[1]))
        if level in labels:
            raise InvalidInput(
                f"line {number}: level {level} is given twice", pointer="/level_labels"
            )
        labels[level] = match[2]

    return labels
