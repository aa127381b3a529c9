"""The API of the known measures."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.engine.curve.curves import CURVES
from metrics.engine.measures.definition import MeasureDefinition, show
from metrics.engine.sessions.grammar import VECTORS
from metrics.models import Evaluation
from metrics.questions.answer_cache import cached, everybody
from metrics.questions.declared import parameter
from metrics.questions.parameters import query_of
from metrics.services.values.known_measures import OF, Of, find_measure, of_what, search_measures
from runs.parameters import choice_in
from runs.web.shapes import shape


class Parameter(TypedDict):
    name: str
    default: str
    text: str


class Measure(TypedDict):
    """A measure as its docstring defines it."""

    name: str
    of: Annotated[Literal["runs", "sessions"], "what it gives a value to"]
    summary: str
    formula: str
    range: str
    source: str
    elsewhere: str
    undefined: NotRequired[
        Annotated[str, "where a topic has no value; left out where every topic has one"]
    ]
    cutoff: str
    default_cutoff: Annotated[int | None, "of an optional cutoff that is left out"]
    aggregate: str
    lower_is_better: bool
    curve: bool
    aliases: list[str]
    trec_eval: str | None
    parameters: list[Parameter]


class MeasureList(generics.GenericAPIView[Any]):
    """Every measure of runs and of sessions with its parameters, formula, range and source;
    `search` finds some."""

    pagination_class = None
    queryset = Evaluation.objects.none()

    @extend_schema(
        responses=shape(Measure)(many=True),
        parameters=[
            parameter("search", "words that a name, a parameter or the definition has"),
            parameter("of", "measures of these only; default: all", choices=tuple(OF)),
        ],
    )
    @cached(None, shared_by=everybody)
    def get(self, request: Request) -> Response:
        query = query_of(request)
        of = cast(Of | None, choice_in(query, "of", tuple(OF)))
        definitions = search_measures(query.get("search", ""), of)

        return Response([_measure(definition) for definition in definitions])


class MeasureDetail(APIView):
    """One measure of runs or of sessions, by any of its names: nDCG, ndcg_cut_10, P(rel=2)@5,
    sDCG."""

    @extend_schema(responses=shape(Measure))
    @cached(None, shared_by=everybody)
    def get(self, request: Request, measure: str) -> Response:
        return Response(_measure(find_measure(measure)))


def _measure(definition: MeasureDefinition) -> Measure:
    sections = definition.sections()
    answer = Measure(
        name=definition.name,
        of=of_what(definition),
        summary=sections["summary"],
        formula=sections["formula"],
        range=sections["range"],
        source=sections["source"],
        elsewhere=sections.get("elsewhere", ""),
        cutoff=definition.cutoff.value,
        default_cutoff=definition.default_cutoff,
        aggregate=definition.aggregate.value,
        lower_is_better=definition.lower_is_better,
        curve=definition.name in CURVES or definition.name in VECTORS,
        aliases=list(definition.aliases),
        trec_eval=definition.trec_eval,
        parameters=[
            Parameter(name=known.name, default=show(known.default), text=known.text)
            for known in definition.parameters
        ],
    )

    if "undefined" in sections:
        answer["undefined"] = sections["undefined"]

    return answer
