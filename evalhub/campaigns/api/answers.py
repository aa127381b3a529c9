"""The answers about campaigns: their shapes, and the functions that fill them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict
from uuid import UUID

from rest_framework.request import Request
from rest_framework.reverse import reverse

from evalhub.campaigns.api.phase_answers import State
from evalhub.campaigns.questions.lookup import participation_of
from evalhub.campaigns.services import entries
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.campaigns.services.phase_times import closing_time, phase_state
from evalhub.campaigns.services.teams import Decision
from metrics.services.queue import status
from runs import models
from runs.api.answers import RunStatus, run_status
from runs.services.storage.reports import FileReport, grouped
from runs.web.fields import JSONObject
from runs.web.shapes import OneOf, Url, shape

ParticipationState = Annotated[str, OneOf(models.Participation.State.choices)]


class PhaseInBrief(TypedDict):
    phase: str
    name: str
    kind: str
    collection: str
    state: State
    opens_at: datetime
    closes_at: datetime


class Campaign(TypedDict):
    slug: str
    url: Url
    name: str
    team: Annotated[str, "its owners are the organisers"]
    state: Annotated[str, OneOf(models.Campaign.State.choices)]
    summary: str
    guidelines: Annotated[str, "Markdown"]
    guidelines_sha256: str
    contact: Annotated[str | None, "for members and organisers"]
    licence: Annotated[str, "of its snapshots: an SPDX identifier; empty: the organisers say none"]
    rights: Annotated[str, "who has which rights in its snapshots, in words"]
    citation_authors: Annotated[
        str, "whom citations of its snapshots name, between semicolons; empty: its team"
    ]
    paper_doi: Annotated[str, "of its overview paper"]
    judgements_doi: Annotated[str, "of the judgements, where they are published"]
    registration: Annotated[str, OneOf(models.Campaign.Registration.choices)]
    registration_closes_at: datetime | None
    roster_closes_at: Annotated[
        datetime | None,
        "when teams can no longer change; null: as the first evaluation phase closes",
    ]
    max_team_size: int | None
    tag_scope: Annotated[str, OneOf(models.Campaign.TagScope.choices), "in what a tag is unique"]
    anonymous_until: Annotated[datetime | None, "until then teams have pseudonyms"]
    names: Annotated[
        str,
        OneOf(models.Campaign.Names.choices),
        "hidden: until results are released to participants",
    ]
    phases: list[PhaseInBrief]
    your_team: Annotated[str | None, "the one in which the caller takes part"]
    organiser: Annotated[bool, "whether the caller is one"]
    created_at: datetime


class CampaignAgreement(TypedDict):
    sha256: str
    title: str
    text: str
    required_of: Annotated[str, OneOf(models.Agreement.RequiredOf.choices)]
    signed_at: Annotated[datetime | None, "by the caller"]


class Member(TypedDict):
    username: str
    joined_at: datetime
    left_at: datetime | None
    signed: Annotated[int, "agreements"]


class ParticipationInvitation(TypedDict):
    """An invitation to take part with a team: of a user, or a link."""

    campaign: str
    team: str
    username: Annotated[str | None, "null: a link, for everyone who has it"]
    url: Annotated[str | None, "of a link; it cannot be read again"]
    key: Annotated[str | None, "of a link; it revokes it"]
    expires_at: Annotated[datetime | None, "null: when it is answered or withdrawn"]


class Participation(TypedDict):
    """A team in a campaign."""

    campaign: str
    team: str
    name: str
    former_name: Annotated[str, "under which results were disclosed to teams; empty: the same"]
    affiliation: str
    state: ParticipationState
    requested_at: datetime
    accepted_at: datetime | None
    pseudonym: Annotated[int | None, "what others see while the name is hidden"]
    anonymous_until: Annotated[
        datetime | None, "until then the name is hidden; null: as in the campaign"
    ]
    members: int


class TeamDecision(TypedDict):
    """What became of a team that organisers decided about."""

    team: str
    state: Annotated[str, "the one that it has now; empty: no such team asks to take part"]
    changed: bool
    code: Annotated[str, "why it could not change; empty: it has the state"]
    detail: str


class TeamDecisions(TypedDict):
    """What became of each team, in the order of the request."""

    changed: int
    refused: int
    decisions: list[TeamDecision]


class Allowance(TypedDict):
    """What is left; null is no limit."""

    slots_left: int | None
    attempts_left_today: int | None
    attempts_left: int | None
    resets_at: Annotated[datetime, "midnight UTC"]


class Entry(TypedDict):
    """An entry; the answer to its submission is the receipt."""

    id: UUID
    url: Url
    number: Annotated[int, "in its phase"]
    campaign: str
    phase: str
    team: Annotated[str | None, "null: the organisers"]
    tag: str
    run: UUID
    run_sha256: str
    state: Annotated[str, OneOf(models.Entry.State.choices)]
    state_reason: str
    late: bool
    arrived_at: Annotated[datetime, "when the last byte of the request had arrived"]
    role: Annotated[str, OneOf(models.Entry.Role.choices)]
    label: str
    run_type: str
    priority: int | None
    chosen: Annotated[bool, "by its team, for the official leaderboard"]
    published: Annotated[bool, "by its team, where its phase is of kind afterwards"]
    paper: Annotated[str, "address or DOI of the paper about the run"]
    pooled: Annotated[
        bool | None, "whether a pool has its documents; null where the caller sees no pool"
    ]
    answers: JSONObject
    status: RunStatus
    warnings: FileReport
    allowance: NotRequired[Annotated[Allowance | None, "in the answer to a submission"]]


class EntryOrder(TypedDict):
    """Tags of a team's entries, the most wanted first."""

    order: list[str]


