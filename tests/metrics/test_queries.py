"""How many SQL queries each reading endpoint asks, however much there is to read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from metrics.services.answer_store import forget_all
from runs.models import Run, User
from tests.conftest import GOOD, POOR
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words

# Without the query of the token: read as anybody. The most that each may ask the first time.
ENDPOINTS = {
    "collections/": 2,
    "collections/small/": 6,
    "collections/small/topics/": 2,
    "collections/small/qrels/": 3,
    "collections/small/qrels/1/": 2,
    "collections/small/runs/": 6,
    "collections/small/labels/": 3,
    "collections/small/views/": 3,
    "collections/small/citation/": 2,
    "collections/small/notes/": 3,
    "experiments/": 2,
    "campaigns/": 2,
    "runs/{run}/notes/": 3,
    "systems/": 2,
    "collections/small/leaderboard/": 12,
    "collections/small/leaderboard/?measures=P@3": 16,
    "collections/small/leaderboard/?statistics=all&baseline={run}": 19,
    "collections/small/leaderboard/?statistics=all&measures=P@3": 20,
    "collections/small/leaderboard/?filter=good": 15,
    "collections/small/leaderboard/?filter=-status:ranked,failed": 15,
    "collections/small/leaderboard/export/csv/": 14,
    "collections/small/leaderboard/export/tex/?statistics=all&baseline={run}&filter=good OR poor": 22,
    "collections/small/orders/": 8,
    "collections/small/orders/?measures=P@3,DCG": 10,
    "collections/small/design/": 8,
    "collections/small/design/?measures=P@3": 10,
    "collections/small/importance/": 11,
    "collections/small/importance/export/csv/": 9,
    "collections/small/frontier/": 11,
    "collections/small/comparison/": 11,
    "collections/small/comparison/?measure=P@3": 13,
    "collections/small/comparison/?measures=AP,P@3&tests=paired_t,wilcoxon,bootstrap&resamples=100": 16,
    "collections/small/comparison/export/csv/": 11,
    "collections/small/comparison/export/tex/": 11,
    "collections/small/what-if/": 9,
    "collections/small/what-if/?gains=linear;exp&b=2,10&depths=5,10&measures=P@3": 9,
    "collections/small/difference/?runs={run},{other}": 7,
    "collections/small/difference/?runs={run},{other}&measure=Rprec": 9,
    "collections/small/judgements/?qrels=1": 5,
    "collections/small/values/": 7,
    "collections/small/values/?measures=P@3,DCG": 9,
    "collections/small/values/export/csv/": 7,
    "collections/small/difficulty/": 9,
    "collections/small/difficulty/?measure=P@3": 12,
    "collections/small/topic/?topic=1": 9,
    "collections/small/heat-map/export/csv/": 6,
    "collections/small/curves/": 8,
    "collections/small/curves/?measures=nDCG,CG,P,R&readings=true&ranks=1,3": 8,
    "collections/small/curves/?filter=good": 13,
    "collections/small/precision-recall/?rel=all": 8,
    "collections/small/parameters/": 8,
    "collections/small/configurations/?filter=good OR poor&baseline={run}": 6,
    "collections/small/configurations/export/csv/": 9,
    "runs/?id={run},{other}": 4,
    "runs/{run}/history/": 5,
    "runs/{run}/artifacts/": 3,
    "runs/{run}/parents/": 3,
    "runs/{run}/tree/": 6,
    "runs/{run}/links/": 3,
    "runs/{run}/": 5,
    "runs/{run}/values/": 5,
    "runs/{run}/values/?measures=P@3,DCG": 7,
    "runs/{run}/values/export/trec_eval/": 4,
    "runs/{run}/curve/": 6,
    "runs/{run}/curve/?measures=nDCG,CG,P,R&readings=true&per_topic=true": 6,
    "runs/{run}/precision-recall/?rel=all": 6,
    "runs/{run}/ranking/?topic=1": 5,
    # With the titles of the topics.
    "runs/{run}/charts/topics.json": 4,
    "runs/{run}/charts/topics.json?other={other}": 7,
    "runs/{run}/charts/curve.json": 4,
    "collections/small/charts/what-if.json": 9,
    "collections/small/charts/significance.json": 11,
    "collections/small/charts/heat-map.json": 7,
    "collections/small/charts/curves.json": 9,
    "collections/small/charts/precision-recall.json": 9,
    "collections/small/charts/rankings.json?runs={run},{other}&topic=1": 10,
    "runs/{run}/evaluations/": 2,
    "measures/": 0,
    "measures/nDCG/": 0,
}


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """Undo what requests store, and forget what they remember: the next request is again the first
    one."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    cache.clear()
    forget_all()


@pytest.mark.queries
@pytest.mark.slow
def test_the_number_of_queries_is_bounded(
    anonymous: APIClient, submit: Callable[..., Run], subtests: pytest.Subtests
) -> None:
    run, other = submit(GOOD), submit(POOR)

    for path, most in ENDPOINTS.items():
        with subtests.test(path), undone():
            with CaptureQueriesContext(connection) as queries:
                answer = anonymous.get("/api/v1/" + path.format(run=run.pk, other=other.pk))
            assert answer.status_code == 200
            assert len(queries) <= most, "\n".join(query["sql"] for query in queries)


def test_the_chart_of_ranks_is_made_from_few_queries(alice: User, anonymous: APIClient) -> None:
    """Of more topics than the small collection has: ranks of so few are not resampled."""
    make_scored("scored", alice.personal_team, simulated(3, 10))
    with CaptureQueriesContext(connection) as queries:
        assert anonymous.get("/api/v1/collections/scored/charts/ranks.json").status_code == 200
    assert len(queries) <= 9


KINDS = (
    "leaderboard", "comparison", "what-if", "difference", "orders", "design", "values", "curve", "curves",
    "precision-recall", "difficulty", "topic",
)  # fmt: skip
REMEMBERED = [
    path
    for path in ENDPOINTS
    if "/export/" not in path and any(f"/{kind}/" in path for kind in KINDS)
]


@pytest.mark.slow
def test_what_is_unchanged_costs_few_queries(
    anonymous: APIClient, submit: Callable[..., Run], answers_kept: None, subtests: pytest.Subtests
) -> None:
    run, other = submit(GOOD), submit(POOR)

    for path in REMEMBERED:
        address = "/api/v1/" + path.format(run=run.pk, other=other.pk)
        with subtests.test(path), undone():
            first = anonymous.get(address)
            with CaptureQueriesContext(connection) as again:
                assert anonymous.get(address).content == first.content
            with CaptureQueriesContext(connection) as known:
                unchanged = anonymous.get(address, headers={"If-None-Match": first["ETag"]})
            assert unchanged.status_code == 304
            # What the reader may see, and the revision.
            assert max(len(again), len(known)) <= 3
