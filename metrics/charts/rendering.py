"""A chart as a file: Vega-Lite for the page, SVG, PNG and PDF for everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import vl_convert
from altair.utils.schemapi import debug_mode

_PAPER_PPI = 300
# A CSS pixel is 1/96 of an inch, and vl-convert takes one for 1/72.
_PIXEL = 72 / 96


@dataclass(frozen=True)
class Format:
    """A file format: its content type, and what makes it of a Vega-Lite specification."""

    content_type: str
    render: Callable[[dict[str, Any]], bytes]


def render(draw: Callable[[], Any], form: str) -> bytes:
    """Render what `draw` makes in one of FORMATS; an SVG has no script and needs no other file."""
    # Checking a chart against Altair's schema takes longer than to draw it; the tests do it.
    with debug_mode(False):
        specification: dict[str, Any] = draw().to_dict(validate=False)
    return FORMATS[form].render(specification)


def _svg(specification: dict[str, Any]) -> bytes:
    svg: str = vl_convert.vegalite_to_svg(specification)
    return svg.encode()


def _png(specification: dict[str, Any]) -> bytes:
    """Render at 300 dots per inch on white, as journals require."""
    png: bytes = vl_convert.vegalite_to_png(_on_white(specification), scale=_PIXEL, ppi=_PAPER_PPI)
    return png


def _pdf(specification: dict[str, Any]) -> bytes:
    pdf: bytes = vl_convert.vegalite_to_pdf(_on_white(specification))
    return pdf


def _json(specification: dict[str, Any]) -> bytes:
    return json.dumps(specification, separators=(",", ":")).encode()


def _on_white(specification: dict[str, Any]) -> dict[str, Any]:
    return {**specification, "background": "white"}


FORMATS = {
    "svg": Format("image/svg+xml", _svg),
    "png": Format("image/png", _png),
    "pdf": Format("application/pdf", _pdf),
    "json": Format("application/json", _json),
}
