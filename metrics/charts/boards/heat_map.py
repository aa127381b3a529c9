"""Runs against topics as coloured cells: runs as on the leaderboard, the hardest topics first."""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import altair as alt
import numpy as np
import numpy.typing as npt
from django.urls import reverse

from metrics.charts.figure import Figure
from metrics.charts.look import PAGE, PALETTES, Look, data, layered_chart, marks, row_axis
from metrics.charts.text import NO_TITLES, shortened_names, width_of, with_title
from metrics.engine.judgement.steps import Matrix
from metrics.services.boards.heat_map import HeatMap
from metrics.tables import with_minus

# The height of a row and of everything around the rows but the names of topics, and the sizes of
# letters, in pixels.
_ROW, _AROUND, _LETTERS, _LETTERS_MANY = 13, 130, 11, 10
# The least distance between two names of topics, and the most room for one.
_APART, _TOPIC_ROOM = 12, 80
# More cells than these are a raster, in which no cell answers the pointer or a finger.
_MOST_CELLS, _MOST_CELLS_NARROW = 3_000, 300
# Pixels of a cell in the raster, and the number of shades; the first one is transparent.
_CELL, _SHADES = 6, 256
# Viridis, by Nathaniel Smith and Stefan van der Walt (CC0).
_VIRIDIS = (
    "#440154",
    "#482878",
    "#3e4989",
    "#31688e",
    "#26828e",
    "#1f9e89",
    "#35b779",
    "#6ece58",
    "#b5de2b",
    "#fde725",
)


@dataclass(frozen=True)
class Shading:
    """The colours from `low` to `high`, at equal distances."""

    low: float
    high: float
    colours: tuple[str, ...]

    @property
    def scale(self) -> Any:
        stops = np.linspace(self.low, self.high, len(self.colours)).tolist()
        return alt.Scale(domain=stops, range=list(self.colours), interpolate="rgb")

    def shades(self, cells: Matrix) -> npt.NDArray[np.uint8]:
        """Return the number of each cell's shade, 0 for a cell without a value."""
        part = (np.nan_to_num(cells) - self.low) / (self.high - self.low)
        places = 1 + np.round(np.clip(part, 0, 1) * (_SHADES - 2))
        return np.where(np.isnan(cells), 0, places).astype(np.uint8)

    @property
    def palette(self) -> bytes:
        """Return red, green and blue of each shade."""
        stops = np.array(
            [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in self.colours],
            np.float64,
        )
        at = np.linspace(0, len(stops) - 1, _SHADES - 1)
        mixed = np.stack([np.interp(at, np.arange(len(stops)), part) for part in stops.T], axis=1)
        return bytes(3) + np.round(mixed).astype(np.uint8).tobytes()


def heat_map_figure(heat_map: HeatMap, titles: Mapping[str, str] = NO_TITLES) -> Figure:
    """Draw a cell for each run and topic: values, or differences from the baseline."""
    values, measure = heat_map.values, heat_map.values.measure.name
    names, topics = _names(heat_map), heat_map.topic_ids
    topics_words = f"{len(topics):,} of {len(values.topic_ids):,} topics"
    runs = (len(names), len(values.runs))
    title = f"{measure} minus {heat_map.baseline}" if heat_map.baseline else measure
    lower = " Lower is better." if values.lower_is_better else ""
    caption = (
        f"{title}: runs in the order of the leaderboard, "
        f"{topics_words} with the hardest first.{lower}"
    )
    if missing := int(np.isnan(heat_map.cells).sum()):
        caption += f" {missing:,} cells without a value are empty."

    pattern = "{:+.4f}" if heat_map.baseline else "{:.4f}"
    rows = [
        [name, *("" if math.isnan(cell) else with_minus(pattern.format(cell)) for cell in row)]
        for name, row in zip(names, heat_map.cells.tolist(), strict=True)
    ]
    subtitle = f"{runs[0]:,} of {runs[1]:,} run{'s' * (runs[1] != 1)}, {topics_words}"
    figure = Figure(
        name="heat-map",
        caption=caption,
        columns=["Run", *topics],
        rows=rows,
        drawing=lambda look: _draw(heat_map, titles, names, title, subtitle, look),
        height=lambda look: max(
            look.height // 2,
            int(_AROUND + _topic_room(topics) + _row_height(len(names)) * len(names)),
        ),
    )

    figure = figure.of_topics(values.selection)
    return figure.drawn_from(values.qrels.collection, values.qrels, measure=measure, runs=runs)


def _names(heat_map: HeatMap) -> list[str]:
    tags = [run.tag for run in heat_map.runs]
    twice = {tag for tag in tags if tags.count(tag) > 1}
    named = [f"{run.team}/{run.tag}" if run.tag in twice else run.tag for run in heat_map.runs]
    return [
        f"{run.rank}. {name}" if run.rank else name
        for run, name in zip(heat_map.runs, named, strict=True)
    ]


def _row_height(rows: int) -> int:
    """Return the height of a row, larger for few rows."""
    return _ROW if rows > 10 else 22


def _topic_room(topics: list[str]) -> float:
    return min(_TOPIC_ROOM, max(width_of(name, _LETTERS_MANY) for name in topics))


