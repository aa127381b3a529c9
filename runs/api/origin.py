"""Where a request comes from: its address, its id, who sends it."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import uuid

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from runs.models import ApiToken
from runs.services.audit import Origin

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NETWORK_BITS = 64


def origin_of(request: HttpRequest | Request) -> Origin:
    """Who to write into the audit trail."""
    token = getattr(request, "auth", None)
    actor = request.user if request.user.is_authenticated else None
    key = token.key if isinstance(token, ApiToken) else ""
    return Origin(actor, key, request_id_of(request), address_of(request))


def request_id_of(request: HttpRequest | Request) -> str:
    """The id that a middleware or a proxy gave the request, or one made now and kept with it."""
    given = request.META.get("HTTP_X_REQUEST_ID", "")
    if not _REQUEST_ID.fullmatch(str(given)):
        given = uuid.uuid4().hex
    request.META["HTTP_X_REQUEST_ID"] = given
    return str(given)


def address_of(request: HttpRequest | Request) -> str | None:
    """The client's address: the connection's, or the one that the outermost of EVALHUB_PROXIES proxies saw."""
    address = request.META.get("REMOTE_ADDR", "")
    if settings.EVALHUB_PROXIES:
        seen = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        address = seen[-min(settings.EVALHUB_PROXIES, len(seen))].strip() or address
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(address))
    return None


def network_of(address: str | None) -> str:
    """What limits count by: an IPv4 address, or the 64 bits of an IPv6 address that a provider gives one customer."""
    if address and ":" in address:
        return str(ipaddress.ip_network((address.partition("%")[0], _NETWORK_BITS), strict=False))
    return address or "unknown"
