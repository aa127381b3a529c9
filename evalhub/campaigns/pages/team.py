"""The team's desk: register, sign, join and leave; what is due; the entries and their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.api.inputs import (
    ParticipationChangeSerializer,
    RegistrationSerializer,
    SignatureSerializer,
)
from evalhub.campaigns.pages.desk_pages import answer
from evalhub.campaigns.pages.inputs import time_in
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.pages.phase_words import (
    LocalTime,
    PhaseSummary,
    local_time,
    summarise_phases,
)
from evalhub.campaigns.pages.tabs import campaign_tabs
from evalhub.campaigns.questions.lookup import (
    own_participation,
    participations_of,
    visible_campaign,
    visible_phase,
)
from evalhub.campaigns.services.entries import Allowance, allowance, order_priorities, results_stay
from evalhub.campaigns.services.phase_times import PhaseState
from evalhub.campaigns.services.pseudonyms import hidden_until
from evalhub.campaigns.services.teams import (
    join,
    leave,
    move_anonymity,
    register_team,
    rename,
    roster_closes_at,
    sign,
    why_no_registrations,
)
from metrics.engine.errors import EvalHubError
from metrics.services.queue.status import statuses
from runs.api.accounts.accounts import NewMembershipSerializer
from runs.errors import InvalidInput, NotFound
from runs.models import (
    Agreement,
    Campaign,
    Disclosure,
    Entry,
    Participation,
    Scope,
    Signature,
    Team,
    User,
    boards_seen,
    sees_own_results,
)
from runs.services import clock
from runs.services.accounts.invitation_links import DAYS, create_link, revoke_link
from runs.services.accounts.teams import end_invitation, invite
from runs.web.access import led_team
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.parameters import check_fields
from runs.web.permissions import Access

_FIELDS = ("csrfmiddlewaretoken", "action", "team", "name", "affiliation", "agreements", "agreement", "typed_name",
           "username", "phase", "key", "anonymous_until_day", "anonymous_until_time")  # fmt: skip
_TAKING = (PhaseState.OPEN, PhaseState.LATE)


class TeamDeskPage(FormPage):
    """The desk of the reader's team in a campaign, or how to register or join one.

    The field `action` of a form names one of `_ACTS`.
    """

    scopes = {"POST": Scope.SUBMIT}
    access = {"GET": Access.READERS}
    signed_in = False

    def get(self, request: Request, campaign: str) -> HttpResponse:
        return self._page(request, visible_campaign(request, campaign))

    def post(self, request: Request, campaign: str) -> HttpResponse:
        visible = visible_campaign(request, campaign)
        try:
            priorities = [name for name in request.data if name.startswith("priority-")]
            check_fields(request.data, (*_FIELDS, *priorities))
            if request.data.get("action") == "link":
                return self._page(request, visible, new_link=_link(request, visible))

            act = _ACTS.get(str(request.data.get("action", "")))
            if act is None:
                raise InvalidInput("press one of the buttons", pointer="/action")

            done = act(request, visible)
        except (EvalHubError, APIException) as error:
            return self._page(request, visible_campaign(request, campaign), refusal_of(error))

        messages.success(request, done)

        return redirect_to(request, reverse("campaign-team-page", args=[campaign]))

    def _page(
        self, request: Request, campaign: Campaign, refused: Refusal | None = None, **values: Any
    ) -> HttpResponse:
        context = campaign_tabs(request, campaign, "team")
        own = context["own"]
        context |= {
            "now": clock.database_now(),
            "form_values": request.data if refused else {},
            "agreements": _agreements(request, campaign),
            "phases": [],
            **values,
        }
        context |= _of_member(request, campaign, own) if own else _of_others(request, campaign)

        return answer(request, "campaigns/team.html", context, refused)


@dataclass(frozen=True, kw_only=True)
class TeamPhase:
    """A phase as a member of a team sees it on the team's desk.

    `rows` has each entry with the status of its run and the time of its arrival, `entered` the
    number of those that count, and `due` says in a sentence what the team may still do.
    """

    summary: PhaseSummary
    allowance: Allowance | None
    rows: list[tuple[Entry, Any, LocalTime]]
    entered: int
    due: str
    has_results: bool


def _of_others(request: Request, campaign: Campaign) -> dict[str, Any]:
    """Return what somebody reads who takes part with no team yet."""
    mine, now = Team.objects.of(request.user), clock.database_now()
    closes = campaign.registration_closes_at
    return {
        "registration_closes": local_time(closes, "UTC", ends=True) if closes else None,
        "registered": list(participations_of(request.user, campaign).filter(team__in=mine)),
        "teams": list(Team.objects.led_by(request.user).exclude(participations__campaign=campaign)),
        "takes_registrations": not why_no_registrations(campaign, now),
    }


def _of_member(request: Request, campaign: Campaign, own: Participation) -> dict[str, Any]:
    """Return what a member reads: phases with allowances and entries, and the people of the team."""
    now = clock.database_now()
    with_all = ("run__collection", "run__team", "phase")
    rows_of = Entry.objects.filter(participation=own).select_related(*with_all)
    # Those that count come first.
    entries = sorted(
        rows_of, key=lambda entry: (entry.priority is None, entry.priority or 0, entry.number)
    )
    run_statuses = statuses([entry.run for entry in entries], request.user)
    phases = []

    for summary in summarise_phases(campaign, own, now):
        phase_entries = [entry for entry in entries if entry.phase_id == summary.phase.pk]
        rows = [
            (
                entry,
                run_statuses[str(entry.run_id)],
                local_time(entry.arrived_at, summary.phase.zone),
            )
            for entry in phase_entries
        ]
        entered = sum(entry.state == Entry.State.ENTERED for entry in phase_entries)
        remaining = None
        if summary.state not in (PhaseState.CLOSED, PhaseState.PLANNED):
            remaining = allowance(summary.phase, own, now)

        phases.append(
            TeamPhase(
                summary=summary,
                allowance=remaining,
                rows=rows,
                entered=entered,
                due=_due(summary, remaining, entered),
                has_results=sees_own_results(request.user, summary.phase),
            )
        )

    until = hidden_until(own)
    hidden = any(
        phase.summary.phase.collection.disclosure < Disclosure.PARTICIPANTS for phase in phases
    )
    leads = Team.objects.led_by(request.user).filter(pk=own.team_id).exists()
    roster = roster_closes_at(campaign)

    return {
        "phases": phases,
        "boards": boards_seen(request.user, [phase.summary.phase for phase in phases]),
        "staying": {
            phase.summary.phase.pk for phase in phases if results_stay(phase.summary.phase)
        },
        "members": list(own.members.select_related("user")),
        "leads": leads,
        "days": DAYS,
        "invitations": list(
            own.invitations.select_related("user", "invited_by").order_by("user__username")
        ),
        "links": list(own.links.select_related("created_by").filter(expires_at__gt=timezone.now())),
        "hidden_until": local_time(until, "UTC", ends=True) if until and now < until else None,
        "hidden_by_release": hidden and campaign.names == Campaign.Names.HIDDEN_UNTIL_RELEASE,
        "roster_closes": local_time(roster, "UTC", ends=True) if roster else None,
        "accepted": own.state == Participation.State.ACCEPTED,
        "published": campaign.state == Campaign.State.PUBLISHED,
    }


def _due(summary: PhaseSummary, remaining: Allowance | None, entered: int) -> str:
    """Return what a team may still do in a phase, in a sentence."""
    if summary.state not in _TAKING or remaining is None:
        return {
            PhaseState.PLANNED: "not open yet",
            PhaseState.PAUSED: "paused: no runs are taken",
        }.get(summary.state, "closed")

    if remaining.attempts_left == 0:
        return "all attempts are used"
    if remaining.attempts_left_today == 0:
        return "all attempts of today are used; they reset at midnight UTC"
    if remaining.slots_left == 0:
        return "all places are taken; withdraw an entry to enter another"
    if summary.state == PhaseState.LATE:
        return "late runs are taken, and marked as late"

    return "no run entered yet" if not entered else "more runs can be entered"


def _agreements(
    request: Request, campaign: Campaign
) -> list[tuple[Agreement, Any, Signature | None]]:
    """Return each agreement with its text and the reader's signature."""
    signatures = Signature.objects.filter(agreement__campaign=campaign, user=request.user.pk)
    signed = {agreement.agreement_id: agreement for agreement in signatures}
    return [
        (agreement, rendered(agreement.text, 4), signed.get(agreement.pk))
        for agreement in campaign.agreements.all()
    ]


