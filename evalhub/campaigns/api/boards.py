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

from evalhub.campaigns.questions.boards import (
    of_phase_board,
    phase_board_in,
    phase_query,
    readers_of_a_phase,
)
from evalhub.campaigns.services.boards import VIEWS, PhaseBoard, read_phase_board
from metrics.api.boards import answers
from metrics.api.boards.answers import leaderboard_answer
from metrics.exports.boards import EXPORTS
from metrics.exports.formats import FORMATS
from metrics.questions.answer_cache import cached
from metrics.questions.declared import (
    ARRANGE,
    COLUMNS,
    FILTER,
    MEASURE_NAMES,
    ORDER,
    PAGE,
    SCORES,
    SORT,
    STATISTICS,
    parameter,
)
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.judged_views import depths_of
from runs.models import Collection, Entry
from runs.services.collections.reduced_qrels import reasons_of_exclusion
from runs.web.shapes import OneOf, shape

_ROWS = (
    parameter("view", "default: official; all on time, late, or those afterwards", choices=VIEWS),
    parameter("run_type", "rows of this type alone; ranks stay"),
    parameter("role", "rows of this role alone; ranks stay", choices=tuple(Entry.Role.values)),
)

_OF_RUNS = (FILTER, COLUMNS, ARRANGE)


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


class PhaseRow(answers.Row):
    """A row of the leaderboard of a phase. While the name of its team is hidden, its tag and team are pseudonyms."""

    entry: EntryOfRow
    team_name: Annotated[str | None, "as the team is shown in the campaign; null: the organisers"]
    name_hidden: bool
    attempts: Annotated[
        int | None, "entries that its team has made; null where the phase gives no feedback"
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

    @extend_schema(
        responses=shape(PhaseLeaderboard),
        parameters=[MEASURE_NAMES, SORT, ORDER, *PAGE, *_ROWS, *_OF_RUNS, SCORES, *STATISTICS],
    )
    @cached(of_phase_board, shared_by=readers_of_a_phase)
    def get(self, request: Request, campaign: str, phase: str) -> Response:
        asked = phase_board_in(request, campaign, phase)
        query = phase_query(query_of(request), asked.phase, request.user)
        found = read_phase_board(phase=asked.phase, query=query, reader=asked.reader)
        url, collection = request.build_absolute_uri(), asked.phase.collection
        board = leaderboard_answer(collection, query.board, found.board, found.standings, url)
        depths = depths_of([row.evaluation.pk for row in found.board.rows if row.current])
        results = [
            PhaseRow(
                **row,
                **_of_entry(found, shown.run.pk),  # type: ignore[typeddict-item]
                judged_depth=depths.get(shown.evaluation.pk),
            )
            for row, shown in zip(board["results"], found.board.rows, strict=True)
        ]
        of = {
            "campaign": asked.phase.campaign.slug,
            "phase": asked.phase.slug,
            "view": query.view,
            "excluded_topics": excluded_topics(collection),
        }

        return Response({**of, **board, "results": results})


class PhaseBoardExport(APIView):
    """The leaderboard of a phase as a file, with all its rows."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[MEASURE_NAMES, SORT, ORDER, *_ROWS, *_OF_RUNS, SCORES, *STATISTICS],
    )
    def get(self, request: Request, campaign: str, phase: str, kind: str) -> HttpResponse:
        def read() -> bytes:
            asked = phase_board_in(request, campaign, phase)
            query = phase_query(query_of(request), asked.phase, request.user)
            found = read_phase_board(
                phase=asked.phase, query=query, reader=asked.reader, whole=True
            )
            table = EXPORTS[kind](asked.phase.collection, found.as_file(), found.standings)

            return FORMATS[kind].content(table)

        name = f"{campaign}-{phase}-leaderboard"
        return HttpResponse(read_in_snapshot(read), headers=FORMATS[kind].headers(name))


def excluded_topics(collection: Collection) -> list[ExcludedTopic]:
    return [
        ExcludedTopic(topic_id=topic, reason=reason)
        for topic, reason in reasons_of_exclusion(collection).items()
    ]


def _of_entry(found: PhaseBoard, run: UUID) -> dict[str, object]:
    """Return what the row of a run has beside that of a leaderboard."""
    entry = found.entries[run]
    name = found.name_of(entry)
    of_row = EntryOfRow(
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
    )

    return {
        "entry": of_row,
        "team_name": name.name if name else None,
        "name_hidden": bool(name and name.hidden),
        "attempts": found.attempts_of(entry),
    }
