"""The HTTP server of a web process: one thread receives requests and sends answers.

Threads that compute never wait for a network. They get a request when its last byte has arrived (a
large body is in a file by then). Their answers go to memory or to a file, from which the I/O thread
sends them as fast as the client reads; it answers probes itself. waitress does this; this module
adds the limits: how slowly a client may send and read, how many connections and large transfers an
address may have, and which connection is closed when there are too many.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import logging
import socket
import termios
import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import WSGITask

from evalhub.serving.requests import (
    LARGE,
    LivenessTask,
    Refusal,
    RefusalTask,
    Request,
    too_many_transfers,
)
from evalhub.serving.threads import FairThreads
from runs.web.origin import network_of, sender_in

# The slowest permitted rate of sending and reading.
BYTES_PER_SECOND = 1024
KEEP_ALIVE_SECONDS = 30.0
# How long a refused client may continue to send before the connection ends: ending it immediately
# would lose the answer.
_LINGER_SECONDS = 3.0
# How long a process leaves a new connection to another process with less work.
_YIELD_SECONDS = 0.02
_LOOP_SECONDS = 0.5
_FIRST_REQUEST_SECONDS = 1.0

_log = logging.getLogger(__name__)
_access = logging.getLogger("evalhub.access")


class Progress:
    """Check that a kilobyte per second arrives, on average over EVALHUB_PATIENCE_SECONDS."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self._count = 0

    def is_too_slow(self, count: int) -> bool:
        """Record the number of bytes so far, and return whether they are too slow.

        Called every second.
        """
        now, patience = time.monotonic(), settings.EVALHUB_PATIENCE_SECONDS
        if now - self.since < patience:
            return False

        slow = count - self._count < patience * BYTES_PER_SECOND
        self.since, self._count = now, count
        return bool(slow)


