"""Parameters of query strings as the OpenAPI description shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from metrics.engine.significance import CORRECTIONS, TESTS


def parameter(name: str, text: str, kind: Any = OpenApiTypes.STR, choices: tuple[str, ...] = ()) -> OpenApiParameter:
    return OpenApiParameter(name, kind, description=text, enum=choices or None)


MEASURE_NAMES = parameter("measures", "measure names separated by commas; the collection's own where left out")
SCORES = parameter("scores", "float64 or float32; the collection's own where left out")
VERSION = parameter("qrels", "a qrels version; the active one where left out", OpenApiTypes.INT)
FILTER = parameter("filter", "which rows to show: words, and fields such as team:a,b or status:failed; docs/api.md")
CONFIDENCE = parameter("confidence", "of the intervals, 0.95 where left out", OpenApiTypes.NUMBER)
PER_TOPIC = parameter("per_topic", "true: every topic's curve as well", OpenApiTypes.BOOL)
RUNS = parameter("runs", "run ids separated by commas; all evaluated runs where left out")
TEST = parameter("test", ", ".join(TESTS))
CORRECTION = parameter("correction", ", ".join(CORRECTIONS))
ALPHA = parameter("alpha", "significance level, 0.05 where left out", OpenApiTypes.NUMBER)
RESAMPLES = parameter("resamples", "B of a test that draws, 100,000 where left out", OpenApiTypes.INT)
SEED = parameter("seed", "of everything that is drawn, 0 where left out", OpenApiTypes.INT)
STATISTICS = (
    parameter("statistics", "of intervals, tiers, ranks, baseline, separated by commas; or all; none where left out"),
    parameter("baseline", "the id of a ranked run: hold every other one against it"),
    TEST,
    CORRECTION,
    ALPHA,
    CONFIDENCE,
    RESAMPLES,
    parameter("rank_resamples", "B of the rank intervals, 2,000 where left out", OpenApiTypes.INT),
    SEED,
)
