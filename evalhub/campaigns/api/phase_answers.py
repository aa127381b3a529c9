"""The answers about phases."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.reverse import reverse

from evalhub.campaigns.services.phase_times import PhaseState, closing_time, phase_state
from evalhub.campaigns.services.phases import late_notice, visible_extensions
from evalhub.campaigns.services.pseudonyms import ShownName
from metrics.services.boards.official_entries import seen_while_frozen
from runs import models
from runs.models.campaigns.disclosure import sees_results
from runs.web.shapes import OneOf, Url, shape

State = Annotated[
    str, OneOf([one.value for one in PhaseState]), "by the database's clock, for the caller's team"
]


class RunType(TypedDict):
    key: str
    label: str


class FormField(TypedDict):
    """A field that an entry answers."""

    key: str
    type: str
    label: str
    help: str
    choices: list[str]
    required: bool
    public: Annotated[bool, "false: the answers are for organisers only"]
    max_length: int


class Limits(TypedDict):
    """For each team; null is no limit."""

    slots: Annotated[int | None, "entries at a time"]
    attempts_daily: Annotated[int | None, "entries per day (UTC), withdrawn ones included"]
    attempts_total: int | None


class Extension(TypedDict):
    """A later end of a phase."""

    team: Annotated[str | None, "null: for all; a pseudonym of another team than the caller's"]
    old: datetime
    new: datetime
    reason: str
    announced_at: datetime
    notice: Annotated[str, "said where it was announced less than 24 hours before the old end"]
    values_seen_since: Annotated[
        datetime | None,
        "when an organiser had first read values of the entries, if before it was announced",
    ]


class Yours(TypedDict):
    """What holds for the caller's team."""

    team: str
    closes_at: datetime
    extended: bool


class Phase(TypedDict):
    campaign: str
    phase: str
    url: Url
    name: str
    description: str
    kind: Annotated[str, OneOf(models.Phase.Kind.choices)]
    collection: str
    state: State
    opens_at: datetime
    closes_at: datetime
    late_closes_at: datetime | None
    zone: Annotated[str, "in which the times were written; AoE is Etc/GMT+12"]
    paused_reason: str
    yours: Yours | None
    measures: Annotated[list[str], "the first one is the primary one"]
    feedback: Annotated[str, OneOf(models.Phase.Feedback.choices), "what teams see at once"]
    freeze_board_at: Annotated[
        datetime | None,
        "teams see no later entry of others on the leaderboard, until results are released",
    ]
    selection: Annotated[
        str,
        OneOf(models.Phase.Selection.choices),
        "which entries stand on the official leaderboard",
    ]
    chosen_max: Annotated[int, "entries that a team may choose"]
    disclosure: Annotated[
        str, OneOf(models.Disclosure.labels), "to whom results on the collection are shown"
    ]
    limits: Limits
    run_types: list[RunType]
    form: list[FormField]
    must_answer_all: bool
    max_documents: Annotated[int | None, "of a run, for each topic; null: no limit"]
    naming: Annotated[
        str, "the pattern of tags, as in {team}-{run_type}-{priority}; empty: any tag"
    ]
    excluded_topics: Annotated[
        list[str], "that do not count; for those who see results of the phase"
    ]
    excluded_reason: Annotated[str, "why they do not"]
    extensions: Annotated[
        list[Extension],
        "for all teams, and that of the caller's; those of other teams from the release to participants on",
    ]
    now: Annotated[datetime, "by the database's clock, which decides"]
    entries: Annotated[
        int | None,
        "for those who see the leaderboard; while it is frozen, without later ones of others",
    ]
    teams: Annotated[int | None, "accepted ones, for organisers and members"]


def phase_answer(
    request: Request,
    found: models.Phase,
    own: models.Participation | None,
    organiser: bool,
    now: datetime,
    *,
    board: bool,
) -> Phase:
    """Return the description of a phase; `board` says whether the caller sees its leaderboard."""
    closes_at = closing_time(found, own)
    entries = found.entries.filter(Q() if organiser else seen_while_frozen(found, own, now))
    accepted = models.Participation.objects.filter(
        campaign=found.campaign, state=models.Participation.State.ACCEPTED
    )
    # That a topic was excluded may tell of its judgements.
    excluded = (
        found.excluded_topics if found.excluded_topics and sees_results(request.user, found) else []
    )

    return Phase(
        campaign=found.campaign.slug,
        phase=found.slug,
        url=reverse("phase", args=[found.campaign.slug, found.slug], request=request),
        name=found.name,
        description=found.description,
        kind=found.kind,
        collection=found.collection.slug,
        state=phase_state(found, own, now),
        opens_at=found.opens_at,
        closes_at=found.closes_at,
        late_closes_at=found.late_closes_at,
        zone=found.zone,
        paused_reason=found.paused_reason,
        yours=Yours(team=own.team.slug, closes_at=closes_at, extended=closes_at > found.closes_at)
        if own
        else None,
        measures=found.measures,
        feedback=found.feedback,
        freeze_board_at=found.freeze_board_at,
        selection=found.selection,
        chosen_max=found.chosen_max,
        disclosure=found.collection.disclosure.label,
        limits=Limits(
            slots=found.slots,
            attempts_daily=found.attempts_daily,
            attempts_total=found.attempts_total,
        ),
        run_types=found.run_types,
        form=found.form,
        must_answer_all=found.must_answer_all,
        max_documents=found.max_documents,
        naming=found.naming,
        excluded_topics=excluded,
        excluded_reason=found.excluded_reason if excluded else "",
        extensions=[
            _extension(one, whose) for one, whose in visible_extensions(found, own, organiser)
        ],
        now=now,
        entries=entries.count() if organiser or board else None,
        teams=accepted.count() if organiser or own else None,
    )


def _extension(found: models.Extension, whose: ShownName | None) -> Extension:
    return Extension(
        team=whose.slug if whose else None,
        old=found.old,
        new=found.new,
        reason=found.reason,
        announced_at=found.announced_at,
        notice=late_notice(found),
        values_seen_since=found.values_seen_since,
    )


SHAPE = shape(Phase)
