"""A chart as a file: Vega-Lite for pages, SVG, PNG and PDF for other uses, its table as CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from typing import Any

import altair as alt
import vl_convert

from metrics.charts.figure import Figure
from metrics.charts.look import Look
from runs.formats.comma_separated import write_csv

_PAPER_PPI = 300
# A CSS pixel is 1/96 of an inch; vl-convert takes it for 1/72.
_PIXEL = 72 / 96
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
    return vega_lite


def _svg(figure: Figure, look: Look) -> bytes:
    """Render a picture with its caption as its description."""
    svg: str = vl_convert.vegalite_to_svg(specification(figure, look))
    end = svg.index(">") + 1
    return f"{svg[:end]}<desc>{escape(figure.full_caption)}</desc>{svg[end:]}".encode()


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
        versions = " ".join(map(str, source.versions))
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


def _on_white(figure: Figure, look: Look) -> dict[str, Any]:
    return {**specification(figure, look), "background": "white"}


FORMATS = {
    "svg": Format("image/svg+xml", _svg),
    "png": Format("image/png", _png),
    "pdf": Format("application/pdf", _pdf),
    "json": Format("application/json", _json),
    "csv": Format("text/csv; charset=utf-8", _csv),
}
