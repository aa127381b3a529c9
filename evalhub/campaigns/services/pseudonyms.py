"""The names of teams in campaigns: hidden behind pseudonyms until an instant, which the clock lifts at reading time."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.errors import Conflict
from runs.models import Campaign, Collection, Disclosure, Entry, Participation, Phase

# How long after the results of an evaluation are public names may stay hidden.
LONGEST = timedelta(days=274)
# Pseudonyms are drawn from these, one range after the other.
_RANGES = ((1, 99), (100, 999), (1_000, 9_999), (10_000, 99_999))


@dataclass(frozen=True)
class ShownName:
    """What a reader sees in place of a team."""

    slug: str
    name: str
    hidden: bool


def draw_pseudonym(campaign: Campaign) -> int:
    """Return a number that no team of the campaign has, in an order that the campaign's secret seed shuffles: neither
    that of names nor that of arrival. The campaign's row is locked until the transaction ends."""
    current = Campaign.objects.select_for_update().get(pk=campaign.pk)
    taken = set(current.participations.exclude(pseudonym=None).values_list("pseudonym", flat=True))

    for low, high in _RANGES:
        numbers = list(range(low, high + 1))
        random.Random(f"{current.seed} {low}").shuffle(numbers)  # noqa: S311
        if free := next((number for number in numbers if number not in taken), None):
            return free

    raise Conflict(f"campaign {current} has no pseudonym left", code="conflict")


def shown_at_latest(campaign: Campaign) -> datetime | None:
    """Return when the names of a campaign are shown, whatever it says: nine months after the first of its evaluations
    is public. None as long as none is. It is read once for each object."""
    cache: dict[str, datetime | None] = campaign.__dict__
    if "_shown_at_latest" not in cache:
        released = {
            "phases__campaign": campaign,
            "phases__kind": Phase.Kind.EVALUATION,
            "released_at__isnull": False,
        }
        first = (
            Collection.objects.filter(**released)
            .order_by("released_at")
            .values_list("released_at", flat=True)
            .first()
        )
        cache["_shown_at_latest"] = first + LONGEST if first else None

    return cache["_shown_at_latest"]


def hidden_until(participation: Participation) -> datetime | None:
    """Return until when the name of a team is hidden: its own instant, or else its campaign's, and not longer than nine
    months after the public release."""
    until = participation.anonymous_until or participation.campaign.anonymous_until
    latest = shown_at_latest(participation.campaign) if until else None
    return min(until, latest) if until and latest else until


def is_hidden(participation: Participation, disclosure: Disclosure, now: datetime) -> bool:
    """Return whether the name of a team is hidden now from all but organisers and the team itself."""
    return hides(participation.campaign, participation.anonymous_until, disclosure, now)


def hides(
    campaign: Campaign, own_until: datetime | None, disclosure: Disclosure, now: datetime
) -> bool:
    """Return whether a campaign hides the name of a team with this instant of its own."""
    until = own_until or campaign.anonymous_until
    if until is not None and now < until:
        latest = shown_at_latest(campaign)
        if latest is None or now < latest:
            return True

    by_release = campaign.names == Campaign.Names.HIDDEN_UNTIL_RELEASE

    return by_release and disclosure < Disclosure.PARTICIPANTS


def pseudonym(participation: Participation) -> ShownName:
    """Return what stands for a team whose name is hidden."""
    number = f"{participation.pseudonym or 0:02}"
    return ShownName(f"team-{number}", f"Team {number}", hidden=True)


def shown_names(
    phase: Phase,
    participations: Iterable[Participation],
    own: Participation | None,
    organiser: bool,
    now: datetime,
) -> dict[int, ShownName]:
    """Return what a reader sees in place of each team, by its key."""
    return names_at(phase.collection.disclosure, participations, own, organiser, now)


def names_at(
    disclosure: Disclosure,
    participations: Iterable[Participation],
    own: Participation | None,
    organiser: bool,
    now: datetime,
) -> dict[int, ShownName]:
    """Return the same where results are disclosed so far."""
    names, campaigns = dict[int, ShownName](), dict[int, Campaign]()
    for participation in participations:
        if organiser or participation == own:
            hidden = False
        else:
            # One object for each campaign, which remembers what was read.
            participation.campaign = campaigns.setdefault(
                participation.campaign_id, participation.campaign
            )
            hidden = is_hidden(participation, disclosure, now)

        names[participation.pk] = (
            pseudonym(participation)
            if hidden
            else ShownName(participation.team.slug, participation.shown_name, hidden=False)
        )

    return names


def hidden_tag(entry: Entry) -> str:
    """Return what stands for the tag of an entry whose team is hidden."""
    number = entry.participation.pseudonym if entry.participation else None
    return f"T{number or 0:02}-{entry.number}"


def veil(collection: Collection) -> datetime | None:
    """Return until when the general addresses of a collection stay closed to all but its organisers: as long as they
    would show the name of a team with an entry that is hidden. None if there is none.

    Leaderboards of phases have pseudonyms; the general addresses know nothing of campaigns.
    """
    ends, campaigns = list[datetime](), dict[int, Campaign]()
    teams = (
        Participation.objects.filter(entries__phase__collection=collection)
        .select_related("campaign")
        .distinct()
    )

    for team in teams:
        # One object for each campaign, which remembers what was read.
        team.campaign = campaigns.setdefault(team.campaign_id, team.campaign)
        if until := hidden_until(team):
            ends.append(until)

    return max(ends, default=None)


def veil_again(campaign: Campaign) -> None:
    """After a change of when names are shown, do so for the collections of a campaign whose results were disclosed."""
    collections = Collection.objects.filter(phases__campaign=campaign).distinct()
    for collection in collections:
        disclosed = collection.released_at or (
            collection.blind and collection.shown_to == Disclosure.PARTICIPANTS
        )
        if disclosed:
            Collection.objects.filter(pk=collection.pk).update(veiled_until=veil(collection))
