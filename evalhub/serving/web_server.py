"""The web server: a process that listens, and others, forked from it, that serve what it has loaded.

`evalhub web` is this server, and `evalhub serve` forks it from itself. The first process starts
another one for each that ends or hangs. SIGTERM and SIGINT end all of them after the requests in
hand; SIGHUP replaces them by processes of the code that is installed then, without a moment in
which nobody listens.
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
from evalhub.serving.http_server import Front
from evalhub.serving.processes import (
    FIGURES_VARIABLE,
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
# One client's share of them: the others are for somebody else.
SHARE = 3
GRACE_SECONDS = 25.0
# A process whose loop does not come round for so long is replaced.
_HUNG_SECONDS = 120.0
# A process that leaks is replaced before it matters; not all of them at once.
_MOST_REQUESTS, _SPREAD = 20_000, 2_000
_CONNECTIONS = 1000
_OPEN_FILES = 65_536
# Threads that compute give way ten times more often than Python would let them: under load this
# halves the slowest answers of the thread that receives requests, and took nothing from the others
# (docs/security.md).
_SWITCH_SECONDS = 0.0005
# What a form may hold beside its file.
_FORM_ROOM = 1024 * 1024 + 1
_RESTART_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Shared:
    """Memory of all processes: when the loop of each last came round, and how many requests it has."""

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
    # Of a server that was here before: they go on until ours serve.
    predecessors: list[int] = field(default_factory=list)
    _children: dict[int, int] = field(default_factory=dict)
    _stopping: bool = False
    _replacing: bool = False

    def run(self) -> int:
        """Serve until a signal; returns the exit code."""
        # It loads every page.
        from evalhub.serving.wsgi import application

        self._application = application
        self._shared = Shared(self.processes)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, self._on_stop)

        signal.signal(signal.SIGHUP, self._on_replace)
        # Connections to a database cannot be shared, and what is collected here would be copied by
        # every process.
        connections.close_all()
        gc.collect()
        gc.freeze()
        for number in range(self.processes):
            self._fork(number)

        for pid in self.predecessors:
            _signal(pid, signal.SIGTERM)

        while not self._stopping:
            time.sleep(0.1)
            self._look_after()
            if self._replacing:
                self._become_another()

        self._end()
        if folder := os.environ.get(FIGURES_VARIABLE):
            shutil.rmtree(folder, ignore_errors=True)

        return 0

    def _fork(self, number: int) -> None:
        self._shared.beats[number], self._shared.loads[number] = time.monotonic(), 0
        parent = os.getpid()
        # A signal to the new process waits until it knows what to do with it.
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

    def _look_after(self) -> None:
        """Replace the processes that ended, and end those that hang."""
        for pid, code in _ended():
            _fold(pid)
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
        """End the processes: politely first, by force when their time is over."""
        deadline = time.monotonic() + GRACE_SECONDS + 1
        for pid in [*self._children]:
            _signal(pid, signal.SIGTERM)

        while self._children and time.monotonic() < deadline:
            time.sleep(0.02)
            for pid, _ in _ended():
                self._children.pop(pid, None)

        for pid in self._children:
            _signal(pid, signal.SIGKILL)

    def _become_another(self) -> None:
        """Start this program anew in this process. The listening socket and the processes stay until it serves."""
        os.set_inheritable(self.listening.fileno(), True)
        handed = ":".join(map(str, [self.listening.fileno(), *self._children]))
        os.execve(sys.executable, self.command, {**os.environ, INHERITED: handed})  # noqa: S606 no shell

    def _on_stop(self, number: int, frame: object) -> None:
        self._stopping = True

    def _on_replace(self, number: int, frame: object) -> None:
        self._replacing = True


def adjustments(*listening: socket.socket) -> Adjustments:
    """Return waitress's settings, the same for every installation."""
    made = Adjustments(
        sockets=listening, threads=THREADS, connection_limit=_CONNECTIONS, ident="evalhub",
        max_request_header_size=65_536, max_request_body_size=settings.EVALHUB_MAX_UPLOAD_BYTES + _FORM_ROOM,
        # What is larger goes to a file; however large an answer is, no thread waits until it is
        # read.
        inbuf_overflow=262_144, outbuf_overflow=LARGE, outbuf_high_watermark=1 << 40, recv_bytes=262_144,
        # So that a client that goes away is noticed.
        channel_request_lookahead=1,
        # Headers of proxies are Django's to read, where the settings say that there are any.
        clear_untrusted_proxy_headers=False,
    )  # fmt: skip

    # Answers are sent by the thread that makes them, as far as the network takes them at once; as a
    # parameter it warns.
    made.send_bytes = 1
    return made


def serve(number: int, listening: socket.socket, application: Any, shared: Shared) -> int:
    """Serve in a process of its own, the one of this number, until SIGTERM; returns its exit code."""
    # Large bodies and answers wait beside the store: the system's folder for temporary files is
    # often small, and in memory. The database is not asked, and a store that is away for now is no
    # reason not to start: requests that need the folder are refused until it is back.
    uploads: Path = settings.EVALHUB_DATA / "uploads"
    with contextlib.suppress(OSError, StorageUnavailable):
        if settings.EVALHUB_FILES or read_marker():
            uploads.mkdir(parents=settings.EVALHUB_FILES is not None, exist_ok=True)

    tempfile.tempdir = str(uploads)
    limit_statements()
    sys.setswitchinterval(_SWITCH_SECONDS)
    loads = shared.loads

    def tell(busy: int) -> None:
        loads[number] = busy

    server = Front(
        listening, application, adjustments(listening), FairThreads("web", THREADS, SHARE, tell)
    )
    most = _MOST_REQUESTS + random.randrange(_SPREAD)  # noqa: S311 nothing secret
    parent = os.getppid()

    def beat() -> None:
        shared.beats[number] = time.monotonic()
        # Reading the largest files leaves several hundred megabytes behind.
        grown = (
            settings.EVALHUB_WEB_MEMORY_MB
            and server.at_rest
            and _own_megabytes() > settings.EVALHUB_WEB_MEMORY_MB
        )
        server.stopping = (
            server.stopping or server.answered > most or os.getppid() != parent or bool(grown)
        )

    def stop(signal_number: int, frame: object) -> None:
        server.stopping = True

    server.beat = beat
    server.others_are_free = lambda: min(loads) < loads[number]
    signal.signal(signal.SIGTERM, stop)
    # The first process hears Ctrl-C and SIGHUP too.
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)

    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    server.run_until_stopped(GRACE_SECONDS)
    return 0


def _own_megabytes() -> int:
    """Return how much memory this process has that is not a file's; 0 where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) // 1024
    return 0


def _ended() -> list[tuple[int, int]]:
    """Return the processes that ended since the last look, each with its exit code."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found.append((ended[0], os.waitstatus_to_exitcode(ended[1])))
    return found


def _fold(pid: int) -> None:
    if folder := os.environ.get(FIGURES_VARIABLE):
        fold_ended_process(Path(folder), pid)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def run_web_server(bind: str, processes: int) -> int:
    """Serve at `bind`, HOST:PORT, until a signal; returns the exit code."""
    name_process("evalhub web")
    limit_arenas()
    command = web_command(bind, processes)
    # A connection and the file of its body are two of them.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = _OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))

    if inherited := os.environ.pop(INHERITED, ""):
        descriptor, *pids = map(int, inherited.split(":"))
        return WebServer(socket.socket(fileno=descriptor), processes, command, pids).run()

    return WebServer(listen(bind), processes, command).run()
