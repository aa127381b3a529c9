"""The web server: a process that listens, and others, forked from it, that serve what it has loaded.

`evalhub web` is this server, and `evalhub serve` forks it from itself. The first process replaces
each one that ends or hangs. SIGTERM and SIGINT end all of them after the requests in progress;
SIGHUP replaces them by processes of the presently installed code, and the port stays open.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import mmap
import os
import random
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections
from waitress.adjustments import Adjustments

from evalhub.operating.request_counters import fold_ended_process
from evalhub.serving.database_limits import limit_statements
from evalhub.serving.http_server import HttpServer
from evalhub.serving.processes import (
    COUNTERS_VARIABLE,
    INHERITED,
    limit_arenas,
    parse_address,
    web_command,
)
from evalhub.serving.requests import LARGE
from evalhub.serving.supervisor import end_with, name_process
from evalhub.serving.threads import FairThreads
from runs.errors import StorageUnavailable
from runs.services.storage.install_marker import read_marker

THREADS = 4
# A client's share of them: the others are left to other clients.
SHARE = 3
GRACE_SECONDS = 25.0
# A process with a loop that is silent for this long is replaced.
_HUNG_SECONDS = 120.0
# A process is replaced after many requests, as it may leak memory; not all at once.
_MAX_REQUESTS, _SPREAD = 20_000, 2_000
_CONNECTIONS = 1000
_OPEN_FILES = 65_536
# Threads that compute yield ten times more often than by default: under load this halves the slowest
# answers of the thread that receives requests, and costs the others nothing (docs/security.md).
_SWITCH_SECONDS = 0.0005
# The size of a form without its file.
_FORM_ROOM = 1024 * 1024 + 1
_RESTART_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Shared:
    """Memory that processes share: the time of each loop's last beat, and the requests of each."""

    def __init__(self, processes: int) -> None:
        memory = mmap.mmap(-1, 16 * processes)
        self.beats = (ctypes.c_double * processes).from_buffer(memory)
        self.loads = (ctypes.c_int64 * processes).from_buffer(memory, 8 * processes)


def listen(bind: str) -> socket.socket:
    host, port = parse_address(bind)
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(1024)

    return listening


@dataclass
class WebServer:
    """The process that listens."""

    listening: socket.socket
    processes: int
    # What it becomes to replace its processes.
    command: list[str]
    # Processes of a server that this one replaces: they serve until the new ones do.
    predecessors: list[int] = field(default_factory=list)
    _children: dict[int, int] = field(default_factory=dict)
    _stopping: bool = False
    _replacing: bool = False

    def run(self) -> int:
        """Serve until a signal, and return the exit code."""
        # It loads every page.
        from evalhub.serving.wsgi import application

        self._application = application
        self._shared = Shared(self.processes)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, self._on_stop)

        signal.signal(signal.SIGHUP, self._on_replace)
        # Processes cannot share connections, and each would copy memory that is collected here.
        connections.close_all()
        gc.collect()
        gc.freeze()
        for number in range(self.processes):
            self._fork(number)

        for pid in self.predecessors:
            _signal(pid, signal.SIGTERM)

        while not self._stopping:
            time.sleep(0.1)
            self._replace_ended()
            if self._replacing:
                self._replace_itself()

        self._end()
        if folder := os.environ.get(COUNTERS_VARIABLE):
            shutil.rmtree(folder, ignore_errors=True)

        return 0

    def _fork(self, number: int) -> None:
        self._shared.beats[number], self._shared.loads[number] = time.monotonic(), 0
        parent = os.getpid()
        # The new process gets signals only after it has set their handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            self._children[pid] = number
            return

        code = 1
        try:
            end_with(parent)
            code = serve(number, self.listening, self._application, self._shared)
        except BaseException:
            _log.exception("a web process broke")
        finally:
            logging.shutdown()
            os._exit(code)

    def _replace_ended(self) -> None:
        """Replace the processes that ended, and end those that hang."""
        for pid, code in _reap():
            _fold_counters(pid)
            number = self._children.pop(pid, None)
            if number is None or self._stopping:
                continue

            if code:
                _log.error("a web process ended with code %s; starting another one", code)
                time.sleep(_RESTART_SECONDS)

            self._fork(number)

        for pid, number in self._children.items():
            if time.monotonic() - self._shared.beats[number] > _HUNG_SECONDS:
                _log.error(
                    "a web process has been silent for %d s; starting another one", _HUNG_SECONDS
                )
                _signal(pid, signal.SIGKILL)

    def _end(self) -> None:
        """End the processes by SIGTERM, or by SIGKILL after their time."""
        deadline = time.monotonic() + GRACE_SECONDS + 1
        for pid in [*self._children]:
            _signal(pid, signal.SIGTERM)

        while self._children and time.monotonic() < deadline:
            time.sleep(0.02)
            for pid, _ in _reap():
                self._children.pop(pid, None)

        for pid in self._children:
            _signal(pid, signal.SIGKILL)

    def _replace_itself(self) -> None:
        """Start this program again in this process, with the listening socket and the processes."""
        os.set_inheritable(self.listening.fileno(), True)
        inherited = ":".join(map(str, [self.listening.fileno(), *self._children]))
        os.execve(sys.executable, self.command, {**os.environ, INHERITED: inherited})  # noqa: S606 no shell

    def _on_stop(self, number: int, frame: object) -> None:
        self._stopping = True

    def _on_replace(self, number: int, frame: object) -> None:
        self._replacing = True


