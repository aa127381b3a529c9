"""The web server's connections, before an application sees any of them: who waits, who gives way, who is refused."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from evalhub.serving.http_server import HttpServer
from evalhub.serving.threads import FairThreads
from evalhub.serving.web_server import adjustments, listen

LARGE_ANSWER = 24 * 1024 * 1024
# Another client's address, which is this machine's too.
OTHER = "127.0.0.2"


class Served:
    """A server with four threads; its application waits at /wait/."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.bodies: list[bytes] = []
        listening = listen("0.0.0.0:0")
        self.port = listening.getsockname()[1]
        self.server = HttpServer(
            listening, self.answer, adjustments(listening), FairThreads("test", 4, 3)
        )
        self.thread = threading.Thread(target=self.server.run_until_stopped, args=(0.5,))
        self.thread.start()

    def answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/wait/":
            self.waiting.release()
            self.go_on.wait(20)
        self.bodies.append(environ["wsgi.input"].read())
        start_response("200 OK", [])
        return [b"x" * (LARGE_ANSWER if environ["PATH_INFO"] == "/large/" else 2)]

    def connect(self, source: str = "127.0.0.1", room: int = 0) -> socket.socket:
        connection = socket.socket()
        if room:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        connection.bind((source, 0))
        connection.settimeout(10)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def ask(self, head: str, body: bytes = b"", source: str = "127.0.0.1") -> tuple[int, bytes]:
        """Send a request whole; returns the code and the body of the answer."""
        with self.connect(source) as connection:
            connection.sendall(
                f"{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode() + body
            )
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        return int(answer[9:12]), answer.partition(b"\r\n\r\n")[2]

    def begin(self, path: str, source: str = "127.0.0.1", room: int = 0) -> socket.socket:
        """Ask for something, and read nothing of the answer."""
        connection = self.connect(source, room)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return connection


@pytest.fixture
def served(settings: Any) -> Iterator[Served]:
    settings.EVALHUB_PATIENCE_SECONDS = 60
    server = Served()
    yield server
    server.go_on.set()
    server.server.stopping = True
    server.server.pull_trigger()
    server.thread.join()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def code_in(content: bytes) -> str:
    return str(json.loads(content)["code"])


