"""MATRIX_EXPORTS: how a table of values is written for R, pandas and spreadsheets.

A new format is a line here.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metrics.exports.formats import FORMATS
from metrics.exports.table import Table
from metrics.services.boards.matrix import ValueMatrix
from metrics.services.comparisons.shown_pairs import names_of
from runs.errors import InvalidInput

_TOPIC = "topic"
Columns = dict[str, list[Any]]


def columns_of(matrix: ValueMatrix, layout: str) -> Columns:
    """Return the columns of the table by name, in one of LAYOUTS; an undefined value is NaN."""
    topics = matrix.topic_ids
    if layout == "wide":
        (values,) = matrix.values.values()
        names = _column_names(matrix)
        return {
            _TOPIC: topics,
            **{name: row.tolist() for name, row in zip(names, values, strict=True)},
        }

    runs = [evaluation.run for evaluation in matrix.evaluations]
    return {
        "run": [str(run.pk) for run in runs for _ in topics],
        "team": [run.team.slug for run in runs for _ in topics],
        "tag": [run.tag for run in runs for _ in topics],
        _TOPIC: topics * len(runs),
        **{name: values.ravel().tolist() for name, values in matrix.values.items()},
    }


def _column_names(matrix: ValueMatrix) -> list[str]:
    """Return a unique name for each run: its tag, if necessary with the team or the id."""
    names = names_of([evaluation.run for evaluation in matrix.evaluations])
    counts = Counter([_TOPIC, *names.values()])
    return [name if counts[name] == 1 else f"{name} {run.pk}" for run, name in names.items()]


def _csv(columns: Columns) -> bytes:
    table = Table.of_values("values", columns, zip(*columns.values(), strict=True))
    return "".join(FORMATS["csv"].render(table)).encode()


def _parquet(columns: Columns) -> bytes:
    # An optional dependency, which is slow to load.
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        message = (
            "this server writes no Parquet: pyarrow is not installed there (the extra `parquet`); "
            "use csv"
        )
        raise InvalidInput(message, code="format_not_installed", pointer="kind") from error

    arrays = {name: arrow.array(values, from_pandas=True) for name, values in columns.items()}
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(arrays), buffer, compression="zstd")

    return buffer.getvalue()


@dataclass(frozen=True)
class MatrixExport:
    """A renderer of columns and its content type."""

    render: Callable[[Columns], bytes]
    content_type: str


MATRIX_EXPORTS: dict[str, MatrixExport] = {
    "csv": MatrixExport(_csv, FORMATS["csv"].content_type),
    "parquet": MatrixExport(_parquet, "application/vnd.apache.parquet"),
}
