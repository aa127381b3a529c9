"""The API of what explains the values of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, cautions_of, number
from metrics.engine.explanation.association import PERMUTATIONS, RESAMPLES
from metrics.engine.explanation.explaining import REASONS
from metrics.engine.explanation.matched import Change
from metrics.engine.explanation.settings import Plain, Range
from metrics.exports.formats import FORMATS
from metrics.exports.tracking.explanations import (
    TABLES,
    importance_table,
)
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import IMPORTANCE, parameter
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking import importance
from metrics.services.tracking.importance import ImportanceQuery
from runs.models import Collection
from runs.parameters import choice_in
from runs.web.access import scored_collection
from runs.web.shapes import Kind, OneOf, shape

# A number, a text, true or false; null where it is not set. Of parameters that change together, a
# list of them.
_Value = Annotated[Any, Kind(serializers.JSONField)]


# A class could not have a field named `from`.
MatchedChange = TypedDict(
    "MatchedChange",
    {
        "name": str,
        "from": Annotated[_Value, "what it was changed from; null: not set"],
        "to": _Value,
        "pairs": Annotated[int, "of runs that differ in this alone"],
        "difference": Annotated[float, "of means, averaged over the pairs"],
        "low": Annotated[
            float | None,
            "of the 95% interval, for other topics and other runs; null for a single pair, and "
            "where the difference is the same on every topic and in every pair",
        ],
        "high": float | None,
        "p": Annotated[float | None, "null where `low` is"],
        "p_adjusted": Annotated[float | None, "by Holm, over all rows with a p"],
    },
)


class LevelMean(TypedDict):
    value: Annotated[_Value, "null where it is not set, and for other values"]
    low: Annotated[float | None, "the lowest of many numbers, which are cut into thirds"]
    high: float | None
    others: Annotated[bool, "values of fewer than three runs each"]
    runs: int
    mean: float


class AssociatedParameter(TypedDict):
    name: str
    names: Annotated[list[str], "several where they change together"]
    epsilon_squared: Annotated[
        float, "share of the variance of run means that goes with the levels"
    ]
    low: Annotated[float | None, "of the 95% interval over samples of the topics"]
    high: float | None
    p: Annotated[float, "against the largest of all parameters, over permutations of the run means"]
    levels: list[LevelMean]


class Importance(TypedDict):
    """What explains the values of the chosen runs by one measure."""

    collection: str
    qrels: int
    scores: str
    measure: str
    runs: Annotated[int, "evaluated runs that have parameters"]
    topics: Annotated[int, "on which every run has a value"]
    parameters: Annotated[int, "those examined; several that change together are one"]
    permutations: int
    resamples: int
    seed: int
    left_out: Annotated[list[str], "parameters about which nothing is said; cautions tell why"]
    matched: Annotated[list[MatchedChange], "nothing else changed"]
    associated: Annotated[list[AssociatedParameter], "goes with the measure; the strongest first"]
    reason: Annotated[
        str | None, OneOf(REASONS), "why nothing is associated; null where something is"
    ]
    message: Annotated[str, "the reason in words"]
    cautions: list[Caution]


class ImportanceView(APIView):
    """What explains the values of runs, in two answers: what changing a parameter changed in pairs
    of runs in which nothing else changed, and which parameters go with the means of all runs more
    than chance would."""

    @extend_schema(
        operation_id="importance_read", responses=shape(Importance), parameters=[*IMPORTANCE]
    )
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = ImportanceQuery.read(
            query_of(request, test_collection), test_collection, request.user
        )

        return Response(
            _answer(
                test_collection, importance.read_importance(collection=test_collection, query=query)
            )
        )


class ImportanceExport(APIView):
    """One of the two answers as a file: csv at full precision, md and tex as a table."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[parameter("table", "default: matched", choices=TABLES), *IMPORTANCE],
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        def read() -> tuple[str, bytes]:
            test_collection = scored_collection(request, collection)
            parameters = query_of(request, test_collection)
            table_name = choice_in(parameters, "table", TABLES) or TABLES[0]
            query = ImportanceQuery.read(parameters, test_collection, request.user)
            answer = importance.read_importance(collection=test_collection, query=query)
            table = importance_table(test_collection, answer, table_name, kind)

            return table.name, FORMATS[kind].content(table)

        name, content = read_in_snapshot(read)
        return HttpResponse(content, headers=FORMATS[kind].headers(name))


def _answer(collection: Collection, answer: importance.Importance) -> Importance:
    explanation = answer.explanation
    return Importance(
        collection=collection.slug,
        qrels=answer.qrels.version,
        scores=answer.scores,
        measure=answer.query.measure.name,
        runs=explanation.runs,
        topics=answer.topics,
        parameters=len(explanation.settings),
        permutations=PERMUTATIONS,
        resamples=RESAMPLES,
        seed=answer.query.seed,
        left_out=answer.left_out,
        matched=[_change(answer, change) for change in explanation.changes],
        associated=[_associated(parameter) for parameter in answer.associated],
        reason=explanation.reason or None,
        message=answer.message,
        cautions=cautions_of(answer.cautions),
    )


def _change(answer: importance.Importance, change: Change) -> MatchedChange:
    setting = answer.explanation.settings[change.setting]
    return {
        "name": setting.name,
        "from": _plain(setting.values[change.before]),
        "to": _plain(setting.values[change.after]),
        "pairs": change.pairs,
        "difference": change.difference,
        "low": number(change.low),
        "high": number(change.high),
        "p": number(change.p_value),
        "p_adjusted": number(change.p_adjusted),
    }


def _associated(associated: importance.Associated) -> AssociatedParameter:
    return AssociatedParameter(
        name=associated.setting.name,
        names=list(associated.setting.names),
        epsilon_squared=associated.effect,
        low=number(associated.low),
        high=number(associated.high),
        p=associated.p_value,
        levels=[_level(level) for level in associated.levels],
    )


def _level(level: importance.LevelMean) -> LevelMean:
    parts = level.level or (None,)
    ends = parts[0] if len(parts) == 1 and isinstance(parts[0], Range) else None
    value = None
    if not ends:
        value = _plain(
            [importance.words_of([part]) if isinstance(part, Range) else part for part in parts]
        )

    return LevelMean(
        value=value,
        low=ends and ends.low,
        high=ends and ends.high,
        others=level.level is None,
        runs=level.runs,
        mean=level.mean,
    )


def _plain(values: Sequence[Plain]) -> Any:
    """Return the value of one parameter, or the list of those of several."""
    return values[0] if len(values) == 1 else list(values)
