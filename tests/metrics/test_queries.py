"""How many SQL queries each reading endpoint asks, however much there is to read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from runs.models import Run
from tests.conftest import GOOD, POOR

# Without the query of the token: read as anybody. The most that each may ask.
ENDPOINTS = {
    "collections/": 2,
    "collections/small/": 2,
    "collections/small/topics/": 2,
    "collections/small/qrels/": 3,
    "collections/small/qrels/1/": 2,
    "collections/small/runs/": 5,
    "collections/small/leaderboard/": 8,
    "collections/small/leaderboard/?measures=P@3": 12,
    "collections/small/comparison/": 4,
    "collections/small/comparison/?measure=P@3": 5,
    "collections/small/what-if/": 4,
    "collections/small/what-if/?gains=linear;exp&b=2,10&depths=5,10&measures=P@3": 4,
    "collections/small/difference/?runs={run},{other}": 4,
    "collections/small/difference/?runs={run},{other}&measure=Rprec": 5,
    "runs/{run}/": 3,
    "runs/{run}/values/": 3,
    "runs/{run}/values/?measures=P@3,DCG": 4,
    "runs/{run}/curve/": 3,
    "runs/{run}/curve/?measures=nDCG,CG,P,R&readings=true&per_topic=true": 3,
    "runs/{run}/precision-recall/?rel=all": 3,
    "runs/{run}/evaluations/": 2,
    "measures/": 0,
    "measures/nDCG/": 0,
}


@pytest.mark.parametrize("path", list(ENDPOINTS))
def test_the_number_of_queries_is_bounded(anonymous: APIClient, submit: Callable[..., Run], path: str) -> None:
    run = submit(GOOD)
    other = submit(POOR)
    with CaptureQueriesContext(connection) as queries:
        answer = anonymous.get("/api/v1/" + path.format(run=run.pk, other=other.pk))
    assert answer.status_code == 200
    assert len(queries) <= ENDPOINTS[path], "\n".join(query["sql"] for query in queries)
