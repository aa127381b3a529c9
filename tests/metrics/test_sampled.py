"""Sampled judgements from the upload to boards, values, comparisons and files; and what is refused under them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.models import Evaluation, MetricVector, StoredCurves
from metrics.services.values.coverage import MOST_UNEVEN
from runs.models import AuditEvent, Run, User
from tests.conftest import evaluate_all, upload

pytestmark = pytest.mark.django_db
TOPICS = ("1", "2", "3")
ESTIMATES = ["xinfAP", "infNDCG@10", "statAP"]
# Two strata; every third document of the second one is judged.
STRATA = "".join(
    f"{topic} {'top' if i < 3 else 'rest'} d{i} {(i + int(topic)) % 3 if i < 3 or i % 3 == 0 else -1}\n"
    for topic in TOPICS
    for i in range(15)
)
# The documents that were drawn.
DRAWN = "".join(
    f"{topic} 0 d{i} {(i + int(topic)) % 3} {1 if i < 3 else 0.3}\n"
    for topic in TOPICS
    for i in range(15)
    if i < 3 or i % 3 == 0
)


def run_of(step: int) -> str:
    return "".join(
        f"{topic} Q0 d{(rank * step + int(topic)) % 15} {rank} {20 - rank} step{step}\n"
        for topic in TOPICS
        for rank in range(12)
    )


@pytest.fixture
def legal(api: APIClient) -> APIClient:
    """A collection whose measures are estimates, with two evaluated runs under strata."""
    body = {"slug": "legal", "name": "Legal", "measures": ESTIMATES}
    assert api.post("/api/v1/collections/", body, format="json").status_code == 201
    answer = send(api, STRATA, sampling="strata")
    assert answer.status_code == 201, answer.content
    assert (answer.json()["sampling"], answer.json()["ignore_sampling"]) == ("strata", False)
    for step in (1, 4):
        assert upload(api, "collections/legal/runs/", run_of(step)).status_code in (201, 202)
    evaluate_all()
    return api


def send(api: APIClient, content: str, **fields: Any) -> Any:
    return upload(api, "collections/legal/qrels/", content, **fields)


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_estimates_and_errors_from_the_upload_to_every_answer(legal: APIClient) -> None:
    board = legal.get("/api/v1/collections/legal/leaderboard/").json()
    assert [row["values"].keys() >= set(ESTIMATES) for row in board["results"]] == [True, True]
    assert "sampled" in {caution["code"] for caution in board["cautions"]}
    assert set(MetricVector.objects.values_list("measure", flat=True)) == {*ESTIMATES, "Judged@10"}
    assert not StoredCurves.objects.exists()

    run = board["results"][0]["run"]["id"]
    values = legal.get(f"/api/v1/runs/{run}/values/").json()
    errors = legal.get(
        f"/api/v1/runs/{run}/values/", {"measures": "xinfAP_se,infNDCG_se@10,statAP_se,Judged@10"}
    ).json()
    for name, twin in (("xinfAP", "xinfAP_se"), ("infNDCG@10", "infNDCG_se@10")):
        stated = values["means"][name]["sampling_error"]
        assert stated == errors["means"][twin]["mean"] > 0
        assert errors["means"][twin]["aggregate"] == "standard error of the mean"
        by_topic = [topic["sampling_errors"][name] for topic in values["topics"]]
        assert by_topic == [topic["values"][twin] for topic in errors["topics"]]
        assert stated == pytest.approx(sum(e * e for e in by_topic) ** 0.5 / len(TOPICS))
    assert errors["means"]["Judged@10"]["sampling_error"] is None


def compared(api: APIClient) -> Any:
    answer = api.get("/api/v1/collections/legal/comparison/", {"measures": "statAP", "limit": 9})
    assert answer.status_code == 200, answer.content
    (measure,) = answer.json()["measures"]
    return measure


def test_documents_that_were_not_drawn_make_no_judging_uneven(legal: APIClient) -> None:
    # Under strata documents outside all of them count, and they alone are left out.
    outside = "".join(
        f"{topic} Q0 {doc} {2 * rank + place} {99 - 2 * rank - place} outside\n"
        for topic, _, document, rank, *_ in map(str.split, run_of(1).splitlines())
        for place, doc in ((0, f"x{rank}"), (1, document))
        for rank in (int(rank),)
    )
    assert upload(legal, "collections/legal/runs/", outside).status_code == 202
    evaluate_all()
    pairs = {(pair["a"], pair["b"]): pair["on_judged"] for pair in compared(legal)["pairs"]}
    tags = {str(run.pk): run.tag for run in Run.objects.all()}
    on_judged = {frozenset((tags[a], tags[b])): result for (a, b), result in pairs.items()}
    assert on_judged[frozenset(("step1", "step4"))] is None
    assert on_judged[frozenset(("step1", "outside"))]["difference"] == 0
    assert on_judged[frozenset(("step4", "outside"))]["difference"] != 0

    # With probabilities the documents that were not drawn are not known.
    assert (
        legal.patch(
            "/api/v1/collections/legal/", {"measures": ["statAP"]}, format="json"
        ).status_code
        == 200
    )
    assert send(legal, DRAWN, sampling="probabilities").status_code == 201
    evaluate_all()
    measure = compared(legal)
    shares = [mean["coverage"]["judged"] for mean in measure["means"]]
    assert max(shares) - min(shares) > MOST_UNEVEN
    assert not any(pair["on_judged"] for pair in measure["pairs"])
    assert "uneven_judging" not in {caution["code"] for caution in measure["cautions"]}


OTHERS = [
    "collections/legal/leaderboard/?measures=AP",
    "collections/legal/leaderboard/?sort=nDCG@10",
    "collections/legal/leaderboard/export/csv/?measures=AP",
    "collections/legal/comparison/?measure=AP",
    "collections/legal/comparison/export/csv/?measure=nDCG@10",
    "collections/legal/values/?measures=AP",
    "collections/legal/orders/?measures=AP,xinfAP",
    "collections/legal/design/?measures=AP",
    "collections/legal/difficulty/?measure=AP",
    "collections/legal/what-if/?gains=linear;exp",
    "collections/legal/curves/?measure=nDCG&runs={a},{b}",
    "collections/legal/precision-recall/?runs={a},{b}",
    "collections/legal/reusability/?measures=AP",
    "collections/legal/difference/?measure=AP&runs={a},{b}",
    "runs/{a}/values/?measures=AP",
    "runs/{a}/values/export/csv/?measures=AP",
    "runs/{a}/curve/?measures=nDCG",
    "runs/{a}/precision-recall/",
]


@pytest.mark.parametrize("address", OTHERS)
def test_other_measures_are_refused(legal: APIClient, address: str) -> None:
    a, b = (str(pk) for pk in Evaluation.objects.values_list("run_id", flat=True))
    answer = legal.get("/api/v1/" + address.format(a=a, b=b))
    assert code_of(answer) == (400, "sampled_judgements"), answer.content


PAGES = [
    "collections/legal/",
    "collections/legal/comparison/",
    "collections/legal/topics/",
    "collections/legal/topics/1/",
    "collections/legal/heat-map/",
    "collections/legal/judgements/",
    "collections/legal/manage/judgements/",
    "collections/legal/orders/",
    "collections/legal/design/",
    "runs/{a}/",
    "runs/{a}/topics/",
    "runs/{a}/files/",
    "runs/{a}/ranking/?topic=1",
]


def test_pages_show_estimates_or_why_not(legal: APIClient, client: Client, alice: User) -> None:
    client.force_login(alice)
    a, b = (str(pk) for pk in Evaluation.objects.values_list("run_id", flat=True))
    for address in PAGES:
        page = client.get("/" + address.format(a=a), follow=True)
        assert page.status_code == 200, (address, page.content.decode()[-3000:])

    assert "sampled" in client.get("/collections/legal/manage/judgements/").content.decode()
    overview = client.get(f"/runs/{a}/").content.decode()
    assert "from the sampling" in overview
    for address in (f"runs/{a}/curves/", "collections/legal/?measures=AP"):
        page = client.get(f"/{address}")
        assert page.status_code in (200, 400), address
        assert "outside the sample" in page.content.decode(), address
    compared = client.get("/collections/legal/comparison/", {"runs": f"{a},{b}"})
    assert "xinfAP_se" in compared.content.decode()


def test_the_same_file_can_be_a_version_that_ignores_its_sampling(legal: APIClient) -> None:
    answer = send(legal, STRATA, sampling="strata", ignore_sampling=True)
    assert (answer.status_code, answer.json()["version"]) == (201, 2)
    assert answer.json()["ignore_sampling"] is True
    evaluate_all()
    board = legal.get("/api/v1/collections/legal/leaderboard/?measures=AP,xinfAP").json()
    assert {row["values"]["AP"]["mean"] is not None for row in board["results"]} == {True}
    cautions = {caution["code"]: caution["message"] for caution in board["cautions"]}
    assert "qrels v2, sampled, which is ignored" in cautions["sampling_ignored"]
    assert "sampled" not in cautions
    run = board["results"][0]["run"]["id"]
    assert legal.get(f"/api/v1/runs/{run}/curve/?measures=nDCG").status_code == 200
    old = legal.get(f"/api/v1/runs/{run}/values/?measures=AP&qrels=1")
    assert code_of(old) == (400, "sampled_judgements")

    # The versions are told apart, and without a sampling the second column says nothing of one.
    assert send(legal, STRATA, sampling="strata").json()["version"] == 1
    assert send(legal, STRATA, activate=False).json()["sampling"] == "none"
    event = AuditEvent.objects.filter(action=AuditEvent.Action.QRELS_UPLOADED).order_by("pk")[1]
    assert (event.after["sampling"], event.after["ignore_sampling"]) == ("strata", True)


def test_measures_of_the_collection_must_suit_the_sampling(legal: APIClient) -> None:
    # xinfAP needs strata.
    refused = send(legal, DRAWN, sampling="probabilities")
    assert code_of(refused) == (409, "sampled_judgements"), refused.content
    assert "needs strata, not probabilities: use infNDCG, statAP" in refused.json()["detail"]
    assert legal.get("/api/v1/collections/legal/qrels/").json()["results"][0]["version"] == 1

    change = {"measures": ["AP", "statAP"]}
    answer = legal.patch("/api/v1/collections/legal/", change, format="json")
    assert answer.status_code == 400
    assert "AP takes documents outside the sample" in answer.content.decode()
    change = {"measures": ["statAP", "infNDCG"]}
    assert legal.patch("/api/v1/collections/legal/", change, format="json").status_code == 200
    assert send(legal, DRAWN, sampling="probabilities").status_code == 201
    evaluate_all()
    board = legal.get("/api/v1/collections/legal/leaderboard/").json()
    assert {row["values"]["statAP"]["mean"] is not None for row in board["results"]} == {True}
    refused = legal.get("/api/v1/collections/legal/leaderboard/?measures=xinfAP")
    assert code_of(refused) == (400, "sampled_judgements")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"ignore_sampling": True}, "/sampling"),
        ({"sampling": "strata", "keyed_by": "query"}, "/sampling"),
        ({"sampling": "strata", "iteration": "subtopic"}, "/iteration"),
        ({"sampling": "columns"}, "/sampling"),
    ],
)
def test_a_sampling_that_contradicts_other_fields(
    legal: APIClient, fields: dict[str, Any], pointer: str
) -> None:
    answer = send(legal, STRATA, **fields)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_bad_lines_are_named(legal: APIClient) -> None:
    answer = send(legal, "1 0 d1 1 0.5\n1 0 d2 1 2\n", sampling="probabilities", dry_run=True)
    assert answer.status_code == 422
    assert [(error["line"], error["code"]) for error in answer.json()["errors"]] == [
        (2, "bad_probability")
    ]
