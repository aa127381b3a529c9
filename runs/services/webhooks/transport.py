"""One request to the address of a webhook, without redirects and proxies, with a deadline.

http.client is used because it does not follow redirects and does not read the environment. Every
wait for the receiver is limited by the remaining time of the whole request, so that a receiver that
sends a byte now and then is treated like a silent one. The name is resolved only once.
"""

from __future__ import annotations

import contextlib
import email.utils
import functools
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runs.errors import InvalidInput
from runs.services.webhooks.addresses import (
    NotAllowedAddress,
    Resolve,
    Target,
    parse_url,
    permitted_addresses,
    resolve,
)

SECONDS = 15.0
# Bytes that are read of an answer, which is not shown to anybody.
MAX_ANSWER = 64 * 1024
_STEP = 8192


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request.

    `status` is None without an answer, `error` a code, empty if the request was delivered.
    `retry_after` is the wait that a busy receiver asks for, `seconds` the duration.
    """

    status: int | None = None
    error: str = ""
    retry_after: float = 0.0
    seconds: float = 0.0

    @property
    def delivered(self) -> bool:
        return not self.error


Post = Callable[[str, bytes, Mapping[str, str]], Reply]
"""post(url, body, headers) -> the result; never raises an error"""


@functools.cache
def system_context() -> ssl.SSLContext:
    """Return a context that trusts the system's authorities, and those of SSL_CERT_FILE."""
    return ssl.create_default_context()


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    resolve: Resolve = resolve,
    context: ssl.SSLContext | None = None,
    seconds: float = SECONDS,
) -> Reply:
    """Send one POST request, which takes at most `seconds` once the name is resolved."""
    began = time.monotonic()
    status, wait, error = None, 0.0, ""
    try:
        target = parse_url(url)
        addresses = permitted_addresses(target, resolve)
        deadline = time.monotonic() + seconds
        with _connect(target, addresses, deadline, context or system_context()) as stream:
            status, wait = _exchange(target, stream, body, headers)
        error = _error_of(status)
    except (InvalidInput, NotAllowedAddress):
        error = "address_not_permitted"
    except TimeoutError:
        error = "timed_out"
    except ssl.SSLError:
        error = "tls_failed"
    except ConnectionError:
        error = "connection_failed"
    except http.client.HTTPException:
        error = "bad_answer"
    except (OSError, ValueError):
        # ValueError: a name that resolves, but that a certificate cannot have.
        error = "connection_failed"

    return Reply(status, error, wait, time.monotonic() - began)


def _exchange(
    target: Target, stream: _Stream, body: bytes, headers: Mapping[str, str]
) -> tuple[int, float]:
    """Send the request, and return the status of the answer and its Retry-After in seconds."""
    connection = http.client.HTTPConnection(target.authority)
    connection.sock = stream
    connection.putrequest("POST", target.path, skip_host=True, skip_accept_encoding=True)
    all_headers = {
        "Host": target.authority,
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }

    for name, value in all_headers.items():
        connection.putheader(name, value)

    connection.endheaders(body)
    response = connection.getresponse()
    status, wait = response.status, _seconds_of(response.headers.get("Retry-After", ""))

    # The status counts, whatever follows. The body is read so that the receiver does not see a
    # broken connection.
    with contextlib.suppress(OSError, http.client.HTTPException):
        remaining = MAX_ANSWER
        while remaining > 0 and (chunk := response.read(min(_STEP, remaining))):
            remaining -= len(chunk)

    return status, wait


def _error_of(status: int) -> str:
    if 200 <= status < 300:
        return ""
    return "redirected" if 300 <= status < 400 else "refused"


def _seconds_of(retry_after: str) -> float:
    """Return the seconds of a Retry-After, which may be a date; 0 for anything else."""
    text = retry_after.strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)

    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, IndexError):
        return 0.0

    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


class _Stream(io.RawIOBase):
    """A connection with a deadline for every wait; http.client takes it for a socket."""

    def __init__(self, sock: ssl.SSLSocket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: object) -> None:
        # Closing it does not end it if a process was forked meanwhile; shutting it down does.
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """Do nothing: http.client closes its connection when it hands it over to the answer."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_remaining_time(self._deadline))
        return self._sock.recv_into(buffer)

    def sendall(self, content: bytes) -> None:
        self._sock.settimeout(_remaining_time(self._deadline))
        self._sock.sendall(content)


def _connect(
    target: Target, addresses: list[str], deadline: float, context: ssl.SSLContext
) -> _Stream:
    """Connect to the first address that answers; its certificate must be valid for the name."""
    for number, address in enumerate(addresses, 1):
        try:
            connection = socket.create_connection(
                (address, target.port), timeout=_remaining_time(deadline)
            )
            break
        except OSError:
            if number == len(addresses):
                raise

    try:
        connection.settimeout(_remaining_time(deadline))
        return _Stream(context.wrap_socket(connection, server_hostname=target.host), deadline)
    except BaseException:
        connection.close()
        raise


def _remaining_time(deadline: float) -> float:
    """Return the remaining seconds. Raise TimeoutError if there are none."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining
