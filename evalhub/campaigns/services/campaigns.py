"""Set up campaigns: create, publish and archive them, and write their agreements."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from evalhub.campaigns.services.notifications import notify_posted, unreachable_teams
from evalhub.campaigns.services.pseudonyms import veil_again
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import (
    Agreement,
    AuditEvent,
    Campaign,
    CampaignNotice,
    Collection,
    Disclosure,
    Entry,
    Participation,
    Team,
    User,
)
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, changed, record

# Limits of a team, and of a campaign.
MAX_CAMPAIGNS, MAX_AGREEMENTS, MAX_NOTICES = 200, 20, 500
_Action, _State = AuditEvent.Action, Campaign.State
# Teams that a notice can be for without naming them, with the words for them.
WITHOUT_ENTRIES, WITHOUT_ADDRESS = "without_entries", "without_address"
SELECTIONS = {
    WITHOUT_ENTRIES: "without an entry",
    WITHOUT_ADDRESS: "without an address for mail",
}


def is_organiser(campaign: Campaign, user: Any) -> bool:
    """Return whether the user is an organiser: an owner of the campaign's team, or staff."""
    return (
        user.is_authenticated
        and Campaign.objects.organised_by(user).filter(pk=campaign.pk).exists()
    )


def check_organiser(campaign: Campaign, user: Any) -> None:
    """Raise NotAllowed unless the user is an organiser of the campaign."""
    if not is_organiser(campaign, user):
        raise NotAllowed(
            f"only owners of team {campaign.team} can do this with campaign {campaign}"
        )


def create_campaign(
    *, team: Team, user: User, fields: Mapping[str, Any], origin: Origin = SYSTEM
) -> Campaign:
    """Return a new campaign, which is a draft that only its organisers see.

    Raise Conflict if its short name is taken or the team has too many.
    """
    try:
        with transaction.atomic():
            if Campaign.objects.filter(team=team).count() >= MAX_CAMPAIGNS:
                message = f"team {team} has {MAX_CAMPAIGNS} campaigns; delete a draft first"
                raise Conflict(message, code="too_many_campaigns")

            campaign = Campaign.objects.create(team=team, created_by=user, **fields)
            record(
                origin,
                _Action.CAMPAIGN_CREATED,
                campaign,
                after={"team": team.slug, **_without_empty(_recorded_fields(campaign))},
            )
    except IntegrityError as error:
        if not Campaign.objects.filter(slug=fields["slug"]).exists():
            raise

        message = f"a campaign {fields['slug']!r} exists already"
        raise Conflict(message, code="slug_taken", pointer="/slug") from error

    return campaign


def change_campaign(
    *, campaign: Campaign, changes: Mapping[str, Any], origin: Origin = SYSTEM
) -> None:
    """Change the texts of a campaign and how teams register.

    The audit trail keeps every version of the guidelines. Raise Conflict for an archived campaign.
    """
    with transaction.atomic():
        campaign = locked(campaign)
        if campaign.state == _State.ARCHIVED:
            raise Conflict(
                f"campaign {campaign} is archived; it stays as it is", code="campaign_archived"
            )

        before, after = changed(campaign, changes)
        _check_names(campaign, after)
        Campaign.objects.filter(pk=campaign.pk).update(**after)
        if "anonymous_until" in after:
            veil_again(campaign)
        if after:
            record(
                origin,
                _Action.CAMPAIGN_CHANGED,
                campaign,
                before=_without_empty(before),
                after=_without_empty(after),
            )


def _check_names(campaign: Campaign, after: Mapping[str, Any]) -> None:
    """Raise Conflict for names that would be hidden again after they were shown."""
    until, now = campaign.anonymous_until, clock.database_now()
    if campaign.state == _State.DRAFT or not {"anonymous_until", "names"} & set(after):
        return

    later = after.get("anonymous_until") and (until is None or after["anonymous_until"] > until)
    results = Collection.objects.filter(phases__campaign=campaign)
    results_seen = results.filter(
        Q(blind=True, shown_to=Disclosure.PARTICIPANTS) | Q(released_at__isnull=False)
    ).exists()
    if (later or after.get("names") == Campaign.Names.HIDDEN_UNTIL_RELEASE) and (
        results_seen or (until and until <= now)
    ):
        name = "anonymous_until" if later else "names"
        message = (
            "names of teams have been shown, or results are disclosed; they are not hidden longer"
        )
        raise Conflict(message, code="anonymity_only_ends_earlier", pointer=f"/{name}")


