"""The look of charts: colours of the style sheet, sizes, and what all charts share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar

import altair as alt
import numpy as np

from metrics.charts.text import shortened, shortened_names, width_of, wrapped

# More points than these have no intervals.
MOST_INTERVALS = 30

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Palette:
    """Colours on a transparent ground, with `levels` from the lowest relevant one up and `losses`
    from small to large.

    `systems` can be told apart also by readers who cannot see red, green or blue: they are the
    colours of Okabe and Ito, moved until the two most similar ones differed most, with a contrast
    of at least 3 to the ground.
    """

    text: str
    faint: str
    grid: str
    ground: str
    run: str
    ideal: str
    other: str
    levels: tuple[str, ...]
    losses: tuple[str, ...]
    systems: tuple[str, ...]


PALETTES = {
    "light": Palette(
        text="#1c2430", faint="#566171", grid="#e3e7ec", ground="#ffffff",
        run="#1f5fbf", ideal="#8a5a00", other="#a3271f",
        levels=("#9dbfee", "#5c93dd", "#1f5fbf", "#123c7c"),
        losses=("#efb5af", "#d4675e", "#a3271f"),
        systems=("#163890", "#d08100", "#09a790", "#812f66",
                 "#8c8eca", "#9c1404", "#a38855", "#00021e"),
    ),
    "dark": Palette(
        text="#e6e9ee", faint="#9aa5b4", grid="#2c3440", ground="#191f27",
        run="#7fb0ff", ideal="#e0b050", other="#ff9a90",
        levels=("#2f5488", "#4f7fc4", "#7fb0ff", "#cfe1ff"),
        losses=("#6b3733", "#bd665d", "#ff9a90"),
        systems=("#5aa3d7", "#f3af5c", "#18ffb1", "#b64767",
                 "#7360d3", "#d62504", "#eff217", "#d0fffe"),
    ),
}  # fmt: skip


def _variables(palette: Palette) -> Palette:
    """Return the variables of the style sheet for these colours, such as `--chart-levels-1`."""
    variables: dict[str, Any] = {}
    for part in fields(palette):
        value, name = getattr(palette, part.name), f"--chart-{part.name}"
        if isinstance(value, str):
            variables[part.name] = f"var({name})"
        else:
            variables[part.name] = tuple(f"var({name}-{at})" for at in range(1, len(value) + 1))

    return Palette(**variables)


# A chart in a page is drawn once, for light and dark.
PAGE = "page"
_PAGE_PALETTE = _variables(PALETTES["light"])
# Sizes of letters, in pixels.
_TITLE, _TITLE_NARROW, _SUBTITLE, _SUBTITLE_NARROW, _LEGEND, _AXIS_TITLE = 15, 13, 13, 12, 12, 13
# Of a legend: the room before its entries and at the letters of each, and the height of a row.
_BEFORE_ENTRIES, _BESIDE_ENTRY, _LEGEND_ROW = 48, 36, 18
# The most that titles, axes and a row of a legend take from the width and from the height.
_BESIDE_PLOT, _ABOVE_AND_BELOW_PLOT = 90, 160
# For points that differ in shape and colour.
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
# Width and height of the whole picture, in pixels, where its rows need no more height: on paper,
# across a page, for two in a row, on a phone; for a row of each of many runs, on paper and on a
# phone, and of some runs.
SIZES = {
    "column": (800, 400), "wide": (1120, 380), "half": (560, 360), "narrow": (360, 320),
    "tall": (860, 820), "narrow-tall": (360, 640), "rows": (800, 580),
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """One way to draw a chart: a palette, a size, and whether its marks lead to pages (`linked`).

    `grown` is the height of a chart that needs another one than that of its size.
    """

    theme: str = "light"
    size: str = "column"
    linked: bool = False
    grown: int | None = None

    @property
    def palette(self) -> Palette:
        return _PAGE_PALETTE if self.theme == PAGE else PALETTES[self.theme]

    @property
    def link(self) -> dict[str, str]:
        """Return the channel by which marks lead to the `address` of their row, if they do."""
        return {"href": "address:N"} if self.linked else {}

    @property
    def width(self) -> int:
        return SIZES[self.size][0]

    @property
    def height(self) -> int:
        return self.grown or SIZES[self.size][1]

    @property
    def room(self) -> float:
        """Return the width that texts may count on."""
        return self.width - 24.0

    @property
    def plot(self) -> tuple[float, float]:
        """Return the least width and height of the plot, without titles, axes and a legend row."""
        width = self.room - _BESIDE_PLOT
        height = float(self.height - _ABOVE_AND_BELOW_PLOT)
        return max(80.0, width), max(80.0, height)

    @property
    def narrow(self) -> bool:
        return self.size.startswith("narrow")


@cache
def _marks() -> type[alt.Chart]:
    """Return the class of charts that make their channels themselves.

    Altair finds the class of a channel that is given as text by hashing the schemas of all its
    classes, again for every channel, which takes longer than all the rest of a chart.
    """

    class Marks(alt.Chart):
        def encode(self, *args: Any, **channels: Any) -> Any:
            return super().encode(
                *args, **{name: _channel(name, value) for name, value in channels.items()}
            )

    return Marks


def _channel(name: str, definition: Any) -> Any:
    """Return the channel of a text, of a condition with values, or of a list of texts."""
    kind = name[0].upper() + name[1:]
    if isinstance(definition, str):
        return getattr(alt, kind)(definition)
    if isinstance(definition, list):
        return [_channel(name, part) for part in definition]
    if isinstance(definition, dict) and "value" in definition:
        return getattr(alt, f"{kind}Value")(**definition)

    return definition


def marks(rows: Iterable[dict[str, Any]]) -> Any:
    """Return a chart of these rows that has no mark yet."""
    return _marks()(data(rows))


class _Rows:
    """Rows that Altair takes as they are; it would copy a list three times, value by value."""

    _schema: ClassVar[dict[str, str]] = {"type": "array"}

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = [
            {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in row.items()
            }
            for row in rows
        ]

    def to_dict(self, *args: Any, **options: Any) -> list[dict[str, Any]]:
        return self._rows


def data(rows: Iterable[dict[str, Any]]) -> Any:
    return alt.Data(values=_Rows(rows))  # type: ignore[no-untyped-call]


def layered_chart(layers: list[Any], look: Look, title: str, subtitle: str) -> Any:
    """Combine layers into a chart of the look's size and colours, with a title."""
    size, small = (_TITLE_NARROW, _SUBTITLE_NARROW) if look.narrow else (_TITLE, _SUBTITLE)
    heading = alt.TitleParams(
        wrapped(title, look.room, size, bold=True), subtitle=wrapped(subtitle, look.room, small)
    )

    return alt.layer(*layers, width=look.width, height=look.height, title=heading).configure(
        **_config(look)
    )


