"""FORMATS: how a table is written as a file. A new format is a renderer and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metrics.engine.trec_eval.columns import Column
from metrics.exports import latex, markdown, tab_separated
from metrics.exports.sheet import Sheet
from metrics.exports.table import Table
from metrics.exports.trec_eval import render as render_sheets
from runs.formats.comma_separated import write_csv


def _comma_separated(table: Table) -> Iterator[str]:
    """Yield a line of names, then the values of named columns at full precision."""
    places = [place for place, column in enumerate(table.columns) if column.name]
    names = [table.columns[place].name for place in places]
    return write_csv(names, ([row.values[place] for place in places] for row in table.rows))


def _trec_eval(table: Table) -> Iterator[str]:
    """Yield trec_eval's own lines for a table of runs: each run's name and its values."""
    for row in table.rows:
        name, columns = "", []
        for column, cell in zip(table.columns, row.values, strict=True):
            if column.head:
                name = cell
            elif column.direction:
                columns.append(Column(column.name, None, cell.value))

        sheet = Sheet(name, [], [Column("runid", None, name), *columns])
        yield from render_sheets([sheet], by_topic=False, summary=True)


@dataclass(frozen=True)
class Format:
    """A renderer, its content type, the ending of a file, and the name of the format on pages."""

    render: Callable[[Table], Iterator[str]]
    content_type: str
    ending: str
    title: str

    def content(self, table: Table) -> bytes:
        """Return the whole file."""
        return "".join(self.render(table)).encode()

    def headers(self, name: str) -> dict[str, str]:
        """Return the headers of a file with this name before its ending."""
        disposition = f'attachment; filename="{name}.{self.ending}"'
        return {"Content-Type": self.content_type, "Content-Disposition": disposition}


FORMATS: dict[str, Format] = {
    "csv": Format(_comma_separated, "text/csv; charset=utf-8", "csv", "CSV"),
    "md": Format(markdown.render, "text/markdown; charset=utf-8", "md", "Markdown"),
    "tex": Format(latex.render, "application/x-tex; charset=utf-8", "tex", "LaTeX"),
    "tsv": Format(tab_separated.render, "text/tab-separated-values; charset=utf-8", "tsv", "TSV"),
    "trec_eval": Format(_trec_eval, "text/plain; charset=utf-8", "txt", "trec_eval"),
}
