"""The API of leaderboards with other gains, discounts and depths."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import MeasureCautions, RunName, cautions_of, number, numbers, run_name
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import WHAT_IF
from metrics.questions.parameters import query_of
from metrics.services.boards import what_if
from metrics.services.boards.what_if import WhatIfQuery
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape


class Place(TypedDict):
    rank: int | None
    run: UUID
    mean: float | None
    topics: Annotated[int, "topics with a value"]
    reason: Annotated[str, "why the run has no rank"]


class Combination(TypedDict):
    measure: str
    preset: str | None
    ties: Annotated[bool, "whether two runs share a rank"]
    tau_official: Annotated[float | None, "Kendall's tau with the official order"]
    leaderboard: list[Place]


class WhatIf(TypedDict):
    """The leaderboard of every combination; `tau` has a row and a column for each of them, in their
    order."""

    collection: str
    qrels: int
    scores: str
    cautions: MeasureCautions
    runs: list[RunName]
    official: Annotated[Combination, "by the collection's first measure"]
    combinations: list[Combination]
    coefficient: Annotated[
        str, "tau-b, or tau-a where no leaderboard has ties and both are the same"
    ]
    tau: Annotated[
        list[list[float | None]],
        "of the runs that both leaderboards rank; null where one cannot order them: a single run, "
        "or all runs tied",
    ]


class WhatIfView(APIView):
    """The leaderboard of every combination of gains, discounts and depths, and the agreement of
    their orders.

    The combinations are the product of `family`, `gains`, `dis` with `b`, and `depths`, those of
    `preset`, and `measures`; by default the presets impatient and patient.
    """

    @extend_schema(
        responses=shape(WhatIf),
        parameters=[*WHAT_IF],
    )
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = WhatIfQuery.read(query_of(request, test_collection), test_collection)
        return Response(
            _answer(test_collection, what_if.ask_what_if(collection=test_collection, query=query))
        )


def _answer(collection: Collection, answer: what_if.WhatIf) -> WhatIf:
    presets = answer.query.presets
    ties = any(board.ties for board in (answer.official, *answer.combinations))

    return WhatIf(
        collection=collection.slug,
        qrels=answer.qrels.version,
        scores=answer.scores,
        cautions=cautions_of(answer.cautions),
        runs=[run_name(run) for run in answer.runs],
        official=_combination(answer.official, None),
        combinations=[
            _combination(board, presets.get(board.measure)) for board in answer.combinations
        ],
        coefficient="tau-b" if ties else "tau-a",
        tau=[numbers(row) for row in answer.tau.tolist()],
    )


def _combination(board: what_if.Combination, preset: str | None) -> Combination:
    return Combination(
        measure=board.measure.name,
        preset=preset,
        ties=board.ties,
        tau_official=board.tau,
        leaderboard=[
            Place(
                rank=place.rank,
                run=place.run.pk,
                mean=number(place.mean),
                topics=place.topics,
                reason=place.reason,
            )
            for place in board.places
        ],
    )