class Connection(HTTPChannel):  # type: ignore[misc]
    """One client's connection, with its time of sending and its number of bytes read."""

    parser_class = Request
    request: Request | None
    error_task_class = RefusalTask

    def __init__(self, server: Any, sock: Any, addr: Any, adj: Any, map: Any = None) -> None:
        now = time.monotonic()
        # The client: the address of the connection, or the one that a proxy names.
        self.network = self.client = network_of(str(addr[0]))
        # The progress of the request that arrives: its bytes, and when it began.
        self.receiving = Progress()
        self.received_bytes = 0
        self.request_began = now
        # The progress of the answer, if one is being sent.
        self.sending: Progress | None = None
        self.sent_bytes = 0
        self.active_since = now
        self.served = self.lingers = False
        self.lingers_until = 0.0
        # The client sends nothing more: it closed its half of the connection, or has left.
        self.input_ended = False
        # Whether the answer to the first of the requests has begun.
        self.answering = False
        super().__init__(server, sock, addr, adj, map)

    @property
    def idle(self) -> bool:
        return not (self.requests or self.request or self.total_outbufs_len)

    # Receiving

    def handle_read(self) -> None:
        if self.lingers_until:
            # The bytes are discarded: recv() closes the connection when its client is done.
            try:
                self.recv(self.adj.recv_bytes)
            except OSError:
                self.handle_close()
            return

        try:
            data = self.socket.recv(self.adj.recv_bytes)
        except BlockingIOError:
            return
        except OSError:
            self.handle_close()
            return

        if data:
            self.received(data)
        elif settings.EVALHUB_PROXIES:
            # A proxy does not close one half, and its client has left.
            self.handle_close()
        else:
            self._end_input()

    def readable(self) -> bool:
        return not self.input_ended and bool(super().readable())

    def _end_input(self) -> None:
        """Answer what has arrived completely, then close.

        Until something is sent, a client that closed its half of the connection looks like one that
        has left. An interim answer, which every client of HTTP/1.1 ignores, makes the system of a
        client that has left reset the connection; `check` looks for that.
        """
        with self.requests_lock:
            self.input_ended = True
            if not self.requests:
                self.close_when_flushed = True
                return
            version = self.requests[0].version

        with self.outbuf_lock, contextlib.suppress(OSError):
            if version == "1.1" and not self.answering:
                self.socket.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def received(self, data: bytes) -> bool:
        self.active_since = time.monotonic()
        if self.request is None:
            self.receiving = Progress()
            self.received_bytes = 0
            self.request_began = self.active_since

        self.received_bytes += len(data)
        complete: bool = super().received(data)
        if self.request is not None and self.request.large and not self.request.is_transfer:
            self.client = self.server.client_of(self, self.request)
            self.request.is_transfer = True
            if not self.server.may_transfer(self):
                self.refuse(too_many_transfers())

        self.server.answer_pending(self)
        return complete

    def refuse(self, refusal: Refusal) -> None:
        """Answer the request that is arriving without waiting for the rest of it."""
        with self.requests_lock:
            request = self.request or Request(self.adj)
            request.error, request.completed = refusal, True
            self.request = None
            self.requests.append(request)
            if len(self.requests) == 1:
                self.server.add_task(self)

    # Answering

    def service(self) -> None:
        request = self.requests[0]
        # The answer may be a large transfer, too.
        is_exempt = request.error or request.is_transfer or request.is_liveness_probe
        if not is_exempt and not self.server.may_transfer(self):
            request.error = too_many_transfers()

        self.task_class = LivenessTask if request.is_liveness_probe else WSGITask
        self.served, self.lingers = True, bool(request.error)
        self.server.answered += 1
        super().service()

        with self.requests_lock:
            self.answering = False
            if self.input_ended and not self.requests:
                self.close_when_flushed = True
                self.server.pull_trigger()

    def write_soon(self, data: Any) -> int:
        with self.outbuf_lock:
            self.answering = True
            count: int = super().write_soon(data)
        return count

    def handle_write(self) -> None:
        lingering = self.lingers and not self.lingers_until and not self.input_ended
        if lingering and self.close_when_flushed and not self.will_close:
            self._flush_exception(self._flush_some)
            if not self.total_outbufs_len and not self.will_close:
                self._begin_lingering()
                return

        super().handle_write()

    def _begin_lingering(self) -> None:
        """End the answer, but read for a moment, so that the client can receive the answer."""
        self.close_when_flushed = False
        self.lingers_until = time.monotonic() + _LINGER_SECONDS

        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.will_close = True

    def send(self, data: bytes, do_close: bool = True) -> int:
        count: int = super().send(data, do_close=do_close)
        if count:
            self.sent_bytes += count
            self.active_since = time.monotonic()
        return count

    # Limits

    def check(self, now: float) -> None:
        """Disconnect a client that sends or reads too slowly, or is silent for too long.

        Called every second.
        """
        if self.lingers_until:
            if now > self.lingers_until:
                self.handle_close()
            return

        if self.input_ended and self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.handle_close()
            return

        if self.total_outbufs_len:
            if self.sending is None:
                self.sending, self.sent_bytes = Progress(), 0
            elif self.sending.is_too_slow(self.sent_bytes - self._unread()):
                _access.info("a client that reads too slowly was cut off")
                # `will_close` is only checked when the client reads more, which it may never do.
                self.handle_close()

            return

        self.sending = None
        if self.request is not None:
            if self.receiving.is_too_slow(self.received_bytes):
                self.refuse(Refusal(408, "body_too_slow", "the request did not arrive in time"))
                self.server.answer_pending(self)
        elif not self.requests:
            patience = KEEP_ALIVE_SECONDS if self.served else settings.EVALHUB_PATIENCE_SECONDS
            if now - self.active_since > patience:
                self.handle_close()

    def _unread(self) -> int:
        """Return how many of the sent bytes are still in the kernel, which buffers megabytes."""
        waiting = array.array("i", [0])
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.socket.fileno(), termios.TIOCOUTQ, waiting)
        return waiting[0]

    @property
    def closing_order(self) -> tuple[int, float]:
        """A key for which connection is closed for a new one: the smallest comes first.

        The order is: silent clients, clients that have not sent a complete head, the slowest
        senders of a body, the slowest readers of an answer. A connection that waits for the
        computation of its answer is never closed.
        """
        now = time.monotonic()
        if self.requests:
            return (4, 0.0)
        if self.total_outbufs_len:
            return (3, float(self.sent_bytes))
        if self.request is not None:
            rate = self.received_bytes / max(now - self.request_began, 0.001)
            return (2 if self.request.headers_finished else 1, rate)

        return (0, self.active_since)


