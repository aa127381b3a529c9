"""A real server that misbehaves on purpose: what a submission meets on its way, one after the other."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evalhub.client import Hub, Unavailable
from evalhub.client.config import Config
from tests.client.conftest import Clock, raw_run

RUN = "1 Q0 a 1 3.0 bm25\n" * 5000
BODY = json.dumps(raw_run("bm25")).encode()
GOOD = (
    b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    % len(BODY)
)
# What is sent back, and what is done to the connection then.
CLOSES, RESETS, SILENT = "closes", "resets", "silent"
MISBEHAVIOUR = [
    (b"", CLOSES),
    (b"", RESETS),
    (b"", SILENT),
    (b"HTTP/1.1 20", CLOSES),
    (b"nonsense\r\n\r\n", CLOSES),
    (GOOD + BODY[:10], CLOSES),
    (GOOD + BODY[:10], RESETS),
    (b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", CLOSES),
    (b"HTTP/1.1 502 Bad\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>", CLOSES),
]


def received(connection: socket.socket) -> bytes:
    """A whole request: its head, and a body of its length or in chunks."""
    whole = b""
    while True:
        piece = connection.recv(65536)
        whole += piece
        head, _, body = whole.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if (
            not piece
            or (length and len(body) >= int(length[1]))
            or (not length and body.endswith(b"0\r\n\r\n"))
        ):
            return whole


@contextmanager
def server(answers: list[tuple[bytes, str]], seen: list[bytes]) -> Iterator[str]:
    """Answer each connection with the next of these, and every later one as it should be."""
    remaining, waiting = iter(answers), []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            seen.append(received(connection))
            answer, then = next(remaining, (GOOD + BODY, CLOSES))
            connection.sendall(answer)
            if then == SILENT:
                waiting.append(connection)
                continue
            if then == RESETS:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in waiting:
            connection.close()
        thread.join(5)


@pytest.mark.usefixtures("clock")
def test_a_submission_comes_through_whatever_the_network_does() -> None:
    seen: list[bytes] = []
    config = {"timeout": 0.5, "retry_for": 1e9}
    with server(MISBEHAVIOUR, seen) as url, Hub(Config(url, "evh_1_x", "default"), **config) as hub:
        assert hub.collection("c").submit(RUN.encode()).tag == "bm25"
    assert len(seen) == len(MISBEHAVIOUR) + 1
    keys = {re.search(rb"(?i)idempotency-key: (\S+)", request)[1] for request in seen}  # type: ignore[index]
    assert len(keys) == 1
    # The file is read anew each time; what is compressed is the same bytes each time.
    bodies = [request.partition(b"\r\n\r\n")[2] for request in seen]
    assert len({body.replace(body.partition(b"\r\n")[0], b"") for body in bodies}) == 1


def test_nobody_listens(clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Hub(Config(f"http://127.0.0.1:{port}", "", "default"), retry_for=30.0) as hub,
        pytest.raises(Unavailable, match="no answer from the server"),
    ):
        hub.me()
    assert 0 < sum(clock.slept) <= 30
