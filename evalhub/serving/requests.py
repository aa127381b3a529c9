"""Requests while they arrive, early refusals, and the probe that the I/O thread answers."""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from typing import Any

from django.conf import settings
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import ErrorTask, Task

from evalhub.database_errors import STORAGE_BROKEN, outage_of
from evalhub.problems import PROBLEM_TYPE, problem

# A body or an unread answer of more than this counts as a transfer.
LARGE = 1024 * 1024
# An address may name 170 runs that are compared, and have other parameters.
MAX_ADDRESS = 8190
_ALIVE = b'{"alive": true}'
_FRESH = "max-age=0, no-cache, no-store, must-revalidate, private"

# A line of a head that continues the header before it.
_FOLDED = re.compile(rb"\n[ \t]")
_HEADER_NAME = re.compile(rb"\n([^:\r\n]+):")

_log = logging.getLogger(__name__)
_access = logging.getLogger("evalhub.access")


class Refusal:
    """An answer of the server itself, as problem details; it has the interface of waitress's errors."""

    def __init__(self, status: int, code: str, detail: str, retry: int = 0) -> None:
        # waitress reads `code` and `body`.
        self.code = status
        self.body = detail
        self._name = code
        self._retry = retry

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        headers = [("Content-Type", PROBLEM_TYPE), ("Cache-Control", _FRESH)]
        if self.code == HTTPStatus.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", "Bearer"))

        if self._retry:
            headers.append(("Retry-After", str(self._retry)))

        body = json.dumps(problem(self.code, self._name, self.body)).encode()
        return f"{self.code} {HTTPStatus(self.code).phrase}", headers, body


# Our codes for the errors of waitress, by status.
_CODES = {
    400: "bad_request",
    431: "headers_too_large",
    501: "not_implemented",
}


def too_large() -> Refusal:
    limit = settings.EVALHUB_MAX_UPLOAD_BYTES
    return Refusal(413, "file_too_large", f"the file is larger than the limit of {limit:,} bytes")


class Request(HTTPRequestParser):  # type: ignore[misc]
    """A request while it arrives. A bad head is refused before the body is read."""

    error: Any = None
    # waitress sets these when it has read the head.
    command = path = query = request_uri = ""
    # Whether this large body counts as one of its client's transfers.
    is_transfer = False

    def received(self, data: bytes) -> int:
        in_head = not self.headers_finished
        try:
            consumed: int = super().received(data)
        except OSError as error:
            _log.error("a request body was not kept: %s", error)
            outage = outage_of(error) or STORAGE_BROKEN
            self.error = Refusal(outage.status, outage.code, outage.detail, outage.wait)
            self.completed, consumed = True, len(data)

        if in_head and self.headers_finished and not self.error:
            self.error = self._check_head()

        if self.error:
            # The rest is not another request: the connection ends with the answer.
            self.completed, self.expect_continue, consumed = True, False, len(data)

        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Refuse ambiguous heads, which another server may read differently.

        See RFC 9112, sections 5.2, 6.1 and 6.3.
        """
        super().parse_header(header_plus)
        if _FOLDED.search(header_plus):
            raise ParsingError("a header is continued on a second line; send it on one")

        names = {name.lower() for name in _HEADER_NAME.findall(header_plus)}
        if {b"content-length", b"transfer-encoding"} <= names:
            raise ParsingError("Content-Length and Transfer-Encoding together; send one of them")
        if b"transfer-encoding" in names and self.version != "1.1":
            raise ParsingError("Transfer-Encoding needs HTTP/1.1; send Content-Length")

    def _check_head(self) -> Refusal | None:
        if self.empty:
            return None
        if len(self.request_uri) > MAX_ADDRESS:
            return Refusal(
                414, "address_too_long", f"an address has at most {MAX_ADDRESS:,} characters"
            )

        if self.large and not ("AUTHORIZATION" in self.headers or "COOKIE" in self.headers):
            return Refusal(
                401,
                "not_authenticated",
                "a body of more than a megabyte needs a token or a session",
            )
        return None

    @property
    def large(self) -> bool:
        """Whether the body is large by its announced length, or by what has arrived."""
        return bool(self.content_length > LARGE or self.body_bytes_received > LARGE)

    @property
    def is_liveness_probe(self) -> bool:
        """Whether the I/O thread answers it: a plain GET or HEAD of /healthz."""
        plain = self.command in ("GET", "HEAD") and not self.query and self.body_rcv is None
        return plain and self.path == "/healthz" and not self.error


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """Send a refusal, including those of waitress, and log it."""

    def execute(self) -> None:
        error = self.request.error
        if not isinstance(error, Refusal):
            if error.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                error = too_large()
            else:
                code = _CODES.get(error.code, "server_error")
                error = Refusal(error.code, code, str(error.body))

            self.request.error = error

        _access.info("request refused: %s", error.body, extra={"status": error.code})
        super().execute()


class LivenessTask(Task):  # type: ignore[misc]
    """Answer /healthz, which asks whether this process is alive."""

    complete = True

    def execute(self) -> None:
        self.response_headers = [("Content-Type", "application/json"), ("Cache-Control", _FRESH)]
        self.content_length = len(_ALIVE)
        if self.request.command == "GET":
            self.write(_ALIVE)


def too_many_transfers() -> Refusal:
    limit = settings.EVALHUB_ADDRESS_TRANSFERS
    detail = (
        f"this address has {limit} large uploads and unread answers already; finish some of them "
        "first"
    )
    return Refusal(429, "too_many_transfers", detail, 5)
