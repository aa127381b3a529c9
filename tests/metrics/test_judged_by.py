"""Results under judgements of a model have its name in titles, files, charts and citations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from runs.models import Run
from tests.conftest import GOOD, POOR, QRELS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.django_db
WORDS = "judged by model tiny-1"


@pytest.fixture(scope="module")
def judged(api: APIClient, collection: str, submit: Callable[..., Run]) -> str:
    submit(GOOD, tag="one")
    submit(POOR, tag="two")
    fields = {"author_kind": "model", "author": "Kim", "model": "tiny-1"}
    assert upload(api, "collections/small/qrels/", QRELS, **fields).status_code == 201
    evaluate_all()
    return collection


def test_a_leaderboard_names_the_model_that_judged(api: APIClient, judged: str) -> None:
    path = f"/api/v1/collections/{judged}/"
    board = api.get(f"{path}leaderboard/").json()
    message = f"qrels v2, {WORDS}: not the judgements of persons alone"
    assert {"code": "judged_by", "message": message} in board["cautions"]

    page = api.get(f"/collections/{judged}/").content.decode()
    title = page[page.index("<title>") : page.index("</title>")]
    heading = page[page.index("<h1>") : page.index("</h1>")]
    assert WORDS in title
    assert WORDS in heading

    for kind in ("csv", "md", "tex"):
        assert WORDS in api.get(f"{path}leaderboard/export/{kind}/").content.decode()

    cited = api.get(f"{path}citation/").json()
    assert cited["title"].endswith(WORDS)
    assert WORDS in cited["bibtex"]
    assert WORDS in api.get(f"{path}charts/means.svg").content.decode()


def test_judgements_of_persons_have_no_such_words(api: APIClient, judged: str) -> None:
    path = f"/api/v1/collections/{judged}/"
    assert api.post(f"{path}qrels/1/activate/").status_code == 200
    assert "judged by" not in api.get(f"/collections/{judged}/").content.decode()
    assert "judged_by" not in api.get(f"{path}leaderboard/export/csv/").content.decode()
    # Values under the other version still name it.
    judgements = api.get(f"/collections/{judged}/judgements/", {"qrels": 2}).content.decode()
    assert WORDS in judgements
