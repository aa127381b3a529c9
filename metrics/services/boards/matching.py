"""The runs of a collection that a filter selects, wherever no leaderboard is shown."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from metrics.services.boards.conditions import MEASURE, visible_board
from metrics.services.boards.filter import asks_for, filtered, with_keys
from metrics.services.boards.filter_grammar import parse_filter
from metrics.services.boards.leaderboard import active_qrels
from metrics.services.boards.states import runs_with_states
from runs.errors import Blind
from runs.models import Collection, Run, can_see_scores


def matching_runs(collection: Collection, text: str, reader: Any, runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return those of `runs`, which the reader sees, that a filter selects.

    Raise InvalidInput for a filter that cannot be read, Blind and NotFound for one that asks for states or means which
    the reader may not see or which are not there.
    """
    term = parse_filter(text)
    if term is None:
        return runs
    if not (asks_for(term, "status") or asks_for(term, MEASURE)):
        return filtered(runs, with_keys(term, visible_board(collection, reader)), reader)
    if not can_see_scores(reader, collection):
        raise Blind
    qrels = active_qrels(collection)
    board = visible_board(collection, reader, qrels)
    found = runs_with_states(collection, qrels, collection.scores)
    shown = filtered(found, with_keys(term, board), reader, board.evaluations)
    return runs.filter(pk__in=shown.order_by().values("pk"))
