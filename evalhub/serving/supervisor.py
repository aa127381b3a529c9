"""The supervisor of `evalhub serve` and `evalhub worker`: its child processes end with it, and are restarted when they
end."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from evalhub.serving.processes import web_environment, worker_environment

logger = logging.getLogger(__name__)

_SET_PARENT_DEATH_SIGNAL = 1
_RESTART_SECONDS = 1.0
_STOP_SECONDS = 10.0


class AlreadyServed(Exception):
    """Another supervisor holds the data folder."""


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the data folder's lock. Raise AlreadyServed if another process does. The kernel frees it when the process
    dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise AlreadyServed(f"another evalhub serve is using {folder}") from error
        yield


class Supervisor:
    """Start the children, restart a worker that dies, and stop everything when the web server ends."""

    def __init__(self, commands: dict[str, list[str]]) -> None:
        self._commands = commands
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False

    def start(self) -> None:
        for name in self._commands:
            self._start(name)

    def wait(self) -> int:
        """Wait for a signal or the end of the web server. Return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
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
        """End the children: with SIGTERM first, by force after ten seconds."""
        self._stopping = True
        for child in self._children.values():
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for child in self._children.values():
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)

    def _start(self, name: str) -> None:
        # Celery writes its own messages there; the important ones are in the log.
        stdout = subprocess.DEVNULL if name == "worker" else None
        environment = web_environment() if name == "web" else worker_environment()
        self._children[name] = subprocess.Popen(
            self._commands[name], env=environment, stdout=stdout, preexec_fn=partial(die_with, os.getpid())
        )

    def _on_signal(self, number: int, frame: object) -> None:
        self._stopping = True


def die_with(parent: int) -> None:
    """In the child: lead a process group, and end with the supervisor, so that no child continues unnoticed."""
    os.setpgrp()
    end_with(parent)


def end_with(parent: int) -> None:
    """In a child: tell the kernel to send SIGTERM when its parent dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # The parent may have died before this call: then there is no signal to come.
    if os.getppid() != parent:
        os._exit(1)
