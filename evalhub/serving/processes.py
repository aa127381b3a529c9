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

# prometheus_client's own name, read when it is imported: the folder where a web server's processes
# keep their counters.
FIGURES_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# The listening socket and the processes of a web server that replaces itself.
INHERITED = "EVALHUB_WEB_INHERITED"
_LAST_PORT = 65_535
# mallopt's name of MALLOC_ARENA_MAX.
_ARENA_MAX = -8
# A file in that folder, locked for as long as the server lives.
_ALIVE = "alive"
# Shared memory is not swept while the server runs, and needs no disk.
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def web_command(bind: str, processes: int) -> list[str]:
    """Return `evalhub web`, which a web server becomes to serve with newer code."""
    return [sys.executable, "-m", "evalhub", "web", "--bind", bind, "--processes", str(processes)]


def parse_address(bind: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, [IPv6]:PORT or :PORT. Raise ValueError for anything else."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:/\[\]]*)):([0-9]{1,5})", bind)
    if not found or int(found[3]) > _LAST_PORT:
        raise ValueError(
            f"{bind} is not an address; write HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000"
        )
    return found[1] or found[2] or "0.0.0.0", int(found[3])  # noqa: S104 as it says


def web_environment() -> dict[str, str]:
    """Return the environment of one web server, with a new folder for its request counters.

    The server removes the folder when it ends. The folder of a killed server is removed here.
    """
    for left_behind in abandoned_folders():
        shutil.rmtree(left_behind, ignore_errors=True)

    starting = Path(tempfile.mkdtemp(prefix="evalhub-starting-", dir=SHARED_MEMORY))
    # Held until this process, or the server that it becomes by execve, dies in any way: so the file
    # stays open.
    alive = os.open(starting / _ALIVE, os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(alive, True)
    fcntl.flock(alive, fcntl.LOCK_EX)
    folder = starting.rename(starting.with_name(starting.name.replace("starting", "requests")))

    # glibc keeps what threads have freed in pools of their own, up to eight for each core: two hold
    # a third less.
    return {"MALLOC_ARENA_MAX": "2", **os.environ, FIGURES_VARIABLE: str(folder)}


def limit_arenas() -> None:
    """Let this process keep to the MALLOC_ARENA_MAX of its environment, which glibc read before it was there."""
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
    """Load what a worker consists of, and return the function that runs one with so many processes."""
    # So that Celery answers SIGTERM with its soft shutdown: it waits briefly for running
    # evaluations, and gives the rest back. Celery reads it when it is imported.
    os.environ["REMAP_SIGTERM"] = "SIGQUIT"
    with _nothing_collected():
        from evalhub.serving.worker import run_worker
    return run_worker


def load_web() -> Callable[[str, int], int]:
    """Load what a web server consists of, and return the function that serves at an address with so many processes."""
    # The library that counts requests reads it when it is imported. A server that replaces itself
    # keeps its folder.
    if INHERITED not in os.environ:
        os.environ.update(web_environment())

    with _nothing_collected():
        import evalhub.serving.wsgi  # noqa: F401
        from evalhub.serving.web_server import run_web_server

    return run_web_server


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Exclude from garbage collection what is loaded within: it lives as long as the process.

    That saves time, now and later, and keeps the memory shared between processes after a fork.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