def _register(request: Request, campaign: Campaign) -> str:
    form: Any = request.data
    digests = form.getlist("agreements") if hasattr(form, "getlist") else []
    data = {
        **fields_of(request, "team", "name", "affiliation", "typed_name"),
        "agreements": digests,
    }
    data = {name: value for name, value in data.items() if value}
    serializer = RegistrationSerializer(data=data, context={"request": request})
    serializer.is_valid(raise_exception=True)
    user, origin = cast(User, request.user), origin_of(request)
    participation = register_team(
        campaign=campaign, **serializer.validated_data, user=user, origin=origin
    )
    if participation.state == Participation.State.ACCEPTED:
        return f"{participation.name} takes part."

    return f"{participation.name} is registered; the organisers decide whether it takes part."


def _join(request: Request, campaign: Campaign) -> str:
    slug = str(request.data.get("team", ""))
    team = participations_of(request.user, campaign).filter(team__slug=slug).first()
    if team is None:
        raise NotFound(f"you see no team {slug[:64]!r} in campaign {campaign}")

    join(participation=team, user=cast(User, request.user), origin=origin_of(request))

    return f"You take part with {team.name}. Sign the agreements next."


def _leave(request: Request, campaign: Campaign) -> str:
    own = own_participation(request, campaign)
    username = str(request.data.get("username", "")) or request.user.get_username()
    rows = own.members.select_related(
        "user", "participation__campaign__team", "participation__team"
    )
    member = rows.filter(user__username=username).first()
    if member is None:
        raise NotFound(f"{username[:150]!r} does not take part in team {own.team}")

    leave(member=member, user=cast(User, request.user), origin=origin_of(request))

    return f"{username} no longer takes part with {own.name}."


