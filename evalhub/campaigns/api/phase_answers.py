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
    str,
    OneOf([state.value for state in PhaseState]),
    "by the database's clock, for the caller's team",
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
    measure_titles: Annotated[dict[str, str], "heads of columns by measure"]
    decimals: Annotated[int | None, "of means on leaderboards and in tables for papers; null: 4"]
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
        "for all teams, and that of the caller's; "
        "those of other teams from the release to participants on",
    ]
    now: Annotated[datetime, "by the database's clock, which decides"]
    entries: Annotated[
        int | None,
        "for those who see the leaderboard; while it is frozen, without later ones of others",
    ]
    teams: Annotated[
        int | None, "accepted ones, for organisers; for members once the phase has opened"
    ]


def phase_answer(
    request: Request,
    phase: models.Phase,
    own: models.Participation | None,
    organiser: bool,
    now: datetime,
    *,
    sees_board: bool,
) -> Phase:
    """Return the description of a phase; `sees_board` says whether the caller sees its leaderboard."""
    closes_at = closing_time(phase, own)
    own_times = (
        Yours(team=own.team.slug, closes_at=closes_at, extended=closes_at > phase.closes_at)
        if own
        else None
    )
    entries = phase.entries.filter(Q() if organiser else seen_while_frozen(phase, own, now))
    accepted = models.Participation.objects.filter(
        campaign=phase.campaign, state=models.Participation.State.ACCEPTED
    )

    # An excluded topic may reveal something about its judgements.
    excluded = (
        phase.excluded_topics if phase.excluded_topics and sees_results(request.user, phase) else []
    )

    return Phase(
        campaign=phase.campaign.slug,
        phase=phase.slug,
        url=reverse("phase", args=[phase.campaign.slug, phase.slug], request=request),
        name=phase.name,
        description=phase.description,
        kind=phase.kind,
        collection=phase.collection.slug,
        state=phase_state(phase, own, now),
        opens_at=phase.opens_at,
        closes_at=phase.closes_at,
        late_closes_at=phase.late_closes_at,
        zone=phase.zone,
        paused_reason=phase.paused_reason,
        yours=own_times,
        measures=phase.measures,
        measure_titles=phase.measure_titles or {},
        decimals=phase.decimals,
        feedback=phase.feedback,
        freeze_board_at=phase.freeze_board_at,
        selection=phase.selection,
        chosen_max=phase.chosen_max,
        disclosure=phase.collection.disclosure.label,
        limits=Limits(
            slots=phase.slots,
            attempts_daily=phase.attempts_daily,
            attempts_total=phase.attempts_total,
        ),
        run_types=phase.run_types,
        form=phase.form,
        must_answer_all=phase.must_answer_all,
        max_documents=phase.max_documents,
        naming=phase.naming,
        excluded_topics=excluded,
        excluded_reason=phase.excluded_reason if excluded else "",
        extensions=[
            _extension(extension, team_name)
            for extension, team_name in visible_extensions(phase, own, organiser)
        ],
        now=now,
        entries=entries.count() if organiser or sees_board else None,
        teams=accepted.count() if organiser or (own and now >= phase.opens_at) else None,
    )


def _extension(extension: models.Extension, team_name: ShownName | None) -> Extension:
    return Extension(
        team=team_name.slug if team_name else None,
        old=extension.old,
        new=extension.new,
        reason=extension.reason,
        announced_at=extension.announced_at,
        notice=late_notice(extension),
        values_seen_since=extension.values_seen_since,
    )


SHAPE = shape(Phase)
