"""The commands of the processes that EvalHub consists of; `serve`, `web` and `worker` start the same ones."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

# prometheus_client's own name, read when it is imported: where a web server's processes keep their figures.
FIGURES_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_LAST_PORT = 65_535
# A file in that folder, locked for as long as the server lives.
_ALIVE = "alive"
# Nothing sweeps shared memory while the server runs, and no disk waits for it.
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def web_command(bind: str, processes: int) -> list[str]:
    """`evalhub web`, which serves in the environment that `web_environment` makes."""
    return [sys.executable, "-m", "evalhub", "web", "--bind", bind, "--processes", str(processes)]


def parse_address(bind: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, [IPv6]:PORT or :PORT; ValueError for anything else."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]]*)):([0-9]{1,5})", bind)
    if not found or int(found[3]) > _LAST_PORT:
        raise ValueError(f"{bind} is not an address; write HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000")
    return found[1] or found[2] or "0.0.0.0", int(found[3])  # noqa: S104 as it says


def web_environment() -> dict[str, str]:
    """Return the environment of one web server, with a new folder for its request counters.

    The server removes the folder when it ends. One that was killed cannot: its folder is removed here.
    """
    for left_behind in abandoned_folders():
        shutil.rmtree(left_behind, ignore_errors=True)
    starting = Path(tempfile.mkdtemp(prefix="evalhub-starting-", dir=SHARED_MEMORY))
    # Held until this process dies, however it does, or the server that it becomes by execve: so the file stays open.
    alive = os.open(starting / _ALIVE, os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(alive, True)
    fcntl.flock(alive, fcntl.LOCK_EX)
    folder = starting.rename(starting.with_name(starting.name.replace("starting", "requests")))
    return {**os.environ, FIGURES_VARIABLE: str(folder)}


def abandoned_folders() -> Iterator[Path]:
    """Yield the folders of request counters whose web server is dead."""
    for folder in Path(SHARED_MEMORY or tempfile.gettempdir()).glob("evalhub-requests-*"):
        # Another user's, or one that its server is removing at this moment.
        with contextlib.suppress(OSError), (folder / _ALIVE).open("rb+") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder


def worker_command(processes: int) -> list[str]:
    """A Celery worker with its dispatcher."""
    return [
        sys.executable,
        # Both are about pickled messages, which this worker does not read. Containers run users without a name.
        "-W", "ignore:You're running the worker", "-W", "ignore:An entry for the specified gid",
        "-m", "celery", "--quiet", "-A", "evalhub.serving.celery", "worker", "--concurrency", str(processes),
        "--loglevel", settings.EVALHUB_LOG_LEVEL, "--without-gossip", "--without-mingle",
    ]  # fmt: skip


def worker_environment() -> dict[str, str]:
    """Celery's soft shutdown answers SIGTERM: it waits a little for what is evaluated, and gives the rest back."""
    return {**os.environ, "REMAP_SIGTERM": "SIGQUIT"}
