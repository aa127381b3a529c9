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
_SHAPED = {"form": read_form, "run_types": read_run_types}


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
        found, asked = (
            organised_campaign(request, campaign),
            request.query_params.get("format", "json"),
        )
        if asked not in _FORMATS:
            raise InvalidInput(
                f"format={asked[:40]}: use json or yaml", code="bad_parameter", pointer="format"
            )

        config = config_of(found)
        if asked == "json":
            return Response(config)

        answer = HttpResponse(written_yaml(config), content_type="application/yaml")
        answer["Content-Disposition"] = f'attachment; filename="{found.slug}.yaml"'

        return answer

    @extend_schema(
        request={"application/json": ConfigSerializer, "application/yaml": OpenApiTypes.STR},
        responses=shape(ConfigChanges),
        parameters=[OpenApiParameter("dry_run", bool, description="only say what would change")],
    )
    def put(self, request: Request, campaign: str) -> Response:
        found, asked = (
            organised_campaign(request, campaign),
            request.query_params.get("dry_run", "false"),
        )
        if asked not in ("true", "false"):
            raise InvalidInput(f"dry_run={asked[:40]}: dry_run is true or false", pointer="dry_run")

        user, dry_run, config = (
            cast(User, request.user),
            asked == "true",
            read_config(request.data, request, found),
        )
        origin = origin_of(request)
        changes = apply_config(
            campaign=found, config=config, user=user, dry_run=dry_run, origin=origin
        )

        return Response(ConfigChanges(dry_run=dry_run, changes=[change_of(one) for one in changes]))


def config_of(found: Campaign) -> CampaignConfig:
    """Return what the organisers of a campaign have set, as PATCH and POST take it."""
    phases = found.phases.select_related("collection").order_by("place", "opens_at", "pk")
    agreements = found.agreements.order_by("created_at", "pk")

    return CampaignConfig(
        slug=found.slug,
        campaign=_set(found, CampaignChangeSerializer()),
        agreements=[_set(one, AgreementSerializer()) for one in agreements],
        phases=[{"slug": one.slug, **_set(one, PhaseSerializer())} for one in phases],
    )


def _set(found: Model, serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    """Return the fields of a serializer as a model has them."""
    names = [str(name) for name in serializer.fields]
    return {name: _plain(getattr(found, name)) for name in names if hasattr(found, name)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Collection):
        return value.slug
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}

    return value


def change_of(change: Change) -> ConfigChange:
    """Return a change as the API tells it."""
    why = change.refused.message if change.refused else None
    before, after = _plain(change.before), _plain(change.after)
    return {"path": change.path, "from": before, "to": after, "allowed": why is None, "why": why}


def read_config(content: Any, request: Request, found: Campaign) -> CheckedConfig:
    """Return the configuration that a file has, each part read by the serializer of its own address. Raise InvalidInput
    or ValidationError, whose pointer is the place in the file."""
    root = ConfigSerializer(data=content)
    root.is_valid(raise_exception=True)
    given, context = root.validated_data, {"request": request}
    if given.get("slug", found.slug) != found.slug:
        message = f"the file is that of campaign {given['slug'][:64]!r}; this is {found.slug}"
        raise InvalidInput(message, pointer="/slug")

    campaign = None
    if "campaign" in given:
        with _at("campaign"):
            campaign = _read(
                CampaignChangeSerializer(found, given["campaign"], partial=True, context=context)
            )

    agreements, phases = given.get("agreements"), given.get("phases")
    if agreements is not None:
        agreements = [_agreement(one, place) for place, one in enumerate(agreements)]

    if phases is not None:
        there = {phase.slug: phase for phase in found.phases.all()}
        phases = [_phase(one, place, there, context) for place, one in enumerate(phases)]
        slugs = [one["slug"] for one in phases]

        for place, slug in enumerate(slugs):
            if slug in slugs[:place]:
                raise InvalidInput(
                    f"phase {slug} is in the file twice", pointer=f"/phases/{place}/slug"
                )

    return CheckedConfig(campaign=campaign, agreements=agreements, phases=phases)


def _agreement(given: Mapping[str, Any], place: int) -> dict[str, Any]:
    with _at("agreements", place):
        fields = _read(AgreementSerializer(data=given))
    return {"required_of": Agreement.RequiredOf.EACH_MEMBER, **fields}


def _phase(
    given: Mapping[str, Any], place: int, there: Mapping[str, Phase], context: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of a phase: all that one needs if it is new, any of them if there is one of its slug."""
    phase = there.get(str(given.get("slug", "")))
    with _at("phases", place):
        fields = _read(PhaseSerializer(phase, given, partial=phase is not None, context=context))
        return fields | {
            name: read(fields[name]) for name, read in _SHAPED.items() if name in fields
        }


def _read(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


@contextmanager
def _at(part: str, place: int | None = None) -> Iterator[None]:
    """Put the place in the file before the pointers of errors."""
    try:
        yield
    except ValidationError as error:
        detail = {part: error.detail if place is None else {str(place): error.detail}}
        raise ValidationError(cast(Any, detail)) from error
    except EvalHubError as error:
        error.pointer = f"/{part}{'' if place is None else f'/{place}'}{error.pointer or ''}"
        raise
