"""What a notebook shows: tables of answers, and charts as the server draws them.

A notebook keeps what it shows: it is the server's answer, and nothing that the server has not
shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from .errors import BadSource

SHOWN = 50
FORMS = ("svg", "png", "pdf", "json", "csv")
_CELL = "padding:2px 8px;text-align:{side}"
_TIER = ";border-top:2px solid currentColor"


def text_of(value: Any) -> str:
    """Return a value as it is shown: four decimals, nothing for None."""
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def table_html(rows: Sequence[dict[str, Any]], source: str, page: str = "") -> str:
    """Return the first rows as a table: every text is escaped, and a line is drawn where the next tier begins.

    Under it stand `source`, where the numbers come from, and a link to the page.
    """
    shown = rows[:SHOWN]
    names = list(dict.fromkeys(name for row in shown for name in row))
    numbers = {
        name for name in names if any(isinstance(row.get(name), int | float) for row in shown)
    }
    styles = {name: _CELL.format(side="right" if name in numbers else "left") for name in names}
    head = "".join(f'<th style="{styles[name]}">{escape(name)}</th>' for name in names)

    body, tier = "", None
    for row in shown:
        line = _TIER if tier is not None and row.get("tier") not in (None, tier) else ""
        tier = row.get("tier", tier)
        cells = (
            f'<td style="{styles[name]}{line}">{escape(text_of(row.get(name)))}</td>'
            for name in names
        )
        body += f"<tr>{''.join(cells)}</tr>"

    more = f" ({len(rows) - len(shown)} more rows)" if len(rows) > len(shown) else ""
    link = (
        f' <a href="{escape(page)}">{escape(page)}</a>'
        if page.startswith(("http://", "https://"))
        else ""
    )

    foot = f"<small>{escape(source)}{more}{link}</small>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"


class Chart:
    """A picture as the server draws it: `content` is the file, `form` its format. A notebook shows svg and png."""

    def __init__(self, content: bytes, form: str, name: str = "chart") -> None:
        self.content, self.form, self._name = content, form, name

    def __repr__(self) -> str:
        return f"Chart({self._name}.{self.form})"

    def save(self, path: str | Path) -> Path:
        """Write it into a file, whose ending is its format."""
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
    """Return the format of a chart; BadSource for one that there is not."""
    if form not in FORMS:
        raise BadSource(f"a chart is {', '.join(FORMS)}, not {form!r}")
    return form
