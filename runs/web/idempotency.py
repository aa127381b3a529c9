"""The Idempotency-Key header: a creating request takes effect once, even if it is sent again.

The answer is stored in the transaction of the effect: after a crash either both exist or neither
does. Of two simultaneous requests, the second one finds the key of the first one when it commits,
and returns the same answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from django.db import IntegrityError, transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from runs.errors import Conflict, InvalidInput, KeyReused
from runs.models import RememberedAnswer, User

View = TypeVar("View", bound=Callable[..., Response])

HEADER = "Idempotency-Key"
PARAMETER = OpenApiParameter(
    HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER,
    description="any text, new for every request; "
    "a request sent again with the same key is carried out once",
)  # fmt: skip
REPLAYED = "Idempotent-Replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True)
class RequestKey:
    """The user, the key and the request; `digest` is the SHA-256 of the request's meaning."""

    user_id: int
    key: str
    digest: str


def idempotent(allowed: Callable[..., bool]) -> Callable[[View], View]:
    """Decorate a view so that it takes effect once.

    The view creates something and calls `remember` with its answer in the same transaction.
    `allowed` takes the request, the stored body and the parameters of the address, and returns
    whether the user still has the permission. A user without it gets the view's own refusal, as
    without a key.
    """

    def decorate(post: View) -> View:
        @wraps(post)
        def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            if HEADER not in request.headers or request.user.pk is None:
                return post(view, request, *args, **kwargs)

            try:
                key = _key_of(request)
                remembered = _find(key)
                if remembered and allowed(request, remembered.body, **kwargs):
                    return _repeat(remembered)
                return _answer_once(request, key, lambda: post(view, request, *args, **kwargs))
            finally:
                # The key has read the files, also where the view is not called.
                for upload in request.FILES.values():
                    upload.close()

        return answer  # type: ignore[return-value]

    return decorate


def one_act(allowed: Callable[..., bool]) -> Callable[[View], View]:
    """Decorate a view as `idempotent` does, and run it in one transaction that keeps its answer."""

    def decorate(post: View) -> View:
        @wraps(post)
        def act(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            with transaction.atomic():
                response = post(view, request, *args, **kwargs)
                remember(request, lambda: response)
            return response

        return idempotent(allowed)(cast(View, act))

    return decorate


def _answer_once(request: Request, key: RequestKey, answer: Callable[[], Response]) -> Response:
    request.idempotency_key = key  # type: ignore[attr-defined]
    try:
        return answer()
    except (IntegrityError, Conflict):
        # Possibly the same request has been done meanwhile.
        remembered = _find(key)
        if remembered is None:
            raise
        return _repeat(remembered)


def remember(request: Request, answer: Callable[[], Response]) -> None:
    """Store the answer to a request that has a key.

    Raise IntegrityError if another request with the key was faster.
    """
    key: RequestKey | None = getattr(request, "idempotency_key", None)
    if key is None:
        return

    response = answer()
    with transaction.atomic():
        RememberedAnswer.objects.create(
            user_id=key.user_id,
            key=key.key,
            digest=key.digest,
            status=response.status_code,
            location=response.headers.get("Location", ""),
            body=json.loads(JSONRenderer().render(response.data)),
        )


def _key_of(request: Request) -> RequestKey:
    text = request.headers[HEADER]
    if not _KEY.fullmatch(text):
        message = f"{HEADER} must be 1 to 255 visible ASCII characters, such as a UUID"
        raise InvalidInput(message, code="bad_idempotency_key", pointer=HEADER)

    digest = hashlib.sha256()
    for part in _parts(request):
        digest.update(len(part).to_bytes(8, "big") + part)

    return RequestKey(cast(User, request.user).pk, text, digest.hexdigest())


def _parts(request: Request) -> Iterator[bytes]:
    """Return the parts that make two requests the same.

    The bytes of the body are not among them, because a form has another boundary every time.
    """
    yield f"{request.method} {request.get_full_path()}".encode()

    fields = dict(request.data.lists()) if hasattr(request.data, "lists") else request.data
    if request.FILES:
        fields = {name: value for name, value in fields.items() if name not in request.FILES}

    yield json.dumps(fields, sort_keys=True, default=str).encode()

    for name, upload in sorted(request.FILES.items()):
        upload.seek(0)
        yield name.encode()
        yield hashlib.file_digest(upload, "sha256").digest()
        upload.seek(0)


def _find(key: RequestKey) -> RememberedAnswer | None:
    remembered = RememberedAnswer.objects.filter(user=key.user_id, key=key.key).first()
    if remembered and remembered.digest != key.digest:
        message = f"the {HEADER} {key.key!r} was used for a different request; use a new key"
        raise KeyReused(message, pointer=HEADER)
    return remembered


def _repeat(remembered: RememberedAnswer) -> Response:
    headers = {"Location": remembered.location} if remembered.location else {}
    return Response(remembered.body, remembered.status, headers={**headers, REPLAYED: "true"})
