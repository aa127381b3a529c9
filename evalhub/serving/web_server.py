"""gunicorn's configuration, for `evalhub serve` and `evalhub web` alike; the names are gunicorn's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings

from evalhub.operating.request_counters import fold_ended_process
from evalhub.serving.processes import FIGURES_VARIABLE, SHARED_MEMORY

wsgi_app = "evalhub.serving.wsgi:application"
worker_class = "evalhub.serving.web_worker.PatientWorker"
threads = 4
# Kernels are loaded once, before the fork.
preload_app = True
timeout = 120
graceful_timeout = 25
keepalive = 5
# Addresses name the runs that are compared: 170 ids and the rest; gunicorn reads no more bytes than these.
limit_request_line = 8190
# A process that leaks is replaced before it matters; not all of them at once.
max_requests = 20_000
max_requests_jitter = 2_000
worker_tmp_dir = SHARED_MEMORY
control_socket_disable = True
# No header moves an address or makes a request one of https: gunicorn would believe SCRIPT_NAME and X-Forwarded-Proto
# of whatever runs on the same machine. Django reads X-Forwarded-Proto where EVALHUB_HTTPS says that a proxy sets it.
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}
loglevel = settings.EVALHUB_LOG_LEVEL.lower()
_LOGGER = {"level": settings.EVALHUB_LOG_LEVEL, "handlers": [], "propagate": True}
# The lines of requests are the middleware's: it knows the view, the user and the id, and leaves the query out.
_SILENT = {"level": "CRITICAL", "handlers": [], "propagate": False}
logconfig_dict: dict[str, Any] = {
    **settings.LOGGING,
    "loggers": {**settings.LOGGING["loggers"], "gunicorn.error": _LOGGER, "gunicorn.access": _SILENT},
}


def child_exit(server: Any, worker: Any) -> None:
    if folder := os.environ.get(FIGURES_VARIABLE):
        fold_ended_process(Path(folder), worker.pid)


def on_exit(server: Any) -> None:
    if folder := os.environ.get(FIGURES_VARIABLE):
        shutil.rmtree(folder, ignore_errors=True)
