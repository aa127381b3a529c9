"""Receive webhooks: check that a request is from the server, and read its event.

    event = evh.webhooks.verify(request.headers, request.body, secret)
    if event["type"] == "run.evaluated":
        print(event["data"]["run"])

The signature is that of Standard Webhooks (https://www.standardwebhooks.com). An event may arrive
twice, and in any order: remember the `webhook-id` of those that are done. This module needs the
standard library alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from .errors import BadConfig, BadSignature

_PREFIX = "whsec_"
_VERSION = "v1"
_NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")


def verify(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str,
    tolerance: float = 300,
    *,
    clock: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """Return the event of a request: its `type`, `timestamp` and `data`.

    `headers` are those of the request, in any case; `body` is its body as it arrived, not parsed
    and written again; `secret` the text that begins with `whsec_`. Raise BadSignature if none of
    the signatures is that of the secret, or if the request was signed more than `tolerance` seconds
    ago or ahead; raise BadConfig for a malformed secret.
    """
    key = _key_of(secret)
    values = {str(name).lower(): str(value) for name, value in headers.items()}
    if missing := [name for name in _NAMES if not values.get(name)]:
        raise BadSignature(f"the request has no header {missing[0]}")

    message_id, timestamp, signatures = (values[name] for name in _NAMES)
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 15):
        raise BadSignature("webhook-timestamp is not a number of seconds")

    content = body.encode() if isinstance(body, str) else bytes(body)
    expected = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + content, hashlib.sha256)
    # Every signature is compared, so that the duration reveals nothing.
    matches = [hmac.compare_digest(expected, item) for item in _signatures(signatures)]
    if not any(matches):
        raise BadSignature("no signature of the request is that of this secret")
    if abs(clock() - int(timestamp)) > tolerance:
        raise BadSignature(
            f"the request was signed more than {tolerance:g} s ago, or ahead of this clock"
        )

    try:
        event = json.loads(content)
    except ValueError as error:
        raise BadSignature("the body is not JSON") from error

    if not isinstance(event, dict):
        raise BadSignature("the body is not an event")
    return event


def _key_of(secret: str) -> bytes:
    text = secret.strip().removeprefix(_PREFIX)
    try:
        # Some secrets are stored without padding.
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadConfig(f"the secret of a webhook is {_PREFIX} and base64") from error

    if not key:
        raise BadConfig("the secret of the webhook is empty")
    return key


def _signatures(header: str) -> list[bytes]:
    """Return the signatures of this version; skip others and malformed ones."""
    signatures = []
    for part in header.split(" "):
        version, _, text = part.partition(",")
        if version == _VERSION:
            try:
                signatures.append(base64.b64decode(text, validate=True))
            except (binascii.Error, ValueError):
                continue

    return signatures
