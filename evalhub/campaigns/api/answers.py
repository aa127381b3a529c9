"""The answers about campaigns: their shapes, and the functions that fill them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict
from uuid import UUID

from rest_framework.request import Request
from rest_framework.reverse import reverse

from evalhub.campaigns.api.phase_answers import State
from evalhub.campaigns.questions.lookup import participation_of
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.campaigns.services.entries import Allowance as Left
from evalhub.campaigns.services.phase_times import closing_time, phase_state
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
    answers: JSONObject
    status: RunStatus
    warnings: FileReport
    allowance: NotRequired[Annotated[Allowance | None, "in the answer to a submission"]]


class EntryOrder(TypedDict):
    """Tags of a team's entries, the most wanted first."""

    order: list[str]


def campaign_answer(request: Request, found: models.Campaign, now: datetime) -> Campaign:
    """Return the description of a campaign, whose phases are fetched with their collections and extensions."""
    own, organiser = participation_of(request.user, found), is_organiser(found, request.user)
    return Campaign(
        slug=found.slug,
        url=reverse("campaign", args=[found.slug], request=request),
        name=found.name,
        team=found.team.slug,
        state=found.state,
        summary=found.summary,
        guidelines=found.guidelines,
        guidelines_sha256=hashlib.sha256(found.guidelines.encode()).hexdigest(),
        contact=found.contact if own or organiser else None,
        licence=found.licence,
        rights=found.rights,
        citation_authors=found.citation_authors,
        paper_doi=found.paper_doi,
        judgements_doi=found.judgements_doi,
        registration=found.registration,
        registration_closes_at=found.registration_closes_at,
        roster_closes_at=found.roster_closes_at,
        max_team_size=found.max_team_size,
        tag_scope=found.tag_scope,
        anonymous_until=found.anonymous_until,
        names=found.names,
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
            for phase in found.phases.all()
        ],
        your_team=own.team.slug if own else None,
        organiser=organiser,
        created_at=found.created_at,
    )


def agreement_answer(found: models.Agreement, signed: Mapping[int, datetime]) -> CampaignAgreement:
    return CampaignAgreement(
        sha256=found.sha256,
        title=found.title,
        text=found.text,
        required_of=found.required_of,
        signed_at=signed.get(found.pk),
    )


def participation_answer(found: models.Participation) -> Participation:
    return Participation(
        campaign=found.campaign.slug,
        team=found.team.slug,
        name=found.name,
        former_name=found.former_name,
        affiliation=found.affiliation,
        state=found.state,
        requested_at=found.requested_at,
        accepted_at=found.accepted_at,
        pseudonym=found.pseudonym,
        anonymous_until=found.anonymous_until,
        members=sum(1 for one in found.members.all() if one.left_at is None),
    )


def member_answer(found: models.CampaignMember, signed: int) -> Member:
    return Member(
        username=found.user.username,
        joined_at=found.joined_at,
        left_at=found.left_at,
        signed=signed,
    )


def allowance_answer(left: Left) -> Allowance:
    return Allowance(
        slots_left=left.slots_left,
        attempts_left_today=left.attempts_left_today,
        attempts_left=left.attempts_left,
        resets_at=left.resets_at,
    )


def entry_answer(request: Request, found: models.Entry, known: status.RunStatus) -> Entry:
    return Entry(
        id=found.pk,
        url=reverse("entry", args=[found.pk], request=request),
        number=found.number,
        campaign=found.phase.campaign.slug,
        phase=found.phase.slug,
        team=found.participation.team.slug if found.participation else None,
        tag=found.run.tag,
        run=found.run_id,
        run_sha256=found.run.sha256,
        state=found.state,
        state_reason=found.state_reason,
        late=found.late,
        arrived_at=found.arrived_at,
        role=found.role,
        label=found.label,
        run_type=found.run_type,
        priority=found.priority,
        chosen=found.chosen,
        published=found.published,
        answers=found.answers,
        status=run_status(known),
        warnings=grouped(found.run.warnings),
    )


SHAPES: dict[str, Any] = {
    "campaign": shape(Campaign),
    "agreement": shape(CampaignAgreement),
    "participation": shape(Participation),
    "member": shape(Member),
    "invitation": shape(ParticipationInvitation),
    "entry": shape(Entry),
    "allowance": shape(Allowance),
    "order": shape(EntryOrder),
}
