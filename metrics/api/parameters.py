"""Parameters of query strings as the OpenAPI description shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter


def parameter(name: str, text: str, kind: Any = OpenApiTypes.STR, choices: tuple[str, ...] = ()) -> OpenApiParameter:
    return OpenApiParameter(name, kind, description=text, enum=choices or None)


MEASURE_NAMES = parameter("measures", "measure names separated by commas; the collection's own where left out")
SCORES = parameter("scores", "float64 or float32; the collection's own where left out")
VERSION = parameter("qrels", "a qrels version; the active one where left out", OpenApiTypes.INT)
CONFIDENCE = parameter("confidence", "of the intervals, 0.95 where left out", OpenApiTypes.NUMBER)
PER_TOPIC = parameter("per_topic", "true: every topic's curve as well", OpenApiTypes.BOOL)
