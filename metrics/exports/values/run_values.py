"""RUN_VALUE_EXPORTS: the values of one run, topic by topic, as text in each format of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from metrics.engine.measures.definition import Aggregate
from metrics.engine.trec_eval.columns import Column, Value
from metrics.exports import trec_eval
from metrics.exports.formats import FORMATS
from metrics.exports.sheet import Sheet
from metrics.exports.table import Table
from metrics.services.values.values import RunValues
from runs.models import Run


def _csv(run: Run, values: RunValues) -> Iterator[str]:
    """Yield a table with a row for each topic."""
    columns = {name: vector.tolist() for name, vector in values.vectors.items()}
    records = (
        {"topic": topic, **{name: column[index] for name, column in columns.items()}}
        for index, topic in enumerate(values.topic_ids)
    )
    return FORMATS["csv"].render(Table.of_records(str(run.pk), records))


def _trec_eval(run: Run, values: RunValues) -> Iterator[str]:
    """Yield the lines of each topic, then those of the run; an undefined value has none."""
    columns = [Column("runid", None, run.tag)]
    for measure in values.measures:
        # Counts are whole numbers.
        whole = measure.definition.aggregate is Aggregate.SUM
        figures: list[Value] = []
        for value in (*values.vectors[measure.name].tolist(), values.means[measure.name][0]):
            if value is None or math.isnan(value):
                figures.append(None)
            else:
                figures.append(round(value) if whole else value)

        columns.append(Column(measure.name, figures[:-1], figures[-1]))

    sheet = Sheet(run.tag, values.topic_ids, columns)
    return trec_eval.render([sheet], by_topic=True, summary=True)


RUN_VALUE_EXPORTS: dict[str, Callable[[Run, RunValues], Iterator[str]]] = {
    "csv": _csv,
    "trec_eval": _trec_eval,
}
