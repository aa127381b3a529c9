"""The names of teams in campaigns: pseudonyms until an instant, which is checked when they are read."""

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
    """Return a number that no other team of the campaign has, in an order shuffled by its seed.

    The seed is secret, so that numbers follow neither names nor arrival. The row of the campaign is
    locked until the transaction ends.
    """
    current = Campaign.objects.select_for_update().get(pk=campaign.pk)
    taken = set(current.participations.exclude(pseudonym=None).values_list("pseudonym", flat=True))

    for low, high in _RANGES:
        numbers = list(range(low, high + 1))
        random.Random(f"{current.seed} {low}").shuffle(numbers)  # noqa: S311
        if free := next((number for number in numbers if number not in taken), None):
            return free

    raise Conflict(f"campaign {current} has no pseudonym left", code="conflict")


def shown_at_latest(campaign: Campaign) -> datetime | None:
    """Return when the names of a campaign are shown at the latest, or None if that is open.

    It is nine months after the first of its evaluations became public.
    """
    released_at = campaign.first_released_at
    return released_at + LONGEST if released_at else None


def hidden_until(participation: Participation) -> datetime | None:
    """Return until when the name of a team is hidden: its own instant, or else its campaign's.

    It ends at most nine months after the public release.
    """
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
    """Return the pseudonym of a team with a hidden name."""
    number = f"{participation.pseudonym or 0:02}"
    return ShownName(f"team-{number}", f"Team {number}", hidden=True)


def shown_names(
    phase: Phase,
    participations: Iterable[Participation],
    own: Participation | None,
    organiser: bool,
    now: datetime,
) -> dict[int, ShownName]:
    """Return the names that a reader of a phase sees, by the keys of the teams."""
    return names_at(phase.collection.disclosure, participations, own, organiser, now)


def names_at(
    disclosure: Disclosure,
    participations: Iterable[Participation],
    own: Participation | None,
    organiser: bool,
    now: datetime,
) -> dict[int, ShownName]:
    """Return the names that a reader sees under this disclosure, by the keys of the teams."""
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
    """Return the replacement for the tag of an entry of a hidden team."""
    number = entry.participation.pseudonym if entry.participation else None
    return f"T{number or 0:02}-{entry.number}"


def veil(collection: Collection) -> datetime | None:
    """Return until when only organisers see the general addresses of a collection, or None.

    These addresses know nothing of campaigns and would show the names of hidden teams with entries.
    Leaderboards of phases have pseudonyms.
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
    """Update the veils of a campaign's disclosed collections after its times of hiding changed."""
    collections = Collection.objects.filter(phases__campaign=campaign).distinct()
    for collection in collections:
        disclosed = collection.released_at or (
            collection.blind and collection.shown_to == Disclosure.PARTICIPANTS
        )
        if disclosed:
            Collection.objects.filter(pk=collection.pk).update(veiled_until=veil(collection))
