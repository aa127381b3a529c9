"""Input for session sets."""

from __future__ import annotations

from rest_framework import serializers

from runs.api import answers
from runs.api.serializers import CollectionTeam, TeamField, UploadSerializer
from runs.formats.sessions.reading import FORMATS
from runs.models import SessionSet
from runs.web.fields import ChoiceField, JSONObjectField
from runs.web.parameters import KnownFields


class SessionUploadSerializer(UploadSerializer):
    """A session log to create."""

    team = TeamField(default=CollectionTeam())
    format = ChoiceField(choices=tuple(FORMATS), required=False, default=None, allow_null=True)
    judged_by = ChoiceField(
        choices=SessionSet.JudgedBy.choices,
        required=False,
        default=SessionSet.JudgedBy.TOPIC,
        help_text="what the qrels have for a topic: the session's topic, the session, its queries; "
        "own: the log judges",
    )


class SessionSetSerializer(KnownFields, serializers.ModelSerializer[SessionSet]):
    """The fields of a session set that can be changed."""

    answered = answers.SessionSet
    metadata = JSONObjectField(required=False)

    class Meta:
        model = SessionSet
        fields = ("description", "metadata", "judged_by")
