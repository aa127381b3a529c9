"""The processes of a web server: replaced when they die or are to be new, ended with the one that listens."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from evalhub.serving.http_server import HttpServer
from evalhub.serving.threads import FairThreads
from evalhub.serving.web_server import adjustments, listen
from tests.reliability.servers import (
    FILES_URL,
    Server,
    clean_environment,
    free_port,
)


def children(server: Server) -> list[psutil.Process]:
    return psutil.Process(server.processes[0].pid).children()


def address_of(server: Server) -> tuple[str, int]:
    return "127.0.0.1", httpx.URL(server.url).port or 0


def stays(server: Server, seconds: float) -> bool:
    """Whether the server has the same processes after so many seconds."""
    before = children(server)
    time.sleep(seconds)
    return children(server) == before


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextlib.contextmanager
def web_server(folder: Path, processes: int, **settings: str) -> Iterator[Server]:
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", {**clean_environment(folder), **settings})
    try:
        server.prepare()
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", str(processes))
        server.wait()
        yield server
    finally:
        server.stop()


def end(server: Server, number: signal.Signals) -> None:
    """End the process that listens; no other one outlives it."""
    processes = children(server)
    server.processes[0].send_signal(number)
    server.processes[0].wait(10)
    until(lambda: not any(process.is_running() for process in processes))
    with contextlib.suppress(httpx.TransportError):
        httpx.get(f"{server.url}/healthz")
        pytest.fail("nobody listens any more")


def test_processes_are_replaced_while_others_are_answered_and_end_with_a_killed_one(
    tmp_path: Path,
) -> None:
    with web_server(tmp_path, processes=2) as web:
        replace_processes(web)
        end(web, signal.SIGKILL)


def replace_processes(web: Server) -> None:
    wrong: list[object] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(0.02):
            try:
                code = httpx.get(f"{web.url}/healthz", timeout=30).status_code
                wrong.extend([code] if code != 200 else [])
            except httpx.TransportError as error:
                wrong.append(error)

    first = children(web)
    assert len(first) == 2
    asking = threading.Thread(target=ask)
    asking.start()
    web.processes[0].send_signal(signal.SIGHUP)
    until(lambda: not set(first) & set(children(web)) and len(children(web)) == 2)
    ended.set()
    asking.join()
    assert wrong == []

    killed, survivors = children(web)
    killed.kill()
    until(
        lambda: (
            killed not in children(web) and survivors in children(web) and len(children(web)) == 2
        )
    )
    assert httpx.get(f"{web.url}/healthz").status_code == 200


def test_a_web_server_that_was_forked_replaces_itself_by_its_own_command(embedded: Server) -> None:
    supervisor = psutil.Process(embedded.processes[0].pid)
    assert sorted(part.name() for part in supervisor.children()) == [
        "evalhub web",
        "evalhub worker",
    ]
    (listening,) = (part for part in supervisor.children() if part.name() == "evalhub web")
    first = listening.children()
    listening.send_signal(signal.SIGHUP)
    until(lambda: not set(first) & set(listening.children()) and len(listening.children()) == 2)
    assert listening.cmdline()[1:4] == ["-m", "evalhub", "web"]
    assert listening.name() == "evalhub web"
    assert httpx.get(f"{embedded.url}/healthz").status_code == 200


def test_a_process_that_keeps_much_memory_is_replaced_when_no_request_is_in_hand(
    tmp_path: Path,
) -> None:
    """And ends with the one that listens, which is told to."""
    # What it has from its start does not count: a new one would have that, too.
    with web_server(tmp_path, processes=1, EVALHUB_WEB_MEMORY_MB="1") as server:
        until(lambda: stays(server, 2.5))
        with socket.create_connection(address_of(server)) as sender:
            sender.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
            assert stays(server, 2.5)
            (first,) = children(server)
            # The page and its templates need several megabytes.
            sender.sendall(b"}")
            assert sender.recv(1000).startswith(b"HTTP/1.1 200 ")
            until(lambda: first not in children(server) and len(children(server)) == 1)
        server.wait()
        end(server, signal.SIGTERM)


def test_migrating_a_new_database_leaves_no_memory_to_the_processes(tmp_path: Path) -> None:
    script = (
        "from evalhub.management.commands.serve import migrate_apart; "
        "from evalhub.serving.web_server import _own_megabytes as megabytes; "
        "before = megabytes(); migrate_apart(); print(before, megabytes())"
    )
    new = Server("", clean_environment(tmp_path))
    before, after = new.manage("shell", "-v", "0", "-c", script).split()
    assert list(tmp_path.glob("*.sqlite3"))
    # Migrating needs more than 200.
    assert int(after) - int(before) < 50


def test_a_server_without_its_database_and_store_starts_and_says_so(tmp_path: Path) -> None:
    port = free_port()
    away = f"postgres://nobody@127.0.0.1:{free_port()}/nothing"
    folder = tmp_path / "not-there"
    environment = {
        **clean_environment(folder),
        "EVALHUB_DATABASE_URL": away,
        "EVALHUB_REDIS_URL": "redis://127.0.0.1:1/0",
    }
    server = Server(f"http://127.0.0.1:{port}", environment)
    try:
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
        until(lambda: is_alive(server))
        (process,) = children(server)
        ready = httpx.get(f"{server.url}/readyz", timeout=30)
        assert ready.status_code == 503
        assert "database_unavailable" in ready.text
        answer = httpx.get(f"{server.url}/api/v1/collections/", timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert children(server) == [process]
        # With an object store it only holds what can be made anew.
        assert folder.exists() == bool(FILES_URL)
    finally:
        server.stop()


def is_alive(server: Server) -> bool:
    try:
        return httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200
    except httpx.TransportError:
        return False


REFUSED = {
    "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths, one of them empty": b"Transfer-Encoding:\r\ncontent-length: 4\r\n\r\nbody",
    "a folded header": b"X-Note: one\r\n two\r\n\r\n",
    "a header folded by a tab": b"X-Note: one\r\n\ttwo\r\nContent-Length: 0\r\n\r\n",
}
ASK = b"GET /api/v1/ HTTP/1.1\r\nHost: localhost\r\n\r\n"


def all_sent(server: Server, request: bytes, *, close: bool = False) -> bytes:
    """Everything that the server sends until it ends the connection; with `close` the client ends its half first."""
    with socket.create_connection(address_of(server), timeout=30) as connection:
        connection.sendall(request)
        if close:
            connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("head", REFUSED.values(), ids=REFUSED)
def test_a_head_that_servers_read_in_two_ways_ends_the_connection(
    embedded: Server, head: bytes
) -> None:
    sent = all_sent(embedded, b"POST /login/ HTTP/1.1\r\nHost: localhost\r\n" + head + ASK)
    assert sent.startswith(b"HTTP/1.1 400 ")
    assert (sent.count(b"HTTP/1.1 "), b'"code": "bad_request"' in sent) == (1, True)


def test_a_chunked_body_needs_the_version_that_has_it(embedded: Server) -> None:
    head = b"POST /login/ HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent = all_sent(embedded, head + b"0\r\n\r\n" + ASK)
    assert (sent[:13], sent.count(b"Content-Length:")) == (b"HTTP/1.0 400 ", 1)


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_client_that_closed_its_half_gets_its_answers(embedded: Server, version: str) -> None:
    keep = "" if version == "1.1" else "Connection: keep-alive\r\n"
    ask = f"GET /api/v1/collections/ HTTP/{version}\r\nHost: localhost\r\n{keep}\r\n".encode()
    sent = all_sent(embedded, ask * 3, close=True)
    assert sent.count(f"HTTP/{version} 200 OK".encode()) == 3
    # Only an unfinished answer is announced.
    assert sent.count(b"100 Continue") <= (version == "1.1")
    refused = all_sent(embedded, ask.replace(b"GET", b"POST"), close=True)
    assert f"HTTP/{version} 401 ".encode() in refused
    # What is not complete has no answer.
    assert all_sent(embedded, ask[:-2], close=True) == b""


@pytest.mark.parametrize("proxies", [0, 1])
def test_the_computation_of_a_client_that_has_left_ends(settings: Any, proxies: int) -> None:
    settings.EVALHUB_PROXIES = proxies
    started, ended = threading.Event(), threading.Event()

    def compute(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        started.set()
        ends = time.monotonic() + 60
        while not environ["waitress.client_disconnected"]():
            assert time.monotonic() < ends
            time.sleep(0.02)
        ended.set()
        start_response("200 OK", [])
        return []

    listening = listen("127.0.0.1:0")
    server = HttpServer(listening, compute, adjustments(listening), FairThreads("web", 1, 1))
    serving = threading.Thread(target=server.run_until_stopped, args=(0.0,))
    serving.start()
    try:
        with socket.create_connection(listening.getsockname()) as connection:
            connection.sendall(ASK)
            # A client that leaves earlier has no computation: its request is dropped.
            assert started.wait(60)
        assert ended.wait(60)
    finally:
        server.stopping = True
        serving.join()
