"""The parameters of a leaderboard, its statistics and its what-if."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metrics.engine.errors import MeasureError
from metrics.engine.gains import GainMap
from metrics.engine.grammar import parse_measure
from metrics.engine.measures.definition import (
    BASE,
    DISCOUNT,
    MAX_CUTOFF,
    read_choice,
    read_integer,
)
from metrics.engine.significance.families import USUAL_TEST
from metrics.engine.what_if import (
    FAMILIES,
    MAX_COMBINATIONS,
    PRESETS,
    USERS,
    Grid,
    too_many_combinations,
)
from metrics.questions.parameters import (
    MAX_LIMIT,
    MAX_SEED,
    RANK_RESAMPLES,
    RESAMPLES,
    choice_in,
    measure_in,
    measures_in,
    scores_in,
    several_in,
    share_in,
)
from metrics.questions.run_ids import run_id_in, run_ids_in
from metrics.services.boards.asked import BoardQuery
from metrics.services.boards.columns import read_arrangement, read_columns
from metrics.services.boards.conditions import visible_board
from metrics.services.boards.entries import OFFICIAL, SHOWN_ENTRIES
from metrics.services.boards.filter import with_keys
from metrics.services.boards.filter_grammar import parse_filter
from metrics.services.boards.standing_parts import BOARD_RESAMPLES, PARTS, StandingsQuery
from metrics.services.boards.versions import ALL, VERSIONS
from metrics.services.boards.what_if import WhatIfQuery
from metrics.services.snapshots import once_in_snapshot
from runs.api.parameters import MAX_OFFSET, integer_in
from runs.errors import InvalidInput
from runs.models import Collection

_GRID = ("family", "gains", "dis", "b", "depths")


def board_query(parameters: Mapping[str, str], collection: Collection, reader: Any) -> BoardQuery:
    """Return the query of a leaderboard. `sort` is a measure; `order` is desc or asc, by default the one with the best
    run first. The keys of filter, columns and order are those of runs that the reader sees."""
    key = (
        "board_query",
        collection.pk,
        getattr(reader, "pk", None),
        tuple(sorted(parameters.items())),
    )
    return once_in_snapshot(key, lambda: _board_query(parameters, collection, reader))


def _board_query(parameters: Mapping[str, str], collection: Collection, reader: Any) -> BoardQuery:
    measures = measures_in(parameters, "measures", collection.measures, collection.documents)
    sort = measure_in(parameters, "sort", measures[0].name, collection.documents)
    order = choice_in(parameters, "order", ("desc", "asc"))
    term, asked = (
        parse_filter(parameters.get("filter", "")),
        [parameters.get(name, "") for name in ("columns", "arrange")],
    )
    board = visible_board(collection, reader) if term or any(asked) else None
    return BoardQuery(
        measures=measures,
        sort=sort,
        descending=order == "desc" or (order is None and not sort.definition.lower_is_better),
        scores=scores_in(parameters),
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=integer_in(parameters, "limit", 50, 1, MAX_LIMIT),
        filter=with_keys(term, board) if term and board else None,
        reader=reader,
        columns=read_columns(asked[0], board) if asked[0] and board else (),
        arrange=read_arrangement(asked[1], board) if asked[1] and board else None,
        versions=choice_in(parameters, "versions", VERSIONS) or ALL,
        entries=choice_in(parameters, "entries", SHOWN_ENTRIES) or OFFICIAL,
    )


def standings_query(parameters: Mapping[str, str]) -> StandingsQuery | None:
    """Return the query of a leaderboard's statistics, or None if neither `statistics` nor `baseline` is given."""
    parts = several_in(
        parameters, "statistics", lambda text: read_choice("all", *PARTS)("statistics", text)
    )
    baseline = run_id_in(parameters, "baseline")
    if not (parts or baseline):
        return None
    if "baseline" in parts and not baseline:
        raise InvalidInput(
            "statistics=baseline needs the id of a run: baseline=...", pointer="baseline"
        )
    wanted = {*parts, "baseline"} if baseline else set(parts)
    if "all" in parts:
        wanted |= {"intervals", "tiers", "ranks", "expected"}
    test = parameters.get("test") or USUAL_TEST
    usual = BOARD_RESAMPLES.get(test, 100_000)
    return StandingsQuery(
        parts=tuple(part for part in PARTS if part in wanted),
        baseline=baseline,
        test=test,
        correction=parameters.get("correction") or "holm",
        alpha=share_in(parameters, "alpha", 0.05),
        confidence=share_in(parameters, "confidence", 0.95),
        resamples=integer_in(parameters, "resamples", usual, *RESAMPLES),
        rank_resamples=integer_in(parameters, "rank_resamples", 2_000, *RANK_RESAMPLES),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
    )


def what_if_query(parameters: Mapping[str, str], collection: Collection) -> WhatIfQuery:
    """Return the combinations of `measures`, those of `preset`, and the product of the other parameters; by default the
    two user presets."""
    product = _grid(parameters).measures() if any(parameters.get(name) for name in _GRID) else []
    named = measures_in(parameters, "measures", [], collection.documents)
    asked = several_in(parameters, "preset", lambda text: read_choice(*PRESETS)("preset", text))
    if not (product or named or asked):
        asked = list(USERS)
    presets = {parse_measure(PRESETS[preset]): preset for preset in asked}
    combinations = list(dict.fromkeys([*named, *presets, *product]))
    if len(combinations) > MAX_COMBINATIONS:
        raise too_many_combinations()
    return WhatIfQuery(combinations, presets, run_ids_in(parameters), scores_in(parameters))


def _grid(parameters: Mapping[str, str]) -> Grid:
    bases = several_in(parameters, "b", lambda text: BASE.read("b", text))
    discounts = several_in(parameters, "dis", lambda text: DISCOUNT.read("dis", text)) or (
        ["jk"] if bases else []
    )
    if bases and set(discounts) == {"log2"}:
        message = "b needs dis=jk or dis=session: log2(i + 1) has its base"
        raise MeasureError(message, code="bad_parameter", pointer="b")
    given: dict[str, list[Any]] = {
        "families": several_in(
            parameters, "family", lambda text: read_choice(*FAMILIES)("family", text)
        ),
        "gains": several_in(parameters, "gains", GainMap.parse, ";"),
        "discounts": discounts,
        "bases": bases,
        "depths": several_in(parameters, "depths", _depth),
    }
    return Grid(**{name: tuple(values) for name, values in given.items() if values})


def _depth(text: str) -> int | None:
    return None if text == "all" else read_integer(1, MAX_CUTOFF)("depths", text)