def _shading(heat_map: HeatMap, look: Look) -> Shading:
    finite = heat_map.cells[~np.isnan(heat_map.cells)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)

    if heat_map.baseline:
        most = max(abs(low), abs(high)) or 1.0
        # A page has one drawing for light and dark, and no mixture of two variables.
        palette = PALETTES["light"] if look.theme == PAGE else look.palette
        worse, better = palette.losses, palette.levels[:3]
        colours = (*reversed(worse), palette.grid, *better)
        # Whatever the measure, blue is better.
        return Shading(-most, most, colours[::-1] if heat_map.values.lower_is_better else colours)

    low = min(0.0, low)
    return Shading(low, 1.0 if low >= 0 and high <= 1 else max(high, low + 1e-9), _VIRIDIS)


def _draw(
    heat_map: HeatMap,
    titles: Mapping[str, str],
    names: list[str],
    title: str,
    subtitle: str,
    look: Look,
) -> Any:
    topics, shading = heat_map.topic_ids, _shading(heat_map, look)
    size = _LETTERS if _row_height(len(names)) > _LETTERS + 2 else _LETTERS_MANY
    room = min(
        (0.4 if look.narrow else 0.26) * look.room, max(width_of(name, size) for name in names)
    )
    y = alt.Y(
        "row:O",
        title=None,
        axis=alt.Axis(**row_axis(names, size, room)),
        scale=alt.Scale(paddingInner=0),
    )

    x = alt.X(
        "column:O",
        title="topics, the hardest first",
        axis=_topic_axis(topics, look.room - room - 24),
        scale=alt.Scale(paddingInner=0),
    )

    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        gradientLength=180,
        gradientThickness=10,
        gradientOpacity=1,
        format=".2~f",
        values=[shading.low, (shading.low + shading.high) / 2, shading.high],
        labelOverlap=False,
    )

    colour = alt.Color("value:Q", scale=shading.scale, legend=legend)
    # The axes and the legend are made from a row for each name, not for each cell.
    most = max(len(names), len(topics))
    points = (
        {"row": place % len(names), "column": place % len(topics), "value": shading.low}
        for place in range(most)
    )
    frame = marks(points).mark_square(size=0, opacity=1).encode(x=x, y=y, color=colour)

    if heat_map.cells.size <= (_MOST_CELLS_NARROW if look.narrow else _MOST_CELLS):
        layers = [frame, _cells(heat_map, titles, names, look).encode(x=x, y=y, color=colour)]
    else:
        png = base64.b64encode(raster(heat_map.cells, shading)).decode()
        image = {"png": f"data:image/png;base64,{png}"}
        raster_layer = marks([image]).mark_image(aspect=False, smooth=False)
        ends = {
            "x": alt.value(0),
            "x2": alt.value("width"),
            "y": alt.value(0),
            "y2": alt.value("height"),
        }
        layers = [frame, raster_layer.encode(url=alt.Url("png:N"), **ends)]

    better = "; blue is better" if heat_map.baseline else ""
    return layered_chart(layers, look, title, f"{subtitle}{better}")


def _cells(heat_map: HeatMap, titles: Mapping[str, str], names: list[str], look: Look) -> Any:
    """Return cells that answer the pointer; each name is there once, not in every cell."""
    runs = data({"row": row, "run": name} for row, name in enumerate(names))
    topics = data(
        {"column": column, "topic": with_title(name, titles)}
        for column, name in enumerate(heat_map.topic_ids)
    )
    tooltip = [
        "run:N",
        "topic:N",
        alt.Tooltip("value:Q", format="+.4f" if heat_map.baseline else ".4f"),
    ]
    cells = marks(_points(heat_map.cells)).transform_lookup(
        "row", from_=alt.LookupData(runs, "row", ["run"])
    )
    cells = cells.transform_lookup("column", from_=alt.LookupData(topics, "column", ["topic"]))

    if look.linked:
        pages = [reverse("ranking-page", args=[run.id]) for run in heat_map.runs]
        version = heat_map.values.qrels.version
        queries = [
            f"?{urlencode({'qrels': version, 'topic': name})}" for name in heat_map.topic_ids
        ]
        cells = cells.transform_calculate(
            address=f"{json.dumps(pages)}[datum.row] + {json.dumps(queries)}[datum.column]"
        )

    return cells.mark_rect().encode(tooltip=tooltip, **look.link)


def _points(cells: Matrix) -> Iterator[dict[str, Any]]:
    for (row, column), value in np.ndenumerate(cells):
        if not math.isnan(value):
            yield {"row": row, "column": column, "value": round(float(value), 6)}


def _topic_axis(topics: list[str], room: float) -> Any:
    """Return the axis with as many names of topics as have room."""
    step = max(1, int(np.ceil(_APART * len(topics) / max(room, 1))))
    texts = shortened_names(topics, _TOPIC_ROOM, _LETTERS_MANY)
    return alt.Axis(
        values=list(range(0, len(topics), step)),
        labelExpr=f"{json.dumps(texts)}[datum.value]",
        labelAngle=-90,
        labelFontSize=_LETTERS_MANY,
        labelLimit=0,
        labelOverlap=False,
        labelPadding=4,
        ticks=False,
        domain=False,
    )


def raster(cells: Matrix, shading: Shading) -> bytes:
    """Return the cells as a PNG with a palette, some pixels for each so that no viewer blurs it."""
    shades = shading.shades(cells).repeat(_CELL, axis=0).repeat(_CELL, axis=1)
    height, width = shades.shape
    # Each row of a PNG begins with its filter, here none.
    lines = np.zeros((height, width + 1), np.uint8)
    lines[:, 1:] = shades
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"PLTE", shading.palette),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes(), 6)),
        (b"IEND", b""),
    )

    png = b"\x89PNG\r\n\x1a\n"
    for kind, content in parts:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        png += struct.pack(">I", len(content)) + kind + content + checksum

    return png
