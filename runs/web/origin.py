"""The origin of a request: its address, its id and its client."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import re
import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from runs.models import ApiToken
from runs.services.audit.trail import Origin

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NETWORK_BITS = 64
# As some proxies write an address: 192.0.2.1:443, [2001:db8::1]:443, [2001:db8::1].
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]+)?|([0-9.]+):[0-9]+")


def origin_of(request: HttpRequest | Request) -> Origin:
    """Return the origin for the audit trail."""
    token = getattr(request, "auth", None)
    actor = request.user if request.user.is_authenticated else None
    key = token.key if isinstance(token, ApiToken) else ""
    return Origin(actor, key, request_id_of(request), address_of(request))


def request_id_of(request: HttpRequest | Request) -> str:
    """Return the id that a proxy gave the request, or a new one that the request keeps."""
    request_id = str(request.META.get("HTTP_X_REQUEST_ID", ""))
    if not _REQUEST_ID.fullmatch(request_id):
        request_id = uuid.uuid4().hex

    request.META["HTTP_X_REQUEST_ID"] = request_id
    return request_id


def address_of(request: HttpRequest | Request) -> str | None:
    """Return the client's address without port and zone, or None if its name is not an address."""
    address = _parse(sender_of(request))
    return str(address) if address else None


def sender_of(request: HttpRequest | Request) -> str:
    """Return the client's name: of the connection, or as the outermost of our proxies saw it."""
    return sender_in(request.META)


def sender_in(meta: Mapping[str, Any]) -> str:
    """Return the name of the client from a request's headers, before there is a Django request."""
    if settings.EVALHUB_PROXIES:
        # Every proxy appends the sender that it saw: ours wrote the last ones.
        senders = meta.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if sender := senders[-min(settings.EVALHUB_PROXIES, len(senders))].strip():
            return str(sender)

    return str(meta.get("REMOTE_ADDR", ""))


def network_of(sender: str) -> str:
    """Return the key by which limits count a client.

    It is its IPv4 address, the 64 bits of an IPv6 address that a provider gives one customer, or a
    digest of a name that is not an address.
    """
    address = _parse(sender)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))
    if address:
        return str(address)
    if not sender:
        return "unknown"

    digest = hashlib.sha256(sender.encode(errors="surrogatepass")).hexdigest()
    return f"text:{digest[:32]}"


def _parse(sender: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address, read with or without a port; IPv4 written as IPv6 becomes IPv4."""
    match = _WITH_PORT.fullmatch(sender)
    host = (match[1] or match[2]) if match else sender
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host.partition("%")[0])
        return getattr(address, "ipv4_mapped", None) or address

    return None
