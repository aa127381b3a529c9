"""One description of every request, and two ways to send it.

An operation is a generator: it yields `Attempt` (send this once), `Pause` (sleep) and `Together` (run these operations
side by side), and is sent back the answer. It is written once; `Sender` runs it with `httpx.Client`, `AsyncSender` with
`httpx.AsyncClient`. An error of the connection is raised inside the operation, where `send` decides about it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Protocol, TypeVar

import httpx

from .errors import Refused, Unavailable, error_of, seconds_of
from .sources import Source, size_of

Result = TypeVar("Result")
Steps = Generator[Any, Any, Result]

# Sent again whenever the time allows: what went wrong has nothing to do with the request.
_AGAIN = (408, 502, 503, 504, 507)
_TWICE = 2
_LONGEST = 30.0
# Clients that were cut off together do not come back together.
_DRAWS = random.SystemRandom()
# Codes of 429 that end by themselves in seconds.
_PASSING = ("throttled", "too_many_at_once", "too_many_transfers", "too_many_comparisons")
# What httpx says of a request that could never be sent.
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True)
class Call:
    """One request. With a `key`, or where it is no POST, it can be sent again without being done twice."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    json: Any = None
    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, Source] = field(default_factory=dict)
    key: str = ""
    # A body of its own, which is no form and not JSON.
    content: Source | None = None
    content_type: str = ""

    @property
    def repeatable(self) -> bool:
        return self.method != "POST" or bool(self.key)

    @property
    def source(self) -> str:
        return next((source.name for source in (*self.files.values(), self.content) if source), "")


@dataclass(frozen=True)
class Attempt:
    """Send a request once; what comes back is the response, whatever its status."""

    call: Call


class Counted:
    """A file that tells how many of its bytes were read, for a bar of progress."""

    def __init__(self, file: IO[bytes], told: Callable[[int], None]) -> None:
        self._file, self._told = file, told

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._told(self._file.tell())
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@dataclass(frozen=True)
class Pause:
    """Sleep for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Together:
    """Run operations side by side, `limit` at once; what comes back are their results, an error in place of one."""

    operations: Sequence[Steps[Any]]
    limit: int


def parameters_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as an address has them: lists with commas, truth in lower case; None is not given."""
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(value, list | tuple | set):
            found[name] = ",".join(map(str, value))
        else:
            found[name] = str(value)
    return found


def send(
    call: Call, retry_for: float, heard: Callable[[httpx.Response, float], None]
) -> Steps[httpx.Response]:
    """Send a request until it is answered, for at most `retry_for` seconds; the error of the last try otherwise.

    Between tries it waits a random time that grows, or as long as the server asks for. `heard` is told of each answer
    and of the seconds that it took.
    """
    deadline, tries = time.monotonic() + retry_for, 0
    while True:
        wait = 0.0
        failed: Refused | Unavailable
        start = time.monotonic()
        try:
            response: httpx.Response = yield Attempt(call)
        except _HOPELESS as error:
            raise Unavailable(f"{call.path} cannot be asked: {error}") from error
        except httpx.TransportError as error:
            failed = Unavailable(f"no answer from the server: {error or type(error).__name__}")
        else:
            heard(response, time.monotonic() - start)
            if response.status_code < 300:
                return response
            failed = error_of(response, call.source)
            wait = seconds_of(response) or 0.0
        tries += 1
        wait = max(wait, _DRAWS.uniform(0, min(_LONGEST, 0.5 * 2**tries)))
        if not _may_repeat(call, failed, tries) or time.monotonic() + wait > deadline:
            raise failed
        yield Pause(wait)


def _may_repeat(call: Call, failed: Refused | Unavailable, tries: int) -> bool:
    """Whether a request is sent again: the table of retries in docs/client.md."""
    if isinstance(failed, Refused):
        # What was throttled was not done.
        return failed.code in _PASSING or (failed.status == 408 and call.repeatable)
    if not call.repeatable:
        return False
    return (
        failed.status is None
        or failed.status in _AGAIN
        or (failed.status == 500 and tries <= _TWICE)
    )


def _arguments(call: Call, stack: ExitStack, watcher: Watcher | None) -> dict[str, Any]:
    """Return what httpx takes, with every file opened anew."""
    sent: dict[str, Any] = {"params": call.params or None, "headers": {}}
    if call.key:
        sent["headers"]["Idempotency-Key"] = call.key
    if call.files:
        opened = {}
        for name, source in call.files.items():
            file: Any = stack.enter_context(source.open())
            if watcher:
                file = Counted(file, partial(watcher.sent, source.name, size_of(source)))
            opened[name] = (source.name, file)
        sent["files"], sent["data"] = opened, call.fields
    elif call.content is not None:
        sent["content"] = stack.enter_context(call.content.open()).read()
        sent["headers"]["Content-Type"] = call.content_type
    elif call.json is not None:
        sent["json"] = call.json
    return sent


class Watcher(Protocol):
    """Is told of files on their way; by several threads at once."""

    def sent(self, name: str, size: int, so_far: int) -> None:
        """Of `size` bytes of a file so many were sent."""

    def ended(self, name: str, state: str) -> None:
        """A file became a run, or was refused."""


class Sender:
    """Runs operations with `httpx.Client`."""

    watcher: Watcher | None = None

    def __init__(self, make: Callable[[], httpx.Client]) -> None:
        self._make = make
        self._client: httpx.Client | None = None

    @property
    def client(self) -> httpx.Client:
        if self._client is None:
            self._client = self._make()
        return self._client

    def run(self, steps: Steps[Result]) -> Result:
        """Run an operation to its end."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                step = steps.throw(error) if error else steps.send(answer)
            except StopIteration as ended:
                result: Result = ended.value
                return result
            answer, error = None, None
            try:
                answer = self._do(step)
            except Exception as raised:
                error = raised

    def _do(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if isinstance(step, Together):
            # One client for all threads; it is made before they start.
            _ = self.client
            with ThreadPoolExecutor(max(1, step.limit)) as threads:
                return list(threads.map(self._or_error, step.operations))
        with ExitStack() as stack:
            arguments = _arguments(step.call, stack, self.watcher)
            return self.client.request(step.call.method, step.call.path, **arguments)

    def _or_error(self, steps: Steps[Any]) -> Any:
        try:
            return self.run(steps)
        except Exception as error:
            return error

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


class AsyncSender:
    """Runs operations with `httpx.AsyncClient`."""

    watcher: Watcher | None = None

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._client: httpx.AsyncClient | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._make()
        return self._client

    async def run(self, steps: Steps[Result]) -> Result:
        """Run an operation to its end."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                step = steps.throw(error) if error else steps.send(answer)
            except StopIteration as ended:
                result: Result = ended.value
                return result
            answer, error = None, None
            try:
                answer = await self._do(step)
            except Exception as raised:
                error = raised

    async def _do(self, step: Any) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Together):
            places = asyncio.Semaphore(max(1, step.limit))

            async def one(steps: Steps[Any]) -> Any:
                async with places:
                    return await self.run(steps)

            return await asyncio.gather(*map(one, step.operations), return_exceptions=True)
        with ExitStack() as stack:
            arguments = _arguments(step.call, stack, self.watcher)
            return await self.client.request(step.call.method, step.call.path, **arguments)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
