"""The API of what a collection can tell apart."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import cautions_of, number, numbers, run_name
from metrics.api.comparisons.design_serializers import DesignSerializer
from metrics.api.parameters import ALPHA, MEASURE_NAMES, RUNS, SCORES, SEED, TEST, parameter
from metrics.engine.design.discriminative_power import DiscriminativePower
from metrics.engine.design.swap_rates import SwapRates
from metrics.engine.significance import TESTS
from metrics.questions.comparisons import design_query
from metrics.questions.parameters import query_of
from metrics.questions.unchanged import of_collection, unchanged
from metrics.services.comparisons.design import Design, MeasureDesign, TopicSets, read_design
from runs.api.access import scored_collection

# A curve of more pairs is shown at so many of them.
_CURVE_POINTS = 500


class DesignView(APIView):
    """What the collection tells apart by each measure, how many topics it would need, and what fewer would cost."""

    @extend_schema(
        responses=DesignSerializer,
        parameters=[
            MEASURE_NAMES,
            RUNS,
            TEST,
            ALPHA,
            parameter("power", "the chance to find a difference, 0.8 where left out", OpenApiTypes.NUMBER),
            parameter("differences", "to be found, separated by commas; 0.05,0.1 where left out"),
            parameter("sizes", "of topic sets, separated by commas; five up to half of the topics where left out"),
            parameter("trials", "pairs of topic sets of each size, 50 where left out", OpenApiTypes.INT),
            parameter("width", "of the bins of differences, 0.01 where left out", OpenApiTypes.NUMBER),
            parameter("resamples", "B of a test that draws, 10,000 where left out", OpenApiTypes.INT),
            SEED,
            SCORES,
        ],
    )
    @unchanged(of_collection)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = design_query(query_of(request), found)
        return Response({"collection": found.slug, **_as_json(read_design(collection=found, query=query))})


def _as_json(design: Design) -> dict[str, Any]:
    query = design.query
    return {
        "qrels": design.qrels.version,
        "scores": design.scores,
        "runs": [run_name(run) for run in design.runs],
        "test": query.test,
        "alpha": query.alpha,
        "power": query.power,
        "resamples": query.resamples if TESTS[query.test].draws else None,
        "trials": query.trials,
        "seed": query.seed,
        "measures": [_measure_as_json(measure) for measure in design.measures],
    }


def _measure_as_json(design: MeasureDesign) -> dict[str, Any]:
    return {
        "measure": design.measure.name,
        "topics": design.topics,
        "cautions": cautions_of(design.cautions),
        "discriminative_power": _power_as_json(design.power),
        "topic_set_size": _sets_as_json(design.topic_sets) if design.topic_sets else None,
        "swap_rates": _swaps_as_json(design.swaps),
    }


def _power_as_json(power: DiscriminativePower) -> dict[str, Any]:
    pairs = len(power.curve)
    places = np.unique(np.linspace(0, pairs - 1, min(pairs, _CURVE_POINTS)).astype(np.int64))
    return {
        "pairs": pairs,
        "share": power.share,
        "needed": power.needed,
        "typical": power.typical,
        "curve": {"pair": (places + 1).tolist(), "p_value": power.curve[places].tolist()},
    }


def _sets_as_json(sets: TopicSets) -> dict[str, Any]:
    return asdict(sets)


def _swaps_as_json(swaps: SwapRates) -> dict[str, Any]:
    needed, rates = swaps.needed().tolist(), swaps.rates.tolist()
    compared, swapped = swaps.compared.tolist(), swaps.swapped.tolist()
    return {
        "edges": swaps.edges.tolist(),
        "sizes": [
            {
                "topics": topics,
                "rate": number(sum(turned) / sum(of)) if sum(of) else None,
                "needed": number(enough),
                "compared": of,
                "swapped": turned,
                "rates": numbers(shares),
            }
            for topics, enough, of, turned, shares in zip(
                swaps.sizes.tolist(), needed, compared, swapped, rates, strict=True
            )
        ],
    }