def publish_campaign(*, campaign: Campaign, origin: Origin = SYSTEM) -> None:
    """Show a draft to everybody. Raise Conflict if it is none, or has no phase."""
    with transaction.atomic():
        campaign = locked(campaign)
        if campaign.state != _State.DRAFT:
            raise Conflict(f"campaign {campaign} is {campaign.state}", code="not_a_draft")
        if not campaign.phases.exists():
            raise Conflict(f"campaign {campaign} has no phase yet; add one first", code="no_phases")

        _move(campaign, _State.PUBLISHED, _Action.CAMPAIGN_PUBLISHED, origin)


def archive_campaign(*, campaign: Campaign, origin: Origin = SYSTEM) -> None:
    """End a published campaign: it stays readable and takes no more runs.

    Raise Conflict for a campaign in another state.
    """
    with transaction.atomic():
        campaign = locked(campaign)
        if campaign.state != _State.PUBLISHED:
            raise Conflict(
                f"campaign {campaign} is {campaign.state}; only a published one is archived",
                code="not_published",
            )

        _move(campaign, _State.ARCHIVED, _Action.CAMPAIGN_ARCHIVED, origin)


def delete_draft(*, campaign: Campaign, origin: Origin = SYSTEM) -> None:
    """Delete a draft with its phases and agreements. Raise Conflict for a published campaign."""
    with transaction.atomic():
        campaign = locked(campaign)
        if campaign.state != _State.DRAFT:
            raise Conflict(
                f"campaign {campaign} is {campaign.state}; only a draft can be deleted",
                code="not_a_draft",
            )

        record(origin, _Action.CAMPAIGN_DELETED, campaign, before={"name": campaign.name})
        campaign.delete()


def add_agreement(
    *, campaign: Campaign, title: str, text: str, required_of: str, origin: Origin = SYSTEM
) -> Agreement:
    """Return a new agreement, which participants sign before they enter runs.

    Raise Conflict if the campaign has the same text already, or too many agreements.
    """
    sha256 = hashlib.sha256(f"{title}\n\n{text}".encode()).hexdigest()
    with transaction.atomic():
        campaign = locked(campaign)
        if campaign.state == _State.ARCHIVED:
            raise Conflict(
                f"campaign {campaign} is archived; it stays as it is", code="campaign_archived"
            )

        if campaign.agreements.filter(sha256=sha256).exists():
            raise Conflict(
                f"campaign {campaign} has this agreement already", code="conflict", pointer="/text"
            )

        if campaign.agreements.count() >= MAX_AGREEMENTS:
            raise Conflict(
                f"campaign {campaign} has {MAX_AGREEMENTS} agreements", code="too_many_agreements"
            )

        agreement = Agreement.objects.create(
            campaign=campaign, title=title, text=text, sha256=sha256, required_of=required_of
        )
        after = {"sha256": sha256, "required_of": required_of}
        record(origin, _Action.AGREEMENT_MADE, agreement, after=after)

    return agreement


def post_notice(
    *,
    campaign: Campaign,
    title: str,
    text: str,
    audience: str,
    user: User,
    teams: Iterable[str] = (),
    phase: str = "",
    origin: Origin = SYSTEM,
) -> CampaignNotice:
    """Post a notice, notify its readers and return it.

    The `audience` is one of `CampaignNotice.Audience` or of `SELECTIONS`. `teams` are the short
    names of chosen ones; `phase` is where those `without_entries` have none, by default anywhere.
    Raise Conflict for a draft, for a campaign with too many notices, and for a selection without
    teams; InvalidInput for a team or phase that the campaign does not have.
    """
    with transaction.atomic():
        campaign = locked(campaign)
        if campaign.state == _State.DRAFT:
            raise Conflict(
                f"campaign {campaign} is a draft; publish it first", code="not_published"
            )

        if campaign.notices.count() >= MAX_NOTICES:
            raise Conflict(
                f"campaign {campaign} has {MAX_NOTICES} notices", code="too_many_notices"
            )

        chosen = _chosen_teams(campaign, audience, list(teams), phase)
        if chosen is not None:
            audience = CampaignNotice.Audience.CHOSEN

        fields = {"title": title, "text": text, "audience": audience}
        notice = CampaignNotice.objects.create(campaign=campaign, posted_by=user, **fields)
        after: dict[str, Any] = {"title": title, "audience": audience}
        if chosen is not None:
            notice.teams.set(chosen)
            after["teams"] = [participation.team.slug for participation in chosen]

        record(origin, _Action.NOTICE_POSTED, notice, after=after)
        notify_posted(notice)

    return notice


