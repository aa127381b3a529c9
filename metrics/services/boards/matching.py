"""The runs that a filter selects wherever no leaderboard is shown: of one collection, or of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet

from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.conditions import MEASURE, Board, Condition, bind_key, visible_board
from metrics.services.boards.filter import asks_for, filtered, replaced, with_keys
from metrics.services.boards.filter_grammar import asks_for_values, parse_filter
from metrics.services.boards.states import runs_with_states
from runs.errors import Blind, InvalidInput
from runs.formats.parameters import canonical_name
from runs.models import Collection, ParameterKey, Run, can_see_scores
from runs.services.tracking.parameters import PARAM

# Each is looked at by itself.
_MOST_COLLECTIONS = 50


def matching_runs(
    collection: Collection, text: str, reader: Any, runs: QuerySet[Run]
) -> QuerySet[Run]:
    """Return those of `runs`, which the reader sees, that a filter selects.

    Raise InvalidInput for a filter that cannot be read, Blind and NotFound for one that asks for
    states or means which the reader may not see or which are not there.
    """
    term = parse_filter(text)
    if term is None:
        return runs
    if not asks_for_values(text):
        return filtered(runs, with_keys(term, visible_board(collection, reader)), reader)
    if not can_see_scores(reader, collection):
        raise Blind

    qrels = active_qrels(collection)
    board = visible_board(collection, reader, qrels)
    live = runs_with_states(collection, qrels, collection.scores)
    selected = filtered(live, with_keys(term, board), reader, board.evaluations)

    return runs.filter(pk__in=selected.order_by().values("pk"))


def matching_everywhere(text: str, reader: Any, runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return those of `runs` that a filter selects.

    The reader sees all of them, and they may be of many collections.

    Raise InvalidInput for a filter that cannot be read, and for one that asks for a state or a
    mean, which a run has on one leaderboard.
    """
    term = parse_filter(text)
    if term is None:
        return runs

    for name, advice in (
        ("status", "use the parameter status= instead"),
        (MEASURE, "filter its leaderboard"),
    ):
        if asks_for(term, name):
            message = f"filter: {name}: is about the leaderboard of one collection; {advice}"
            raise InvalidInput(message, code="bad_filter", pointer="filter")

    return filtered(runs, replaced(term, lambda condition: _bound_in_each(condition, runs)), reader)


def _bound_in_each(condition: Condition, runs: QuerySet[Run]) -> Condition:
    """Return the condition with the key of its name in each collection of the runs that has it."""
    name = canonical_name(condition.key) if condition.space == PARAM else condition.key
    having = ParameterKey.objects.filter(space=condition.space, name=name).values("collection")
    in_runs = runs.order_by().values("collection")

    collections = Collection.objects.filter(pk__in=in_runs).filter(pk__in=having)
    if collections.count() > _MOST_COLLECTIONS:
        message = (
            f"runs of more than {_MOST_COLLECTIONS} collections have a "
            f"{condition.space}:{name[:60]}; name one"
        )
        raise InvalidInput(
            f"filter, character {condition.at}: {message}", code="bad_filter", pointer="filter"
        )

    conditions: list[Condition] = []
    message = (
        f"filter, character {condition.at}: none of these runs has {condition.space}:{name[:60]}"
    )
    problem = InvalidInput(message, code="bad_filter", pointer="filter")

    for collection in collections.order_by("slug"):
        board = Board(collection, runs.filter(collection=collection).order_by())
        try:
            conditions.append(bind_key(condition, board))
        except InvalidInput as error:
            problem = error

    if not conditions:
        raise problem
    keys = [key for bound in conditions for key in bound.key_ids]
    return replace(conditions[0], key_ids=tuple(keys))