def _sign(request: Request, campaign: Campaign) -> str:
    serializer = SignatureSerializer(data=fields_of(request, "typed_name"))
    serializer.is_valid(raise_exception=True)
    agreement = campaign.agreements.filter(sha256=str(request.data.get("agreement", ""))).first()
    if agreement is None:
        raise NotFound(f"campaign {campaign} has no such agreement")

    name = serializer.validated_data["typed_name"]
    sign(
        agreement=agreement,
        user=cast(User, request.user),
        typed_name=name,
        origin=origin_of(request),
    )

    return f"{agreement.title} signed as {name}."


def _rename(request: Request, campaign: Campaign) -> str:
    own = own_participation(request, campaign)
    serializer = ParticipationChangeSerializer(
        data=fields_of(request, "name", "affiliation"), partial=True
    )
    serializer.is_valid(raise_exception=True)
    changes = {
        name: serializer.validated_data[name]
        for name in ("name", "affiliation")
        if name in serializer.validated_data
    }
    rename(
        participation=own, changes=changes, user=cast(User, request.user), origin=origin_of(request)
    )

    return "Changes saved."


def _show_name(request: Request, campaign: Campaign) -> str:
    """Show the name of the reader's team earlier. Raise NotAllowed for a later time."""
    own, at = own_participation(request, campaign), time_in(request.data, "anonymous_until", "UTC")
    if at is None:
        raise InvalidInput("choose the day", code="required", pointer="/anonymous_until")

    serializer = ParticipationChangeSerializer(
        data={"anonymous_until": at, "zone": "UTC"}, partial=True
    )
    serializer.is_valid(raise_exception=True)
    until = serializer.validated_data["anonymous_until"]
    move_anonymity(
        participation=own, until=until, user=cast(User, request.user), origin=origin_of(request)
    )

    return f"The name of {own.name} is hidden until {local_time(until, 'UTC', ends=True).local}."


