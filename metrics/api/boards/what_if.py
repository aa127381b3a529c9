"""The API of boards under other gains, discounts and depths."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import number, numbers, run_name
from metrics.api.boards.standings import cautions_as_json
from metrics.api.parameters import WHAT_IF
from metrics.api.serializers import WhatIfSerializer
from metrics.questions.boards import what_if_query
from metrics.questions.parameters import query_of
from metrics.questions.unchanged import of_collection, unchanged
from metrics.services.boards.what_if import Combination, WhatIf, ask_what_if
from runs.api.access import scored_collection


class WhatIfView(APIView):
    """The board under every combination of gains, discounts and depths, and how far their orders agree.

    The combinations are the product of `family`, `gains`, `dis` with `b`, and `depths`, those of `preset`, and
    `measures`; the presets impatient and patient where nothing is asked for.
    """

    @extend_schema(
        responses=WhatIfSerializer,
        parameters=[*WHAT_IF],
    )
    @unchanged(of_collection, snapshot=True)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = what_if_query(query_of(request), found)
        return Response({"collection": found.slug, **_as_json(ask_what_if(collection=found, query=query))})


def _as_json(answer: WhatIf) -> dict[str, Any]:
    ties = any(board.ties for board in (answer.official, *answer.combinations))
    return {
        "qrels": answer.qrels.version,
        "scores": answer.scores,
        "cautions": cautions_as_json(answer.cautions),
        "runs": [run_name(run) for run in answer.runs],
        "official": _board_as_json(answer.official, None),
        "combinations": [
            _board_as_json(board, answer.query.presets.get(board.measure)) for board in answer.combinations
        ],
        "coefficient": "tau-b" if ties else "tau-a",
        "tau": [numbers(row) for row in answer.tau.tolist()],
    }


def _board_as_json(board: Combination, preset: str | None) -> dict[str, Any]:
    return {
        "measure": board.measure.name,
        "preset": preset,
        "ties": board.ties,
        "tau_official": board.tau,
        "leaderboard": [
            {
                "rank": place.rank,
                "run": place.run.pk,
                "mean": number(place.mean),
                "topics": place.topics,
                "reason": place.reason,
            }
            for place in board.places
        ],
    }
