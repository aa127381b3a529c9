"""Reading the pictures: every line of text in an SVG, and where it stands."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass

from metrics.charts.text import width_of

_SVG = "{http://www.w3.org/2000/svg}"
_STEP = re.compile(r"(translate|rotate)\(([^)]*)\)")
# A frame in the picture: an origin, and which way its x axis points in degrees.
Frame = tuple[float, float, float]


@dataclass(frozen=True)
class Line:
    """A line of text and both of its ends, in the widest font that a reader may have."""

    text: str
    ends: tuple[tuple[float, float], tuple[float, float]]

    def within(self, width: float, height: float, slack: float = 1.0) -> bool:
        return all(
            -slack <= x <= width + slack and -slack <= y <= height + slack for x, y in self.ends
        )


def sides(svg: bytes) -> tuple[float, float]:
    box = ET.fromstring(svg).get("viewBox", "").split()
    return float(box[2]), float(box[3])


def lines(svg: bytes) -> list[Line]:
    """Every line of every text, from the top of the document down."""
    return list(_lines(ET.fromstring(svg), (0.0, 0.0, 0.0)))


def words(svg: bytes) -> list[str]:
    return [line.text for line in lines(svg)]


def _lines(element: ET.Element, frame: Frame) -> Iterator[Line]:
    frame = _moved(frame, element.get("transform", ""))
    if element.tag == f"{_SVG}text":
        size, bold = (
            float(element.get("font-size", "12px").removesuffix("px")),
            element.get("font-weight") == "bold",
        )
        for text in [
            part.text or ""
            for part in element.iter()
            if part.text and part.text.strip() and part.tag != f"{_SVG}title"
        ]:
            width = width_of(text, size, bold=bold)
            start = {"start": 0.0, "middle": -0.5, "end": -1.0}[
                element.get("text-anchor", "start")
            ] * width
            x, y, angle = frame
            across, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            yield Line(
                text, tuple((x + at * across, y + at * down) for at in (start, start + width))
            )  # type: ignore[arg-type]
        return
    for child in element:
        yield from _lines(child, frame)


def _moved(frame: Frame, transform: str) -> Frame:
    x, y, angle = frame
    for kind, arguments in _STEP.findall(transform):
        numbers = [float(number) for number in re.split(r"[\s,]+", arguments.strip())]
        if kind == "rotate":
            angle += numbers[0]
            continue
        dx, dy = (*numbers, 0.0)[:2]
        across, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        x, y = x + dx * across - dy * down, y + dx * down + dy * across
    return x, y, angle