def adjustments(*listening: socket.socket) -> Adjustments:
    """Return waitress's settings, the same for every installation."""
    adjustments = Adjustments(
        sockets=listening, threads=THREADS, connection_limit=_CONNECTIONS, ident="evalhub",
        max_request_header_size=65_536,
        max_request_body_size=settings.EVALHUB_MAX_UPLOAD_BYTES + _FORM_ROOM,
        # Larger bodies and answers go to a file; no thread waits until an answer is read.
        inbuf_overflow=262_144, outbuf_overflow=LARGE, outbuf_high_watermark=1 << 40,
        recv_bytes=262_144,
        # With this, a client that goes away is noticed.
        channel_request_lookahead=1,
        # Django reads the headers of proxies, if the settings name any.
        clear_untrusted_proxy_headers=False,
    )  # fmt: skip

    # The thread that computes an answer sends as much as the network accepts at once. As a parameter
    # this causes a warning.
    adjustments.send_bytes = 1
    return adjustments


def serve(number: int, listening: socket.socket, application: Any, shared: Shared) -> int:
    """Serve in this process, with its number, until SIGTERM; return its exit code."""
    # Large bodies and answers wait next to the store: the system's folder for temporary files is
    # often small, or in memory. The database is not needed, and the process starts without the store:
    # requests that need the folder are refused until it is back.
    uploads: Path = settings.EVALHUB_DATA / "uploads"
    with contextlib.suppress(OSError, StorageUnavailable):
        if settings.EVALHUB_FILES or read_marker():
            uploads.mkdir(parents=settings.EVALHUB_FILES is not None, exist_ok=True)

    tempfile.tempdir = str(uploads)
    limit_statements()
    sys.setswitchinterval(_SWITCH_SECONDS)
    loads = shared.loads

    def report(busy: int) -> None:
        loads[number] = busy

    server = HttpServer(
        listening, application, adjustments(listening), FairThreads("web", THREADS, SHARE, report)
    )
    max_requests = _MAX_REQUESTS + random.randrange(_SPREAD)  # noqa: S311 nothing secret
    parent, first_megabytes = os.getppid(), _own_megabytes()

    def beat() -> None:
        shared.beats[number] = time.monotonic()
        # Reading the largest files leaves several hundred megabytes behind.
        limit = settings.EVALHUB_WEB_MEMORY_MB
        has_grown = limit and server.at_rest and _own_megabytes() - first_megabytes > limit
        is_used_up = server.answered > max_requests or bool(has_grown)
        server.stopping = server.stopping or is_used_up or os.getppid() != parent

    def stop(signal_number: int, frame: object) -> None:
        server.stopping = True

    server.beat = beat
    server.others_are_free = lambda: min(loads) < loads[number]
    signal.signal(signal.SIGTERM, stop)
    # The first process handles Ctrl-C and SIGHUP.
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)

    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    server.run_until_stopped(GRACE_SECONDS)
    return 0


def _own_megabytes() -> int:
    """Return the memory of this process without files in megabytes, or 0 if unknown."""
    with contextlib.suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) // 1024
    return 0


def _reap() -> list[tuple[int, int]]:
    """Return the child processes that have ended since the last call, with their exit codes."""
    children = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            children.append((pid, os.waitstatus_to_exitcode(status)))

    return children


def _fold_counters(pid: int) -> None:
    if folder := os.environ.get(COUNTERS_VARIABLE):
        fold_ended_process(Path(folder), pid)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def run_web_server(bind: str, processes: int) -> int:
    """Serve at `bind`, HOST:PORT, until a signal, and return the exit code."""
    name_process("evalhub web")
    limit_arenas()
    command = web_command(bind, processes)
    # Each connection needs a file descriptor, and another one for its body in a file.
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard_limit == resource.RLIM_INFINITY
    limit = _OPEN_FILES if unlimited else min(hard_limit, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))

    if inherited := os.environ.pop(INHERITED, ""):
        descriptor, *pids = map(int, inherited.split(":"))
        return WebServer(socket.socket(fileno=descriptor), processes, command, pids).run()

    return WebServer(listen(bind), processes, command).run()
