"""Number and duration of requests, in files that the processes of a web server share."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

from evalhub.serving.processes import COUNTERS_VARIABLE

_log = logging.getLogger(__name__)

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
disable_created_metrics()  # type: ignore[no-untyped-call]
_registry = CollectorRegistry()
_requests = Histogram(
    "evalhub_http_request_seconds",
    "Time until the answer began",
    ("view", "method", "status"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
    registry=_registry,
)


def count_request(view: str, method: str, status: int, seconds: float) -> None:
    """Count a request and its seconds; log an error, so that the request is answered in any case."""
    method = method if method in _METHODS else "other"
    try:
        _requests.labels(view, method, str(status)).observe(seconds)
    except OSError as error:
        _log.warning("a request was not counted: %s", error)


def export_request_counters() -> bytes:
    """Return the counters of all processes of this web server, in Prometheus' text format."""
    folder = os.environ.get(COUNTERS_VARIABLE)
    if not folder:
        return generate_latest(_registry)

    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    with _locked(Path(folder), fcntl.LOCK_SH):
        return generate_latest(registry)


def fold_ended_process(folder: Path, pid: int) -> None:
    """Add the counters of an ended process to the common ones, and remove its files."""
    with _locked(folder, fcntl.LOCK_EX):
        for path in folder.glob(f"*_{pid}.db"):
            kind = path.name.partition("_")[0]
            totals = MmapedDict(str(folder / f"{kind}_ended.db"))  # type: ignore[no-untyped-call]
            for key, value, moment, _ in MmapedDict.read_all_values_from_file(str(path)):  # type: ignore[no-untyped-call]
                totals.write_value(key, totals.read_value(key)[0] + value, moment)  # type: ignore[no-untyped-call]

            totals.close()  # type: ignore[no-untyped-call]
            path.unlink()


@contextlib.contextmanager
def _locked(folder: Path, mode: int) -> Iterator[None]:
    """Lock the counters: without this a process could be counted twice or not at all."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, mode)
        yield
