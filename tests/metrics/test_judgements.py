"""What judgements hold, as the API and the page tell it."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from tests.conftest import QRELS, upload
from tests.web.test_pages import text_of

pytestmark = pytest.mark.words
JUDGEMENTS = "/api/v1/collections/small/judgements/"


@pytest.fixture
def second(api: APIClient, collection: str) -> None:
    """A second version: a document another level, one judged anew, one no longer, and another topic."""
    text = QRELS.replace("1 0 c 1", "1 0 c 2").replace("2 0 y 0\n", "") + "3 0 q 0\n4 0 k 1\n"
    assert upload(api, "collections/small/qrels/", text, activate=False).status_code == 201
    api.patch(
        "/api/v1/collections/small/", {"level_labels": {"2": "highly relevant"}}, format="json"
    )


def test_levels_and_the_recall_base_of_every_topic(anonymous: APIClient, second: None) -> None:
    answer = anonymous.get(JUDGEMENTS).json()
    assert answer["compared"] is None
    (version,) = answer["versions"]
    assert (version["qrels"], version["active"], version["judgements"]) == (1, True, 6)
    assert [(line["level"], line["label"], line["judgements"]) for line in version["levels"]] == [
        (0, "", 2), (1, "", 2), (2, "highly relevant", 1), (3, "", 1),
    ]  # fmt: skip
    assert sum(line["share"] for line in version["levels"]) == pytest.approx(1)
    assert [(topic["topic_id"], topic["judged"], topic["relevant"]) for topic in version["topics"]] == [
        ("1", 3, 2), ("2", 2, 1), ("3", 1, 1),
    ]  # fmt: skip
    assert version["topics"][0]["levels"] == {"0": 1, "1": 1, "2": 1, "3": 0}


def test_shares_among_the_relevant_and_the_rest_of_the_collection(
    api: APIClient, anonymous: APIClient, second: None
) -> None:
    (version,) = anonymous.get(JUDGEMENTS).json()["versions"]
    assert [line["share_of_relevant"] for line in version["levels"]] == [None, 0.5, 0.25, 0.25]
    assert [line["per_topic"] for line in version["levels"]] == pytest.approx(
        [2 / 3, 2 / 3, 1 / 3, 1 / 3]
    )
    assert (version["documents"], version["rest"]) == (None, None)

    # The answer is not the cached one, and a document relevant to two topics is one document.
    api.patch("/api/v1/collections/small/", {"documents": 1000}, format="json")
    (version,) = anonymous.get(JUDGEMENTS).json()["versions"]
    documents = {line.split()[2] for line in QRELS.splitlines() if int(line.split()[3]) >= 1}
    assert (version["documents"], version["rest"]) == (1000, 1000 - len(documents))
    page = text_of(anonymous.get("/collections/small/judgements/").content.decode())
    assert f"{1000 - len(documents)} of the 1,000 documents of the collection" in page

    twice = QRELS + "3 0 a 1\n"
    assert upload(api, "collections/small/qrels/", twice, activate=False).status_code == 201
    (version,) = anonymous.get(JUDGEMENTS, {"qrels": "3"}).json()["versions"]
    assert version["rest"] == 1000 - len(documents)


def test_two_versions_side_by_side(anonymous: APIClient, second: None) -> None:
    answer = anonymous.get(JUDGEMENTS, {"qrels": "1,2"}).json()
    compared = answer["compared"]
    assert compared["levels"] == [0, 1, 2, 3]
    assert compared["both"] == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert compared["row_shares"][1:3] == [[0, 0.5, 0.5, 0], [0, 0, 1, 0]]
    assert [row[2] for row in compared["column_shares"]] == [0, 0.5, 0.5, 0]
    assert (compared["only_first"], compared["only_second"]) == ([1, 0, 0, 0], [1, 1, 0, 0])
    assert (compared["agreement"], compared["overlap"]) == (0.8, 0.8)
    page = anonymous.get("/collections/small/judgements/?qrels=1,2").content.decode()
    for name in ("agreement", "kappa", "weighted_kappa", "overlap", "cosine"):
        assert f"<dd>{compared[name]:.4f} " in page
    assert "Version 1 against version 2" in page


@pytest.mark.parametrize(
    ("qrels", "status", "code"),
    [("1,2,3", 400, "too_many_versions"), ("9", 404, "unknown_qrels"), ("x", 400, "invalid")],
)
def test_what_cannot_be_shown_says_why(
    anonymous: APIClient, second: None, qrels: str, status: int, code: str
) -> None:
    answer = anonymous.get(JUDGEMENTS, {"qrels": qrels})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert anonymous.get(f"/collections/small/judgements/?qrels={qrels}").status_code == status


def test_judgements_of_queries_are_not_of_topics(api: APIClient, collection: str) -> None:
    upload(api, "collections/small/qrels/", "s1 1 a 1\n", keyed_by="query", activate=False)
    answer = api.get(JUDGEMENTS, {"qrels": "2"})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_qrels")


def test_topics_with_nothing_relevant_are_counted_and_cautioned_about(
    api: APIClient, collection: str
) -> None:
    text = QRELS + "4 0 k 0\n5 0 l 0\n"
    answer = upload(api, "collections/small/qrels/", text, dry_run="true").json()
    assert answer["counts"] == {"nothing_relevant": 2}
    answer = upload(api, "collections/small/qrels/", text).json()
    assert answer["warnings"]["counts"] == {"nothing_relevant": 2}
    (warning,) = answer["warnings"]["warnings"]
    assert warning["message"].startswith("2 topics with nothing relevant (4, 5): ")
    assert "5 (2 with nothing relevant)" in text_of(api.get("/collections/small/").content.decode())

    # What is not 0 there, or has no value, needs no caution.
    measures = "AP,nDCG@10,SearchLength,Judged@10"
    board = api.get("/api/v1/collections/small/leaderboard/", {"measures": measures}).json()
    message = "2 topics have nothing relevant: AP, nDCG@10 are 0 there for every run"
    assert board["cautions"] == [{"code": "nothing_relevant", "message": message}]


def test_queries_of_sessions_with_nothing_relevant_are_counted(
    api: APIClient, collection: str
) -> None:
    text = "s1 1 a 1\ns1 2 b 0\ns2 1 a 1\n"
    answer = upload(api, "collections/small/qrels/", text, keyed_by="query", activate="false")
    (warning,) = answer.json()["warnings"]["warnings"]
    assert (warning["code"], warning["count"]) == ("nothing_relevant", 1)
    assert warning["message"].startswith("1 query with nothing relevant (s1:2): ")
