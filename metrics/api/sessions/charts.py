"""The API of charts of session sets, in the formats of all charts."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.api.charts import (
    CHART_PARAMETERS,
    CHART_RESPONSES,
    chart_key,
    check_chart,
    every_parameter,
    look_in,
    picture,
)
from metrics.charts.sessions.charts import SESSION_CHART_READS, SESSION_CHARTS, SetChartRequest
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.sessions.values import SessionEvaluationQuery, find_session_evaluation
from runs.web.access import scored_session_set

_OF_A_SET = (*CHART_PARAMETERS, *declared(SessionEvaluationQuery))


class SessionChart(APIView):
    """A chart of a session set: the mean curves of its systems, or the queries of one session."""

    @extend_schema(
        responses=CHART_RESPONSES,
        parameters=[
            *every_parameter(SESSION_CHART_READS),
            *_OF_A_SET,
        ],
    )
    def get(self, request: Request, session_set: UUID, chart: str, form: str) -> HttpResponse:
        submitted_set = scored_session_set(request, session_set)
        check_chart(request, SESSION_CHART_READS, chart, form, _OF_A_SET)
        query = query_of(request)
        look = look_in(query)

        evaluation = find_session_evaluation(
            session_set=submitted_set, query=SessionEvaluationQuery.read(query)
        )
        question = SetChartRequest(evaluation, query)
        key = chart_key(evaluation, f"{chart}.{form}", query)

        return picture(
            key, form, look, submitted_set.collection, lambda: SESSION_CHARTS[chart](question)
        )
