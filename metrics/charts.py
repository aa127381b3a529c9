"""Every picture, as an Altair chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from metrics.engine.curves import Curve

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
WIDTH, HEIGHT = 880, 400
_LABEL_WIDTH = 130


@dataclass(frozen=True)
class Palette:
    """Colours that go with the style sheet, on a transparent ground."""

    text: str
    faint: str
    grid: str
    run: str
    ideal: str


PALETTES = {
    "light": Palette("#1c2430", "#5b6675", "#e3e7ec", "#1f5fbf", "#8a5a00"),
    "dark": Palette("#e6e9ee", "#9aa5b4", "#2c3440", "#7fb0ff", "#e0b050"),
}


def curve_chart(curve: Curve, *, measure: str, run: str, theme: str = "light") -> alt.LayerChart:
    """A run's mean curve over the ranks and the ideal's, each with its name at its end."""
    palette = PALETTES[theme]
    topics, depth = curve.n_topics, curve.depth
    lines = {"run": (curve.mean, run), "ideal": (curve.ideal_mean, "ideal")}
    points = [
        {"line": key, "label": label, "rank": rank, "value": value}
        for key, (values, label) in lines.items()
        for rank, value in enumerate(values.tolist(), 1)
    ]
    ends = [point for point in points if point["rank"] == depth]
    subtitle = f"mean of {topics} topics at ranks 1 to {depth}, and the mean of the ideal rankings"
    chart: alt.LayerChart = (
        alt.layer(_lines(points, palette, depth), *(_label(end, palette) for end in ends))
        .properties(width=WIDTH, height=HEIGHT, title=alt.TitleParams(f"{measure} of run {run}", subtitle=[subtitle]))
        .configure(**_config(palette))
    )
    return chart


def _lines(points: list[dict[str, Any]], palette: Palette, depth: int) -> alt.Chart:
    keys = ["run", "ideal"]
    top = max(point["value"] for point in points)
    ranks = alt.Scale(domain=[1, max(2, depth)], nice=False)
    values = alt.Scale(domain=[0, 1] if top <= 1 else [0, top], nice=top > 1)
    chart: alt.Chart = (
        alt.Chart(_data(points))
        .mark_line(point=depth == 1)
        .encode(
            x=alt.X(
                "rank:Q", title="rank", scale=ranks, axis=alt.Axis(grid=False, tickCount=min(10, depth), format="d")
            ),
            y=alt.Y("value:Q", title=None, scale=values, axis=alt.Axis(tickCount=5)),
            color=alt.Color("line:N", scale=alt.Scale(domain=keys, range=[palette.run, palette.ideal]), legend=None),
            strokeDash=alt.StrokeDash("line:N", scale=alt.Scale(domain=keys, range=[[1, 0], [6, 4]]), legend=None),
        )
    )
    return chart


def _label(end: dict[str, Any], palette: Palette) -> alt.Chart:
    """The name of a line beside its last point; the ideal's sits above, as it is never below the run's."""
    own = end["line"] == "run"
    mark: dict[str, Any] = {"align": "left", "dx": 8, "dy": 7 if own else -7, "limit": _LABEL_WIDTH, "fontSize": 13}
    chart: alt.Chart = (
        alt.Chart(_data([end]))
        .mark_text(**mark, color=palette.run if own else palette.ideal, fontWeight="bold" if own else "normal")
        .encode(x="rank:Q", y="value:Q", text="label:N")
    )
    return chart


def _data(points: list[dict[str, Any]]) -> Any:
    return alt.Data(values=points)  # type: ignore[no-untyped-call]


def _config(palette: Palette) -> dict[str, Any]:
    axis = {
        "labelColor": palette.faint, "titleColor": palette.text, "gridColor": palette.grid, "domainColor": palette.grid,
        "tickColor": palette.grid, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal",
    }  # fmt: skip
    title = {
        "anchor": "start", "frame": "group", "color": palette.text, "fontSize": 16, "subtitleColor": palette.faint,
        "subtitleFontSize": 13, "limit": WIDTH - 20, "offset": 14,
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": _FONT,
        "axis": axis,
        "title": title,
        "view": {"stroke": None},
        "line": {"strokeWidth": 2.5},
        # The names at the ends of the lines stand in the padding: no font decides how wide the picture is.
        "autosize": alt.AutoSizeParams(type="fit", contains="padding"),
        "padding": {"left": 5, "top": 5, "right": _LABEL_WIDTH + 10, "bottom": 5},
    }


def as_svg(chart: alt.LayerChart) -> str:
    """The chart as a picture of its own: no script, no outside file."""
    # Checking the chart against Altair's schema would double the time; the tests do it.
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    return svg
