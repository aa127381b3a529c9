"""The addresses that a webhook may have, and those to which the server connects.

A webhook's owner chooses where the server sends requests, which must not reach what only the server
can reach: its own machine, its network, a cloud's metadata. So a name is resolved once, every one
of its addresses must be public, and the connection goes to one of these addresses and not to the
name, which might resolve to another one a moment later.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.conf import settings

from runs.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]
"""resolve(host, port) -> every address of a name; OSError if it has none"""

MAX_URL = 2000
_URL = re.compile(
    r"https://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>[/?][\x21\x22\x24-\x7e]*)?"
)
_DEFAULT_PORT = 443
# Addresses that a gateway translates to the IPv4 address in their last 32 bits (RFC 6052).
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
# Networks that IANA reserves and `is_global` of this or an older Python considers public: examples
# (RFC 9637), relays of 6to4 (RFC 7526), segment routing (RFC 9602) and the servers of AS112, which
# every network may run itself (RFC 7534, 7535).
_SET_APART = tuple(
    ipaddress.ip_network(text)
    for text in (
        "3fff::/20",
        "192.88.99.0/24",
        "5f00::/16",
        "192.31.196.0/24",
        "192.175.48.0/24",
        "2001:4:112::/48",
        "2620:4f:8000::/48",
    )
)


class NotAllowedAddress(OSError):
    """A name that does not exist or has a forbidden address; the user does not learn which."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a webhook's address: `host` has no brackets, `authority` is the header Host."""

    host: str
    port: int
    authority: str
    path: str


def parse_url(url: str) -> Target:
    """Return the parts of a webhook's address.

    Raise InvalidInput if it is not one of HTTPS in ASCII without user or fragment, if its port is
    not permitted, or if its host is an address to which nothing may be sent.
    """
    parts = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if parts is None:
        message = (
            f"must be an https address of at most {MAX_URL:,} visible ASCII characters, such as "
            "https://ci.example.org/hook, without a user, a password or a fragment"
        )
        raise InvalidInput(f"url {message}", code="bad_url", pointer="/url")

    host, port = parts["host"].strip("[]"), int(parts["port"] or _DEFAULT_PORT)
    if port not in settings.EVALHUB_WEBHOOK_PORTS:
        ports = ", ".join(map(str, settings.EVALHUB_WEBHOOK_PORTS))
        message = f"port {port} is not permitted; webhooks are sent to {ports}"
        raise InvalidInput(message, code="port_not_permitted", pointer="/url")

    address = _parse_address(host)
    if address is not None and not is_permitted(address):
        message = f"nothing is sent to {host}: it is not a public address"
        raise InvalidInput(message, code="address_not_permitted", pointer="/url")

    target = parts["target"] or "/"
    authority = parts["host"] + (f":{parts['port']}" if port != _DEFAULT_PORT else "")
    return Target(host, port, authority, target if target[0] == "/" else f"/{target}")


def resolve(host: str, port: int) -> list[str]:
    """Return every address of a name, as the system resolves it."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def permitted_addresses(target: Target, resolve: Resolve) -> list[str]:
    """Return the addresses of a host.

    Raise NotAllowedAddress if it has none, or if any of them is not permitted: a public address may
    be there only to let a private one pass.
    """
    try:
        texts = resolve(target.host, target.port)
    except (OSError, UnicodeError) as error:
        raise NotAllowedAddress from error

    addresses = [_parse_address(text) for text in texts]
    if not addresses or not all(
        address is not None and is_permitted(address) for address in addresses
    ):
        raise NotAllowedAddress

    return [str(address) for address in addresses]


def is_permitted(address: Address) -> bool:
    """Return whether something may be sent to an address.

    It and the IPv4 address inside it must be public, or in a network that the operator permits.
    """
    return all(
        _is_public(destination) or _is_allowed(destination)
        for destination in _destinations(address)
    )


def _destinations(address: Address) -> Iterator[Address]:
    """Yield the addresses that an address leads to: itself, and an IPv4 address inside it."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return

    if address.ipv4_mapped:
        yield address.ipv4_mapped
        return

    yield address
    if address.sixtofour:
        yield address.sixtofour

    if address.teredo:
        yield address.teredo[1]

    if address in _TRANSLATED:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_public(address: Address) -> bool:
    site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    set_apart = any(address in network for network in _SET_APART)
    return address.is_global and not (
        address.is_multicast or address.is_reserved or site_local or set_apart
    )


def _is_allowed(address: Address) -> bool:
    return any(address in network for network in settings.EVALHUB_WEBHOOK_ALLOW)


def _parse_address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
