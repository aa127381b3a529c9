"""The API of campaigns as files: read one as JSON or YAML, and apply one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict, cast

from django.db.models import Model
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.inputs import (
    AgreementSerializer,
    CampaignChangeSerializer,
    PhaseSerializer,
)
from evalhub.campaigns.questions.lookup import organised_campaign
from evalhub.campaigns.services.configuration import Change, CheckedConfig, apply_config
from evalhub.campaigns.services.forms import read_form, read_run_types
from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.formats.yaml_values import written_yaml
from runs.models import Agreement, Campaign, Collection, Phase, Scope, User
from runs.web.fields import JSONObject, JSONObjectField
from runs.web.json_bodies import JSONParser, YAMLParser
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import Kind, shape

_FORMATS = ("json", "yaml")
_FIELD_READERS = {"form": read_form, "run_types": read_run_types}


class CampaignConfig(TypedDict):
    """A campaign as a file: what its organisers set, without people, runs and what was done by acts."""

    slug: Annotated[str, "that of the address"]
    campaign: Annotated[JSONObject, "what PATCH campaigns/{campaign}/ takes"]
    agreements: Annotated[list[JSONObject], "what POST campaigns/{campaign}/agreements/ takes"]
    phases: Annotated[list[JSONObject], "what POST campaigns/{campaign}/phases/ takes"]


_Value = Annotated[Any, Kind(serializers.JSONField, allow_null=True)]
# `from` is a word of Python, so that this is no class.
ConfigChange = TypedDict(
    "ConfigChange",
    {
        "path": Annotated[str, "in the file, such as phases[0].closes_at"],
        "from": Annotated[_Value, "null: it is new"],
        "to": Annotated[_Value, "null: it is left out"],
        "allowed": bool,
        "why": Annotated[str | None, "why it is not allowed"],
    },
)
ConfigChange.__doc__ = "A difference between a file and the campaign."


class ConfigChanges(TypedDict):
    """What a file changes, or would change; nothing is changed unless all of it is allowed."""

    dry_run: bool
    changes: list[ConfigChange]


class ConfigSerializer(KnownFields, serializers.Serializer[Any]):
    """A campaign as a file. A part or a field that is left out stays as it is; a phase or an agreement that is left out
    of its list is refused, because neither is ever deleted."""

    slug = serializers.CharField(required=False, max_length=64, help_text="that of the address")
    campaign = JSONObjectField(required=False, help_text="what PATCH campaigns/{campaign}/ takes")
    agreements = serializers.ListField(child=JSONObjectField(), required=False, max_length=100)
    phases = serializers.ListField(child=JSONObjectField(), required=False, max_length=100)


class CampaignConfigView(APIView):
    """A campaign as a file, for its organisers; PUT makes the campaign what a file says, all or nothing."""

    scopes = {"PUT": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    parser_classes = (JSONParser, YAMLParser)
    signed_in = True
    problems = (403,)

    @extend_schema(
        responses={
            (200, kind): shape(CampaignConfig) for kind in ("application/json", "application/yaml")
        },
        parameters=[OpenApiParameter("format", enum=_FORMATS, description="default: json")],
    )
    def get(self, request: Request, campaign: str) -> Any:
        organised = organised_campaign(request, campaign)
        form = request.query_params.get("format", "json")
        if form not in _FORMATS:
            raise InvalidInput(
                f"format={form[:40]}: use json or yaml", code="bad_parameter", pointer="format"
            )

        config = config_of(organised)
        if form == "json":
            return Response(config)

        answer = HttpResponse(written_yaml(config), content_type="application/yaml")
        answer["Content-Disposition"] = f'attachment; filename="{organised.slug}.yaml"'

        return answer

    @extend_schema(
        request={"application/json": ConfigSerializer, "application/yaml": OpenApiTypes.STR},
        responses=shape(ConfigChanges),
        parameters=[OpenApiParameter("dry_run", bool, description="only say what would change")],
    )
    def put(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        text = request.query_params.get("dry_run", "false")
        if text not in ("true", "false"):
            raise InvalidInput(f"dry_run={text[:40]}: dry_run is true or false", pointer="dry_run")

        dry_run = text == "true"
        changes = apply_config(
            campaign=organised,
            config=read_config(request.data, request, organised),
            user=cast(User, request.user),
            dry_run=dry_run,
            origin=origin_of(request),
        )

        return Response(
            ConfigChanges(dry_run=dry_run, changes=[change_answer(change) for change in changes])
        )


def config_of(campaign: Campaign) -> CampaignConfig:
    """Return what the organisers of a campaign have set, as PATCH and POST take it."""
    phases = campaign.phases.select_related("collection").order_by("place", "opens_at", "pk")
    agreements = campaign.agreements.order_by("created_at", "pk")

    return CampaignConfig(
        slug=campaign.slug,
        campaign=_fields_of(campaign, CampaignChangeSerializer()),
        agreements=[_fields_of(agreement, AgreementSerializer()) for agreement in agreements],
        phases=[{"slug": phase.slug, **_fields_of(phase, PhaseSerializer())} for phase in phases],
    )


def _fields_of(row: Model, serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    """Return the fields of a serializer as a model has them."""
    names = [str(name) for name in serializer.fields]
    return {name: _plain(getattr(row, name)) for name in names if hasattr(row, name)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Collection):
        return value.slug
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}

    return value


def change_answer(change: Change) -> ConfigChange:
    """Return a change as the API answers it."""
    reason = change.refused.message if change.refused else None
    return {
        "path": change.path,
        "from": _plain(change.before),
        "to": _plain(change.after),
        "allowed": reason is None,
        "why": reason,
    }


def read_config(content: Any, request: Request, campaign: Campaign) -> CheckedConfig:
    """Return the configuration in a file, with each part read by the serializer of its address.

    Raise InvalidInput or ValidationError with the place in the file as its pointer.
    """
    root = ConfigSerializer(data=content)
    root.is_valid(raise_exception=True)
    parts, context = root.validated_data, {"request": request}
    if parts.get("slug", campaign.slug) != campaign.slug:
        message = f"the file is that of campaign {parts['slug'][:64]!r}; this is {campaign.slug}"
        raise InvalidInput(message, pointer="/slug")

    campaign_fields = None
    if "campaign" in parts:
        with _within("campaign"):
            campaign_fields = _validated(
                CampaignChangeSerializer(campaign, parts["campaign"], partial=True, context=context)
            )

    agreements, phases = parts.get("agreements"), parts.get("phases")
    if agreements is not None:
        agreements = [_read_agreement(row, place) for place, row in enumerate(agreements)]

    if phases is not None:
        existing = {phase.slug: phase for phase in campaign.phases.all()}
        phases = [_read_phase(row, place, existing, context) for place, row in enumerate(phases)]
        slugs = [row["slug"] for row in phases]

        for place, slug in enumerate(slugs):
            if slug in slugs[:place]:
                raise InvalidInput(
                    f"phase {slug} is in the file twice", pointer=f"/phases/{place}/slug"
                )

    return CheckedConfig(campaign=campaign_fields, agreements=agreements, phases=phases)


def _read_agreement(raw: Mapping[str, Any], place: int) -> dict[str, Any]:
    with _within("agreements", place):
        fields = _validated(AgreementSerializer(data=raw))
    return {"required_of": Agreement.RequiredOf.EACH_MEMBER, **fields}


def _read_phase(
    raw: Mapping[str, Any], place: int, existing: Mapping[str, Phase], context: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of a phase: all required ones if it is new, any of them if it exists."""
    phase = existing.get(str(raw.get("slug", "")))
    with _within("phases", place):
        fields = _validated(PhaseSerializer(phase, raw, partial=phase is not None, context=context))
        return fields | {
            name: read(fields[name]) for name, read in _FIELD_READERS.items() if name in fields
        }


def _validated(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


@contextmanager
def _within(part: str, place: int | None = None) -> Iterator[None]:
    """Prefix the pointers of errors with the place in the file."""
    try:
        yield
    except ValidationError as error:
        detail = {part: error.detail if place is None else {str(place): error.detail}}
        raise ValidationError(cast(Any, detail)) from error
    except EvalHubError as error:
        error.pointer = f"/{part}{'' if place is None else f'/{place}'}{error.pointer or ''}"
        raise
