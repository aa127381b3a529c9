"""The API of citations: a leaderboard as an entry of BibTeX."""

from __future__ import annotations

from typing import Annotated, TypedDict

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from metrics.exports.boards.citation import Citation
from metrics.questions.declared import BOARD, VIEW
from metrics.questions.saved_views import board_parameters, view_query
from metrics.services.boards.board_question import BoardQuery, active_qrels
from metrics.services.boards.standing_parts import StandingsQuery
from runs.web.access import scored_collection
from runs.web.shapes import Url, shape


class CitationAnswer(TypedDict):
    """What a citation of a leaderboard names."""

    bibtex: str
    title: str
    url: Annotated[Url, "of the page with these parameters"]
    accessed: Annotated[str, "the day, in UTC"]
    qrels: Annotated[int, "the version of the judgements"]
    sha256: Annotated[str, "of the judgements"]
    engine_version: str


class CitationView(APIView):
    """A leaderboard as an entry of BibTeX, with its address, the day, the version and the SHA-256
    of the judgements, and the version of the engine."""

    @extend_schema(responses=shape(CitationAnswer), parameters=[*BOARD, VIEW])
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection, values=False)
        parameters = board_parameters(request, test_collection)
        board = BoardQuery.read(parameters, test_collection, request.user)
        StandingsQuery.requested(parameters)

        page = reverse("collection-page", [test_collection.slug], request=request)
        address_query = view_query(parameters)
        citation = Citation(
            test_collection,
            active_qrels(test_collection),
            board.sort,
            f"{page}?{address_query}" if address_query else page,
            timezone.now().date(),
        )
        answer = CitationAnswer(
            bibtex=citation.bibtex,
            title=citation.title,
            url=citation.address,
            accessed=citation.on.isoformat(),
            qrels=citation.qrels.version,
            sha256=citation.qrels.sha256,
            engine_version=citation.engine_version,
        )

        return Response(answer)
