"""The numbers that monitoring reads from the database, the same from every process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, F, Max, Q, QuerySet, Sum
from django.db.models.functions import Now

from metrics.models import Comparison, Evaluation, Job, SessionEvaluation
from metrics.services.queue.lifecycle import is_due, is_silent
from metrics.services.queue.rounds import LastRound, last_rounds
from runs.models import Delivery, Webhook

# Upper bounds of the histogram of evaluation seconds; the last class has none.
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LONG = timedelta(seconds=60)
_STATE = Evaluation.State


@dataclass(frozen=True, slots=True)
class Queue:
    """The state of the queue: the longest wait in seconds, and numbers of evaluations.

    `undispatched` are due and were not sent to a worker, or were sent and not answered;
    `overdue` are those of them that have waited for a minute.
    """

    oldest: float
    delayed: int
    dispatched: int
    undispatched: int
    overdue: int
    expired_leases: int

    @property
    def stuck(self) -> bool:
        """Return whether a job is due for a minute, nothing was sent, and no worker holds a job."""
        return bool(self.overdue and not self.dispatched)


@dataclass(slots=True)
class Figures:
    """The numbers of jobs: evaluations by state and error code, with their attempts and seconds.

    `classes` counts evaluations by their seconds. `comparisons` and `sessions` count stored
    comparisons and evaluations of session sets by state, `deliveries_overdue` the deliveries that
    have been due for a minute, and `webhooks_disabled` the webhooks that the service has disabled.
    """

    queue: Queue
    rounds: list[LastRound]
    states: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    comparisons: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    deliveries_overdue: int = 0
    webhooks_disabled: int = 0
    seconds: float = 0.0
    classes: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))

    @property
    def round_age(self) -> float:
        """Return the seconds since the last round of any dispatcher; infinite if there was none."""
        return min((last.age for last in self.rounds), default=float("inf"))


def read_figures() -> Figures:
    """Return all numbers, in seven queries."""
    figures = Figures(read_queue(), last_rounds(), Counter(dict.fromkeys(_STATE.values, 0)))
    bounds = [Q(seconds__lte=SECONDS[0])]
    bounds += [Q(seconds__gt=low, seconds__lte=high) for low, high in pairwise(SECONDS)]
    bounds += [Q(seconds__gt=SECONDS[-1])]
    classes: dict[str, Any] = {
        f"class_{i}": Count("pk", filter=bound) for i, bound in enumerate(bounds)
    }

    rows = (
        Evaluation.objects.order_by()
        .values("state", "error_code")
        .annotate(count=Count("pk"), tried=Sum("attempts"), spent=Sum("seconds"), **classes)
    )
    for row in rows:
        figures.states[row["state"]] += row["count"]
        figures.attempts[row["state"]] += row["tried"]
        if row["state"] == _STATE.FAILED:
            figures.failed[row["error_code"]] += row["count"]

        if row["state"] == _STATE.EVALUATED:
            figures.seconds += row["spent"] or 0.0
            figures.classes = [have + row[f"class_{i}"] for i, have in enumerate(figures.classes)]

    figures.comparisons = _by_state(Comparison, Comparison.State.values)
    figures.sessions = _by_state(SessionEvaluation, _STATE.values)
    overdue = Delivery.objects.filter(
        state=Delivery.State.DUE, next_at__lt=Now() - _LONG, webhook__enabled=True
    )
    figures.deliveries_overdue = overdue.count()
    figures.webhooks_disabled = (
        Webhook.objects.filter(enabled=False).exclude(disabled_reason="").count()
    )

    return figures


def _by_state(kind: type[Job], states: list[str]) -> Counter[str]:
    counts = Counter(dict.fromkeys(states, 0))
    rows: QuerySet[Any] = kind._default_manager.order_by()
    counts.update(dict(rows.values_list("state").annotate(Count("pk"))))
    return counts


def read_queue() -> Queue:
    """Return the state of the queue, reading only its own rows."""
    queued = Q(state=_STATE.QUEUED)
    due = is_due()
    unsent = due & is_silent(settings.EVALHUB_LEASE_SECONDS)

    counts = (
        Evaluation.objects.filter(state__in=(_STATE.QUEUED, _STATE.EVALUATING))
        .annotate(waited=_ago("since"), silent=_ago("dispatched_at"))
        .aggregate(
            oldest=Max("waited", filter=queued),
            delayed=Count("pk", filter=queued & ~due),
            dispatched=Count(
                "pk", filter=Q(silent__lt=_LONG, silent__gt=-_LONG) | Q(state=_STATE.EVALUATING)
            ),
            undispatched=Count("pk", filter=queued & unsent),
            overdue=Count("pk", filter=queued & unsent & Q(waited__gt=_LONG)),
            expired_leases=Count("pk", filter=Q(state=_STATE.EVALUATING, lease_until__lt=Now())),
        )
    )
    longest: timedelta = counts.pop("oldest") or timedelta(0)

    return Queue(oldest=max(0.0, longest.total_seconds()), **counts)


def _ago(moment: str) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() - F(moment), output_field=DurationField())
