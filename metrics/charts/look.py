"""The look of charts: colours of the style sheet, sizes, and what all charts share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import altair as alt
import numpy as np

from metrics.charts.text import shortened, shortened_names, width_of, wrapped

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Palette:
    """Colours on a transparent ground; `levels` go from the lowest relevant level up, `losses` from small to large.

    `systems` are told apart, also by readers who see no red, no green or no blue: they are the
    colours of Okabe and Ito, moved until the two that are most alike differed most, with a contrast
    of at least 3 to the ground.
    """

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
        ("#163890", "#d08100", "#09a790", "#812f66", "#8c8eca", "#9c1404", "#a38855", "#00021e"),
    ),
    "dark": Palette(
        "#e6e9ee", "#9aa5b4", "#2c3440", "#7fb0ff", "#e0b050", "#ff9a90", ("#2f5488", "#4f7fc4", "#7fb0ff", "#cfe1ff"),
        ("#6b3733", "#bd665d", "#ff9a90"),
        ("#5aa3d7", "#f3af5c", "#18ffb1", "#b64767", "#7360d3", "#d62504", "#eff217", "#d0fffe"),
    ),
}  # fmt: skip
# Sizes of letters; in a legend what lies before its entries, what beside the letters of each, and
# the height of a row.
_TITLE, _TITLE_NARROW, _SUBTITLE, _SUBTITLE_NARROW, _LEGEND, _AXIS_TITLE = 15, 13, 13, 12, 12, 13
_BEFORE_ENTRIES, _BESIDE_ENTRY, _LEGEND_ROW = 48, 36, 18
# What titles, axes and a row of a legend take beside a plot and above and below it, at most.
_BESIDE_PLOT, _ABOVE_AND_BELOW_PLOT = 90, 160
# Of points that are told apart by their colours as well.
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
# A live chart may have less width than its picture: a window need not be a full page wide.
_LIVE_SHARE = 0.8
# Width and height of the whole picture, in pixels, where its rows need no more height: for paper,
# across a page, for two beside each other, for a phone; for a row of each of many runs, on paper
# and on a phone, and of some runs.
SIZES = {
    "column": (800, 400), "wide": (1120, 380), "half": (560, 360), "narrow": (360, 320), "tall": (860, 820),
    "narrow-tall": (360, 640), "rows": (800, 580),
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """One way to draw a chart: a palette, a size, and whether a pointer can ask it (`live`).

    `grown` is the height where the chart needs another one than that of its size.
    """

    theme: str = "light"
    size: str = "column"
    live: bool = False
    grown: int | None = None

    @property
    def palette(self) -> Palette:
        return PALETTES[self.theme]

    @property
    def width(self) -> int:
        return SIZES[self.size][0]

    @property
    def height(self) -> int:
        return self.grown or SIZES[self.size][1]

    @property
    def room(self) -> float:
        """The width that texts may count on."""
        return (self.width - 24) * (_LIVE_SHARE if self.live else 1.0)

    @property
    def plot(self) -> tuple[float, float]:
        """Return width and height that the plot has at least, without titles, axes and a row of a legend."""
        return max(80.0, self.room - _BESIDE_PLOT), max(
            80.0, float(self.height - _ABOVE_AND_BELOW_PLOT)
        )

    @property
    def narrow(self) -> bool:
        return self.size.startswith("narrow")


@cache
def _marks() -> type[alt.Chart]:
    """Return the class of charts whose channels are made of their own classes.

    Altair would find the class of a channel that is given as text by hashing the schemas of all of
    its classes, again for every such channel, which takes longer than all the rest of a chart.
    """

    class Marks(alt.Chart):
        def encode(self, *args: Any, **channels: Any) -> Any:
            return super().encode(
                *args, **{name: _channel(name, value) for name, value in channels.items()}
            )

    return Marks


def _channel(name: str, given: Any) -> Any:
    """Return the channel that a text, a condition with values, or a list of texts stands for."""
    kind = name[0].upper() + name[1:]
    if isinstance(given, str):
        return getattr(alt, kind)(given)
    if isinstance(given, list):
        return [_channel(name, one) for one in given]
    if isinstance(given, dict) and "value" in given:
        return getattr(alt, f"{kind}Value")(**given)
    return given


def marks(rows: Iterable[dict[str, Any]]) -> Any:
    """Return a chart of these rows, still without a mark."""
    return _marks()(data(rows))


class _Rows:
    """Rows that Altair takes as they are; it would copy a list of them three times, value by value."""

    _schema: ClassVar[dict[str, str]] = {"type": "array"}

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = [{name: _plain(value) for name, value in row.items()} for row in rows]

    def to_dict(self, *args: Any, **options: Any) -> list[dict[str, Any]]:
        return self._rows


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def data(rows: Iterable[dict[str, Any]]) -> Any:
    return alt.Data(values=_Rows(rows))  # type: ignore[no-untyped-call]


def dressed(layers: list[Any], look: Look, title: str, subtitle: str) -> Any:
    """Combine layers to one chart of the look's size and colours; a live one is as wide as its container."""
    width: Any = "container" if look.live else look.width
    size, small = (_TITLE_NARROW, _SUBTITLE_NARROW) if look.narrow else (_TITLE, _SUBTITLE)
    said = alt.TitleParams(
        wrapped(title, look.room, size, bold=True), subtitle=wrapped(subtitle, look.room, small)
    )
    return alt.layer(*layers, width=width, height=look.height, title=said).configure(
        **_config(look)
    )


