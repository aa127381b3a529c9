"""The charts on the page of parameters: one against a measure, and several in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metrics.charts.tracking.parallel import parallel_figure
from metrics.charts.tracking.parameter import parameter_figure
from metrics.pages.parts import PageFigure, Query
from metrics.questions.measured import MAX_AXES, columns_in, measured_board
from metrics.services.boards.columns import ShownColumn
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.measured import differing_columns, read_measured
from runs.models import Collection
from runs.services.tracking.parameters import PARAM

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class ParameterCharts:
    """The chosen parameters and measure with their choices, and both charts.

    There is no `parallel` chart for fewer than two settings.
    """

    x: ShownColumn
    by: ShownColumn | None
    measure: str
    offered: list[ShownColumn]
    measures: list[str]
    scatter: PageFigure
    parallel: PageFigure | None


def parameter_charts(collection: Collection, query: Query, reader: Any) -> ParameterCharts | None:
    """Return the charts of the runs that the filter of the page selects.

    Return None if these differ in no parameter. Raise the errors of bad parameters, and
    StatisticsError if no run is ranked.
    """
    given_query = {name: query.get(name, "") for name in ("x", "by", "measure", "filter")}

    def read() -> ParameterCharts | None:
        differing = differing_columns(
            collection=collection, reader=reader, filter=given_query["filter"]
        )
        chosen = columns_in(given_query, "x", collection, reader) or tuple(differing[:1])
        if not chosen:
            return None

        x, by = chosen[0], columns_in(given_query, "by", collection, reader)
        axes = tuple(column for column in differing if column.space == PARAM)[:MAX_AXES]
        board = measured_board(given_query, collection, reader)
        columns = tuple(dict.fromkeys((x, *by, *axes)))
        measured = read_measured(
            collection=collection, query=board, columns=columns, confidence=_CONFIDENCE
        )
        figure = parameter_figure(measured, x, by[0] if by else None, _CONFIDENCE)
        scatter_query = {**given_query, "x": x.name, "measure": board.sort.name}
        parallel = None

        if len(axes) > 1:
            parallel_query = {
                "columns": ",".join(axis.name for axis in axes),
                "measure": scatter_query["measure"],
                "filter": scatter_query["filter"],
            }
            parallel = _chart(collection, parallel_figure(measured, axes), parallel_query)

        return ParameterCharts(
            x=x,
            by=by[0] if by else None,
            measure=board.sort.name,
            offered=list(dict.fromkeys((*differing, x, *by))),
            measures=list(dict.fromkeys([*collection.measures, board.sort.name])),
            scatter=_chart(collection, figure, scatter_query),
            parallel=parallel,
        )

    return read_in_snapshot(read)


def _chart(collection: Collection, figure: Any, parameters: Query) -> PageFigure:
    return PageFigure(
        figure, "collection-chart", {"collection": collection.slug}, parameters, "half"
    )
