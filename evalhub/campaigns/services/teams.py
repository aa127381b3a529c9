"""Teams and people in campaigns: register, accept, withdraw, join, leave, sign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from evalhub.campaigns.services.campaigns import check_organiser, is_organiser, locked
from evalhub.campaigns.services.entries import end_entries, results_stay
from evalhub.campaigns.services.notifications import notify_team
from evalhub.campaigns.services.pseudonyms import (
    draw_pseudonym,
    hidden_until,
    shown_at_latest,
    veil_again,
)
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import (
    Agreement,
    AuditEvent,
    Campaign,
    CampaignMember,
    Collection,
    Disclosure,
    Entry,
    Membership,
    Participation,
    Phase,
    Signature,
    Team,
    User,
)
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, changed, record

_Action, _State = AuditEvent.Action, Participation.State
# The states that a team can come from, by the state that it gets.
_ORGANISERS_DECIDE = {
    _State.ACCEPTED: (_State.REQUESTED, _State.DECLINED, _State.REMOVED),
    _State.DECLINED: (_State.REQUESTED,),
    _State.REMOVED: (_State.ACCEPTED,),
}
# What organisers decide, and about how many teams at once.
DECISIONS = [(str(state), str(state.label)) for state in _ORGANISERS_DECIDE]
MAX_AT_ONCE = 500
_OWNERS_DECIDE = {
    _State.REQUESTED: (_State.DECLINED,),
    _State.WITHDRAWN: (_State.REQUESTED, _State.ACCEPTED),
}


def register_team(
    *,
    campaign: Campaign,
    team: Team,
    user: User,
    name: str = "",
    affiliation: str = "",
    agreements: Iterable[str] = (),
    typed_name: str = "",
    invited: bool = False,
    origin: Origin = SYSTEM,
) -> Participation:
    """Register a team, by an owner who becomes its first member. Return the participation.

    The owner signs the agreements that these digests name. The team is accepted at once where
    registration is open, and if a link of the organisers invited its owner.
    Raise Conflict if registration is closed, or if the team or the person is in the campaign
    already; InvalidInput for an unknown agreement, or one that is signed without a name.
    """
    agreed = find_agreements(campaign, agreements)
    if agreed and not typed_name:
        raise InvalidInput(
            "type your name to sign the agreements", code="required", pointer="/typed_name"
        )

    with transaction.atomic():
        campaign, now = locked(campaign), clock.database_now()
        if refusal := why_no_registrations(campaign, now, invited=invited):
            raise Conflict(refusal, code="registration_closed")
        if not Team.objects.led_by(user).filter(pk=team.pk).exists():
            raise NotAllowed(f"only owners of team {team} can register it")
        if campaign.participations.filter(team=team).exists():
            raise Conflict(
                f"team {team} is registered already", code="already_registered", pointer="/team"
            )

        accepted = invited or campaign.registration == Campaign.Registration.OPEN
        participation = Participation.objects.create(
            campaign=campaign,
            team=team,
            state=_State.ACCEPTED if accepted else _State.REQUESTED,
            requested_at=now,
            accepted_at=now if accepted else None,
            pseudonym=draw_pseudonym(campaign) if accepted else None,
            name=name or team.name,
            affiliation=affiliation,
        )
        record(
            origin,
            _Action.PARTICIPATION_REQUESTED,
            participation,
            after={"state": str(participation.state), "name": participation.name},
        )
        join(participation=participation, user=user, origin=origin)

        for agreement in agreed:
            sign(agreement=agreement, user=user, typed_name=typed_name, origin=origin)

        notify_team(participation, participation.state)

    return participation


def why_no_registrations(campaign: Campaign, now: datetime, *, invited: bool = False) -> str:
    """Return why no team can register now, or an empty text.

    Whoever is invited by a link can do it also where registration is closed to all others.

    A team that could enter nothing any more would only see the results of the others when they are
    released to participants.
    """
    closes = campaign.registration_closes_at
    if campaign.state != Campaign.State.PUBLISHED or (
        campaign.registration == Campaign.Registration.CLOSED and not invited
    ):
        is_draft = campaign.state == Campaign.State.DRAFT
        reason = "is a draft; publish it first" if is_draft else "takes no registrations"
        return f"campaign {campaign} {reason}"
    if closes and now >= closes:
        return f"registration closed at {closes:%Y-%m-%d %H:%M:%S} UTC"
    if collection := _disclosed_collection(campaign):
        return (
            f"results on {collection} are disclosed to teams of this campaign, so that no others "
            "can join it now"
        )

    roster = roster_closes_at(campaign)
    if roster and now >= roster and not _all_public(campaign):
        return f"teams of campaign {campaign} stay as they were at {roster:%Y-%m-%d %H:%M:%S} UTC"

    # Runs that come afterwards compete with nobody's, but their teams are participants.
    afterwards = Q(kind=Phase.Kind.AFTERWARDS)
    taking = campaign.phases.filter(~afterwards | Q(collection__blind=False), closes_at__gt=now)

    if taking.exists():
        return ""

    return f"no phase of campaign {campaign} still takes runs of new teams"


def change_state(
    *,
    participation: Participation,
    state: str,
    user: User,
    reason: str = "",
    origin: Origin = SYSTEM,
) -> None:
    """Accept, decline or remove a team (organisers), or withdraw it or ask again (its owners).

    The entries of a team that withdraws are withdrawn, those of one that is removed disqualified.
    Raise NotAllowed for anybody else, Conflict for a state that does not follow from the present
    one.
    """
    with transaction.atomic():
        participation, target = locked_participation(participation), _State(state)
        if target in _ORGANISERS_DECIDE:
            rules, deciders = _ORGANISERS_DECIDE, "organisers of the campaign"
            allowed = is_organiser(participation.campaign, user)
        else:
            rules, deciders = _OWNERS_DECIDE, f"owners of team {participation.team}"
            allowed = _is_owner(user, participation.team)

        if not allowed:
            raise NotAllowed(f"only {deciders} can set the state {target}")

        if participation.state not in rules[target]:
            message = (
                f"team {participation.team} is {participation.state} and cannot become {target}"
            )
            raise Conflict(message, code="conflict", pointer="/state")

        if target == _State.WITHDRAWN and (phase := _phase_with_results(participation)):
            message = (
                f"participants see the results of phase {phase}: only organisers can take "
                "entries out of it now"
            )
            raise NotAllowed(message)

        now = clock.database_now()
        after: dict[str, Any] = {"state": target}
        if target == _State.ACCEPTED:
            after |= {
                "accepted_at": now,
                "pseudonym": participation.pseudonym or draw_pseudonym(participation.campaign),
            }

        Participation.objects.filter(pk=participation.pk).update(**after)
        fields = {"state": str(target), **({"reason": reason} if reason else {})}
        record(
            origin,
            _Action.PARTICIPATION_CHANGED,
            participation,
            before={"state": str(participation.state)},
            after=fields,
        )
        notify_team(participation, target, reason)
        if target in (_State.WITHDRAWN, _State.REMOVED):
            end_entries(
                participation,
                disqualified=target == _State.REMOVED,
                reason=reason or f"team {target}",
                origin=origin,
            )


@dataclass(frozen=True)
class Decision:
    """What became of a team that organisers decided about; `code` and `detail` say why it stays."""

    team: str
    state: str
    changed: bool
    code: str = ""
    detail: str = ""


def decide_teams(
    *,
    campaign: Campaign,
    state: str,
    user: User,
    teams: Sequence[str] = (),
    all_requested: bool = False,
    reason: str = "",
    origin: Origin = SYSTEM,
) -> list[Decision]:
    """Accept, decline or remove many teams in one transaction. Return what became of each.

    The teams are those with these short names, or with `all_requested` those that wait for a
    decision. One that is in the state already stays as it is, and so does one that cannot come to
    it, which its decision says; the others change.
    Raise NotAllowed for anybody but organisers, InvalidInput to remove teams without a reason.
    """
    check_organiser(campaign, user)
    if state == _State.REMOVED and not reason:
        raise InvalidInput(
            "say why: the entries of removed teams are disqualified",
            code="required",
            pointer="/reason",
        )

    which = Q(state=_State.REQUESTED) if all_requested else Q(team__slug__in=teams)
    with transaction.atomic():
        # All rows first and in one order, so that two requests never wait for each other.
        rows = campaign.participations.filter(which).select_related("team", "campaign__team")
        by_slug = {
            participation.team.slug: participation
            for participation in rows.select_for_update(of=("self",)).order_by("pk")
        }

        decisions = []
        for slug in by_slug if all_requested else dict.fromkeys(teams):
            participation = by_slug.get(slug)
            if participation is None:
                message = f"no team {slug[:64]!r} asks to take part in campaign {campaign}"
                decisions.append(Decision(slug, "", False, "not_found", message))
                continue

            if participation.state == state:
                decisions.append(Decision(slug, state, False))
                continue

            try:
                change_state(
                    participation=participation,
                    state=state,
                    user=user,
                    reason=reason,
                    origin=origin,
                )
            except Conflict as refusal:
                decisions.append(
                    Decision(slug, participation.state, False, refusal.code, str(refusal))
                )
            else:
                decisions.append(Decision(slug, state, True))

    return decisions


def _phase_with_results(participation: Participation) -> Phase | None:
    """Return a phase with entries of the team that it cannot withdraw, since results are seen."""
    entries = Entry.objects.filter(participation=participation, state=Entry.State.ENTERED)
    phases = (
        Phase.objects.filter(entries__in=entries)
        .select_related("campaign", "collection")
        .distinct()
    )

    return next((phase for phase in phases if results_stay(phase)), None)


def rename(
    *, participation: Participation, changes: Mapping[str, str], user: User, origin: Origin = SYSTEM
) -> None:
    """Change the shown name or affiliation of a team.

    Once results are disclosed to teams, the name that the team had then is shown after a new one.
    Raise NotAllowed for anybody but its owners and organisers.
    """
    with transaction.atomic():
        participation = locked_participation(participation)
        if not (_is_owner(user, participation.team) or is_organiser(participation.campaign, user)):
            raise NotAllowed(f"only owners of team {participation.team} can do this")

        fields = dict(changes)
        if "name" in fields and (
            participation.former_name or _is_disclosed_to_teams(participation.campaign)
        ):
            disclosed_name = participation.former_name or participation.name
            fields["former_name"] = "" if fields["name"] == disclosed_name else disclosed_name

        before, after = changed(participation, fields)
        Participation.objects.filter(pk=participation.pk).update(**after)
        if after:
            record(origin, _Action.PARTICIPATION_CHANGED, participation, before=before, after=after)


def _is_disclosed_to_teams(campaign: Campaign) -> bool:
    """Return whether teams see results of an evaluation of the campaign."""
    disclosed = campaign.phases.filter(kind=Phase.Kind.EVALUATION).exclude(
        collection__blind=True, collection__shown_to=Disclosure.ORGANISERS
    )
    return disclosed.exists()


def move_anonymity(
    *, participation: Participation, until: datetime, user: User, origin: Origin = SYSTEM
) -> None:
    """Change until when the name of a team is hidden. Raise the errors of `_check_move`."""
    with transaction.atomic():
        participation = locked_participation(participation)
        later = _check_move(participation, until, user, clock.database_now())
        fields = {"anonymous_until": until, "prolonged": participation.prolonged or later}
        before = {"anonymous_until": hidden_until(participation)}
        Participation.objects.filter(pk=participation.pk).update(**fields)
        veil_again(participation.campaign)
        record(
            origin,
            _Action.PARTICIPATION_CHANGED,
            participation,
            before=before,
            after={"anonymous_until": until},
        )


def _check_move(participation: Participation, until: datetime, user: User, now: datetime) -> bool:
    """Return whether the name of a team becomes hidden for longer, after checking that it may.

    A team may show its hidden name earlier. Organisers may hide it longer, once, and at most nine
    months beyond the public release. Raise NotAllowed for others, Conflict if it cannot move.
    """
    before = hidden_until(participation)
    organiser = is_organiser(participation.campaign, user)
    if not organiser and not _is_owner(user, participation.team):
        raise NotAllowed(f"only owners of team {participation.team} can do this")

    if before is not None and until <= before:
        return False

    if not organiser:
        raise NotAllowed("a team can show its name earlier; ask an organiser to hide it longer")
    if participation.prolonged:
        message = f"the name of team {participation.team} was hidden longer once already"
        raise Conflict(message, code="anonymity_only_ends_earlier", pointer="/anonymous_until")

    latest = shown_at_latest(participation.campaign)
    if latest and until > latest:
        message = "a name is hidden for at most nine months after the results are public"
        raise Conflict(message, code="anonymity_only_ends_earlier", pointer="/anonymous_until")
    if before is not None and before <= now:
        message = f"the name of team {participation.team} has been shown"
        raise Conflict(message, code="anonymity_only_ends_earlier", pointer="/anonymous_until")

    return True


def join(*, participation: Participation, user: User, origin: Origin = SYSTEM) -> CampaignMember:
    """Make a member of a team take part with it in a campaign, which being in the team does not.

    Raise NotAllowed for somebody who is not in the team, Conflict for organisers, for somebody who
    is in another team of the campaign, when the team is full, and when teams can no longer change.
    """
    with transaction.atomic():
        participation = locked_participation(participation)
        campaign = participation.campaign
        if not Membership.objects.filter(team=participation.team, user=user).exists():
            raise NotAllowed(
                f"only members of team {participation.team} can join it in a campaign; ask its "
                "owners first"
            )

        existing = CampaignMember.objects.filter(campaign=campaign, user=user).first()
        if existing and (existing.participation_id != participation.pk or existing.left_at is None):
            where = "this team" if existing.participation_id == participation.pk else "a team"
            raise Conflict(
                f"you are in {where} of campaign {campaign} already", code="already_in_campaign"
            )

        check_may_join(participation, user)

        try:
            with transaction.atomic():
                fields = {
                    "participation": participation,
                    "joined_at": clock.database_now(),
                    "left_at": None,
                }
                member, _ = CampaignMember.objects.update_or_create(
                    campaign=campaign, user=user, defaults=fields
                )
        except IntegrityError as error:
            message = f"you are in a team of campaign {campaign} already"
            raise Conflict(message, code="already_in_campaign") from error

        record(origin, _Action.PARTICIPANT_JOINED, participation, after={"user": user.username})

    return member


def check_may_join(participation: Participation, user: User) -> None:
    """Raise Conflict for an organiser and for a full team, and the errors of `check_may_grow`.

    Another team that the user may be in is not mentioned: only the user learns about it.
    """
    campaign = participation.campaign
    if Membership.objects.filter(
        team=campaign.team, user=user, role=Membership.Role.OWNER
    ).exists():
        raise Conflict(
            "organisers of a campaign cannot take part in it", code="organiser_takes_part"
        )

    check_may_grow(participation)
    size = participation.members.filter(left_at=None).count()
    if campaign.max_team_size and size >= campaign.max_team_size:
        raise Conflict(
            f"team {participation.team} has {size} members, the most that a team has",
            code="team_is_full",
        )


def check_may_grow(participation: Participation) -> None:
    """Raise Conflict if nobody can join a team.

    The code is `team_not_accepted` for a team that does not take part, and `roster_closed` when
    teams can no longer change.
    """
    if participation.state not in (Participation.State.REQUESTED, Participation.State.ACCEPTED):
        message = f"team {participation.team} is {participation.state}, so no one can join it"
        raise Conflict(message, code="team_not_accepted")

    _check_roster(participation.campaign)


def check_may_organise(team: Team, user: User) -> None:
    """Raise Conflict for a user who takes part in a campaign of this team that is not archived.

    As an owner of the team, the user would organise it.
    """
    memberships = CampaignMember.objects.filter(user=user, campaign__team=team, left_at=None)
    active = memberships.exclude(campaign__state=Campaign.State.ARCHIVED).select_related(
        "campaign", "participation__team"
    )
    if membership := active.first():
        message = (
            f"{user} takes part in campaign {membership.campaign} with team "
            f"{membership.participation.team}, and owners of team "
            f"{team} organise it; {user} can leave that team in the campaign first, or be a "
            f"member of {team}"
        )
        raise Conflict(message, code="organiser_takes_part", pointer="/role")


def leave(*, member: CampaignMember, user: User, reason: str = "", origin: Origin = SYSTEM) -> None:
    """Take a person out of a team, as this person, an owner of the team or an organiser.

    After the team's first entry the person stays on record and can join no other team. Only an
    organiser can free the person for another team then, with a reason, even after they have left.

    Raise NotAllowed for anybody else, Conflict when teams can no longer change, InvalidInput
    without that reason.
    """
    with transaction.atomic():
        participation = locked_participation(member.participation)
        organiser = is_organiser(participation.campaign, user)
        if not (organiser or member.user_id == user.pk or _is_owner(user, participation.team)):
            raise NotAllowed(f"only owners of team {participation.team} can remove others")

        row = participation.members.filter(pk=member.pk)
        entered = participation.entries.exists()
        if entered and not organiser:
            _check_roster(participation.campaign)
            row.update(left_at=clock.database_now())
        else:
            if entered and not reason:
                message = (
                    f"say why {member.user} may join another team: team {participation.team} has "
                    "entries"
                )
                raise InvalidInput(message, code="required", pointer="reason")

            row.delete()

        fields = {"reason": reason} if reason else {}
        record(
            origin,
            _Action.PARTICIPANT_LEFT,
            participation,
            before={"user": member.user.username},
            after=fields,
        )


def sign(
    *, agreement: Agreement, user: User, typed_name: str, origin: Origin = SYSTEM
) -> Signature:
    """Sign an agreement. Return the signature, or the one that the person gave before.

    Raise NotAllowed for somebody who is in no team of the campaign.
    """
    with transaction.atomic():
        member = CampaignMember.objects.filter(
            campaign=agreement.campaign_id, user=user, left_at=None
        ).first()
        if member is None:
            raise NotAllowed(
                "only members of participating teams sign; register or join a team first"
            )

        locked_participation(member.participation)
        fields = {
            "participation": member.participation,
            "typed_name": typed_name,
            "signed_at": clock.database_now(),
        }
        signature, is_new = Signature.objects.get_or_create(
            agreement=agreement, user=user, defaults=fields
        )
        if is_new:
            record(
                origin,
                _Action.AGREEMENT_SIGNED,
                agreement,
                after={"user": user.username, "name": typed_name},
            )

    return signature


def find_agreements(campaign: Campaign, digests: Iterable[str]) -> list[Agreement]:
    """Return the agreements with these digests, or beginnings of at least 8 characters of them.

    Raise InvalidInput for a digest that fits no agreement.
    """
    all_agreements = list(campaign.agreements.all())
    agreements = []

    for digest in digests:
        matches = [
            agreement
            for agreement in all_agreements
            if len(digest) >= 8 and agreement.sha256.startswith(digest)
        ]
        if len(matches) != 1:
            message = f"campaign {campaign} has no agreement {digest[:64]!r}"
            raise InvalidInput(message, code="unknown_agreement", pointer="/agreements")

        agreements += matches

    return agreements


def roster_closes_at(campaign: Campaign) -> datetime | None:
    """Return when teams can no longer change, or None if that is never.

    It is the time that the campaign states, or the end of its first evaluation phase.
    """
    if campaign.roster_closes_at:
        return campaign.roster_closes_at

    closes = (
        campaign.phases.filter(kind=Phase.Kind.EVALUATION)
        .order_by("closes_at")
        .values_list("closes_at", flat=True)
    )

    return closes.first()


def _disclosed_collection(campaign: Campaign) -> Collection | None:
    """Return a collection of the campaign with results that teams see, but not everybody.

    Somebody who joined a team would see them.
    """
    audiences = (Disclosure.TEAMS, Disclosure.PARTICIPANTS)
    return Collection.objects.filter(
        phases__campaign=campaign, blind=True, shown_to__in=audiences
    ).first()


def _check_roster(campaign: Campaign) -> None:
    """Raise Conflict if teams can no longer change.

    When all results of evaluations are public, nobody joins a team to see them, and people may join
    for what comes afterwards.
    """
    closes = roster_closes_at(campaign)
    if closes and clock.database_now() >= closes and not _all_public(campaign):
        message = f"teams stay as they were at {closes:%Y-%m-%d %H:%M:%S} UTC; ask an organiser"
        raise Conflict(message, code="roster_closed")

    if collection := _disclosed_collection(campaign):
        message = (
            f"results on {collection} are disclosed to the teams as they are; ask an organiser"
        )
        raise Conflict(message, code="roster_closed")


def _all_public(campaign: Campaign) -> bool:
    evaluations = list(
        campaign.phases.filter(kind=Phase.Kind.EVALUATION).values_list(
            "collection__blind", flat=True
        )
    )
    return bool(evaluations) and not any(evaluations)


def _is_owner(user: User, team: Team) -> bool:
    return bool(Team.objects.led_by(user).filter(pk=team.pk).exists())


def locked_participation(participation: Participation) -> Participation:
    """Return a participation as it is now, locked until the transaction ends.

    Nobody else can change it or enter a run for it.
    """
    rows = Participation.objects.select_for_update(of=("self",)).select_related(
        "campaign__team", "team"
    )
    return rows.get(pk=participation.pk)
