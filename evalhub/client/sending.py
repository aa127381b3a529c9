"""Send requests: a `Call` describes one, and a `Connection` sends it until it is answered."""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Protocol

import httpx

from .config import Config
from .display import Chart, check_form
from .errors import NotFound, Refused, Unavailable, error_of, seconds_of
from .sources import Source, size_of
from .version import VERSION

_log = logging.getLogger("evalhub_client")

# The server closes connections that are idle for five seconds; a request must not be sent then.
_LIMITS = httpx.Limits(keepalive_expiry=2)
# These are retried until the time is up: they do not depend on the request.
_RETRY_STATUSES = (408, 502, 503, 504, 507)
_MAX_RETRIES_OF_500 = 2
_MAX_WAIT = 30.0
# Random waits: clients that were cut off together should not come back together.
_RANDOM = random.SystemRandom()
# Codes of 429 that end by themselves in seconds.
_RETRY_CODES = ("throttled", "too_many_at_once", "too_many_transfers", "too_many_comparisons")
# Errors of httpx for a request that can never be sent.
_PERMANENT_ERRORS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
# The server's largest page.
_PAGE_ROWS = 200


@dataclass(frozen=True)
class Call:
    """One request. It can be sent again without being done twice unless it is a POST without `key`."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    json: Any = None
    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, Source] = field(default_factory=dict)
    key: str = ""
    # A body that is neither a form nor JSON.
    content: Source | None = None
    content_type: str = ""

    @property
    def repeatable(self) -> bool:
        return self.method != "POST" or bool(self.key)

    @property
    def source(self) -> str:
        return next((source.name for source in (*self.files.values(), self.content) if source), "")


class ReportingFile:
    """A file that reports how many of its bytes were read, for a progress bar."""

    def __init__(self, file: IO[bytes], report: Callable[[int], None]) -> None:
        self._file, self._report = file, report

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._report(self._file.tell())
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Watcher(Protocol):
    """Follow files that are sent; several threads call this at once."""

    def update(self, name: str, size: int, bytes_read: int) -> None:
        """Note how many of the `size` bytes of a file were sent."""

    def finish(self, name: str, state: str) -> None:
        """Note that a file became a run, or was refused."""


class Connection:
    """A connection to a server that threads can share. Nothing is sent before a method is called."""

    def __init__(
        self,
        config: Config,
        *,
        timeout: float = 30.0,
        retry_for: float = 300.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.config, self.url, self.retry_for = config, config.url, retry_for
        self.watcher: Watcher | None = None
        self._timeout, self._transport = timeout, transport
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()
        self._warned = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url})"

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def watch(self, watcher: Watcher | None) -> None:
        """Report the progress of files that are sent from now on."""
        self.watcher = watcher

    def send(self, call: Call) -> httpx.Response:
        """Send a request until it is answered, for at most `retry_for` seconds.

        Raise the error of the last try. NotFound for a collection suggests a similar name.
        """
        try:
            return self._send(call)
        except NotFound as error:
            if not error.detail.startswith("there is no collection"):
                raise
            slugs = [row["slug"] for row in self.pages("collections/")["results"]]
            raise error.with_suggestion(call.path.split("/")[1], slugs) from None

    def read(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON of an address."""
        body: dict[str, Any] = self.send(Call("GET", path, parameters_of(params or {}))).json()
        return body

    def pages(
        self,
        path: str,
        params: dict[str, Any] | None = None,
        rows: int | None = None,
        of: str = "results",
    ) -> dict[str, Any]:
        """Return the first page of a list with the rows of all others, or with the first `rows`."""
        params = {"limit": min(rows or _PAGE_ROWS, _PAGE_ROWS), **(params or {})}
        body = page = self.read(path, params)
        while page.get("next") and (rows is None or len(body[of]) < rows):
            page = self.read(path, {**params, "offset": len(body[of])})
            if not page[of]:
                break
            body[of] += page[of]

        body[of] = body[of][:rows]
        return body

    def download(self, path: str) -> bytes:
        """Return the file of an address."""
        return self.send(Call("GET", path)).content

    def draw(self, path: str, name: str, form: str = "svg", /, **parameters: Any) -> Chart:
        """Return the chart with this name below `path`; raise BadSource for an unknown format."""
        call = Call("GET", f"{path}{name}.{check_form(form)}", parameters_of(parameters))
        return Chart(self.send(call).content, form, f"{path}{name}")

    def _send(self, call: Call) -> httpx.Response:
        """Try until there is an answer.

        The wait between tries is random and grows, or is as long as the server asks for.
        """
        deadline, tries = time.monotonic() + self.retry_for, 0
        while True:
            wait = 0.0
            failure: Refused | Unavailable
            start = time.monotonic()

            try:
                response = self._try(call)
            except _PERMANENT_ERRORS as error:
                raise Unavailable(f"{call.path} cannot be asked: {error}") from error
            except httpx.TransportError as error:
                failure = Unavailable(f"no answer from the server: {error or type(error).__name__}")
            else:
                self._log_answer(response, time.monotonic() - start)
                if response.status_code < 300:
                    return response
                failure = error_of(response, call.source)
                wait = seconds_of(response) or 0.0

            tries += 1
            wait = max(wait, _RANDOM.uniform(0, min(_MAX_WAIT, 0.5 * 2**tries)))
            if not _may_repeat(call, failure, tries) or time.monotonic() + wait > deadline:
                raise failure

            time.sleep(wait)

    def _try(self, call: Call) -> httpx.Response:
        """Send a request once, with every file opened anew."""
        options: dict[str, Any] = {"params": call.params or None, "headers": {}}
        if call.key:
            options["headers"]["Idempotency-Key"] = call.key

        with ExitStack() as stack:
            if call.files:
                options["data"], options["files"] = call.fields, {}
                for name, source in call.files.items():
                    file: Any = stack.enter_context(source.open())
                    if self.watcher:
                        report = partial(self.watcher.update, source.name, size_of(source))
                        file = ReportingFile(file, report)
                    options["files"][name] = (source.name, file)
            elif call.content is not None:
                options["content"] = stack.enter_context(call.content.open()).read()
                options["headers"]["Content-Type"] = call.content_type
            elif call.json is not None:
                options["json"] = call.json

            return self._http().request(call.method, call.path, **options)

    def _http(self) -> httpx.Client:
        """Return the client of all threads."""
        with self._lock:
            if self._client is None:
                headers = {
                    "User-Agent": f"evalhub-client/{VERSION}",
                    "X-Evalhub-Client": VERSION,
                    "Accept": "application/json",
                }

                if self.config.token:
                    headers["Authorization"] = f"Bearer {self.config.token}"

                self._client = httpx.Client(
                    base_url=f"{self.url}/api/v1/",
                    headers=headers,
                    timeout=self._timeout,
                    limits=_LIMITS,
                    transport=self._transport,
                    follow_redirects=False,
                )

            return self._client

    def _log_answer(self, response: httpx.Response, seconds: float) -> None:
        """Log a response, and warn once if the server offers a newer client or serves only such."""
        request = response.request
        _log.info(
            "%s %s %s %.0f ms, request %s",
            request.method,
            request.url,
            response.status_code,
            1000 * seconds,
            response.headers.get("X-Request-ID"),
        )

        if self._warned:
            return

        least = response.headers.get("X-Evalhub-Least-Client", "")
        offered = response.headers.get("X-Evalhub-Offered-Client", "")
        update = ""
        # The line is to be pasted into a shell: nothing else of the header gets into it.
        if re.fullmatch(r"[0-9]+(\.[0-9]+)*", offered) and _numbers(offered) > _numbers(VERSION):
            update = f"pip install {self.url}/client/evalhub_client-{offered}-py3-none-any.whl"

        if _numbers(least) > _numbers(VERSION):
            self._warned = True
            _log.warning(
                "the server at %s serves evalhub-client %s and newer; this is %s%s",
                self.url,
                least,
                VERSION,
                f". To update it: {update}" if update else "",
            )
        elif update:
            self._warned = True
            _log.warning(
                "the server at %s offers evalhub-client %s; this is %s. To update it: %s",
                self.url,
                offered,
                VERSION,
                update,
            )


def parameters_of(values: dict[str, Any]) -> dict[str, str]:
    """Return parameters for an address: lists with commas, booleans in lower case, without None."""
    parameters = {}
    for name, value in values.items():
        if isinstance(value, bool):
            parameters[name] = str(value).lower()
        elif isinstance(value, list | tuple | set):
            parameters[name] = ",".join(map(str, value))
        elif value is not None:
            parameters[name] = str(value)

    return parameters


def _may_repeat(call: Call, failure: Refused | Unavailable, tries: int) -> bool:
    """Return whether a request is sent again, as in the table of retries in docs/client.md."""
    if isinstance(failure, Refused):
        # A request that was throttled was not done.
        return failure.code in _RETRY_CODES or (failure.status == 408 and call.repeatable)
    if not call.repeatable:
        return False

    return (
        failure.status is None
        or failure.status in _RETRY_STATUSES
        or (failure.status == 500 and tries <= _MAX_RETRIES_OF_500)
    )


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version for comparison; [] if there are none."""
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
