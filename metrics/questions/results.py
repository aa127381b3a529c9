"""Whose results of a phase a request asks for, and what its user may see of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from metrics.services.boards.board_question import active_qrels
from metrics.services.campaigns.editions import latest_release
from runs.api.campaigns.finding import own_participation, visible_phase
from runs.errors import Blind
from runs.models import Participation, Phase, Qrels, can_see_scores, sees_own_results
from runs.services.campaigns.managing import check_organiser
from runs.web.access import note_reading


@dataclass(frozen=True)
class AskedResults:
    """The phase and the team that a request is about, the active judgements, and whether the reader sees everything.

    Whoever does not is told what was released: by the judgements of then, `qrels`, of the entries
    of then, `as_of`. What changes afterwards would tell of other teams.
    """

    phase: Phase
    participation: Participation
    active: Qrels
    sees_all: bool
    qrels: Qrels
    as_of: datetime | None


def results_in(
    request: HttpRequest | Request, campaign: str, phase: str, team: str | None
) -> AskedResults:
    """Return whose results are asked for: the reader's own team, or for organisers the one that is named.

    Raise NotAllowed for another team or no team, Blind while results are not disclosed to the team.
    """
    found = visible_phase(request, campaign, phase)
    sees_all = can_see_scores(request.user, found.collection)
    if team is None:
        participation = own_participation(request, found.campaign)
        disclosed = sees_all or sees_own_results(request.user, found)
    else:
        check_organiser(found.campaign, request.user)
        other = found.campaign.participations.select_related("team").filter(team__slug=team).first()
        if other is None:
            raise Http404(f"no team {team[:64]!r} takes part in campaign {campaign}")
        # Owners of the campaign's team need not be those of the collection's.
        participation, disclosed = other, sees_all
    if not disclosed:
        raise Blind
    if sees_all:
        note_reading(request, found.collection)
    active, released = active_qrels(found.collection), None if sees_all else latest_release(found)
    qrels, as_of = (released.qrels, released.at) if released else (active, None)
    return AskedResults(found, participation, active, sees_all, qrels, as_of)
