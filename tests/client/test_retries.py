"""What is sent again, how often and with which key: every row of the table in docs/client.md."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from evalhub.client import (
    BadFile,
    Blind,
    Conflict,
    Hub,
    QuotaExceeded,
    Refused,
    Throttled,
    Unavailable,
)
from tests.client.conftest import URL, Clock, problem, raw_run

RUN = b"1 Q0 a 1 3.0 bm25\n"
LOST = (
    httpx.ConnectError("refused"),
    httpx.ReadTimeout("silent"),
    httpx.RemoteProtocolError("reset"),
)
# What is answered first, and how many requests there are in all: until it works, or until nothing
# more is tried.
UNTIL_IT_WORKS, ONCE, THREE_TIMES = 4, 1, 3
TABLE: list[tuple[Any, int, int]] = [
    *[(error, UNTIL_IT_WORKS, UNTIL_IT_WORKS) for error in LOST],
    *[((status, "x"), UNTIL_IT_WORKS, UNTIL_IT_WORKS) for status in (408, 502, 503, 504, 507)],
    ((429, "throttled"), UNTIL_IT_WORKS, UNTIL_IT_WORKS),
    ((429, "too_many_at_once"), UNTIL_IT_WORKS, UNTIL_IT_WORKS),
    ((429, "quota_exceeded"), ONCE, ONCE),
    ((500, "server_error"), THREE_TIMES, THREE_TIMES),
    *[((status, "x"), ONCE, ONCE) for status in (400, 401, 403, 404, 409, 413, 415, 422, 301)],
]


def failing(
    first: Any, times: int = 3
) -> tuple[Callable[[httpx.Request], Any], list[httpx.Request]]:
    """Answer so many times with a failure, then as it should be."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> Any:
        seen.append(request)
        if len(seen) > times:
            return httpx.Response(202, json=raw_run("bm25"))
        return first if isinstance(first, Exception) else problem(*first)

    return answer, seen


@pytest.mark.parametrize(("first", "reads", "submits"), TABLE, ids=lambda value: str(value)[:30])
def test_what_is_sent_again(
    hub_of: Callable[..., Hub], first: Any, reads: int, submits: int
) -> None:
    for expected, ask in (
        (reads, lambda hub: hub.me()),
        (submits, lambda hub: hub.collection("c").submit(RUN)),
    ):
        answer, seen = failing(first)
        hub = hub_of(answer)
        if expected == UNTIL_IT_WORKS:
            ask(hub)
        else:
            with pytest.raises((Refused, Unavailable)):
                ask(hub)
        assert len(seen) == expected
        keys = {request.headers.get("Idempotency-Key") for request in seen}
        assert len(keys) == 1
        assert (None in keys) == (seen[0].method == "GET")
        # The boundary of a form is another one each time; the file within is the same.
        assert all(RUN in request.content for request in seen if request.method == "POST")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_what_may_be_done_twice_is_sent_again(hub_of: Callable[..., Hub], method: str) -> None:
    for first, _, expected in TABLE:
        answer, seen = failing(first)
        with contextlib.suppress(Refused, Unavailable):
            hub_of(answer).request(method, "collections/c/")
        assert len(seen) == expected, first


def test_two_submissions_have_two_keys(hub_of: Callable[..., Hub]) -> None:
    answer, seen = failing(None, times=0)
    hub = hub_of(answer)
    for _ in range(2):
        hub.collection("c").submit(RUN)
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 2


def test_a_post_without_a_key_is_not_sent_again_where_it_may_have_been_done(
    hub_of: Callable[..., Hub],
) -> None:
    for first, expected in ((LOST[1], 1), ((503, "x"), 1), ((429, "throttled"), 4)):
        answer, seen = failing(first)
        hub = hub_of(answer)
        if expected == 1:
            with pytest.raises(Unavailable):
                hub.request("POST", "tokens/", json={"name": "x"})
        else:
            hub.request("POST", "tokens/", json={"name": "x"})
        assert len(seen) == expected


def test_the_server_says_how_long_to_wait(hub_of: Callable[..., Hub], clock: Clock) -> None:
    answers = iter(
        [problem(429, "throttled", **{"Retry-After": "7"}), httpx.Response(200, json={})]
    )
    hub_of(lambda request: next(answers)).me()
    assert clock.slept == [7.0]


def test_waits_grow_and_end_with_the_time_there_is(
    hub_of: Callable[..., Hub], clock: Clock
) -> None:
    hub = hub_of(lambda request: httpx.ConnectError("refused"), retry_for=60.0)
    with pytest.raises(Unavailable, match="refused"):
        hub.me()
    assert sum(clock.slept) <= 60
    assert all(seconds <= min(30, 0.5 * 2**number) for number, seconds in enumerate(clock.slept, 1))
    hub = hub_of(lambda request: problem(503, "x", **{"Retry-After": "61"}), retry_for=60.0)
    clock.slept.clear()
    with pytest.raises(Unavailable):
        hub.me()
    assert clock.slept == []


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (403, "blind", Blind), (409, "tag_taken", Conflict), (429, "quota_exceeded", QuotaExceeded),
        (422, "bad_score", BadFile), (422, "idempotency_key_reused", Conflict), (400, "unknown_measure", Refused),
    ],
)  # fmt: skip
def test_a_refusal_has_its_kind(
    hub_of: Callable[..., Hub], status: int, code: str, kind: type[Refused]
) -> None:
    with pytest.raises(kind, match=f"{code} happened") as caught:
        hub_of(lambda request: problem(status, code)).me()
    assert (caught.value.status, caught.value.code) == (status, code)
    assert not isinstance(caught.value, Throttled)


def test_a_bad_file_is_told_line_by_line(hub_of: Callable[..., Hub]) -> None:
    entries = [{"line": line, "code": "bad_score", "detail": "no number"} for line in range(1, 15)]
    body = {"code": "bad_score", "detail": "line 1", "errors": entries}
    with pytest.raises(BadFile) as caught:
        hub_of(lambda request: httpx.Response(422, json=body)).collection("c").submit(RUN)
    lines = str(caught.value).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("run:1: bad_score: no number", "and 4 more", 11)


def test_what_is_no_json_is_an_error_of_the_server(hub_of: Callable[..., Hub]) -> None:
    with pytest.raises(Unavailable, match="502 Bad Gateway"):
        hub_of(lambda request: httpx.Response(502, text="<html>"), retry_for=0.0).me()


def test_the_token_is_sent_and_never_shown(hub_of: Callable[..., Hub]) -> None:
    seen: list[httpx.Request] = []
    hub = hub_of(
        lambda request: seen.append(request) or httpx.Response(200, json={"username": "a"})
    )
    assert hub.me().username == "a"
    assert seen[0].headers["Authorization"] == "Bearer evh_1_x"
    assert str(seen[0].url) == f"{URL}/api/v1/me/"
    assert "evh_1" not in repr(hub)


def test_threads_share_a_client(
    hub_of: Callable[..., Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that await call methods in threads: a second client would never be closed."""
    clients: list[httpx.Client] = []
    both, make = threading.Barrier(2), httpx.Client

    def client(**options: Any) -> httpx.Client:
        # Passes at once where the other thread makes a client, too.
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        clients.append(make(**options))
        return clients[-1]

    monkeypatch.setattr("evalhub.client.sending.httpx.Client", client)
    hub = hub_of(lambda request: httpx.Response(200, json={"username": "a"}))

    async def ask() -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(hub.me) for _ in range(2)))

    assert [me.username for me in asyncio.run(ask())] == ["a", "a"]
    hub.close()
    assert [opened.is_closed for opened in clients] == [True]