class HttpServer(TcpWSGIServer):  # type: ignore[misc]
    """The HTTP server of one web process."""

    channel_class = Connection

    def __init__(
        self, listening: socket.socket, application: Any, adj: Any, threads: FairThreads
    ) -> None:
        self._io_thread = 0
        self._pending: list[Connection] = []
        # One thread for probes: they are answered even while all others wait for a database.
        self._probes = FairThreads("probe", 1, 1)
        self._yielding_until = 0.0
        self.stopping = False
        self.answered = 0
        # Whether another process has less work, and should get a new connection.
        self.others_are_free: Callable[[], bool] = lambda: False
        self.beat: Callable[[], None] = lambda: None
        sockinfo = (listening.family, listening.type, listening.proto, listening.getsockname())
        super().__init__(
            application,
            {},
            True,
            listening,
            dispatcher=threads,
            adj=adj,
            bind_socket=False,
            sockinfo=sockinfo,
        )

    # Connections

    def handle_accept(self) -> None:
        now = time.monotonic()
        if not self._yielding_until and self.others_are_free():
            self._yielding_until = now + _YIELD_SECONDS
            return

        self._yielding_until = 0.0
        super().handle_accept()

    @property
    def at_rest(self) -> bool:
        """Return whether no request is arriving or computed, and no answer is being sent."""
        return all(channel.idle for channel in self.active_channels.values())

    def readable(self) -> bool:
        if self.stopping:
            return False
        return time.monotonic() >= self._yielding_until

    def fix_addr(self, addr: Any) -> Any:
        """Make room for a new connection. Called for each one before it is added."""
        network = network_of(str(addr[0]))
        # Behind a proxy all connections have its address, and the proxy has limits of its own.
        if not settings.EVALHUB_PROXIES:
            neighbours = [
                connection
                for connection in self.active_channels.values()
                if connection.network == network
            ]
            if len(neighbours) >= settings.EVALHUB_ADDRESS_CONNECTIONS:
                self._make_room(neighbours)

        if len(self.active_channels) >= self.adj.connection_limit:
            self._make_room([*self.active_channels.values()])

        return addr

    def _make_room(self, connections: list[Connection]) -> None:
        """Close the first connection in closing order, unless all wait for their answers."""
        first = min(connections, key=lambda connection: connection.closing_order)
        if first.closing_order[0] < 4:
            first.handle_close()

    # Requests

    def add_task(self, channel: Connection) -> None:
        """Give a request to a thread, unless this thread answers it."""
        request = channel.requests[0]
        channel.client = self.client_of(channel, request)
        is_quick = request.error or request.is_liveness_probe
        if is_quick and threading.get_ident() == self._io_thread:
            self._pending.append(channel)
        elif not request.error and request.path in ("/readyz", "/metrics"):
            self._probes.add_task(channel)
        else:
            self.task_dispatcher.add_task(channel)

    def client_of(self, channel: Connection, request: Request) -> str:
        """Return the client of a request: the address of the connection, or the proxies' client."""
        forwarded_for = request.headers.get("X_FORWARDED_FOR", "")
        environ = {"REMOTE_ADDR": channel.addr[0], "HTTP_X_FORWARDED_FOR": forwarded_for}
        return network_of(sender_in(environ))

    def answer_pending(self, channel: Connection) -> None:
        """Answer the requests that `add_task` left to this thread, after the channel's lock is free."""
        while channel in self._pending:
            self._pending.remove(channel)
            channel.service()

    def may_transfer(self, channel: Connection) -> bool:
        """Return whether a client has fewer large transfers than an address may have."""
        transfers = 0
        for connection in [*self.active_channels.values()]:
            if connection is channel or connection.client != channel.client:
                continue

            arriving = connection.request
            uploads = arriving is not None and arriving.is_transfer
            transfers += uploads or connection.total_outbufs_len > LARGE

        return bool(transfers < settings.EVALHUB_ADDRESS_TRANSFERS)

    # The loop

    def pull_trigger(self) -> None:
        """Wake the loop, from any thread, unless it has just ended."""
        if self._map:
            with contextlib.suppress(OSError):
                super().pull_trigger()

    def maintenance(self, now: float) -> None:
        for channel in [*self.active_channels.values()]:
            try:
                channel.check(time.monotonic())
            except Exception:
                _log.exception("a connection broke")
                channel.handle_close()

    def run_until_stopped(self, grace: float) -> None:
        """Serve until `stopping` is set, then finish requests for at most `grace` seconds."""
        self._io_thread = threading.get_ident()
        last_check, deadline = 0.0, 0.0

        while True:
            timeout = 0.1 if self.stopping else _LOOP_SECONDS
            if self._yielding_until:
                timeout = _YIELD_SECONDS
            wasyncore.loop(timeout=timeout, map=self._map, use_poll=True, count=1)

            now = time.monotonic()
            if now - last_check >= 1.0:
                last_check = now
                self.beat()
                self.maintenance(now)

            if not self.stopping:
                continue

            if not deadline:
                deadline = now + grace
                # The kernel gives the waiting connections to the other processes.
                self.accepting = False
                self.del_channel()
                self.socket.close()

            for channel in [*self.active_channels.values()]:
                # A connection that was just accepted may be about to send a request.
                age = now - channel.request_began
                if channel.idle and (channel.served or age > _FIRST_REQUEST_SECONDS):
                    channel.handle_close()

            if now > deadline or not self.active_channels:
                wasyncore.close_all(self._map)
                return
