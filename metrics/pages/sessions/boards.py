"""The page of a collection's sessions: its session sets, and their systems ranked and compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst

from metrics.exports.comparisons.words import TEST_NAMES, verdict_text
from metrics.exports.formats import FORMATS
from metrics.exports.sessions import BOARD_EXPORTS
from metrics.exports.sessions.tables import DESIGN_NAMES
from metrics.exports.table import Cell, Column, Row, Sorting, Table
from metrics.pages.comparisons.tables import interval_cell
from metrics.pages.parts import Query, fill, query_of
from metrics.pages.sessions import words
from metrics.questions.declared import SESSION_COMPARISON, SESSION_HOW_MADE, names_of
from metrics.services.question import MAX_LIMIT
from metrics.services.queue.status import RunStatus, statuses
from metrics.services.sessions.board import (
    SessionBoardQuery,
    SystemRow,
    read_session_board,
    system_name,
)
from metrics.services.sessions.comparison import FITTING, SessionComparison, compare_systems
from metrics.services.sessions.judged_sets import default_measures
from metrics.services.sessions.parameters import session_measure_in
from metrics.services.sessions.sample import SessionComparisonQuery
from metrics.services.snapshots import one_snapshot
from metrics.tables import NOTHING, Paging, SortableColumn, figure, probability, signed, with_minus
from runs.models import Collection, SessionSet
from runs.parameters import MAX_OFFSET, choice_in, integer_in
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

_SETS_OF_A_PAGE = 50
_PAIRS_SHOWN = 100


@page
@reads("offset", *names_of(SESSION_COMPARISON))
def sessions_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the session sets of a collection, and its systems ranked and compared by one measure."""
    collection = visible_collection(request, slug)
    query = {name: value for name, value in query_of(request).items() if value}
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "ways": SessionSet.JudgedBy.values,
        "defaults": [measure.name for measure in default_measures()],
    }

    # The states of the sets, the leaderboard and the comparison are as of one moment.
    with one_snapshot():
        status = max(
            fill(context, "sets", _sets, request, collection, query),
            fill(context, "board", _board, request, collection, query),
        )
        if "board" in context and context["board"]["lines"]:
            status = max(status, fill(context, "compared", _compared, collection, query))

        if "compared" in context:
            context["board"]["lines"] = _with_standings(
                context["board"]["lines"], context["compared"]["compared"]
            )

    return render(request, "metrics/sessions.html", context, status=status)


