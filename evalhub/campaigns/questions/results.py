"""The team's results of a phase that a request names, and what its user may see of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from evalhub.campaigns.questions.lookup import (
    organised_phase,
    own_participation,
    visible_phase,
)
from evalhub.campaigns.services.campaigns import check_organiser
from evalhub.campaigns.services.versions import latest_release
from metrics.services.boards.board_question import active_qrels
from runs.errors import Blind
from runs.models import Participation, Phase, Qrels, can_see_scores, sees_own_results
from runs.web.access import note_reading, sees_scores


@dataclass(frozen=True)
class ResultsRequest:
    """The phase and the team of a request, the active judgements, and whether the reader sees all.

    A reader who does not sees what was released: by the judgements `qrels` and the entries `as_of`
    the release. Later changes would reveal values of other teams.
    """

    phase: Phase
    participation: Participation
    active: Qrels
    sees_all: bool
    qrels: Qrels
    as_of: datetime | None


def organised_values(request: HttpRequest | Request, campaign: str, slug: str) -> Phase:
    """Return a phase that the user organises, with values that the user is about to read.

    Raise NotAllowed if the user may only see the phase, Blind for organisers of the campaign who
    may not see values of its collection.
    """
    phase = organised_phase(request, campaign, slug)
    if not sees_scores(request, phase.collection):
        raise Blind

    return phase


def results_in(
    request: HttpRequest | Request, campaign: str, phase: str, team: str | None
) -> ResultsRequest:
    """Return the results of the reader's own team, or for organisers those of the named one.

    Raise NotAllowed for another team or without a team, Blind while results are not disclosed to
    the team.
    """
    row = visible_phase(request, campaign, phase)
    sees_all = can_see_scores(request.user, row.collection)

    if team is None:
        participation = own_participation(request, row.campaign)
        disclosed = sees_all or sees_own_results(request.user, row)
    else:
        check_organiser(row.campaign, request.user)
        other = row.campaign.participations.select_related("team").filter(team__slug=team).first()
        if other is None:
            raise Http404(f"no team {team[:64]!r} takes part in campaign {campaign}")

        # Organisers of the campaign need not be organisers of the collection.
        participation, disclosed = other, sees_all

    if not disclosed:
        raise Blind

    if sees_all:
        note_reading(request, row.collection)

    active = active_qrels(row.collection)
    release = None if sees_all else latest_release(row)

    return ResultsRequest(
        phase=row,
        participation=participation,
        active=active,
        sees_all=sees_all,
        qrels=release.qrels if release else active,
        as_of=release.at if release else None,
    )
