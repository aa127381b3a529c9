"""The API that describes a parameter or a cost; `metrics.api.tracking.parameters` lists them."""

from __future__ import annotations

from typing import Annotated, TypedDict

from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.boards.conditions import visible_board, visible_keys
from runs.api.serializers import ParameterKeySerializer
from runs.models import ParameterKey, Scope
from runs.services.tracking.parameters import change_key
from runs.web.access import managed_collection
from runs.web.origin import origin_of
from runs.web.shapes import OneOf, shape


class Key(TypedDict):
    space: Annotated[str, OneOf(ParameterKey.Space.choices)]
    name: str
    unit: str
    note: str
    role: Annotated[
        str, OneOf(ParameterKey.Role.choices), "ignored: it does not say how a run was made"
    ]


class ParameterDetail(APIView):
    """What organisers say of a parameter or a cost: its unit, a note, and whether it says how a run
    was made."""

    scopes = {"PATCH": Scope.MANAGE}

    @extend_schema(request=ParameterKeySerializer, responses=shape(Key))
    def patch(self, request: Request, collection: str, space: str, parameter: str) -> Response:
        managed = managed_collection(request, collection)
        with transaction.atomic():
            visible = visible_keys(visible_board(managed, request.user), space)
            pks = list(visible.filter(name=parameter).values_list("pk", flat=True))
            key = ParameterKey.objects.select_for_update().filter(pk__in=pks).first()
            if key is None:
                raise Http404(f"no run of collection {collection} has {space}:{parameter[:60]}")
            serializer = ParameterKeySerializer(key, request.data, partial=True)
            serializer.is_valid(raise_exception=True)
            change_key(key=key, changes=serializer.validated_data, origin=origin_of(request))

        return Response(key_of(key))


def key_of(key: ParameterKey) -> Key:
    return Key(space=key.space, name=key.name, unit=key.unit, note=key.note, role=key.role)