def axis_title(text: str, room: float) -> str:
    """Return the title of an axis, shortened where it has no room."""
    return shortened(text, room, _AXIS_TITLE)


def row_axis(names: list[str], size: int, room: float) -> dict[str, Any]:
    """Return an axis of names of rows, whose values are their places from 0 on.

    A name that has no room is shortened here, and the room is kept free: Vega would cut it at a
    width in the font that is at hand, and a reader's may be wider.
    """
    texts = shortened_names(names, room, size)
    kept = max((width_of(text, size) for text in texts), default=0.0)
    said = f"{json.dumps(texts)}[datum.value]"
    return {"labelExpr": said, "labelFontSize": size, "labelLimit": 0, "labelOverlap": False, "labelPadding": 6,
            "minExtent": int(kept) + 8, "ticks": False, "domain": False}  # fmt: skip


def whole_ticks(low: int, high: int, look: Look, most: int = 10) -> list[int]:
    """At most `most` whole numbers, round ones but for the first; half as many on a phone. Vega would take halves."""
    most = max(2, most // 2 if look.narrow else most)
    step = next(
        factor * 10**power
        for power in range(19)
        for factor in (1, 2, 5)
        if (high - low) // (factor * 10**power) <= most
    )
    return sorted({low, *range(low + step - low % step, high + 1, step)})


def named_colours(names: list[str], colours: list[str], look: Look) -> Any:
    """Return a colour for each name, with a legend above the chart."""
    return alt.Color(
        "line:N",
        scale=alt.Scale(domain=names, range=colours),
        sort=None,
        legend=_legend(names, look),
    )


def named_dashes(
    names: list[str], dashed: list[str], look: Look, dotted: Iterable[str] = ()
) -> Any:
    """Return a dash for each name, in the same legend as the colours of the same names."""
    dots = set(dotted)
    dashes = [[6, 4] if name in dashed else [2, 2] if name in dots else [1, 0] for name in names]
    scale = alt.Scale(domain=names, range=dashes)
    return alt.StrokeDash("line:N", scale=scale, sort=None, legend=_legend(names, look))


def named_shapes(names: list[str], colours: list[str], look: Look) -> tuple[Any, Any]:
    """Return a colour and a shape of points for each name, with one legend above the chart."""
    legend = _legend(names, look, points=True)
    colour = alt.Color(
        "line:N", scale=alt.Scale(domain=names, range=colours), sort=None, legend=legend
    )
    shapes = alt.Scale(domain=names, range=[SHAPES[at % len(SHAPES)] for at in range(len(names))])
    return colour, alt.Shape("line:N", scale=shapes, sort=None, legend=legend)


def with_legend(names: list[str]) -> Callable[[Look], int]:
    """Return the height of a chart with a legend of these names: what its second and later rows take comes on top."""

    def height(look: Look) -> int:
        return look.height + _LEGEND_ROW * (-(-len(names) // _legend_columns(names, look)) - 1)

    return height


def _legend(names: list[str], look: Look, *, points: bool = False) -> Any:
    """Return all names, in as many columns as have room; one that is longer than a line is shortened."""
    texts = shortened_names(names, look.room - _BEFORE_ENTRIES - _BESIDE_ENTRY, _LEGEND)
    given: dict[str, Any] = (
        {} if texts == names else {"labelExpr": f"{json.dumps(texts)}[datum.index]"}
    )
    if not points:
        given |= {"symbolType": "stroke", "symbolStrokeWidth": 3}
    return alt.Legend(
        title=None, orient="top", direction="horizontal", columns=_legend_columns(names, look), labelLimit=0,
        symbolOpacity=1, **given,
    )  # fmt: skip


def _legend_columns(names: list[str], look: Look) -> int:
    widest = max(width_of(name, _LEGEND) for name in names) + _BESIDE_ENTRY
    return max(1, min(len(names), int((look.room - _BEFORE_ENTRIES) // widest)))


def _config(look: Look) -> dict[str, Any]:
    palette = look.palette
    axis = {
        "labelColor": palette.faint, "titleColor": palette.text, "gridColor": palette.grid, "domainColor": palette.grid,
        "tickColor": palette.grid, "labelFontSize": 12, "titleFontSize": _AXIS_TITLE, "titleFontWeight": "normal",
        # The last number stands at its place, not within the axis, where it would touch the one
        # before.
        "labelFlush": False,
    }  # fmt: skip
    title = {
        "anchor": "start", "frame": "bounds", "color": palette.text,
        "fontSize": _TITLE_NARROW if look.narrow else _TITLE, "subtitleColor": palette.faint,
        "subtitleFontSize": _SUBTITLE_NARROW if look.narrow else _SUBTITLE, "offset": 10,
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": _FONT,
        "axis": axis,
        # Room between numbers and the title beside them in whatever font.
        "axisLeft": {"minExtent": 36},
        "title": title,
        "legend": {
            "labelColor": palette.text,
            "labelFontSize": _LEGEND,
            "symbolSize": 220,
            "offset": 6,
        },
        "view": {"stroke": None},
        "line": {"strokeWidth": 2.5},
        # The picture is exactly as large as it says, whatever its labels need.
        "autosize": alt.AutoSizeParams(type="fit", contains="padding"),
        "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},
    }
