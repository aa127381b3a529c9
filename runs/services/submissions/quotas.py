"""The quota of runs and session sets that a team may submit to a collection in a day."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from django.db.models import F
from django.utils import timezone

from runs.errors import LimitReached
from runs.models import QuotaCounter, Run, SessionSet


def take_quota(submission: Run | SessionSet) -> None:
    """Count a new submission against its team's quota of the day, inside its transaction.

    Raise LimitReached if the quota is used up, which rolls the submission back. Refused, dry-run
    and repeated submissions never reach this function; withdrawn ones stay counted.
    """
    limit = submission.collection.daily_submissions
    if limit is None:
        return

    day = submission.created_at.astimezone(UTC).date()
    midnight = datetime.combine(day, time(tzinfo=UTC))
    counter = {"collection": submission.collection, "team": submission.team, "day": day}

    # Submissions from before the collection had a quota count as well.
    earlier = {
        "collection": submission.collection,
        "team": submission.team,
        "created_at__gte": midnight,
    }

    used = sum(
        # A run without a file came with its first replicate, which counts.
        kind._default_manager.filter(**earlier).exclude(pk=submission.pk).exclude(sha256="").count()
        for kind in (Run, SessionSet)
    )

    QuotaCounter.objects.get_or_create(**counter, defaults={"used": used})

    if not QuotaCounter.objects.filter(**counter, used__lt=limit).update(used=F("used") + 1):
        wait = midnight + timedelta(days=1) - timezone.now()
        raise LimitReached(
            f"team {submission.team} has reached its quota of {limit} submissions per day; "
            "it resets at midnight UTC",
            wait=max(1.0, wait.total_seconds()),
            code="quota_exceeded",
        )