def _order(request: Request, campaign: Campaign) -> str:
    """Order entries by their numbers in the form.

    Raise InvalidInput for a number that is malformed or repeated.
    """
    phase = visible_phase(request, campaign.slug, str(request.data.get("phase", "")))
    own = own_participation(request, campaign)
    numbers: dict[UUID, int] = {}

    for name, text in request.data.items():
        if not name.startswith("priority-"):
            continue

        try:
            key, number = UUID(name.removeprefix("priority-")), int(str(text).strip()[:9])
        except ValueError as error:
            raise InvalidInput(
                "give each entry a whole number: 1 is the most wanted", pointer="/order"
            ) from error

        if number in numbers.values():
            raise InvalidInput(
                f"two entries have priority {number}; no two have the same", pointer="/order"
            )

        numbers[key] = number

    entries = Entry.objects.filter(phase=phase, participation=own, pk__in=numbers).select_related(
        "run"
    )
    tags = [entry.run.tag for entry in sorted(entries, key=lambda entry: numbers[entry.pk])]
    order_priorities(phase=phase, participation=own, tags=tags, origin=origin_of(request))

    return f"Order saved: {', '.join(tags)}." if tags else "No entry was ordered."


def _led(request: Request, campaign: Campaign) -> Participation:
    """Return the reader's team in the campaign. Raise NotAllowed unless the reader owns it."""
    own = own_participation(request, campaign)
    led_team(request, own.team.slug)
    return own


def _invite(request: Request, campaign: Campaign) -> str:
    own, name = _led(request, campaign), str(request.data.get("username", "")).strip()
    serializer = NewMembershipSerializer(data={"username": name})
    serializer.is_valid(raise_exception=True)
    by, origin = cast(User, request.user), origin_of(request)
    invite(team=own.team, participation=own, by=by, origin=origin, **serializer.validated_data)

    return f"{name} is invited; the invitation is on the account page of {name}."


def _link(request: Request, campaign: Campaign) -> str:
    """Return the address of a new link by which people take part with the team."""
    own = _led(request, campaign)
    by, origin = cast(User, request.user), origin_of(request)
    _, code = create_link(team=own.team, by=by, participation=own, origin=origin)
    return request.build_absolute_uri(f"{reverse('join-page')}?{urlencode({'code': code})}")


def _withdraw(request: Request, campaign: Campaign) -> str:
    own, name = _led(request, campaign), str(request.data.get("username", ""))
    invitation = own.invitations.select_related("team", "user").filter(user__username=name).first()
    if invitation is None:
        raise NotFound(f"{name[:150]!r} is not invited to take part with {own.team}")

    end_invitation(invitation=invitation, origin=origin_of(request))

    return f"Invitation of {name} withdrawn."


def _revoke(request: Request, campaign: Campaign) -> str:
    own = _led(request, campaign)
    revoke_link(team=own.team, key=str(request.data.get("key", "")), origin=origin_of(request))
    return "Invitation link revoked."


_ACTS: dict[str, Callable[[Request, Campaign], str]] = {
    "register": _register,
    "join": _join,
    "leave": _leave,
    "sign": _sign,
    "rename": _rename,
    "show-name": _show_name,
    "order": _order,
    "invite": _invite,
    "withdraw": _withdraw,
    "revoke": _revoke,
}
