"""Show answers in a notebook: tables, and charts as the server draws them.

A notebook keeps its output, so that only what the server has sent is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from .errors import BadSource

# Rows that a notebook shows.
MAX_ROWS = 50
FORMS = ("svg", "png", "pdf", "json", "csv")
_CELL = "padding:2px 8px;text-align:{side}"
_TIER = ";border-top:2px solid currentColor"


def text_of(value: Any) -> str:
    """Return a value as text: a float with four decimals, None as ""."""
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def table_html(rows: Sequence[dict[str, Any]], source: str, page: str = "") -> str:
    """Return the first rows as a table in HTML, with a line where the next tier begins.

    Under it are `source`, where the numbers come from, and a link to the page. Text is escaped.
    """
    first = rows[:MAX_ROWS]
    names = list(dict.fromkeys(name for row in first for name in row))
    styles = {}
    for name in names:
        numeric = any(isinstance(row.get(name), int | float) for row in first)
        styles[name] = _CELL.format(side="right" if numeric else "left")

    head = "".join(f'<th style="{styles[name]}">{escape(name)}</th>' for name in names)

    body, tier = "", None
    for row in first:
        line = _TIER if tier is not None and row.get("tier") not in (None, tier) else ""
        tier = row.get("tier", tier)
        cells = (
            f'<td style="{styles[name]}{line}">{escape(text_of(row.get(name)))}</td>'
            for name in names
        )
        body += f"<tr>{''.join(cells)}</tr>"

    foot = escape(source)
    if len(rows) > len(first):
        foot += f" ({len(rows) - len(first)} more rows)"
    if page.startswith(("http://", "https://")):
        foot += f' <a href="{escape(page)}">{escape(page)}</a>'

    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<small>{foot}</small>"


class Chart:
    """A chart as the server draws it: `content` is the file, `form` its format.

    A notebook shows svg and png.
    """

    def __init__(self, content: bytes, form: str, name: str = "chart") -> None:
        self.content, self.form, self._name = content, form, name

    def __repr__(self) -> str:
        return f"Chart({self._name}.{self.form})"

    def save(self, path: str | Path) -> Path:
        """Write it into a file that has its format as suffix."""
        path = Path(path)
        if path.suffix != f".{self.form}":
            raise BadSource(
                f"{path}: this chart is {self.form}; ask for another format, as in chart(name, "
                "'pdf')"
            )

        path.write_bytes(self.content)
        return path

    def _repr_svg_(self) -> str | None:
        return self.content.decode() if self.form == "svg" else None

    def _repr_png_(self) -> bytes | None:
        return self.content if self.form == "png" else None


def check_form(form: str) -> str:
    """Return the format of a chart; raise BadSource for an unknown one."""
    if form not in FORMS:
        raise BadSource(f"a chart is {', '.join(FORMS)}, not {form!r}")
    return form
