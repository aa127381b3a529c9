"""Secrets of webhooks: made, sealed for the database, and used to sign.

A secret signs, so a digest of it would not do. It is sealed with keys derived from the server's
secret key: encrypted by HMAC-SHA256 of a random nonce, whose 32 bytes are as long as the secret,
and authenticated by another HMAC together with the webhook to which it belongs. What was sealed
with another secret key, or for another webhook, does not open. The signature is that of Standard
Webhooks 1.0.0 (https://www.standardwebhooks.com).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from uuid import UUID

from django.conf import settings

PREFIX = "whsec_"
_SECRET, _NONCE, _SEAL = 32, 16, 16


class Unreadable(Exception):
    """A secret that was sealed with another secret key, or is damaged."""


def new_secret() -> bytes:
    """Return 32 random bytes."""
    return secrets.token_bytes(_SECRET)


def shown(secret: bytes) -> str:
    """Return a secret as its owner gets it."""
    return PREFIX + base64.b64encode(secret).decode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature `v1,<base64>` of a message."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def signatures(among: Iterable[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature by each secret."""
    return " ".join(sign(secret, message_id, timestamp, body) for secret in among)


def seal(secret: bytes, webhook: UUID) -> str:
    """Return a secret of 32 bytes in the form in which it is stored."""
    nonce = secrets.token_bytes(_NONCE)
    hidden = _covered(secret, nonce)
    return base64.b64encode(nonce + hidden + _seal_of(nonce + hidden, webhook)).decode()


def unseal(sealed: str, webhook: UUID) -> bytes:
    """Return the secret. Raise Unreadable if it was sealed with another secret key or for another webhook."""
    try:
        content = base64.b64decode(sealed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable from error
    hidden = content[:-_SEAL]
    same = hmac.compare_digest(content[-_SEAL:], _seal_of(hidden, webhook))
    if not same or len(content) != _NONCE + _SECRET + _SEAL:
        raise Unreadable
    return _covered(hidden[_NONCE:], hidden[:_NONCE])


def _covered(secret: bytes, nonce: bytes) -> bytes:
    """Encrypt or decrypt: exclusive or with a block that is used only once."""
    block = hmac.digest(_key("encrypt"), nonce, hashlib.sha256)
    return bytes(one ^ other for one, other in zip(secret, block, strict=True))


def _seal_of(content: bytes, webhook: UUID) -> bytes:
    return hmac.digest(_key("seal"), webhook.bytes + content, hashlib.sha256)[:_SEAL]


def _key(use: str) -> bytes:
    return hmac.digest(
        settings.SECRET_KEY.encode(), f"evalhub webhooks: {use}".encode(), hashlib.sha256
    )