def axis_title(text: str, room: float) -> str:
    """Return the title of an axis, shortened to the room."""
    return shortened(text, room, _AXIS_TITLE)


def row_axis(names: list[str], size: int, room: float) -> dict[str, Any]:
    """Return an axis of names of rows; its values are their places from 0 on.

    Names are shortened here, and their room is kept free: Vega would cut them by the font at hand,
    and a reader's may be wider.
    """
    texts = shortened_names(names, room, size)
    widest = max((width_of(text, size) for text in texts), default=0.0)
    expression = f"{json.dumps(texts)}[datum.value]"

    return {
        "labelExpr": expression,
        "labelFontSize": size,
        "labelLimit": 0,
        "labelOverlap": False,
        "labelPadding": 6,
        "minExtent": int(widest) + 8,
        "ticks": False,
        "domain": False,
    }


def whole_ticks(low: int, high: int, look: Look, most: int = 10) -> list[int]:
    """Return at most `most` whole numbers, half as many on a phone, all but the first round.

    Vega would take halves.
    """
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
    """Return a dash for each name, in the same legend as the colours of these names."""
    dots = set(dotted)
    dashes = []
    for name in names:
        dash = [2, 2] if name in dots else [1, 0]
        dashes.append([6, 4] if name in dashed else dash)

    scale = alt.Scale(domain=names, range=dashes)
    return alt.StrokeDash("line:N", scale=scale, sort=None, legend=_legend(names, look))


def named_series(names: list[str], look: Look) -> dict[str, Any]:
    """Return a colour for each of up to eight names, and dashes, then dots, for those beyond."""
    colours = look.palette.systems
    size = len(colours)
    repeated = [colours[place % size] for place in range(len(names))]
    dashes = named_dashes(names, names[size : 2 * size], look, dotted=names[2 * size :])
    return {"color": named_colours(names, repeated, look), "strokeDash": dashes}


def named_shapes(names: list[str], colours: list[str], look: Look) -> tuple[Any, Any]:
    """Return a colour and a shape of points for each name, with one legend above the chart."""
    legend = _legend(names, look, points=True)
    colour = alt.Color(
        "line:N", scale=alt.Scale(domain=names, range=colours), sort=None, legend=legend
    )
    places = range(len(names))
    shapes = alt.Scale(domain=names, range=[SHAPES[place % len(SHAPES)] for place in places])
    return colour, alt.Shape("line:N", scale=shapes, sort=None, legend=legend)


def with_legend(names: list[str]) -> Callable[[Look], int]:
    """Return the height of a chart whose legend of these names may have more than one row."""

    def height(look: Look) -> int:
        rows = math.ceil(len(names) / _legend_columns(names, look))
        return look.height + _LEGEND_ROW * (rows - 1)

    return height


def _legend(names: list[str], look: Look, *, points: bool = False) -> Any:
    """Return a legend of all names in as many columns as have room; longer names are shortened."""
    texts = shortened_names(names, look.room - _BEFORE_ENTRIES - _BESIDE_ENTRY, _LEGEND)
    options: dict[str, Any] = {}
    if texts != names:
        options["labelExpr"] = f"{json.dumps(texts)}[datum.index]"

    if not points:
        options |= {"symbolType": "stroke", "symbolStrokeWidth": 3}

    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=_legend_columns(names, look),
        labelLimit=0,
        symbolOpacity=1,
        **options,
    )


def _legend_columns(names: list[str], look: Look) -> int:
    widest = max(width_of(name, _LEGEND) for name in names) + _BESIDE_ENTRY
    return max(1, min(len(names), int((look.room - _BEFORE_ENTRIES) // widest)))


def _config(look: Look) -> dict[str, Any]:
    palette = look.palette
    axis = {
        "labelColor": palette.faint,
        "titleColor": palette.text,
        "gridColor": palette.grid,
        "domainColor": palette.grid,
        "tickColor": palette.grid,
        "labelFontSize": 12,
        "titleFontSize": _AXIS_TITLE,
        "titleFontWeight": "normal",
        # The last number is centred on its place: flush with the end it would touch the one before.
        "labelFlush": False,
    }

    title = {
        "anchor": "start",
        "frame": "bounds",
        "color": palette.text,
        "fontSize": _TITLE_NARROW if look.narrow else _TITLE,
        "subtitleColor": palette.faint,
        "subtitleFontSize": _SUBTITLE_NARROW if look.narrow else _SUBTITLE,
        "offset": 10,
    }

    return {
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        # Room between the numbers and the title of an axis in any font.
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
        # The picture has exactly its size, whatever its labels need.
        "autosize": alt.AutoSizeParams(type="fit", contains="padding"),
        "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},
    }
