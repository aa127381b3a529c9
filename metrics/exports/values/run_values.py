"""RUN_VALUE_EXPORTS: how the values of one run are written, topic by topic. A new format is a line here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metrics.engine.measures.definition import Aggregate
from metrics.engine.trec_eval.columns import Column, Value
from metrics.exports.sheet import Sheet
from metrics.exports.values import trec_eval
from metrics.services.values.values import RunValues
from runs.formats.comma_separated import written
from runs.models import Run


def _csv(run: Run, values: RunValues) -> Iterator[str]:
    """Yield a line of names, then a row for each topic."""
    columns = {name: vector.tolist() for name, vector in values.vectors.items()}
    return written(
        {"topic": topic, **{name: column[index] for name, column in columns.items()}}
        for index, topic in enumerate(values.topic_ids)
    )


def _trec_eval(run: Run, values: RunValues) -> Iterator[str]:
    """Yield the lines of each topic, then those of the run; an undefined value has none. Counts are whole numbers."""
    columns = [Column("runid", None, run.tag)]
    for measure in values.measures:
        whole = measure.definition.aggregate is Aggregate.SUM
        figures: list[Value] = [
            None if value is None or math.isnan(value) else round(value) if whole else value
            for value in [*values.vectors[measure.name].tolist(), values.means[measure.name][0]]
        ]
        columns.append(Column(measure.name, figures[:-1], figures[-1]))
    return trec_eval.render(
        [Sheet(run.tag, values.topic_ids, columns)], by_topic=True, summary=True
    )


@dataclass(frozen=True)
class RunValueExport:
    """A renderer, its content type, and its file extension."""

    render: Callable[[Run, RunValues], Iterator[str]]
    content_type: str
    ending: str


RUN_VALUE_EXPORTS: dict[str, RunValueExport] = {
    "csv": RunValueExport(_csv, "text/csv; charset=utf-8", "csv"),
    "trec_eval": RunValueExport(_trec_eval, "text/plain; charset=utf-8", "txt"),
}
