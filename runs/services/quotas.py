"""How many runs a team may submit to a collection in a day."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from django.db.models import F
from django.utils import timezone

from metrics.engine.errors import LimitReached
from runs.models import QuotaCounter, Run


def take_quota(run: Run) -> None:
    """Count a run just created against its team's quota of the day; call it inside that transaction.

    LimitReached where the quota is used up, which takes the run back. What is refused before, checked only or
    submitted again never comes here; a deleted run stays counted.
    """
    limit = run.collection.daily_submissions
    if limit is None:
        return
    day = run.created_at.astimezone(UTC).date()
    midnight = datetime.combine(day, time(tzinfo=UTC))
    identity = {"collection": run.collection, "team": run.team, "day": day}
    # Runs that came before the collection had a quota count as well.
    earlier = Run.objects.filter(collection=run.collection, team=run.team, created_at__gte=midnight).exclude(pk=run.pk)
    QuotaCounter.objects.get_or_create(**identity, defaults={"used": earlier.count()})
    if not QuotaCounter.objects.filter(**identity, used__lt=limit).update(used=F("used") + 1):
        wait = midnight + timedelta(days=1) - timezone.now()
        message = f"team {run.team} has used up its quota of {limit} runs a day; the next day begins at midnight UTC"
        raise LimitReached(message, wait=max(1.0, wait.total_seconds()), code="quota_exceeded")