def select_teams(campaign: Campaign, selection: str, phase: str = "") -> list[Participation]:
    """Return the accepted teams of a selection.

    These are the teams without an entry that takes part, in a phase or anywhere, or those in which
    no active member has an address for mail. Raise InvalidInput for an unknown phase.
    """
    if selection == WITHOUT_ENTRIES:
        rows = campaign.participations.filter(state=Participation.State.ACCEPTED)
        entries = Entry.objects.filter(state=Entry.State.ENTERED, participation__isnull=False)
        if phase:
            if not campaign.phases.filter(slug=phase).exists():
                raise InvalidInput(
                    f"campaign {campaign} has no phase {phase[:64]!r}", pointer="/phase"
                )
            entries = entries.filter(phase__slug=phase)

        entries = entries.filter(phase__campaign=campaign).order_by()
        rows = rows.exclude(pk__in=entries.values("participation"))
        return list(rows.select_related("team").order_by("pk"))

    accepted = Participation.State.ACCEPTED
    return [team for team in unreachable_teams(campaign) if team.state == accepted]


def _chosen_teams(
    campaign: Campaign, audience: str, teams: list[str], phase: str
) -> list[Participation] | None:
    """Return the teams that a notice is for, or None for one to all accepted teams or everybody."""
    if teams and audience != CampaignNotice.Audience.CHOSEN:
        raise InvalidInput(f"teams are for the audience chosen, not {audience}", pointer="/teams")
    if phase and audience != WITHOUT_ENTRIES:
        raise InvalidInput(f"a phase is for the audience {WITHOUT_ENTRIES}", pointer="/phase")

    if audience in SELECTIONS:
        selected = select_teams(campaign, audience, phase)
        if not selected:
            raise Conflict(f"there is no accepted team {SELECTIONS[audience]}", code="conflict")
        return selected

    if audience != CampaignNotice.Audience.CHOSEN:
        return None

    rows = campaign.participations.filter(team__slug__in=teams).select_related("team")
    chosen = list(rows.order_by("pk"))
    missing = set(teams) - {participation.team.slug for participation in chosen}
    if missing or not chosen:
        message = (
            f"no team {min(missing)[:64]!r} is in campaign {campaign}"
            if missing
            else ("name the teams that the notice is for")
        )
        raise InvalidInput(
            message, code="unknown_team" if missing else "required", pointer="/teams"
        )

    return chosen


def locked(campaign: Campaign) -> Campaign:
    """Return the campaign as it is now, which nobody else changes until the transaction ends."""
    current = (
        Campaign.objects.select_for_update(of=("self",))
        .select_related("team")
        .filter(pk=campaign.pk)
        .first()
    )
    if current is None:
        raise Conflict(f"campaign {campaign} was deleted meanwhile", code="conflict")

    return current


def _move(
    campaign: Campaign, state: Campaign.State, action: AuditEvent.Action, origin: Origin
) -> None:
    before = {"state": str(campaign.state)}
    Campaign.objects.filter(pk=campaign.pk).update(state=state)
    record(origin, action, campaign, before=before, after={"state": str(state)})


def _recorded_fields(campaign: Campaign) -> dict[str, Any]:
    """Return the fields that organisers set: the trail has them all, and fsck compares them."""
    others = ("id", "team", "seed", "created_by", "created_at")
    names = (field.name for field in Campaign._meta.concrete_fields if field.name not in others)
    return {name: getattr(campaign, name) for name in names}


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "")}
