"""The addresses and environments of EvalHub's processes, which `serve`, `web` and `worker` start."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# The folder where the processes of a web server keep their counters. prometheus_client reads this
# variable when it is imported.
COUNTERS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# The listening socket and the processes of a web server that replaces itself.
INHERITED = "EVALHUB_WEB_INHERITED"
_MAX_PORT = 65_535
# M_ARENA_MAX of mallopt, which MALLOC_ARENA_MAX sets, too.
_ARENA_MAX = -8
# A file in the folder of counters, which the server locks until it ends.
_ALIVE = "alive"
# Shared memory is not swept while the server runs, and needs no disk.
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def web_command(bind: str, processes: int) -> list[str]:
    """Return `evalhub web`, which a web server becomes to serve with newer code."""
    return [sys.executable, "-m", "evalhub", "web", "--bind", bind, "--processes", str(processes)]


def parse_address(bind: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, [IPv6]:PORT or :PORT, or raise ValueError."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]]*)):([0-9]{1,5})", bind)
    if not match or int(match[3]) > _MAX_PORT:
        raise ValueError(
            f"{bind} is not an address; write HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000"
        )
    return match[1] or match[2] or "0.0.0.0", int(match[3])  # noqa: S104 as it says


def web_environment() -> dict[str, str]:
    """Return the environment of one web server, with a new folder for its request counters.

    The server removes the folder when it ends. The folder of a killed server is removed here.
    """
    for folder in abandoned_folders():
        shutil.rmtree(folder, ignore_errors=True)

    starting = Path(tempfile.mkdtemp(prefix="evalhub-starting-", dir=SHARED_MEMORY))
    # The file stays open, and so the lock lasts until this process, or the server that it becomes by
    # execve, ends in any way.
    alive = os.open(starting / _ALIVE, os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(alive, True)
    fcntl.flock(alive, fcntl.LOCK_EX)
    folder = starting.rename(starting.with_name(starting.name.replace("starting", "requests")))

    # glibc keeps freed memory of threads in up to eight pools for each core: two need a third less.
    return {"MALLOC_ARENA_MAX": "2", **os.environ, COUNTERS_VARIABLE: str(folder)}


def limit_arenas() -> None:
    """Apply MALLOC_ARENA_MAX, which was set after glibc had read the environment."""
    with contextlib.suppress(AttributeError, KeyError, ValueError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, int(os.environ["MALLOC_ARENA_MAX"]))


def abandoned_folders() -> Iterator[Path]:
    """Yield the folders of request counters whose web server is dead."""
    for folder in Path(SHARED_MEMORY or tempfile.gettempdir()).glob("evalhub-requests-*"):
        # Another user's folder, or one that its server is removing at this moment.
        with contextlib.suppress(OSError), (folder / _ALIVE).open("rb+") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder


def load_worker() -> Callable[[int], int]:
    """Load the code of a worker, and return the function that runs one with N processes."""
    # With this, which is read at import, Celery shuts down softly on SIGTERM: it waits briefly for
    # running evaluations, and gives the rest back.
    os.environ["REMAP_SIGTERM"] = "SIGQUIT"
    with _without_collection():
        from evalhub.serving.worker import run_worker
    return run_worker


def load_web() -> Callable[[str, int], int]:
    """Load the code of a web server, and return the function that serves with N processes."""
    # prometheus_client reads it at import. A server that replaces itself keeps its folder.
    if INHERITED not in os.environ:
        os.environ.update(web_environment())

    with _without_collection():
        import evalhub.serving.wsgi  # noqa: F401
        from evalhub.serving.web_server import run_web_server

    return run_web_server


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Exclude modules that are loaded in this context from garbage collection: they stay loaded.

    This saves time, now and later, and keeps the memory shared between processes after a fork.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
