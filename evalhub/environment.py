"""Read the environment, refuse invalid values, and remember every name that is read."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from runs.services.storage.stores.location import Location, parse_location

N = TypeVar("N", int, float)

# Names that are not read here, but by the kernels, the client and the tests.
_READ_ELSEWHERE = {
    "EVALHUB_KERNELS",
    "EVALHUB_KERNELS_CPU",
    "EVALHUB_REAL_DATA",
    "EVALHUB_VERSION",
    "EVALHUB_TOKEN",
}
_TEST_PREFIX = "EVALHUB_TEST_"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")


class Environment(environ.Env):  # type: ignore[misc]
    """The variables of the environment. Raise ImproperlyConfigured for an invalid value."""

    def __init__(self) -> None:
        super().__init__()
        self.known = set(_READ_ELSEWHERE)

    def get_value(self, var: str, *args: Any, **options: Any) -> Any:
        self.known.add(var)
        return super().get_value(var, *args, **options)

    def bool(self, var: str, default: Any = False) -> Any:
        text = str(self.get_value(var, default=str(default))).strip().lower()
        if text not in (*_TRUE, *_FALSE):
            raise ImproperlyConfigured(f"{var}={text[:40]} is neither true nor false")

        return text in _TRUE

    def int(self, var: str, default: Any = 0, least: int = 0) -> Any:
        return self._number(int, "a whole number", var, default, least)

    def float(self, var: str, default: Any = 0.0, least: float = 0.0) -> Any:
        return self._number(float, "a number", var, default, least)

    def _number(self, kind: Callable[[str], N], noun: str, var: str, default: N, least: N) -> N:
        text = str(self.get_value(var, default=str(default))).strip()
        try:
            value = kind(text)
        except ValueError as error:
            raise ImproperlyConfigured(f"{var}={text[:40]} is not {noun}") from error

        # Written so that NaN, which compares as false, is refused too.
        if not least <= value < 10**12:
            raise ImproperlyConfigured(f"{var}={text[:40]} is not {noun} of at least {least}")

        return value

    def networks(self, var: str) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return IP networks, separated by commas; a single address is a network of one."""
        try:
            return tuple(ip_network(text) for text in self._parts(var))
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{var}: {error}; write networks such as 10.0.0.0/8,fd00::/8"
            ) from error

    def ports(self, var: str, default: Any = ()) -> Any:
        """Return numbers of ports, separated by commas."""
        texts = self._parts(var)
        for text in texts:
            # Six digits are enough to see that a number is too large.
            if not (text.isascii() and text.isdecimal() and 0 < int(text[:6]) < 2**16):
                raise ImproperlyConfigured(
                    f"{var} has numbers of ports from 1 to 65535, such as 443,8443"
                )

        return tuple(int(text) for text in texts) or default

    def domains(self, var: str) -> list[str]:
        """Return the domains of mail addresses, separated by commas, in small letters."""
        return [text.lower().lstrip("@") for text in self._parts(var)]

    def _parts(self, var: str) -> list[str]:
        texts = str(self.get_value(var, default="")).split(",")
        return [text.strip() for text in texts if text.strip()]

    def misspelt(self) -> Iterator[tuple[str, str]]:
        """Yield the EVALHUB_ names that nothing reads, each with a similar name that is read, or ""."""
        for name in sorted(os.environ):
            if (
                not name.startswith("EVALHUB_")
                or name.startswith(_TEST_PREFIX)
                or name in self.known
            ):
                continue

            similar = difflib.get_close_matches(name, self.known, n=1, cutoff=0.85)
            yield name, similar[0] if similar else ""


class MailSettings(NamedTuple):
    """How to reach the mail server: in the clear, after STARTTLS, or by TLS from the start."""

    host: str
    port: int
    user: str
    password: str
    use_starttls: bool
    use_tls: bool


def mail_settings(url: str, sender: str) -> MailSettings:
    """Return the settings of the mail server from its address, by default port 25 of this machine.

    `smtp://` sends in the clear, `smtp+tls://` after STARTTLS, `smtps://` by TLS. Raise
    ImproperlyConfigured for another address, and without a sender.
    """
    if not url:
        return MailSettings("localhost", 25, "", "", use_starttls=False, use_tls=False)

    parts = urlsplit(url)
    ports = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
    try:
        port = parts.port or ports[parts.scheme]
    except (KeyError, ValueError) as error:
        message = (
            "EVALHUB_MAIL_URL is such as smtp+tls://user:password@mail.example.org:587; "
            "smtp:// and smtps:// too"
        )
        raise ImproperlyConfigured(message) from error

    if not parts.hostname:
        raise ImproperlyConfigured("EVALHUB_MAIL_URL names no host")
    if "@" not in sender or any(sign in sender for sign in "\r\n"):
        raise ImproperlyConfigured(
            "EVALHUB_MAIL_FROM is the sender of mails, such as evalhub@example.org"
        )

    return MailSettings(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        use_starttls=parts.scheme == "smtp+tls",
        use_tls=parts.scheme == "smtps",
    )


def check_provider(
    *, issuer: str, client_id: str, client_secret: str, claim: str, url: str
) -> None:
    """Raise ImproperlyConfigured for settings of an OpenID Connect provider that do not work."""
    if not issuer:
        if client_id or client_secret:
            raise ImproperlyConfigured(
                "EVALHUB_OIDC_ISSUER is the address of the provider, such as "
                "https://login.example.org/realms/lab"
            )
        return

    parts = urlsplit(issuer)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or parts.scheme not in (("https", "http") if is_local else ("https",)):
        raise ImproperlyConfigured(
            "EVALHUB_OIDC_ISSUER must begin with https://, or with http:// on this machine alone"
        )

    for name, value in (
        ("EVALHUB_OIDC_CLIENT_ID", client_id),
        ("EVALHUB_OIDC_CLIENT_SECRET", client_secret),
    ):
        if not value:
            raise ImproperlyConfigured(f"EVALHUB_OIDC_ISSUER needs {name}, as the provider gave it")
    if not url:
        raise ImproperlyConfigured(
            "EVALHUB_OIDC_ISSUER needs EVALHUB_URL: the provider sends people back to it"
        )
    if claim and not all(claim.partition("=")):
        raise ImproperlyConfigured(
            "EVALHUB_OIDC_CLAIM is a claim and its value, such as groups=retrieval"
        )


def files_location(url: str, key: str, secret: str) -> Location | None:
    """Return the object store of stored files, or None where they are in the data folder.

    Raise ImproperlyConfigured for an invalid address.
    """
    try:
        return parse_location(url, key, secret)
    except ValueError as error:
        raise ImproperlyConfigured(f"EVALHUB_FILES_URL: {error}") from error
