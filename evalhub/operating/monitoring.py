"""Metrics for Prometheus: requests of the web server's processes, everything else in the database."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from itertools import accumulate

from django.conf import settings
from django.db import DatabaseError
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from evalhub.operating.request_counters import export_request_counters
from metrics.services.upkeep.job_counts import SECONDS, Figures, read_figures

_log = logging.getLogger(__name__)


def exposition() -> tuple[bytes, str]:
    """Return all metrics in Prometheus' text format, and its content type."""
    registry = CollectorRegistry()
    registry.register(DatabaseFigures())
    registry.register(DiskFigures())

    return generate_latest(registry) + export_request_counters(), CONTENT_TYPE_PLAIN_0_0_4


class DatabaseFigures(Collector):
    """Metrics that are read from the database at each scrape, the same in every process."""

    def collect(self) -> Iterator[Metric]:
        try:
            figures = read_figures()
        except DatabaseError as error:
            _log.warning("no metrics: %s", error)
            yield _gauge("database_up", "Whether the database responds", 0)
            return

        yield _gauge("database_up", "Whether the database responds", 1)
        yield from _evaluation_figures(figures)
        yield from _queue_figures(figures)
        yield from _dispatcher_figures(figures)
        overdue = "Deliveries that have been due for a minute and are not being sent"
        yield _gauge("webhook_deliveries_overdue", overdue, figures.deliveries_overdue)
        yield _gauge(
            "webhooks_disabled", "Webhooks that the service has disabled", figures.webhooks_disabled
        )


class DiskFigures(Collector):
    """The disk of the data folder."""

    def collect(self) -> Iterator[Metric]:
        with contextlib.suppress(OSError):
            disk = shutil.disk_usage(settings.EVALHUB_DATA)
            yield _gauge("data_free_bytes", "Free bytes of the data folder's disk", disk.free)
            yield _gauge("data_total_bytes", "Size of the data folder's disk in bytes", disk.total)


def _evaluation_figures(figures: Figures) -> Iterator[Metric]:
    yield _labelled("evaluations", "Evaluations by state", "state", dict(figures.states))
    yield _labelled(
        "evaluation_attempts",
        "Attempts spent on the evaluations now in a state",
        "state",
        dict(figures.attempts),
    )
    yield _labelled(
        "evaluations_failed", "Failed evaluations by reason", "code", dict(figures.failed)
    )
    yield _labelled(
        "session_evaluations",
        "Evaluations of session sets by state",
        "state",
        dict(figures.sessions),
    )

    yield _labelled(
        "comparisons", "Stored comparisons by state", "state", dict(figures.comparisons)
    )
    cumulated = [float(count) for count in accumulate(figures.classes)]
    buckets = list(zip([*map(str, SECONDS), "+Inf"], cumulated, strict=True))
    seconds = HistogramMetricFamily(
        "evalhub_evaluation_seconds", "Seconds that each finished evaluation took"
    )
    seconds.add_metric([], buckets, figures.seconds)
    yield seconds


def _queue_figures(figures: Figures) -> Iterator[Metric]:
    queue = figures.queue
    yield _gauge(
        "queue_oldest_seconds",
        "How long the oldest queued evaluation waits; 0 for none",
        queue.oldest,
    )

    yield _gauge("queue_delayed", "Queued evaluations that wait to be tried again", queue.delayed)
    yield _gauge(
        "queue_dispatched",
        "Evaluations sent to a worker in the last minute, or held by one",
        queue.dispatched,
    )

    yield _gauge(
        "queue_undispatched",
        "Evaluations that are due and were not sent to a worker",
        queue.undispatched,
    )

    yield _gauge("leases", "Evaluations that a worker holds", figures.states["evaluating"])
    yield _gauge(
        "expired_leases",
        "Evaluations whose worker stopped sending heartbeats",
        queue.expired_leases,
    )


def _dispatcher_figures(figures: Figures) -> Iterator[Metric]:
    alive = sum(dispatcher_round.alive for dispatcher_round in figures.rounds)
    yield _gauge(
        "dispatchers", "Workers whose dispatcher completed a round in the last 30 s", alive
    )
    yield _gauge(
        "dispatcher_round_age_seconds", "Since the last round of any dispatcher", figures.round_age
    )
    silent = sum(
        dispatcher_round.alive and bool(dispatcher_round.trouble)
        for dispatcher_round in figures.rounds
    )
    yield _gauge(
        "dispatchers_without_broker",
        "Those of them that cannot send messages: is Redis away or full?",
        silent,
    )

    failed = CounterMetricFamily(
        "evalhub_dispatcher_failed_rounds",
        "Rounds that failed since the worker started",
        labels=["worker"],
    )

    for dispatcher_round in figures.rounds:
        failed.add_metric([dispatcher_round.worker], dispatcher_round.failed)

    yield failed


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"evalhub_{name}", text, value)


def _labelled(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(f"evalhub_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