def campaign_answer(request: Request, campaign: models.Campaign, now: datetime) -> Campaign:
    """Return the description of a campaign.

    Its phases have to be fetched with their collections and extensions.
    """
    own = participation_of(request.user, campaign)
    organiser = is_organiser(campaign, request.user)

    return Campaign(
        slug=campaign.slug,
        url=reverse("campaign", args=[campaign.slug], request=request),
        name=campaign.name,
        team=campaign.team.slug,
        state=campaign.state,
        summary=campaign.summary,
        guidelines=campaign.guidelines,
        guidelines_sha256=hashlib.sha256(campaign.guidelines.encode()).hexdigest(),
        contact=campaign.contact if own or organiser else None,
        licence=campaign.licence,
        rights=campaign.rights,
        citation_authors=campaign.citation_authors,
        paper_doi=campaign.paper_doi,
        judgements_doi=campaign.judgements_doi,
        registration=campaign.registration,
        registration_closes_at=campaign.registration_closes_at,
        roster_closes_at=campaign.roster_closes_at,
        max_team_size=campaign.max_team_size,
        tag_scope=campaign.tag_scope,
        anonymous_until=campaign.anonymous_until,
        names=campaign.names,
        phases=[
            PhaseInBrief(
                phase=phase.slug,
                name=phase.name,
                kind=phase.kind,
                collection=phase.collection.slug,
                state=phase_state(phase, own, now),
                opens_at=phase.opens_at,
                closes_at=closing_time(phase, own),
            )
            for phase in campaign.phases.all()
        ],
        your_team=own.team.slug if own else None,
        organiser=organiser,
        created_at=campaign.created_at,
    )


def agreement_answer(
    agreement: models.Agreement, signing_times: Mapping[int, datetime]
) -> CampaignAgreement:
    """Return an agreement; `signing_times` are those of the caller by the key of an agreement."""
    return CampaignAgreement(
        sha256=agreement.sha256,
        title=agreement.title,
        text=agreement.text,
        required_of=agreement.required_of,
        signed_at=signing_times.get(agreement.pk),
    )


def participation_answer(participation: models.Participation) -> Participation:
    return Participation(
        campaign=participation.campaign.slug,
        team=participation.team.slug,
        name=participation.name,
        former_name=participation.former_name,
        affiliation=participation.affiliation,
        state=participation.state,
        requested_at=participation.requested_at,
        accepted_at=participation.accepted_at,
        pseudonym=participation.pseudonym,
        anonymous_until=participation.anonymous_until,
        members=sum(1 for member in participation.members.all() if member.left_at is None),
    )


def decisions_answer(decisions: Sequence[Decision]) -> TeamDecisions:
    return TeamDecisions(
        changed=sum(decision.changed for decision in decisions),
        refused=sum(bool(decision.code) for decision in decisions),
        decisions=[
            TeamDecision(
                team=decision.team,
                state=decision.state,
                changed=decision.changed,
                code=decision.code,
                detail=decision.detail,
            )
            for decision in decisions
        ],
    )


def member_answer(member: models.CampaignMember, signed: int) -> Member:
    """Return a member who has signed so many agreements."""
    return Member(
        username=member.user.username,
        joined_at=member.joined_at,
        left_at=member.left_at,
        signed=signed,
    )


def allowance_answer(allowance: entries.Allowance) -> Allowance:
    return Allowance(
        slots_left=allowance.slots_left,
        attempts_left_today=allowance.attempts_left_today,
        attempts_left=allowance.attempts_left,
        resets_at=allowance.resets_at,
    )


def entry_answer(
    request: Request,
    entry: models.Entry,
    run_state: status.RunStatus,
    pooled: set[UUID] | None,
) -> Entry:
    """Return an entry; `pooled` has the runs in pools of its phase, None where no pool is seen."""
    return Entry(
        id=entry.pk,
        url=reverse("entry", args=[entry.pk], request=request),
        number=entry.number,
        campaign=entry.phase.campaign.slug,
        phase=entry.phase.slug,
        team=entry.participation.team.slug if entry.participation else None,
        tag=entry.run.tag,
        run=entry.run_id,
        run_sha256=entry.run.sha256,
        state=entry.state,
        state_reason=entry.state_reason,
        late=entry.late,
        arrived_at=entry.arrived_at,
        role=entry.role,
        label=entry.label,
        run_type=entry.run_type,
        priority=entry.priority,
        chosen=entry.chosen,
        published=entry.published,
        paper=entry.paper,
        pooled=None if pooled is None else entry.run_id in pooled,
        answers=entry.answers,
        status=run_status(run_state),
        warnings=grouped(entry.run.warnings),
    )


SHAPES: dict[str, Any] = {
    "campaign": shape(Campaign),
    "agreement": shape(CampaignAgreement),
    "participation": shape(Participation),
    "decisions": shape(TeamDecisions),
    "member": shape(Member),
    "invitation": shape(ParticipationInvitation),
    "entry": shape(Entry),
    "allowance": shape(Allowance),
    "order": shape(EntryOrder),
}
