"""Read what requests say about assignments, files of judgements, adjudications and new versions."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from rest_framework import serializers

from evalhub.pools.services.importing import FORMATS, QRELS, ImportOptions
from evalhub.pools.services.resolving import NewAdjudication, Rule
from runs.errors import InvalidInput
from runs.models import Qrels, User
from runs.models.text import check_line, check_text
from runs.web.fields import ChoiceField
from runs.web.parameters import KnownFields, check_fields

_MAX_LISTED = 10_000
_MAX_ID = 1024
_MAX_COPIES = 100
_MAX_LEVEL = 1_000_000


def _line(most: int, help_text: str) -> serializers.CharField:
    return serializers.CharField(
        max_length=most,
        required=False,
        default="",
        allow_blank=True,
        validators=[check_line],
        help_text=help_text,
    )


def _note(most: int) -> serializers.CharField:
    return serializers.CharField(
        max_length=most, required=False, default="", allow_blank=True, validators=[check_text]
    )


class AssignmentSerializer(KnownFields, serializers.Serializer[Any]):
    """Topics for an assessor. `assessor` of the validated data is a User."""

    assessor = serializers.CharField(max_length=150, help_text="a user name")
    topics = serializers.ListField(
        child=serializers.CharField(max_length=_MAX_ID),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=_MAX_LISTED,
        help_text="ids; default: all topics of the pool",
    )
    copies = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_COPIES,
        required=False,
        allow_null=True,
        help_text="how many assessors judge a document of the topic; default: 1",
    )
    overlap = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="share of the documents with several assessors, from 0 to 1; default: 1",
    )
    due_at = serializers.DateTimeField(required=False, allow_null=True, default=None)

    def validate_assessor(self, name: str) -> User:
        user = User.objects.filter(username=name, is_active=True).first()
        if user is None:
            message = f"there is no user {name!r}; write a user name"
            raise InvalidInput(message, code="unknown_user", pointer="/assessor")
        return user

    def validate_overlap(self, overlap: float | None) -> float | None:
        if overlap is not None and not 0 <= overlap <= 1:
            raise serializers.ValidationError("a share is from 0 to 1, as in 0.2")
        return overlap


class JudgementsUploadSerializer(KnownFields, serializers.Serializer[Any]):
    """A file of judgements. `options` of the validated data are ImportOptions."""

    file = serializers.FileField(allow_empty_file=True)
    assessor = _line(150, "who judged the lines that name no assessor")
    aspect = _line(64, "what was judged, of lines that name no aspect; default: relevance")
    format = ChoiceField(choices=FORMATS, required=False, default=QRELS)
    iteration = ChoiceField(
        choices=Qrels.Iteration.choices,
        required=False,
        default=None,
        allow_null=True,
        help_text="what the second column of qrels is; default: subtopic where the judgements of "
        "the collection have subtopics, else ignore",
    )
    scale = serializers.CharField(
        max_length=200,
        required=False,
        default="",
        allow_blank=True,
        help_text="values of the file from level 0, as in 0,0.5,1; default: they are levels",
    )
    allow_outside = serializers.BooleanField(
        required=False, default=False, help_text="store documents that are not in the pool"
    )
    dry_run = serializers.BooleanField(required=False, default=False)

    def validate_scale(self, text: str) -> tuple[float, ...]:
        try:
            steps = tuple(float(part) for part in text.split(",")) if text else ()
        except ValueError:
            steps = (math.nan,)
        ascending = all(low < high for low, high in pairwise(steps))
        if not ascending or not all(map(math.isfinite, steps)):
            message = "write ascending numbers with commas between, as in 0,0.5,1"
            raise serializers.ValidationError(message)
        return steps

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        names = ("format", "assessor", "aspect", "iteration", "scale", "allow_outside")
        return {**fields, "options": ImportOptions(**{name: fields[name] for name in names})}


class AdjudicationSerializer(KnownFields, serializers.Serializer[Any]):
    """The level of a document on which assessors differ."""

    topic_id = serializers.CharField(max_length=_MAX_ID)
    doc_id = serializers.CharField(max_length=_MAX_ID)
    level = serializers.IntegerField(min_value=0, max_value=_MAX_LEVEL)
    aspect = _line(64, "default: relevance")
    note = _note(2000)


def adjudications_of(data: Any) -> list[NewAdjudication]:
    """Return the decisions of a request. Raise ValidationError for what is none."""
    for place, decision in enumerate(data if isinstance(data, list) else ()):
        check_fields(decision, list(AdjudicationSerializer().fields), place=f"/{place}")

    serializer = AdjudicationSerializer(data=data, many=True, allow_empty=False)
    serializer.is_valid(raise_exception=True)
    return [NewAdjudication(**fields) for fields in serializer.validated_data]


class JudgedQrelsSerializer(KnownFields, serializers.Serializer[Any]):
    """How the judgements of a pool become a version."""

    resolve = ChoiceField(
        choices=[str(rule) for rule in Rule],
        required=False,
        default=str(Rule.ADJUDICATED),
        help_text="how several levels of a document become one",
    )
    aspect = _line(64, "default: relevance")
    activate = serializers.BooleanField(required=False, default=True)
    ignore_sampling = serializers.BooleanField(
        required=False,
        default=False,
        help_text="of a pool with strata: evaluate by all measures, with documents that were not "
        "drawn as not relevant",
    )
    note = _note(500)
    author_kind = ChoiceField(
        choices=Qrels.AuthorKind.choices[1:],
        required=False,
        default=Qrels.AuthorKind.PERSON,
        help_text="who judged: persons, a model, clicks, or several of these",
    )
    author = _line(200, "the name of the judge, for all who see the version")
    model = _line(200, "the model that judged, with its version")