def _sets(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    """Return one page of the sets that the reader sees, newest first, with their states."""
    visible = SessionSet.objects.visible_to(request.user).filter(collection=collection)
    offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
    paging = Paging(offset, _SETS_OF_A_PAGE, visible.count())
    sets = list(
        visible.select_related("team", "collection").defer("warnings", "metadata")[
            offset : offset + _SETS_OF_A_PAGE
        ]
    )
    states = statuses(sets, request.user)
    lines: list[tuple[SessionSet, RunStatus]] = [
        (session_set, states[str(session_set.pk)]) for session_set in sets
    ]

    return {"lines": lines, "paging": paging}


@dataclass(frozen=True)
class SystemBoardLine:
    """One system on the leaderboard; `sessions` is the number of sessions with a value."""

    row: SystemRow
    name: str
    sessions: int
    cells: list[Cell]


def _board(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    sort = session_measure_in(query, documents=collection.documents)
    # The measure that ranks the systems is first: its interval and the tiers follow it.
    measures = [sort, *(measure for measure in default_measures() if measure != sort)]
    question = SessionBoardQuery(
        measures,
        sort,
        descending=not sort.lower_is_better,
        judged_by=choice_in(query, "judged_by", tuple(SessionSet.JudgedBy.values)),
        limit=MAX_LIMIT,
    )

    board = read_session_board(collection=collection, query=question)
    direction: Sorting = "ascending" if sort.lower_is_better else "descending"

    return {
        "measure": sort,
        "judged_by": board.judged_by,
        "others": board.others,
        "total": board.total,
        "cautions": [caution.message for caution in board.cautions],
        "columns": [
            SortableColumn(measure.name, sorting=direction if measure == sort else "")
            for measure in measures
        ],
        "lines": [
            SystemBoardLine(
                row=row,
                name=system_name(row.evaluation, row.system),
                sessions=row.values[sort.name][1],
                cells=[Cell(figure(measure, row.values[measure.name][0])) for measure in measures],
            )
            for row in board.rows
        ],
        "waiting": [
            (state, board.states[state])
            for state in ("queued", "evaluating", "failed")
            if state in board.states
        ],
    }


def _with_standings(
    lines: list[SystemBoardLine], compared: SessionComparison
) -> list[SystemBoardLine]:
    """Return the lines with the interval of the mean that ranks them, and with tiers if any."""
    places = {system.name: place for place, system in enumerate(compared.systems)}

    bounds = compared.query.measure.definition.bounds
    lines_with_standings = []
    for line in lines:
        place, tier, interval = places.get(line.name), NOTHING, NOTHING
        if place is not None and not line.row.stale:
            system = compared.systems[place]
            low, high = np.clip([system.low, system.high], *bounds).tolist()
            if not np.isnan(low):
                interval = f"{with_minus(f'{low:.4f}')} to {with_minus(f'{high:.4f}')}"
            if compared.tiers and line.row.rank is not None:
                tier = str(compared.tiers.tier[place])

        first, *others = line.cells
        cells = [first, Cell(interval), *([Cell(tier)] if compared.tiers else []), *others]
        lines_with_standings.append(replace(line, cells=cells))

    return lines_with_standings


def _compared(collection: Collection, query: Query) -> dict[str, Any]:
    compared = compare_systems(
        collection=collection, query=SessionComparisonQuery.read(query, collection)
    )
    effect = ""

    if compared.effects.delta:
        effect = "Cliff's delta"
    elif compared.effects.paired:
        effect = "Hedges's g"

    parameters = {**query, "measure": compared.query.measure.name, "judged_by": compared.judged_by}
    return {
        "compared": compared,
        "parameters": urlencode(
            {name: text for name, text in parameters.items() if name != "offset"}
        ),
        "headline": words.headline(compared),
        "detail": words.detail(compared),
        "design": words.design_sentence(compared),
        "test": words.test_sentence(compared),
        "omnibus": words.omnibus_sentences(compared),
        "tiers": compared.tiers is not None,
        "designs": DESIGN_NAMES,
        "tests": [(name, TEST_NAMES[name]) for name in FITTING[compared.design]],
        "exports": _exports(collection, query, compared),
        "pairs": _pairs_table(compared, effect),
        "intervals": bool(np.any(~np.isnan(compared.result.low))),
        "confidence": f"{100 * compared.query.options.confidence:g}%",
    }


def _exports(
    collection: Collection, query: Query, compared: SessionComparison
) -> dict[str, list[tuple[str, str]]]:
    """Return title and address of the leaderboard and the comparison in each format, by subject."""
    measure, judged_by = compared.query.measure.name, compared.judged_by
    statistics = {
        name: text for name, text in query.items() if name in SESSION_HOW_MADE or name == "baseline"
    }
    chosen = {name: text for name, text in query.items() if name in ("sets", "systems")}
    board = {
        "sort": measure,
        "judged_by": judged_by,
        "statistics": "intervals,tiers",
        **statistics,
    }

    comparison = {**chosen, "measure": measure, "judged_by": judged_by, **statistics}

    def files(view: str, parameters: dict[str, str]) -> list[tuple[str, str]]:
        text = urlencode(parameters)
        return [
            (FORMATS[kind].title, f"{reverse(view, args=[collection.slug, kind])}?{text}")
            for kind in BOARD_EXPORTS
        ]

    return {
        "board": files("session-board-export", board),
        "comparison": files("session-comparison-export", comparison),
    }


def _pairs_table(compared: SessionComparison, effect: str) -> Table:
    """Build the table of the first pairs.

    All intervals are drawn on one scale, which contains zero.
    """
    result, names = compared.result, [system.name for system in compared.systems]
    ends = np.concatenate([[0.0], result.difference, result.low, result.high])
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    scale = 200 / ((high - low) or 1.0)

    with_intervals = bool(np.any(~np.isnan(result.low)))
    correction = compared.correction if compared.pairs.number > 1 else None
    confidence = f"{100 * compared.query.options.confidence:g}%"
    columns = [
        Column("", "System", head=True),
        Column("", "minus", style=""),
        Column("", "Difference"),
        *([Column("", f"{confidence} CI")] if with_intervals else []),
        *([Column("", "Interval around zero", style="drawn")] if with_intervals else []),
        *([Column("", effect)] if effect else []),
        Column("", "p"),
        *([Column("", f"{capfirst(correction)} p")] if correction else []),
        *([Column("", "p by searchers"), Column("", "p by topics")] if compared.crossed else []),
        Column("", "Significant", style=""),
    ]

    first, second = (side.tolist() for side in compared.pairs.indices())
    rows = []
    for pair, (a, b) in enumerate(zip(first[:_PAIRS_SHOWN], second[:_PAIRS_SHOWN], strict=True)):
        difference = float(result.difference[pair])
        bounds = float(result.low[pair]), float(result.high[pair])
        values: list[Any] = [names[a], names[b], signed(difference)]

        if with_intervals:
            lower, upper = map(signed, bounds)
            values.append(NOTHING if np.isnan(bounds).any() else f"{lower} to {upper}")
            values.append(interval_cell(difference, bounds, low, scale))

        if effect:
            values.append(_effect(compared, pair))

        values.append(probability(float(result.p_value[pair])))
        if correction:
            values.append(probability(float(compared.adjusted[pair])))

        if compared.crossed:
            values += [_by_units(compared, pair, 1), _by_units(compared, pair, 2)]

        significant = bool(compared.verdicts.significant[pair])
        verdict = verdict_text(significant, compared.withheld(pair))
        values.append("yes" if significant else Cell(verdict, quiet=True))
        rows.append(Row(values, style="significant" if significant else ""))

    notes = []
    if compared.crossed:
        notes.append("p by searchers and p by topics are those of F1 and F2, uncorrected.")

    return Table("pairs", columns, rows, notes, "Pairs of systems")


def _by_units(compared: SessionComparison, pair: int, place: int) -> str:
    """Return the p of F1 or F2, the second or third source of a crossed analysis."""
    p_value = compared.crossed[pair].sources[place].p_value if compared.crossed else None
    return NOTHING if p_value is None else probability(p_value)


def _effect(compared: SessionComparison, pair: int) -> str:
    delta, paired = compared.effects.delta, compared.effects.paired
    size = paired.hedges_g if paired else delta
    if size is None:
        return ""

    value = float(size.value[pair])
    return NOTHING if np.isnan(value) else with_minus(f"{value:.2f}")
