"""The leaderboard of a phase that a request asks for, who may see it, and when it has not changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.boards.asked import BoardQuery
from metrics.services.boards.fingerprints import Fingerprint, of_boards, of_filter
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.campaigns.boards import OFFICIAL, VIEWS, PhaseQuery, Reader
from runs.api.access import once, sees_scores
from runs.api.campaigns.finding import participation_of, visible_phase
from runs.api.parameters import text_of
from runs.errors import Blind, InvalidInput
from runs.models import Entry, Phase, Release, can_see_scores, sees_board
from runs.parameters import choice_in
from runs.services.campaigns import clock
from runs.services.campaigns.managing import is_organiser
from runs.services.campaigns.names import hides

# Parameters that ask about runs, and not about what the leaderboard has of their entries.
OF_RUNS = ("filter", "columns", "arrange")


@dataclass(frozen=True)
class AskedBoard:
    phase: Phase
    reader: Reader


def phase_board_in(request: HttpRequest | Request, campaign: str, phase: str) -> AskedBoard:
    """Return the phase that a request names. Raise Blind if its user does not see its leaderboard.

    A fingerprint and its answer get the same, with the same time.
    """
    return cast(
        AskedBoard,
        once(request, ("asked", campaign, phase), lambda: _asked(request, campaign, phase)),
    )


def _asked(request: HttpRequest | Request, campaign: str, phase: str) -> AskedBoard:
    found = visible_phase(request, campaign, phase)
    if not sees_board(request.user, found):
        raise Blind
    # Whoever sees the leaderboard as feedback reads what the team may; of organisers it is recorded.
    sees_scores(request, found.collection)
    own, organiser = (
        participation_of(request.user, found.campaign),
        is_organiser(found.campaign, request.user),
    )
    return AskedBoard(found, Reader(own, organiser, clock.database_now()))


def phase_query(parameters: Mapping[str, str], phase: Phase, reader: object) -> PhaseQuery:
    """Return the query of a phase's leaderboard; its measures are by default those of the phase.

    Raise InvalidInput for a question about runs, such as a filter, by whoever does not see the runs of others.
    """
    asked = [name for name in OF_RUNS if parameters.get(name)]
    if asked and not can_see_scores(reader, phase.collection):
        message = f"{asked[0]} asks about runs that you do not see: leave it out until results are released"
        raise InvalidInput(message, pointer=asked[0])
    measures = parameters.get("measures") or ",".join(phase.measures)
    board = BoardQuery.read({**parameters, "measures": measures}, phase.collection, reader)
    return PhaseQuery(
        board=board,
        standings=StandingsQuery.requested(parameters),
        view=choice_in(parameters, "view", VIEWS) or OFFICIAL,
        run_type=parameters.get("run_type") or None,
        role=choice_in(parameters, "role", tuple(Entry.Role.values)),
    )


def of_phase_board(request: HttpRequest | Request, campaign: str, phase: str) -> Fingerprint | None:
    """Return the fingerprint of a phase's leaderboard, or None if the request is invalid. It has which names are hidden
    from the reader now, and not the clock."""
    asked = phase_board_in(request, campaign, phase)
    found, reader = asked.phase, asked.reader
    try:
        query = phase_query(text_of(request.GET), found, request.user)
        shown = of_filter(found.collection, query.board)
    except EvalHubError:
        return None
    # Of the other phases of the campaign, too: the entries afterwards are theirs.
    entries = Entry.objects.filter(
        phase__campaign=found.campaign_id, phase__collection=found.collection_id
    )
    rows = list(
        entries.order_by("phase_id", "number").values_list(
            "phase",
            "number",
            "state",
            "role",
            "label",
            "late",
            "run_type",
            "priority",
            "chosen",
            "published",
        )
    )
    releases = Release.objects.filter(phase=found).exclude(done_at=None).order_by("pk")
    excluded = Phase.objects.filter(
        collection=found.collection_id, excluded_topics__isnull=False
    ).order_by("pk")
    disclosure, teams = found.collection.disclosure, found.campaign.participations.order_by("pk")
    names = [
        (*team, until, hides(found.campaign, until, disclosure, reader.now))
        for *team, until in teams.values_list(
            "pk", "team__slug", "name", "former_name", "pseudonym", "anonymous_until"
        )
    ]
    own = reader.own.pk if reader.own else None
    frozen = found.freeze_board_at, found.freeze_board_at and found.freeze_board_at <= reader.now
    of_phase = (
        found.selection,
        found.measures,
        frozen,
        list(releases.values_list("pk", "done_at")),
    )
    exclusions = list(excluded.values_list("excluded_topics", "excluded_reason"))
    state = repr((exclusions, rows, names, of_phase, own, reader.organiser))
    of_runs = of_boards(found.collection)
    if frozen[1]:
        # As a text: an answer of before, with its age, would reveal that later entries are being evaluated.
        of_runs = (repr(of_runs),)
    return (*of_runs, *shown, hashlib.sha256(state.encode()).hexdigest())
