"""Secrets of webhooks: created, sealed for the database, and used to sign.

A secret signs, so a digest of it would not do. It is sealed with keys derived from the server's
secret key: encrypted by HMAC-SHA256 of a random nonce, which has 32 bytes like the secret, and
authenticated by another HMAC together with the webhook to which it belongs. A secret that was
sealed with another secret key, or for another webhook, cannot be read. The signature is that of
Standard Webhooks 1.0.0 (https://www.standardwebhooks.com).
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


def secret_text(secret: bytes) -> str:
    """Return a secret in the form that its owner gets."""
    return PREFIX + base64.b64encode(secret).decode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature `v1,<base64>` of a message."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def signatures(
    signing_secrets: Iterable[bytes], message_id: str, timestamp: int, body: bytes
) -> str:
    """Return the header `webhook-signature`: one signature by each secret."""
    return " ".join(sign(secret, message_id, timestamp, body) for secret in signing_secrets)


def seal(secret: bytes, webhook: UUID) -> str:
    """Return a secret of 32 bytes, sealed for the database."""
    nonce = secrets.token_bytes(_NONCE)
    covered = _apply_pad(secret, nonce)
    return base64.b64encode(nonce + covered + _authenticate(nonce + covered, webhook)).decode()


def unseal(sealed: str, webhook: UUID) -> bytes:
    """Return a sealed secret.

    Raise Unreadable if it was sealed with another secret key or for another webhook.
    """
    try:
        content = base64.b64decode(sealed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable from error

    covered = content[:-_SEAL]
    authentic = hmac.compare_digest(content[-_SEAL:], _authenticate(covered, webhook))
    if not authentic or len(content) != _NONCE + _SECRET + _SEAL:
        raise Unreadable

    return _apply_pad(covered[_NONCE:], covered[:_NONCE])


def _apply_pad(secret: bytes, nonce: bytes) -> bytes:
    """Encrypt or decrypt a secret: exclusive or with a block that is used only once."""
    block = hmac.digest(_key("encrypt"), nonce, hashlib.sha256)
    return bytes(byte ^ pad for byte, pad in zip(secret, block, strict=True))


def _authenticate(content: bytes, webhook: UUID) -> bytes:
    return hmac.digest(_key("seal"), webhook.bytes + content, hashlib.sha256)[:_SEAL]


def _key(use: str) -> bytes:
    return hmac.digest(
        settings.SECRET_KEY.encode(), f"evalhub webhooks: {use}".encode(), hashlib.sha256
    )
