"""The commands of the processes that EvalHub consists of; `serve`, `web` and `worker` start the same ones."""

from __future__ import annotations

import os
import sys
import tempfile

from django.conf import settings

# prometheus_client's own name, read when it is imported: where a web server's processes keep their figures.
FIGURES_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# Nothing sweeps shared memory while the server runs, and no disk waits for it.
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def web_command(bind: str, processes: int) -> list[str]:
    """gunicorn; what is the same for every installation is in evalhub/serving/web_server.py."""
    return [
        sys.executable, "-m", "gunicorn", "--config", "python:evalhub.serving.web_server", "--bind", bind,
        "--workers", str(processes),
    ]  # fmt: skip


def web_environment() -> dict[str, str]:
    """The environment of one web server, with a new folder for its figures; the server removes it."""
    folder = tempfile.mkdtemp(prefix="evalhub-requests-", dir=SHARED_MEMORY)
    return {**os.environ, FIGURES_VARIABLE: folder}


def worker_command(processes: int) -> list[str]:
    """A Celery worker with its dispatcher."""
    return [
        sys.executable, "-W", "ignore:You're running the worker",
        "-m", "celery", "--quiet", "-A", "evalhub.serving.celery", "worker", "--concurrency", str(processes),
        "--loglevel", settings.EVALHUB_LOG_LEVEL, "--without-gossip", "--without-mingle",
    ]  # fmt: skip


def worker_environment() -> dict[str, str]:
    """Celery's soft shutdown answers SIGTERM: it waits a little for what is evaluated, and gives the rest back."""
    return {**os.environ, "REMAP_SIGTERM": "SIGQUIT"}
