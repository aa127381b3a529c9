"""Questions: what a field of one declares is the parameter everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser
from drf_spectacular.types import OpenApiTypes

from evalhub.campaigns.services.boards import PhaseQuery
from metrics.api.comparisons.serializers import body_of, parameters_in
from metrics.engine.errors import EvalHubError
from metrics.questions.declared import declared
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.curves_together import TogetherQuery
from metrics.services.boards.difference import DifferenceQuery
from metrics.services.boards.heat_map import HeatQuery
from metrics.services.boards.matrix import MatrixFileQuery, MatrixQuery
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.boards.topics import TopicQuery, TopicsQuery
from metrics.services.boards.what_if import WhatIfQuery
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.design import DesignQuery
from metrics.services.comparisons.judgements import JudgementsQuery
from metrics.services.comparisons.orders import OrdersQuery
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.question import Choice, Integer, Question, parameter
from metrics.services.sessions.board import SessionBoardQuery
from metrics.services.sessions.sample import SessionComparisonQuery
from metrics.services.sessions.standings import SessionStandingsQuery
from metrics.services.tracking.frontier import FrontierQuery
from metrics.services.tracking.importance import ImportanceQuery
from metrics.services.values.curves import CurveQuery, RecallQuery
from metrics.services.values.rankings import RankingQuery
from metrics.services.values.two_rankings import TwoRankingsQuery
from metrics.services.values.values import RunValuesQuery
from runs.models import Collection
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

READER = AnonymousUser()
A, B = str(uuid4()), str(uuid4())
ASKED: list[tuple[type[Question], dict[str, str]]] = [
    (BoardQuery, {}),
    (BoardQuery, {"measures": "AP,P@5", "sort": "P@5", "order": "asc", "offset": "50"}),
    (BoardQuery, {"columns": "submitted", "arrange": "-submitted", "scores": "float32"}),
    (StandingsQuery, {"statistics": "all", "test": "bootstrap"}),
    (StandingsQuery, {"baseline": A, "test": "max_t", "resamples": "500", "alpha": "0.01"}),
    (WhatIfQuery, {}),
    (
        WhatIfQuery,
        {"family": "CG,nDCG", "gains": "exp;0-1-10-100", "b": "2,10", "depths": "10,all"},
    ),
    (WhatIfQuery, {"preset": "patient", "measures": "AP", "runs": A}),
    (ComparisonQuery, {}),
    (ComparisonQuery, {"tests": "sign,tost", "margin": "0.02", "measure": "AP", "seed": "7"}),
    (ComparisonQuery, {"runs": f"{A},{B}", "family": "all", "ties": "rounded"}),
    (ComparisonQuery, {"runs": A, "family": B, "correction": "none", "min_difference": "0.1"}),
    (PairSelection, {"run": A, "sort": "p_value", "limit": "5"}),
    (OrdersQuery, {"qrels": "1,3", "resamples": "200"}),
    (DesignQuery, {"differences": "0.2", "sizes": "5,10", "power": "0.9"}),
    (JudgementsQuery, {"qrels": "2"}),
    (DifferenceQuery, {"runs": f"{A},{B}", "order": "difference"}),
    (CurveQuery, {"measures": "CG,nDCG", "ranks": "3,120", "per_topic": "true"}),
    (CurveQuery, {"measure": "DCG", "depth": "30", "readings": "true"}),
    (RecallQuery, {}),
    (RecallQuery, {"rel": "all", "level": "1,2", "interp": "interval"}),
    (RecallQuery, {"gains": "linear;exp", "points": "5", "rounding": "9"}),
    (TogetherQuery, {"runs": A}),
    (MatrixQuery, {"measures": "AP"}),
    (MatrixFileQuery, {"measures": "AP", "layout": "wide"}),
    (HeatQuery, {"baseline": "mean", "topic_limit": "3"}),
    (TopicsQuery, {"sort": "best"}),
    (TopicsQuery, {"sort": "spread", "order": "asc"}),
    (RunValuesQuery, {"measures": "AP", "qrels": "2", "scores": "float32"}),
    (PhaseQuery, {"view": "late", "run_type": "manual", "role": "competing", "sort": "AP"}),
    (ImportanceQuery, {"measure": "P@5", "runs": A, "seed": "3"}),
    (FrontierQuery, {"y": "AP", "x": "cost:latency_ms", "across": "true"}),
    (SessionBoardQuery, {"measures": "nsDCG", "judged_by": "topic"}),
    (SessionComparisonQuery, {"systems": "a,b", "compare": "topics", "design": "paired"}),
    (SessionStandingsQuery, {"statistics": "tiers", "correction": "bonferroni"}),
]


@pytest.mark.parametrize(("question", "parameters"), ASKED)
def test_the_address_of_a_question_asks_the_same(
    question: type[Question], parameters: dict[str, str], collection: str
) -> None:
    small = Collection.objects.get()
    query = question.read(parameters, small, READER)
    assert question.read(query.address(), small, READER) == query
    if parameters:
        assert query != question.read({}, small, READER)


@pytest.mark.parametrize(
    ("question", "parameters"),
    [
        (RankingQuery, {"topic": "1 ", "gains": "exp", "limit": "5", "qrels": "2"}),
        (TwoRankingsQuery, {"topic": "a/b", "runs": f"{A},{B}", "scores": "float32"}),
        (TopicQuery, {"topic": "2", "measure": "AP", "offset": "3"}),
    ],
)
def test_a_question_about_a_topic_needs_its_id_as_it_is_written(
    question: type[Question], parameters: dict[str, str], collection: str
) -> None:
    small = Collection.objects.get()
    query: Any = question.read(parameters, small)
    assert query.topic == parameters["topic"]
    assert query.address() == parameters

    with pytest.raises(EvalHubError) as caught:
        question.read({**parameters, "topic": ""}, small)
    assert (caught.value.code, caught.value.pointer) == ("required", "topic")


def test_what_has_its_default_is_not_written(collection: str) -> None:
    small = Collection.objects.get()
    query = ComparisonQuery.read({"alpha": "0.05", "rope": "0.01", "ties": "exact"}, small)
    assert query.address() == {"measures": "nDCG@10"}


@dataclass(frozen=True)
class Trial(ComparisonQuery):
    """A comparison with two more parameters."""

    least: int = parameter(Integer("topics that both runs must have", default=3, low=1, high=9))
    view: str = parameter(Choice("what is shown", default="pairs", choices=("pairs", "means")))


def test_a_field_is_all_that_a_new_parameter_needs(collection: str) -> None:
    small = Collection.objects.get()
    query: Any = Trial.read({"least": "7", "view": "means"}, small)
    assert (query.least, query.view) == (7, "means")
    assert Trial.read({}, small) == replace(query, least=3, view="pairs")
    assert query.address() == {"measures": "nDCG@10", "least": "7", "view": "means"}

    least, view = declared(Trial, "least", "view")
    assert (least.type, least.description) == (
        OpenApiTypes.INT,
        "topics that both runs must have, default: 3",
    )
    assert view.enum == ("pairs", "means")

    for wrong in ({"least": "10"}, {"view": "mean"}):
        with pytest.raises(EvalHubError) as caught:
            Trial.read(wrong, small)
        assert caught.value.pointer == next(iter(wrong))

    body = body_of(Trial, "Trial")(data={"least": 10})
    assert not body.is_valid()
    assert set(body.errors) == {"least"}
    body = body_of(Trial, "Trial")(
        data={"least": 7, "view": "means", "tests": ["sign", "tost"], "margin": 0.1}
    )
    assert body.is_valid()
    sent: Any = Trial.read(parameters_in(body.validated_data), small)
    assert (sent.least, sent.tests, sent.practical.tests) == (7, ["sign"], ("tost",))
