"""Clients that send a byte a second, or read an answer drop by drop."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.attack.target import ATTACKER, SLUG, Target

SENDERS, READERS = 200, 50
# What is taken of an answer at once.
SIP = 1024


@dataclass
class Slow:
    """One connection at a time: what it opens with, and whether it then sends; begun again when it is cut off."""

    target: Target
    opening: bytes
    sends: bool
    answers: Counter[str]
    connection: socket.socket | None = None
    received: bytes = b""
    refused: int = field(default=0)

    def step(self) -> None:
        """Send a byte or take a sip, of whatever is there."""
        try:
            if self.connection is None:
                self._open()
            elif self.sends:
                self.connection.send(b"x")
            self._sip()
        except BlockingIOError:
            pass
        except OSError:
            self._close("cut")

    def _open(self) -> None:
        # Little room in the kernel for what is not read: it has to wait at the server.
        self.connection = socket.socket()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.connection.bind((ATTACKER, 0))
        self.connection.settimeout(2)
        self.connection.connect(("127.0.0.1", self.target.port))
        self.connection.sendall(self.opening)
        self.connection.setblocking(False)

    def _sip(self) -> None:
        assert self.connection
        taken = self.connection.recv(SIP)
        self.received = (self.received + taken)[:64]
        if not taken:
            self._close("closed")

    def _close(self, how: str) -> None:
        status = self.received.split(b" ")[1:2]
        self.answers[status[0].decode(errors="replace") if status else how] += 1
        self.received = b""
        if self.connection:
            self.connection.close()
        self.connection = None

    def end(self) -> None:
        """Count what is still open."""
        if self.connection:
            self._close("open")


def slow_senders(target: Target, answers: Counter[str]) -> None:
    """Two hundred connections of a byte a second, every other one in its body already."""
    head = f"POST /api/v1/collections/{SLUG}/runs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
    body = f"{head}Authorization: {target.token}\r\nContent-Length: 100000\r\n\r\n".encode()
    openings = [body if number % 2 else head[:40].encode() for number in range(SENDERS)]
    _go_on(target, [Slow(target, opening, True, answers) for opening in openings], 1.0)


def slow_readers(target: Target, answers: Counter[str]) -> None:
    """Fifty downloads of the large run file by nobody, at four kilobytes a second."""
    opening = f"GET /api/v1/runs/{target.names['large']}/file/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    _go_on(target, [Slow(target, opening, False, answers) for _ in range(READERS)], SIP / 4096)


def idle(target: Target, answers: Counter[str]) -> None:
    """Two hundred connections that say nothing at all."""
    _go_on(target, [Slow(target, b"", False, answers) for _ in range(SENDERS)], 1.0)


def _go_on(target: Target, clients: list[Slow], pause: float) -> None:
    end = time.monotonic() + target.seconds
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.callback(client.end)
        while time.monotonic() < end:
            begun = time.monotonic()
            for client in clients:
                client.step()
            time.sleep(max(0.0, pause - (time.monotonic() - begun)))
