"""A chart as SVG in a page, and as a file: SVG, PNG, PDF, Vega-Lite, and its table as CSV."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import altair as alt
import vl_convert
from django.core.cache import cache

from metrics.charts.figure import Figure
from metrics.charts.look import PAGE, Look
from metrics.charts.marks import described, titled
from metrics.services.work import begin_drawing
from runs.formats.comma_separated import write_csv

_CACHE_SECONDS = 600
_PAPER_PPI = 300
# A CSS pixel is 1/96 of an inch; vl-convert takes it for 1/72.
_PIXEL = 72 / 96
# Characters that XML cannot have, escaped in JSON, or twice in an expression.
_NOT_XML = re.compile(r"\\+u(?:00[01][0-9a-f]|fff[ef])|(?<!\\)(?:\\\\)*\\[bf]")
_SIGNED = re.compile(r"[-+][0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class Format:
    """A file format: its content type, and the function that renders a chart in one look."""

    content_type: str
    render: Callable[[Figure, Look], bytes]


def render(figure: Figure, look: Look, form: str) -> bytes:
    """Render a chart in one of FORMATS; an SVG has no script and needs no other file."""
    return FORMATS[form].render(figure, look)


def specification(figure: Figure, look: Look) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart."""
    # To check a chart against Altair's schema takes longer than to draw it; the tests do it.
    with alt.utils.schemapi.debug_mode(False):
        vega_lite: dict[str, Any] = figure.draw(look).to_dict(validate=False)

    if not look.linked:
        # A file leads to no page.
        for part in (vega_lite, *vega_lite["layer"]):
            for row in part.get("data", {}).get("values", ()):
                row.pop("address", None)

    return vega_lite


def render_inline(figure: Figure, size: str, *, linked: bool) -> str:
    """Render a picture for a page, in the colours of its style sheet.

    The same picture is not drawn again for a while.
    """
    text = _as_text(described(specification(figure, Look(theme=PAGE, size=size, linked=linked))))
    key = f"inline:{hashlib.sha256(f'{text}{figure.caption}'.encode()).hexdigest()}"
    svg: str | None = cache.get(key)
    if svg is None:
        begin_drawing()
        svg = titled(vl_convert.vegalite_to_svg(text), figure.caption, inline=True)
        cache.set(key, svg, _CACHE_SECONDS)

    return svg


def _svg(figure: Figure, look: Look) -> bytes:
    """Render a picture with its caption as its description, and with a title for each mark."""
    svg = vl_convert.vegalite_to_svg(_as_text(described(specification(figure, look))))
    return titled(svg, figure.full_caption, inline=False).encode()


def _png(figure: Figure, look: Look) -> bytes:
    """Render at 300 dots per inch on white, as journals require."""
    png: bytes = vl_convert.vegalite_to_png(_on_white(figure, look), scale=_PIXEL, ppi=_PAPER_PPI)
    return png


def _pdf(figure: Figure, look: Look) -> bytes:
    pdf: bytes = vl_convert.vegalite_to_pdf(_on_white(figure, look))
    return pdf


def _json(figure: Figure, look: Look) -> bytes:
    return json.dumps(specification(figure, look), separators=(",", ":")).encode()


def _csv(figure: Figure, look: Look) -> bytes:
    """Write the table of the chart, with its source in each row."""
    source = figure.source

    columns: list[str] = []
    for name in figure.columns:
        columns.append(name if name not in columns else f"{name} ({len(columns) + 1})")

    source_cells = {}

    if source:
        versions = " ".join(str(qrels.version) for qrels in source.qrels)
        source_cells = {
            "collection": source.collection,
            "measure": source.measure,
            "qrels": versions,
            "date": source.day,
        }

    rows = ([*map(_cell, row), *source_cells.values()] for row in figure.rows)
    return "".join(write_csv([*columns, *source_cells], rows)).encode()


def _cell(text: str) -> str | Decimal:
    """Return a number with a sign as a number, any other text as it is."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    return Decimal(plain) if _SIGNED.fullmatch(plain) else text


def _on_white(figure: Figure, look: Look) -> str:
    return _as_text({**specification(figure, look), "background": "white"})


def _as_text(vega_lite: dict[str, Any]) -> str:
    """Return a specification as JSON to draw, without characters at which vl-convert would abort."""
    return _NOT_XML.sub(r"\\ufffd", json.dumps(vega_lite))


FORMATS = {
    "svg": Format("image/svg+xml", _svg),
    "png": Format("image/png", _png),
    "pdf": Format("application/pdf", _pdf),
    "json": Format("application/json", _json),
    "csv": Format("text/csv; charset=utf-8", _csv),
}
