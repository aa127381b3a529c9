"""A client whose server is a function, and whose time passes at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from evalhub.client import (
    Hub,
    account_commands,
    cli,
    collection,
    commands,
    runs,
    sending,
    submitting,
)
from evalhub.client.config import Config

URL = "https://hub.example"
CONFIG = Config(URL, "evh_1_x", "default")


class Clock:
    """Takes the place of the module `time`: sleeping is noted and passes at once."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """What a command sets up for its process ends with its test."""
    root, own = logging.getLogger(), logging.getLogger("evalhub_client")
    before = [*root.handlers], root.level, own.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    own.setLevel(before[2])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    sleeper = Clock()
    for module in (sending, runs, collection, submitting, commands):
        monkeypatch.setattr(module, "time", sleeper)
    return sleeper


@pytest.fixture
def hub_of(clock: Clock) -> Callable[..., Hub]:
    """Makes a client of a function from requests to responses, or to errors."""

    def make(
        answer: Callable[[httpx.Request], Any], *, config: Config = CONFIG, **options: Any
    ) -> Hub:
        def handler(request: httpx.Request) -> httpx.Response:
            request.read()
            response = answer(request)
            if isinstance(response, Exception):
                raise response
            return response

        return Hub(config, transport=httpx.MockTransport(handler), **options)

    return make


@pytest.fixture
def evh(
    hub_of: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Callable[..., Any]:
    """Runs a command against a function; returns status, standard output and standard error."""

    def run(
        answer: Callable[[httpx.Request], Any], *arguments: str, collection: str = ""
    ) -> tuple[int, str, str]:
        hub = hub_of(answer, retry_for=0.0)
        hub.config = replace(hub.config, collection=collection or hub.config.collection)
        monkeypatch.setattr(commands, "hub_of", lambda args: hub)
        # Of `evh login`, whose address and token are not those of the file.
        monkeypatch.setattr(account_commands, "Hub", lambda config: hub_of(answer, config=config))
        status = cli.run(list(arguments))
        out, err = capsys.readouterr()
        return status, out, err

    return run


def problem(status: int, code: str = "x", **headers: str) -> httpx.Response:
    """A refusal as the server words it."""
    return httpx.Response(
        status, json={"code": code, "detail": f"{code} happened", "errors": []}, headers=headers
    )


def raw_run(tag: str, state: str = "queued", number: int = 1, **fields: Any) -> dict[str, Any]:
    """A run as the server describes it."""
    status = {"state": state, "since": "", "qrels": None, "code": "", "reason": "", "queue": None}
    identity = f"00000000-0000-4000-8000-{number:012d}"
    return {
        "id": identity,
        "collection": "c",
        "team": "lab",
        "tag": tag,
        "sha256": "",
        "status": status,
        **fields,
    }
