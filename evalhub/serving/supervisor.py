"""The supervisor of `evalhub serve` and `evalhub worker`.

Its child processes are forked from it, so that all share what it has loaded
(docs/decisions/0054-forked-processes.md). They end with it, and a worker that ends is replaced.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.db import connections

logger = logging.getLogger(__name__)

_SET_PARENT_DEATH_SIGNAL, _SET_NAME = 1, 15
_STOPPING = (signal.SIGTERM, signal.SIGINT)
_RESTART_SECONDS = 1.0
_STOP_SECONDS = 10.0


class AlreadyServed(Exception):
    """Another supervisor holds the data folder."""


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of the data folder, which the kernel frees when the process dies.

    Raise AlreadyServed if another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise AlreadyServed(f"another evalhub serve is using {folder}") from error

        # Children that are still ending do not keep the next supervisor from starting.
        os.register_at_fork(after_in_child=lock.close)
        yield


@dataclass
class Child:
    """A forked process: its exit code is negative after a signal, and None while it lives."""

    pid: int
    code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code


class Supervisor:
    """Start the children, restart a worker that dies, and stop everything when the web server ends."""

    def __init__(self, functions: dict[str, Callable[[], int]]) -> None:
        """Take the functions that the processes "worker" and perhaps "web" run to their exit code.

        The code that they need is loaded before they start.
        """
        self._functions = functions
        self._children: dict[str, Child] = {}
        self._stopping = False

    def start(self) -> None:
        for name in self._functions:
            self._start(name)

    def wait(self) -> int:
        """Wait for a signal or the end of the web server. Return the exit code."""
        for number in _STOPPING:
            signal.signal(number, self._on_signal)

        while not self._stopping:
            time.sleep(0.2)
            web = self._children["web"].poll() if "web" in self._children else None
            if web is not None and not self._stopping:
                logger.error("the web server ended with code %s", web)
                return web or 1

            if self._children["worker"].poll() is not None and not self._stopping:
                logger.error("the worker ended; starting another one")
                time.sleep(_RESTART_SECONDS)
                self._start("worker")

        return 0

    def stop(self) -> None:
        """End the children by SIGTERM, or by SIGKILL after ten seconds."""
        self._stopping = True
        for child in self._children.values():
            if child.poll() is None:
                os.kill(child.pid, signal.SIGTERM)

        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline and any(
            child.poll() is None for child in self._children.values()
        ):
            time.sleep(0.02)

        for child in self._children.values():
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)

    def _start(self, name: str) -> None:
        # Processes cannot share a connection, and both would write buffered output.
        connections.close_all()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        # The new process gets signals only after it has set their handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)

        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            self._children[name] = Child(pid)
            return

        code = 1
        try:
            for number in _STOPPING:
                signal.signal(number, signal.SIG_DFL)

            die_with(parent)
            name_process(f"evalhub {name}")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            code = self._functions[name]()
        except BaseException:
            logger.exception("the process %s broke", name)
        finally:
            logging.shutdown()
            os._exit(code)

    def _on_signal(self, number: int, frame: object) -> None:
        self._stopping = True


def die_with(parent: int) -> None:
    """In a child: lead a process group, and end with the supervisor."""
    os.setpgrp()
    end_with(parent)


def name_process(name: str) -> None:
    """Name this process in up to 15 characters, for `ps -o comm` and `top` (Linux).

    Its command line is that of the process that it was forked from.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_NAME, name.encode())


def end_with(parent: int) -> None:
    """In a child: tell the kernel to send SIGTERM when its parent dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # If the parent died before this call, no signal will come.
    if os.getppid() != parent:
        os._exit(1)
