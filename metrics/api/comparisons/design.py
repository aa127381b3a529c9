"""The API of the differences that a collection can detect."""

from __future__ import annotations

from typing import Annotated, TypedDict

import numpy as np
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import (
    Caution,
    RunName,
    Selected,
    cautions_of,
    number,
    numbers,
    run_name,
    selected,
)
from metrics.engine.design import discriminative_power, swap_rates
from metrics.engine.significance import TESTS
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import DESIGN
from metrics.questions.parameters import query_of
from metrics.services.comparisons import design
from metrics.services.comparisons.design import DesignQuery
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape

# The most pairs that a curve is shown at.
_CURVE_POINTS = 500


class PowerCurve(TypedDict):
    pair: Annotated[list[int], "places of the pairs, from 1 on, in descending order of p"]
    p_value: list[float | None]


class DiscriminativePower(TypedDict):
    pairs: int
    share: Annotated[float, "of the pairs with p below alpha, uncorrected"]
    needed: Annotated[float, "the difference with which every pair would be there"]
    typical: Annotated[float, "with which half of them would"]
    curve: Annotated[PowerCurve, "achieved significance levels, at up to 500 pairs"]


class Smallness(TypedDict):
    power_not_worse: Annotated[
        float, "that tost shows that one is not worse, with the topics at hand"
    ]
    topics_not_worse: Annotated[int | None, "that it needs; null beyond a million"]
    power_equivalent: Annotated[
        float, "that tost shows that they are equivalent, with the topics at hand"
    ]
    topics_equivalent: int | None
    share: Annotated[float, "of the pairs that are equivalent on these topics, each tested alone"]


class Detection(TypedDict):
    difference: float
    power_t: Annotated[float, "of a paired t test of two runs, with the topics at hand"]
    topics_t: Annotated[int | None, "that it needs; null beyond a million"]
    power_anova: Annotated[
        float | None, "of an analysis of variance of all runs; null where it is beyond computing"
    ]
    topics_anova: int | None
    topics_interval: Annotated[int | None, "for an interval no wider than the difference"]
    smallness: Annotated[
        Smallness | None,
        "of two runs that do not differ, the difference as a margin; null for an alpha from 0.5 on",
    ]


class TopicSetSize(TypedDict):
    variance: Annotated[float, "of a run's values that runs and topics leave"]
    detectable: Annotated[
        float, "the difference that a paired t test finds with the requested power"
    ]
    half_width: Annotated[float, "expected, of the interval of a difference"]
    detections: list[Detection]


class SwapSize(TypedDict):
    topics: Annotated[int, "of each of the two sets"]
    rate: Annotated[float | None, "share of all comparisons that are turned round"]
    needed: Annotated[
        float | None,
        "the difference from which on at most 5 per cent are; null where none is enough",
    ]
    compared: Annotated[list[int], "by bins of the difference on the first set"]
    swapped: list[int]
    rates: Annotated[list[float | None], "null for a bin without a comparison"]


class SwapRates(TypedDict):
    edges: Annotated[list[float | None], "where each bin begins; the last one is open"]
    sizes: list[SwapSize]


class MeasureDesign(TypedDict):
    measure: str
    topics: Annotated[int, "on which every run has a value"]
    cautions: list[Caution]
    discriminative_power: DiscriminativePower
    topic_set_size: Annotated[
        TopicSetSize | None,
        "null where runs and topics explain every value: nothing is left to plan for",
    ]
    swap_rates: SwapRates


class Design(Selected):
    """The differences that the collection can detect, by measure."""

    collection: str
    qrels: int
    scores: str
    runs: list[RunName]
    test: str
    alpha: float
    power: float
    resamples: Annotated[int | None, "null for a test that does not draw"]
    trials: Annotated[int, "pairs of topic sets of each size"]
    seed: int
    measures: list[MeasureDesign]


class DesignView(APIView):
    """The differences that the collection can detect by each measure, the number of topics needed,
    and the effect of fewer topics."""

    @extend_schema(responses=shape(Design), parameters=[*DESIGN])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = DesignQuery.read(query_of(request, test_collection), test_collection)
        return Response(
            _design(test_collection, design.read_design(collection=test_collection, query=query))
        )


def _design(collection: Collection, answer: design.Design) -> Design:
    query = answer.query
    return Design(
        **selected(answer.selection),
        collection=collection.slug,
        qrels=answer.qrels.version,
        scores=answer.scores,
        runs=[run_name(run) for run in answer.runs],
        test=query.test,
        alpha=query.alpha,
        power=query.power,
        resamples=query.resamples if TESTS[query.test].draws else None,
        trials=query.trials,
        seed=query.seed,
        measures=[
            MeasureDesign(
                measure=measure.measure.name,
                topics=measure.topics,
                cautions=cautions_of(measure.cautions),
                discriminative_power=_power(measure.power),
                topic_set_size=_topic_set_size(measure.topic_sets) if measure.topic_sets else None,
                swap_rates=_swap_rates(measure.swaps),
            )
            for measure in answer.measures
        ],
    )


def _power(power: discriminative_power.DiscriminativePower) -> DiscriminativePower:
    pairs = len(power.curve)
    # A long curve is shown at evenly spaced pairs.
    places = np.unique(np.linspace(0, pairs - 1, min(pairs, _CURVE_POINTS)).astype(np.int64))

    return DiscriminativePower(
        pairs=pairs,
        share=power.share,
        needed=power.needed,
        typical=power.typical,
        curve=PowerCurve(pair=(places + 1).tolist(), p_value=power.curve[places].tolist()),
    )


def _topic_set_size(sets: design.TopicSets) -> TopicSetSize:
    return TopicSetSize(
        variance=sets.variance,
        detectable=sets.detectable,
        half_width=sets.half_width,
        detections=[
            Detection(
                difference=detection.difference,
                power_t=detection.power_t,
                topics_t=detection.topics_t,
                power_anova=number(detection.power_anova),
                topics_anova=detection.topics_anova,
                topics_interval=detection.topics_interval,
                smallness=_smallness(detection.smallness) if detection.smallness else None,
            )
            for detection in sets.detections
        ],
    )


def _smallness(smallness: design.Smallness) -> Smallness:
    return Smallness(
        power_not_worse=smallness.power_not_worse,
        topics_not_worse=smallness.topics_not_worse,
        power_equivalent=smallness.power_equivalent,
        topics_equivalent=smallness.topics_equivalent,
        share=smallness.share,
    )


def _swap_rates(swaps: swap_rates.SwapRates) -> SwapRates:
    needed = swaps.needed().tolist()
    sizes = []
    for index, topics in enumerate(swaps.sizes.tolist()):
        compared, swapped = swaps.compared[index].tolist(), swaps.swapped[index].tolist()
        sizes.append(
            SwapSize(
                topics=topics,
                rate=number(sum(swapped) / sum(compared)) if sum(compared) else None,
                needed=number(needed[index]),
                compared=compared,
                swapped=swapped,
                rates=numbers(swaps.rates[index].tolist()),
            )
        )

    return SwapRates(edges=swaps.edges.tolist(), sizes=sizes)
