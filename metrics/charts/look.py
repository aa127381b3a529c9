"""How charts look: colours that go with the style sheet, two sizes, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import altair as alt

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Palette:
    """Colours on a transparent ground; `levels` go from the lowest relevant level up, `systems` are told apart."""

    text: str
    faint: str
    grid: str
    run: str
    ideal: str
    other: str
    levels: tuple[str, ...]
    systems: tuple[str, ...]


PALETTES = {
    "light": Palette(
        "#1c2430", "#566171", "#e3e7ec", "#1f5fbf", "#8a5a00", "#a3271f", ("#9dbfee", "#5c93dd", "#1f5fbf", "#123c7c"),
        ("#1f5fbf", "#a3271f", "#17693f", "#7a3fb0", "#0b7c8f", "#b0307a"),
    ),
    "dark": Palette(
        "#e6e9ee", "#9aa5b4", "#2c3440", "#7fb0ff", "#e0b050", "#ff9a90", ("#2f5488", "#4f7fc4", "#7fb0ff", "#cfe1ff"),
        ("#7fb0ff", "#ff9a90", "#79d3a3", "#c9a6ff", "#62d0e0", "#f59ad0"),
    ),
}  # fmt: skip
# Width and height of the whole picture, in pixels: for paper, across a page, for two beside each other, for a phone.
SIZES = {"column": (800, 400), "wide": (1120, 380), "half": (560, 360), "narrow": (360, 320)}


@dataclass(frozen=True)
class Look:
    """One way to draw a chart: a palette, a size, and whether a pointer can ask it (`live`)."""

    theme: str = "light"
    size: str = "column"
    live: bool = False

    @property
    def palette(self) -> Palette:
        return PALETTES[self.theme]

    @property
    def width(self) -> int:
        return SIZES[self.size][0]

    @property
    def height(self) -> int:
        return SIZES[self.size][1]

    @property
    def narrow(self) -> bool:
        return self.size == "narrow"


def data(rows: Iterable[dict[str, Any]]) -> Any:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]


def dressed(layers: list[Any], look: Look, title: str, subtitle: str) -> Any:
    """Layers as one chart of the look's size and colours; a live one is as wide as the page has room."""
    width: Any = "container" if look.live else look.width
    lines = _broken(subtitle, look.width // 7)
    return (
        alt.layer(*layers)
        .properties(width=width, height=look.height, title=alt.TitleParams(title, subtitle=lines))
        .configure(**_config(look))
    )


def _broken(text: str, limit: int) -> list[str]:
    """A sentence in lines of at most so many characters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def named_colours(names: list[str], colours: list[str]) -> Any:
    """A colour for each name, with a legend above the chart."""
    return alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), sort=None, legend=_legend())


def named_dashes(names: list[str]) -> Any:
    """The first line drawn through, the others dashed; in the same legend as the colours."""
    dashes = [[1, 0], *([6, 4] for _ in names[1:])]
    return alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), sort=None, legend=_legend())


def _legend() -> Any:
    return alt.Legend(title=None, orient="top", direction="horizontal", symbolType="stroke", symbolStrokeWidth=3)


def _config(look: Look) -> dict[str, Any]:
    palette, title_size = look.palette, 13 if look.narrow else 15
    axis = {
        "labelColor": palette.faint, "titleColor": palette.text, "gridColor": palette.grid, "domainColor": palette.grid,
        "tickColor": palette.grid, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal",
    }  # fmt: skip
    title = {
        "anchor": "start", "frame": "group", "color": palette.text, "fontSize": title_size,
        "subtitleColor": palette.faint, "subtitleFontSize": 12 if look.narrow else 13, "limit": look.width - 20,
        "offset": 10,
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": _FONT,
        "axis": axis,
        "title": title,
        "legend": {"labelColor": palette.text, "labelFontSize": 12, "symbolSize": 220, "offset": 6},
        "view": {"stroke": None},
        "line": {"strokeWidth": 2.5},
        # The picture is exactly as large as it says, whatever its labels need.
        "autosize": alt.AutoSizeParams(type="fit", contains="padding"),
        "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},
    }
