"""The If-Match header: make a change only if the object is as it was when it was read.

The tag of a collection, run or session set is a digest of the fields that can be set. Counts and
states, such as the number of runs or the state of an evaluation, are not part of it, because a new
run must not refuse a change.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from runs.errors import ChangedMeanwhile, InvalidInput

HEADER = "If-Match"
PARAMETER = OpenApiParameter(
    HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER,
    description="the ETag of what is changed, as it was read; 412 if it has been changed since",
)  # fmt: skip
_TAG = r'(?:W/)?"[!#-~\x80-\xff]*"'
_TAGS = re.compile(rf"{_TAG}(?: ?, ?{_TAG})*")
_MAX_LENGTH = 2000


class KnownConditions(BasePermission):
    """Refuse a malformed If-Match, and one for a method that does not compare it.

    A view lists the methods that call `check_unchanged` in `conditional`.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        header, method = request.headers.get(HEADER), request.method or ""
        if header is None or not hasattr(view, method.lower()):
            return True

        tags = header.strip()
        if tags != "*" and (len(header) > _MAX_LENGTH or not _TAGS.fullmatch(tags)):
            message = (
                f'{HEADER} must be an ETag in its quotation marks, as in {HEADER}: "5846efb2c48d", '
                "several of them with commas between, or *"
            )
            raise InvalidInput(message, code="bad_etag", pointer=HEADER)

        if method not in SAFE_METHODS and method not in getattr(view, "conditional", ()):
            message = (
                f"{method} of this address has no ETag to compare {HEADER} with; "
                "leave the header out"
            )
            raise InvalidInput(message, code="bad_etag", pointer=HEADER)

        return True


def tag_of(target: Any, names: Iterable[str]) -> str:
    """Return the ETag of an object: a digest of the attributes that can be set."""
    values = [getattr(target, name) for name in names]
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()
    return f'"{digest[:32]}"'


def check_unchanged(request: Request, tag: str) -> None:
    """Raise ChangedMeanwhile if If-Match names other tags only. Call it while the row is locked."""
    check_same(request.headers.get(HEADER, "*"), tag)


def check_same(header: str, tag: str) -> None:
    """Raise ChangedMeanwhile if none of the tags in a header is this one.

    A weak tag is equal to the strong one, because the compression of answers makes tags weak.
    """
    tags = {tag.removeprefix("W/") for tag in re.findall(_TAG, header)}
    if header.strip() != "*" and tag not in tags:
        raise ChangedMeanwhile(
            "this has been changed since you read it; read it again and repeat your change"
        )
