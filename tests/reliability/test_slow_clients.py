"""Clients that send slowly, or nothing: they are cut off, and nobody waits for them (case A16)."""

from __future__ import annotations

import contextlib
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evalhub.operating.simulation import TEXTBOOK_RUN
from tests.reliability.servers import Server, embedded_server

PATIENCE = 2
# Trickling goes on this long where nobody cuts it off; a busy machine takes some of it to do so.
UNCUT = 40 * PATIENCE
IDLE = 100
HEAD = "POST /api/v1/collections/slow/runs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with embedded_server(
        tmp_path_factory.mktemp("slow"), EVALHUB_PATIENCE_SECONDS=str(PATIENCE)
    ) as server:
        with server.client() as client:
            client.post("collections/", json={"slug": "slow", "name": "Slow"}).raise_for_status()
            server.environment["TOKEN"] = client.headers["Authorization"]
        yield server


def connect(server: Server) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", httpx.URL(server.url).port or 0))
    connection.settimeout(30)
    return connection


def trickle(connection: socket.socket, content: str, pause: float) -> float:
    """Send a byte at a time until the server ends it; the seconds that took."""
    start = time.monotonic()
    connection.settimeout(pause)
    for character in content:
        try:
            connection.sendall(character.encode())
            if not connection.recv(65_536):
                break
        except TimeoutError:
            pass
        except ConnectionError:
            break
        if time.monotonic() - start > UNCUT:
            break
    return time.monotonic() - start


def seconds_of_requests(server: Server, number: int = 40) -> list[float]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        took = []
        for _ in range(number):
            start = time.perf_counter()
            assert client.get("/api/v1/measures/AP/").status_code == 200
            took.append(time.perf_counter() - start)
    return took


def test_others_do_not_wait_for_idle_connections(impatient: Server) -> None:
    quiet = statistics.quantiles(seconds_of_requests(impatient), n=20)[-1]
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(impatient)) for _ in range(IDLE)]
        crowded = statistics.quantiles(seconds_of_requests(impatient), n=20)[-1]
        assert crowded < max(0.5, 5 * quiet)
        for connection in idle:
            assert connection.recv(1) == b"", "it is closed after a while"


def test_slow_uploads_and_slow_headers_are_cut_off_and_nobody_waits_for_them(
    impatient: Server,
) -> None:
    body = (
        f"{HEAD}Authorization: {impatient.environment['TOKEN']}\r\nContent-Length: 100000\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        # As many as there are threads, and more.
        slow = [stack.enter_context(connect(impatient)) for _ in range(12)]
        for connection in slow[:6]:
            connection.sendall(body.encode())
        for connection in slow[6:]:
            connection.sendall(HEAD[:30].encode())
        # Twice the patience, where all threads are held two times; for ever where nobody is cut
        # off.
        assert seconds_of_requests(impatient, 1)[0] < UNCUT / 4
        assert trickle(slow[0], "1 Q0 " * 100, 0.2) < UNCUT / 2
        assert trickle(slow[6], "X-Header: " * 100, 0.2) < UNCUT / 2
    assert statistics.quantiles(seconds_of_requests(impatient), n=20)[-1] < PATIENCE


def test_an_upload_in_small_pieces_is_accepted(impatient: Server) -> None:
    """Slow, but a client that gets on."""

    def pieces() -> Iterator[bytes]:
        content = TEXTBOOK_RUN.encode()
        for start in range(0, len(content), 200):
            time.sleep(0.05)
            yield content[start : start + 200]

    length = str(len(TEXTBOOK_RUN.encode()))
    headers = {
        "Authorization": impatient.environment["TOKEN"],
        "Content-Type": "text/plain",
        "Content-Length": length,
    }
    answer = httpx.post(
        f"{impatient.url}/api/v1/collections/slow/runs/",
        content=pieces(),
        headers=headers,
        timeout=60,
    )
    assert answer.status_code == 202, answer.text


def test_a_cut_off_upload_leaves_no_file(impatient: Server) -> None:
    with connect(impatient) as connection:
        head = f"{HEAD}Authorization: {impatient.environment['TOKEN']}\r\nContent-Length: 100000\r\n\r\n1 Q0 a"
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    assert answer.startswith("HTTP/1.1 408 ")
    assert '"body_too_slow"' in answer
    assert list((Path(impatient.environment["EVALHUB_DATA"]) / "uploads").iterdir()) == []
