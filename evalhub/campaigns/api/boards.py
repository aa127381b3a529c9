"""The API of the leaderboard of a phase, as JSON and as files."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.exports.phase_table import as_shown
from evalhub.campaigns.questions.boards import (
    of_phase_board,
    phase_board_in,
    phase_query,
    readers_of_a_phase,
)
from evalhub.campaigns.services.boards import VIEWS, PhaseBoard, PhaseQuery, read_phase_board
from evalhub.campaigns.services.pooled import pooled_runs_seen
from metrics.api.boards import answers
from metrics.api.boards.answers import leaderboard_answer
from metrics.exports.boards import EXPORTS
from metrics.exports.formats import FORMATS
from metrics.questions.answer_cache import cached
from metrics.questions.declared import STATISTICS, declared
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.judged_views import depths_of
from runs.models import Collection, Entry
from runs.services.collections.reduced_qrels import reasons_of_exclusion
from runs.web.shapes import OneOf, shape

# A phase has entries of its own, and no versions of systems.
_PARAMETERS = (
    *(option for option in declared(PhaseQuery) if option.name not in ("versions", "entries")),
    *STATISTICS,
)


class EntryOfRow(TypedDict):
    """What a campaign knows of the run of a row."""

    id: UUID
    number: int
    phase: str
    role: Annotated[str, OneOf(Entry.Role.choices)]
    label: Annotated[str, "of a baseline"]
    run_type: str
    priority: int | None
    late: bool
    chosen: bool
    state: Annotated[
        str, OneOf(Entry.State.choices), "disqualified: after the public release, without a rank"
    ]
    state_reason: Annotated[str, "why it was disqualified"]
    paper: Annotated[str, "address of the paper about the run; empty while its team is hidden"]


class PhaseRow(answers.Row):
    """A row of the leaderboard of a phase. While the name of its team is hidden, its tag and team are pseudonyms."""

    entry: EntryOfRow
    team_name: Annotated[str | None, "as the team is shown in the campaign; null: the organisers"]
    name_hidden: bool
    attempts: Annotated[
        int | None, "entries that its team has made; null where the phase gives no feedback"
    ]
    pooled: Annotated[
        bool | None, "whether a pool has its documents; null where organisers show no pool"
    ]
    judged_depth: Annotated[
        int | None, "every document of the ranks 1 to this one is judged; null: without values"
    ]


class ExcludedTopic(TypedDict):
    """A topic that does not count."""

    topic_id: str
    reason: str


class PhaseLeaderboard(answers.Leaderboard):
    """A page of the leaderboard of a phase."""

    campaign: str
    phase: str
    view: Annotated[str, OneOf(VIEWS)]
    excluded_topics: Annotated[
        list[ExcludedTopic], "by the phases on its collection; every value is without them"
    ]
    results: list[PhaseRow]  # type: ignore[misc]


class PhaseBoardView(APIView):
    """Means of the entries of a phase, ranked by one measure. Baselines and entries out of competition stand at their
    place without a rank. Names of teams are hidden as the campaign says."""

    @extend_schema(responses=shape(PhaseLeaderboard), parameters=[*_PARAMETERS])
    @cached(of_phase_board, shared_by=readers_of_a_phase)
    def get(self, request: Request, campaign: str, phase: str) -> Response:
        question = phase_board_in(request, campaign, phase)
        query = phase_query(query_of(request), question.phase, request.user)
        phase_board = read_phase_board(phase=question.phase, query=query, reader=question.reader)
        collection = question.phase.collection
        board = leaderboard_answer(
            collection,
            query.board,
            phase_board.board,
            phase_board.standings,
            request.build_absolute_uri(),
        )

        depths = depths_of([row.evaluation.pk for row in phase_board.board.rows if row.current])
        pooled = pooled_runs_seen(question.phase, request.user)
        results = [
            PhaseRow(
                **row,
                **_entry_columns(phase_board, board_row.run.pk),  # type: ignore[typeddict-item]
                pooled=None if pooled is None else board_row.run.pk in pooled,
                judged_depth=depths.get(board_row.evaluation.pk),
            )
            for row, board_row in zip(board["results"], phase_board.board.rows, strict=True)
        ]
        phase_fields = {
            "campaign": question.phase.campaign.slug,
            "phase": question.phase.slug,
            "view": query.view,
            "excluded_topics": excluded_topics(collection),
        }

        return Response({**phase_fields, **board, "results": results})


class PhaseBoardExport(APIView):
    """The leaderboard of a phase as a file, with all its rows."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[option for option in _PARAMETERS if option.name not in ("limit", "offset")],
    )
    def get(self, request: Request, campaign: str, phase: str, kind: str) -> HttpResponse:
        def read() -> bytes:
            question = phase_board_in(request, campaign, phase)
            query = phase_query(query_of(request), question.phase, request.user)
            phase_board = read_phase_board(
                phase=question.phase, query=query, reader=question.reader, whole=True
            )
            table = EXPORTS[kind](
                question.phase.collection, phase_board.as_file(), phase_board.standings
            )

            table = as_shown(table, question.phase, phase_board.board.measures)
            return FORMATS[kind].content(table)

        name = f"{campaign}-{phase}-leaderboard"
        return HttpResponse(read_in_snapshot(read), headers=FORMATS[kind].headers(name))


def excluded_topics(collection: Collection) -> list[ExcludedTopic]:
    return [
        ExcludedTopic(topic_id=topic, reason=reason)
        for topic, reason in reasons_of_exclusion(collection).items()
    ]


def _entry_columns(board: PhaseBoard, run: UUID) -> dict[str, object]:
    """Return what the row of a run has in addition to that of a leaderboard."""
    entry = board.entries[run]
    team_name = board.name_of(entry)
    entry_fields = EntryOfRow(
        id=entry.pk,
        number=entry.number,
        phase=entry.phase.slug,
        role=entry.role,
        label=entry.label,
        run_type=entry.run_type,
        priority=entry.priority,
        late=entry.late,
        chosen=entry.chosen,
        state=entry.state,
        state_reason=entry.state_reason,
        paper=board.paper_of(entry),
    )

    return {
        "entry": entry_fields,
        "team_name": team_name.name if team_name else None,
        "name_hidden": bool(team_name and team_name.hidden),
        "attempts": board.attempts_of(entry),
    }
