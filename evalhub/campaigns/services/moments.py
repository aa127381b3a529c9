"""Notify once that a phase opens, closes soon or has closed. Deadlines do not wait for that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from evalhub.campaigns.services.entries import ordered
from evalhub.campaigns.services.notifications import (
    accepted,
    notify_digest,
    notify_moment,
    notify_waiting,
)
from evalhub.campaigns.services.phase_times import closing_time
from evalhub.campaigns.services.releases import due_releases
from runs.models import Campaign, Entry, Participation, Phase, PhaseMoment
from runs.services import clock

_Kind = PhaseMoment.Kind
_HOURS = ((_Kind.CLOSING_72, 72), (_Kind.CLOSING_24, 24), (_Kind.CLOSING_2, 2))
# An opening or a closing longer ago is not announced: a server that was down does not send old
# news.
OLD_NEWS = timedelta(days=2)
# How long a release waits before organisers are notified.
PATIENCE = timedelta(minutes=30)


def note_moments() -> int:
    """Notify teams of every moment that has come, once, and return the number of new moments.

    Two dispatchers cannot announce the same moment: its row is unique, and is written in the
    transaction of the notification.
    """
    now, noted = clock.database_now(), 0
    lately = Q(closes_at__gt=now - OLD_NEWS) | Q(extensions__new__gt=now - OLD_NEWS)
    running = Phase.objects.filter(
        lately, campaign__state=Campaign.State.PUBLISHED, opens_at__lte=now
    ).distinct()

    for phase in running.select_related("campaign", "collection").prefetch_related("extensions"):
        noted_before = set(phase.moments.values_list("kind", "of"))
        for kind, of, at, teams in _due(phase, now):
            if (kind, of) not in noted_before:
                moment = {"phase": phase, "kind": kind, "of": of}
                noted += _once(moment, partial(notify_moment, phase, kind, at, teams))

    return noted


def note_waiting() -> int:
    """Notify organisers once of each release that waits for half an hour. Return their number."""
    noted, since = 0, clock.database_now() - PATIENCE
    waiting = due_releases(since).filter(planned_at__gt=since - OLD_NEWS)

    for release in waiting.select_related("phase__campaign"):
        moment = {"phase": release.phase, "kind": _Kind.WAITING, "of": release.planned_at}
        if not PhaseMoment.objects.filter(**moment).exists():
            noted += _once(moment, partial(notify_waiting, release))

    return noted


def note_digests() -> int:
    """Notify organisers once of the entries of the last whole day (UTC), if there were any.

    Return the number of campaigns with a new digest.
    """
    now, noted = clock.database_now(), 0
    ends = datetime.combine(now.astimezone(UTC).date(), time(tzinfo=UTC))
    starts = ends - timedelta(days=1)
    arrived = Q(arrived_at__gte=starts, arrived_at__lt=ends)
    changed = Q(state_changed_at__gte=starts, state_changed_at__lt=ends) & ~Q(
        state=Entry.State.ENTERED
    )
    published = Entry.objects.filter(
        arrived | changed, phase__campaign__state=Campaign.State.PUBLISHED
    )

    for campaign in Campaign.objects.filter(pk__in=published.order_by().values("phase__campaign")):
        first = campaign.phases.order_by("pk").first()
        moment = {"phase": first, "kind": _Kind.DIGEST, "of": ends}
        if not PhaseMoment.objects.filter(**moment).exists():
            rows = published.filter(phase__campaign=campaign).select_related(
                "phase", "run", "participation"
            )
            noted += _once(
                moment,
                partial(notify_digest, campaign, starts, list(rows.order_by("phase", "number"))),
            )

    return noted


def _due(
    phase: Phase, now: datetime
) -> Iterator[tuple[str, datetime, datetime, list[Participation]]]:
    """Yield the moments that have come: kind, instant, closing time and teams."""
    by_end: dict[datetime, list[Participation]] = defaultdict(list)
    for team in accepted(phase.campaign):
        by_end[closing_time(phase, team)].append(team)

    by_end = by_end or {closing_time(phase, None): []}
    if phase.opens_at <= now < min(phase.opens_at + OLD_NEWS, *by_end):
        yield (
            _Kind.OPENED,
            phase.opens_at,
            phase.closes_at,
            [team for teams in by_end.values() for team in teams],
        )

    for end, teams in by_end.items():
        if end <= now < end + OLD_NEWS:
            yield _Kind.CLOSED, end, end, teams

        for kind, hours in _HOURS:
            starts, nearer = end - timedelta(hours=hours), _next(end, hours)
            # A phase of two days does not begin with a reminder of three.
            if (
                phase.paused_at is None
                and max(starts, phase.opens_at) == starts
                and starts <= now < nearer
            ):
                yield kind, end, end, [team for team in teams if _may_enter_more(phase, team)]


def _next(end: datetime, hours: int) -> datetime:
    """Return when the next reminder comes, or the end: only the last missed reminder is sent."""
    later = [other for _, other in _HOURS if other < hours]
    return end - timedelta(hours=max(later, default=0))


def _may_enter_more(phase: Phase, team: Participation) -> bool:
    entries = ordered(phase, team).count()
    return entries == 0 or (phase.slots is not None and entries < phase.slots)


def _once(moment: dict[str, Any], tell: Callable[[], None]) -> bool:
    """Write a moment and notify of it. Return whether it is new."""
    try:
        with transaction.atomic():
            PhaseMoment.objects.create(**moment)
            tell()
    except IntegrityError:
        if not PhaseMoment.objects.filter(**moment).exists():
            raise

        return False

    return True
