"""The leaderboard of a phase that a request names: who sees it, and for whom it is the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from evalhub.campaigns.questions.lookup import participation_of, visible_phase
from evalhub.campaigns.services.boards import PhaseQuery, Reader
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.campaigns.services.pseudonyms import hides
from metrics.engine.errors import EvalHubError
from metrics.questions.answer_cache import Subject, meaning_of
from metrics.services.boards.standing_parts import StandingsQuery
from runs.errors import Blind, InvalidInput
from runs.models import Campaign, Collection, Phase, boards_seen, can_see_scores, sees_board
from runs.services import clock
from runs.web.access import find_once, sees_scores
from runs.web.parameters import text_of

# Parameters that ask about runs, and not about what the leaderboard has of their entries.
OF_RUNS = ("filter", "columns", "arrange")


@dataclass(frozen=True)
class PhaseRequest:
    """A phase, and what its reader is in the campaign."""

    phase: Phase
    reader: Reader


def phase_board_in(request: HttpRequest | Request, campaign: str, phase: str) -> PhaseRequest:
    """Return the phase that a request names. Raise Blind if its user does not see its leaderboard.

    All parts of an answer get the same, with the same time.
    """

    def read() -> PhaseRequest:
        row = visible_phase(request, campaign, phase)
        if not sees_board(request.user, row):
            raise Blind

        # That organisers read values is recorded. For others the leaderboard is feedback.
        sees_scores(request, row.collection)
        own = participation_of(request.user, row.campaign)
        organiser = is_organiser(row.campaign, request.user)

        return PhaseRequest(row, Reader(own, organiser, clock.database_now()))

    return cast(PhaseRequest, find_once(request, ("phase leaderboard", campaign, phase), read))


def phase_query(parameters: Mapping[str, str], phase: Phase, reader: object) -> PhaseQuery:
    """Return the query of a phase's leaderboard; its measures are by default those of the phase.

    Raise InvalidInput for a question about runs, such as a filter, by whoever does not see the runs
    of others.
    """
    about_runs = [name for name in OF_RUNS if parameters.get(name)]
    if about_runs and not can_see_scores(reader, phase.collection):
        message = (
            f"{about_runs[0]} asks about runs that you do not see: "
            "leave it out until results are released"
        )
        raise InvalidInput(message, pointer=about_runs[0])

    measures = parameters.get("measures") or ",".join(phase.measures)
    query = PhaseQuery.read({**parameters, "measures": measures}, phase.collection, reader)

    return replace(query, standings=StandingsQuery.requested(parameters))


def of_phase_board(request: HttpRequest | Request, campaign: str, phase: str) -> Subject:
    """Return what a phase's leaderboard is about.

    It depends on the collection, on what the reader is in the campaign, and on the names that are
    hidden from the reader now.
    """
    question = phase_board_in(request, campaign, phase)
    row, reader = question.phase, question.reader

    disclosure = row.collection.disclosure
    teams = row.campaign.participations.order_by("pk").values_list("pk", "anonymous_until")
    hidden = tuple(pk for pk, until in teams if hides(row.campaign, until, disclosure, reader.now))

    frozen = bool(row.freeze_board_at and row.freeze_board_at <= reader.now)
    scored = can_see_scores(request.user, row.collection)
    own = reader.own.pk if reader.own else None

    # An answer of before, with its age, would reveal that later entries are being evaluated.
    return Subject(
        row.collection, (own, reader.organiser, scored, frozen, hidden), may_be_old=not frozen
    )


def of_phase_board_page(request: HttpRequest | Request, campaign: str, phase: str) -> Subject:
    """Return what the page of a phase's leaderboard is about: it also leads to the other phases."""
    subject = of_phase_board(request, campaign, phase)
    row = phase_board_in(request, campaign, phase).phase
    others = tuple((other.slug, other.name) for other in seen_boards(request, row.campaign))
    return replace(subject, extras=(*subject.extras, row.campaign.name, others))


def seen_boards(request: HttpRequest | Request, campaign: Campaign) -> list[Phase]:
    """Return the phases of a campaign with a leaderboard that the user sees, once they opened."""

    def read() -> list[Phase]:
        phases = list(campaign.phases.select_related("collection", "campaign"))
        seen, now = boards_seen(request.user, phases), clock.database_now()
        return [phase for phase in phases if phase.pk in seen and phase.opens_at <= now]

    return cast(list[Phase], find_once(request, ("seen leaderboards", campaign.slug), read))


def readers_of_a_phase(request: HttpRequest | Request, collection: Collection) -> Hashable:
    """Share a phase's leaderboard with all who are the same in the campaign and mean the same by
    `own`. Its `view` is not a saved one."""
    parameters = {name: text for name, text in text_of(request.GET).items() if name != "view"}
    try:
        return meaning_of(parameters, collection, request.user)
    except EvalHubError:
        return None
