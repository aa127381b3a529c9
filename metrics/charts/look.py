"""How charts look: colours that go with the style sheet, sizes, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import altair as alt

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Palette:
    """Colours on a transparent ground; `levels` go from the lowest relevant level up, `losses` from small to large,
    `systems` are told apart."""

    text: str
    faint: str
    grid: str
    run: str
    ideal: str
    other: str
    levels: tuple[str, ...]
    losses: tuple[str, ...]
    systems: tuple[str, ...]


PALETTES = {
    "light": Palette(
        "#1c2430", "#566171", "#e3e7ec", "#1f5fbf", "#8a5a00", "#a3271f", ("#9dbfee", "#5c93dd", "#1f5fbf", "#123c7c"),
        ("#efb5af", "#d4675e", "#a3271f"),
        ("#1f5fbf", "#a3271f", "#17693f", "#7a3fb0", "#0b7c8f", "#b0307a", "#6b7300", "#3d4756"),
    ),
    "dark": Palette(
        "#e6e9ee", "#9aa5b4", "#2c3440", "#7fb0ff", "#e0b050", "#ff9a90", ("#2f5488", "#4f7fc4", "#7fb0ff", "#cfe1ff"),
        ("#6b3733", "#bd665d", "#ff9a90"),
        ("#7fb0ff", "#ff9a90", "#79d3a3", "#c9a6ff", "#62d0e0", "#f59ad0", "#ccd65a", "#c8d0dc"),
    ),
}  # fmt: skip
# Width and height of the whole picture, in pixels: for paper, across a page, for two beside each other, for a phone;
# for a row of each of many runs, on paper and on a phone, and of some runs.
SIZES = {
    "column": (800, 400), "wide": (1120, 380), "half": (560, 360), "narrow": (360, 320), "tall": (860, 820),
    "narrow-tall": (360, 640), "rows": (800, 580),
}  # fmt: skip


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
        return self.size.startswith("narrow")


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


def row_axis(names: list[str], size: int, look: Look) -> dict[str, Any]:
    """An axis of names of rows; with room for the longest one in whatever font it is shown.

    Names are cut at a width in the font that is at hand here; a reader's may be a fifth wider.
    """
    limit = 76 if look.narrow else 180
    room = min(int(1.2 * limit), int(0.66 * size * max(map(len, names), default=0)))
    return {"labelFontSize": size, "labelLimit": limit, "minExtent": room, "ticks": False, "domain": False}


def named_colours(names: list[str], colours: list[str], *, columns: int | None = None) -> Any:
    """A colour for each name, with a legend above the chart, in one line or in `columns`."""
    return alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), sort=None, legend=_legend(columns))


def named_dashes(names: list[str]) -> Any:
    """The first line drawn through, the others dashed; in the same legend as the colours."""
    dashes = [[1, 0], *([6, 4] for _ in names[1:])]
    return alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), sort=None, legend=_legend())


def _legend(columns: int | None = None) -> Any:
    look: dict[str, Any] = {"symbolType": "stroke", "symbolStrokeWidth": 3, **({"columns": columns} if columns else {})}
    return alt.Legend(title=None, orient="top", direction="horizontal", **look)


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
