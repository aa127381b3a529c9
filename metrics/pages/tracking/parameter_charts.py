"""The charts on the page of parameters: one against a measure, and parallel coordinates of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metrics.charts.tracking.parallel import parallel_figure
from metrics.charts.tracking.parameter import parameter_figure
from metrics.pages.parts import Query, ShownFigure
from metrics.questions.measured import MAX_AXES, columns_in, measured_board
from metrics.services.boards.columns import ShownColumn
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.measured import differing_columns, read_measured
from runs.models import Collection
from runs.services.tracking.parameters import PARAM

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class ParameterCharts:
    """The chosen parameters and measure, those that can be chosen, and both charts; `parallel` needs two settings."""

    x: ShownColumn
    by: ShownColumn | None
    measure: str
    offered: list[ShownColumn]
    measures: list[str]
    scatter: ShownFigure
    parallel: ShownFigure | None


def parameter_charts(collection: Collection, query: Query, reader: Any) -> ParameterCharts | None:
    """Return the charts of the runs that the filter of the page selects, None where these differ in no parameter.

    Raise what a bad parameter raises, and StatisticsError where no run is ranked.
    """
    named = {name: query.get(name, "") for name in ("x", "by", "measure", "filter")}

    def read() -> ParameterCharts | None:
        differing = differing_columns(collection=collection, reader=reader, filter=named["filter"])
        chosen = columns_in(named, "x", collection, reader) or tuple(differing[:1])
        if not chosen:
            return None
        x, by = chosen[0], columns_in(named, "by", collection, reader)
        axes = tuple(column for column in differing if column.space == PARAM)[:MAX_AXES]
        board = measured_board(named, collection, reader)
        columns = tuple(dict.fromkeys((x, *by, *axes)))
        found = read_measured(
            collection=collection, query=board, columns=columns, confidence=_CONFIDENCE
        )
        figure = parameter_figure(found, x, by[0] if by else None, _CONFIDENCE)
        asked = {**named, "x": x.name, "measure": board.sort.name}
        several = None
        if len(axes) > 1:
            kept = {
                "columns": ",".join(one.name for one in axes),
                "measure": asked["measure"],
                "filter": asked["filter"],
            }
            several = _shown(collection, parallel_figure(found, axes), kept)
        return ParameterCharts(
            x,
            by[0] if by else None,
            board.sort.name,
            list(dict.fromkeys((*differing, x, *by))),
            list(dict.fromkeys([*collection.measures, board.sort.name])),
            _shown(collection, figure, asked),
            several,
        )

    return read_in_snapshot(read)


def _shown(collection: Collection, figure: Any, asked: Query) -> ShownFigure:
    return ShownFigure(figure, "collection-chart", {"collection": collection.slug}, asked, "half")