def test_health_needs_no_thread_and_no_client_has_all_of_them(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(served.begin("/wait/"))
        for _ in range(3):
            assert served.waiting.acquire(timeout=10)
        assert not served.waiting.acquire(timeout=0.2), (
            "three threads of four are one client's share"
        )
        assert served.ask("GET / HTTP/1.1", source=OTHER) == (200, b"xx")
        stack.enter_context(served.begin("/wait/", OTHER))
        assert served.waiting.acquire(timeout=10)
        assert served.ask("GET /healthz HTTP/1.1") == (200, b'{"alive": true}')
        assert served.ask("HEAD /healthz HTTP/1.1") == (200, b"")


def test_clients_take_turns(served: Served) -> None:
    """What one client has in the queue, however much, is behind the first request of another one."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(served.begin("/wait/", OTHER))
        for _ in range(30):
            stack.enter_context(served.begin("/wait/"))
        for _ in range(4):
            assert served.waiting.acquire(timeout=10)
        late = stack.enter_context(served.begin("/", OTHER))
        served.go_on.set()
        assert late.recv(15) == b"HTTP/1.1 200 OK"


def test_nobody_waits_for_slow_readers_and_senders(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(served.begin("/large/", room=4096))
            sender = stack.enter_context(served.connect())
            sender.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx")
        until(lambda: len(served.bodies) == 6)
        assert served.ask("GET / HTTP/1.1") == (200, b"xx")


def test_a_slow_reader_is_cut_off_and_a_steady_one_is_not(served: Served, settings: Any) -> None:
    settings.EVALHUB_PATIENCE_SECONDS = 1
    with served.begin("/large/", room=4096) as slow, served.begin("/large/") as steady:
        read = 0
        while piece := steady.recv(1 << 20):
            read += len(piece)
            if read > LARGE_ANSWER:
                break
            time.sleep(0.05)
        assert read > LARGE_ANSWER
        until(
            lambda: (
                not any(
                    channel.total_outbufs_len
                    for channel in [*served.server.active_channels.values()]
                )
            )
        )
        with contextlib.suppress(ConnectionError):
            assert len(b"".join(iter(lambda: slow.recv(1 << 20), b""))) < LARGE_ANSWER


def test_an_address_has_only_so_many_large_answers_waiting_for_it(
    served: Served, settings: Any
) -> None:
    settings.EVALHUB_ADDRESS_TRANSFERS = 2
    with served.begin("/large/", room=4096), served.begin("/large/", room=4096):
        until(
            lambda: (
                sum(
                    channel.total_outbufs_len > 0
                    for channel in [*served.server.active_channels.values()]
                )
                == 2
            )
        )
        code, content = served.ask("GET / HTTP/1.1")
        assert (code, code_in(content)) == (429, "too_many_transfers")
        assert served.ask("GET / HTTP/1.1", source=OTHER)[0] == 200
        assert served.ask("GET /healthz HTTP/1.1")[0] == 200
    until(lambda: served.ask("GET / HTTP/1.1")[0] == 200)


def test_an_address_has_only_so_many_large_uploads_on_the_way(
    served: Served, settings: Any
) -> None:
    settings.EVALHUB_ADDRESS_TRANSFERS = 2
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Length: 2000000\r\n\r\n"
    with served.connect() as server, served.connect() as two, served.connect() as three:
        server.sendall(head)
        two.sendall(head)
        until(
            lambda: (
                sum(bool(channel.request) for channel in [*served.server.active_channels.values()])
                == 2
            )
        )
        three.sendall(head)
        assert three.recv(12) == b"HTTP/1.1 429"
        server.sendall(b"x" * 2_000_000)
        assert server.recv(12) == b"HTTP/1.1 200"


def test_the_most_silent_connection_gives_way_to_a_new_one(served: Served, settings: Any) -> None:
    settings.EVALHUB_ADDRESS_CONNECTIONS = 3
    with served.begin("/wait/") as busy, served.connect() as silent, served.connect() as begun:
        assert served.waiting.acquire(timeout=10)
        begun.sendall(b"GET / HT")
        until(lambda: any(channel.request for channel in [*served.server.active_channels.values()]))
        assert served.ask("GET / HTTP/1.1") == (200, b"xx")
        assert silent.recv(1) == b""
        begun.sendall(b"TP/1.1\r\n\r\n")
        assert begun.recv(15) == b"HTTP/1.1 200 OK"
        served.go_on.set()
        assert busy.recv(15) == b"HTTP/1.1 200 OK"


def test_too_large_a_body_is_refused_at_once_and_the_client_reads_why(
    served: Served, settings: Any
) -> None:
    served.server.adj.max_request_body_size = 3_000_000
    head = "POST / HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 8000000"
    code, content = served.ask(head, b"x" * 8_000_000)
    assert (code, code_in(content)) == (413, "file_too_large")
    assert served.ask(f"{head}\r\nExpect: 100-continue")[0] == 413, "and nobody is asked to go on"
    chunked = b"4e0000\r\n" + b"x" * 0x4E0000 + b"\r\n0\r\n\r\n"
    code, _ = served.ask(
        "POST / HTTP/1.1\r\nAuthorization: Bearer x\r\nTransfer-Encoding: chunked", chunked
    )
    assert code == 413
    assert served.bodies == []


def test_who_does_not_say_who_it_is_sends_no_large_body(served: Served) -> None:
    code, content = served.ask("POST / HTTP/1.1\r\nContent-Length: 2000000", b"x" * 2_000_000)
    assert (code, code_in(content)) == (401, "not_authenticated")


def test_a_body_in_chunks_arrives_whole(served: Served) -> None:
    code, _ = served.ask(
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked", b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    assert (code, served.bodies) == (200, [b"abcde"])


def test_what_is_no_request_gets_an_answer(served: Served) -> None:
    for head, status, name in (
        ("get / HTTP/1.1", 400, "bad_request"),
        ("GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6", 400, "bad_request"),
        (f"GET /{'x' * 9000} HTTP/1.1", 414, "address_too_long"),
        (f"GET / HTTP/1.1\r\nX: {'x' * 70_000}", 431, "headers_too_large"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip", 501, "not_implemented"),
    ):
        code, content = served.ask(head)
        assert (code, code_in(content)) == (status, name)
    assert served.bodies == []


def test_a_storage_that_is_full_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(mode: str) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    head = "POST / HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 2000000"
    code, content = served.ask(head, b"x" * 2_000_000)
    assert (code, code_in(content)) == (507, "storage_full")


def test_behind_a_proxy_clients_are_those_that_it_names(served: Served, settings: Any) -> None:
    settings.EVALHUB_PROXIES = 1
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            connection = stack.enter_context(served.connect())
            connection.sendall(
                b"GET /wait/ HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
            )
        for _ in range(3):
            assert served.waiting.acquire(timeout=10)
        assert served.ask("GET / HTTP/1.1\r\nX-Forwarded-For: 192.0.2.2")[0] == 200
