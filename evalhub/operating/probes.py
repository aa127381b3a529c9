"""Probes for machines: whether this process is alive and the service ready, and its metrics."""

from __future__ import annotations

import functools
import hmac
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from evalhub.database_errors import is_full
from evalhub.operating.install import newest_migrations
from evalhub.operating.monitoring import exposition
from metrics.services.queue.rounds import ALIVE_SECONDS, BROKER_AWAY, BROKER_FULL, last_rounds
from metrics.services.upkeep.job_counts import read_queue
from runs.errors import StorageUnavailable
from runs.services.storage.files import try_store

_log = logging.getLogger(__name__)
_TROUBLES = {BROKER_AWAY: "Redis does not answer", BROKER_FULL: "Redis is full"}


def _without_parameters(
    probe: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Wrap a probe so that it refuses parameters."""

    @functools.wraps(probe)
    def answer(request: HttpRequest) -> HttpResponse:
        if request.GET:
            detail = f"unknown parameter {next(iter(request.GET))[:40]!r}; this address reads none"
            return _fresh(JsonResponse({"code": "unknown_parameter", "detail": detail}, status=400))
        return probe(request)

    return require_safe(answer)


@_without_parameters
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while this process is alive; check nothing else."""
    return _fresh(JsonResponse({"alive": True}))


@_without_parameters
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if the service can take and evaluate submissions, otherwise 503 with reasons."""
    reasons = list(_reasons())
    READINESS.note(reasons)
    warnings = [] if reasons else list(_warnings())
    reason_list = [{"code": reason.code, "detail": reason.detail} for reason in reasons]
    body = {"ready": not reasons, "reasons": reason_list, "warnings": warnings}

    return _fresh(JsonResponse(body, status=503 if reasons else 200))


@_without_parameters
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics for Prometheus; 404 unless a token is set, 401 without it."""
    token = settings.EVALHUB_METRICS_TOKEN
    if not token:
        return _fresh(HttpResponse("EVALHUB_METRICS_TOKEN is not set\n", "text/plain", 404))

    authorization = request.headers.get("Authorization", "")
    if not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
        text = "the token in EVALHUB_METRICS_TOKEN is required\n"
        response = HttpResponse(text, "text/plain", 401)
        response["WWW-Authenticate"] = "Bearer"
        return _fresh(response)

    content, content_type = exposition()
    return _fresh(HttpResponse(content, content_type))


# Probes by path. The middleware answers them before it checks hosts and TLS.
PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "healthz": healthz,
    "readyz": readyz,
    "metrics": metrics,
}


@dataclass(frozen=True)
class Reason:
    """Why the service is not ready; the cause, such as an error of the database, is only logged."""

    code: str
    detail: str
    cause: str = ""


class Readiness:
    """The last readiness that this process found, so that the log has each change once."""

    def __init__(self) -> None:
        self._codes: list[str] = []
        self._lock = threading.Lock()

    def note(self, reasons: list[Reason]) -> None:
        codes = [reason.code for reason in reasons]
        with self._lock:
            if codes == self._codes:
                return
            self._codes = codes

        if reasons:
            _log.warning(
                "not ready: %s", "; ".join(reason.cause or reason.detail for reason in reasons)
            )
        else:
            _log.warning("ready again")


READINESS = Readiness()


def _reasons() -> Iterator[Reason]:
    """Yield why a submission would not be accepted or evaluated."""
    try:
        yield from _database_reasons()
    except DatabaseError as error:
        yield Reason("database_unavailable", "the database does not answer", str(error))

    try:
        try_store()
    except StorageUnavailable as error:
        yield Reason(error.code, error.message)
    except OSError as error:
        if is_full(error):
            code, problem = "storage_full", "is full"
        else:
            code, problem = "storage_unavailable", "cannot be written to"
        yield Reason(code, f"the data folder {problem}: {error.strerror}", str(error))
    except DatabaseError:
        # This was reported above.
        return


def _database_reasons() -> Iterator[Reason]:
    applied = MigrationRecorder(connection).applied_migrations()
    missing = sorted(".".join(name) for name in newest_migrations() - applied.keys())
    if _read_only():
        yield Reason(
            "database_read_only",
            "the database takes no changes: is it a standby, or its disk read-only?",
        )

    if missing:
        yield Reason("migrations_missing", f"evalhub migrate has not applied {', '.join(missing)}")
    elif not any(dispatcher_round.alive for dispatcher_round in last_rounds()):
        yield Reason(
            "no_dispatcher_round",
            f"no worker's dispatcher completed a round in the last {ALIVE_SECONDS:.0f} s",
        )


def _read_only() -> bool:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            return bool(cursor.fetchone() == ("on",))

    path = connection.settings_dict["NAME"]
    return isinstance(path, Path) and path.exists() and not os.access(path, os.W_OK)


def _warnings() -> Iterator[dict[str, str]]:
    """Yield problems for an operator, though submissions are safe."""
    queue = read_queue()
    alive = [dispatcher_round for dispatcher_round in last_rounds() if dispatcher_round.alive]
    for trouble, text in _TROUBLES.items():
        count = sum(dispatcher_round.trouble == trouble for dispatcher_round in alive)
        if count:
            yield _warning(
                trouble,
                f"{text}: {count} of {len(alive)} workers cannot send what is due; it waits",
            )

    if queue.stuck:
        yield _warning("undispatched", "evaluations are due, but none has been sent for a minute")

    if queue.expired_leases:
        yield _warning("expired_leases", "evaluations have lost their worker")


def _warning(code: str, detail: str) -> dict[str, str]:
    return {"code": code, "detail": detail}


def _fresh(response: HttpResponse) -> HttpResponse:
    add_never_cache_headers(response)
    return response
