"""Runs without a ranking: tables have all of their values."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from metrics.models import JudgedView, MetricVector, StoredCurves
from metrics.services.upkeep.integrity import find_faults
from runs.models import Run, User
from tests.conftest import GOOD, POOR, client_of, evaluate_all, submit_run, upload

pytestmark = pytest.mark.django_db
SMALL = "/api/v1/collections/small/"


def add(api: APIClient, tag: str, content: str = "", **fields: Any) -> Any:
    fields = {"kind": "values", **({"tag": tag} if tag else {}), **fields}
    file = SimpleUploadedFile("a.run", content.encode())
    return api.post(f"{SMALL}runs/", {**fields, "file": file}, format="multipart")


@pytest.fixture
def answers(api: APIClient, collection: str) -> Run:
    """A run of answers that is slower than a good and a poor ranking."""
    submit_run(api, GOOD, tag="good")
    submit_run(api, POOR, tag="poor")
    assert add(api, "answers").status_code == 202
    evaluate_all()
    declared = {"name": "ms", "direction": "lower"}
    assert api.post(f"{SMALL}external-measures/", declared).status_code == 201
    lines = [
        f"{run} {topic} ms {ms + topic}\n"
        for run, ms in (("answers", 9), ("good", 5), ("poor", 7))
        for topic in (1, 2, 3)
    ]
    assert upload(api, "collections/small/value-tables/", "".join(lines)).status_code == 201
    return Run.objects.get(tag="answers")


def test_it_ranks_where_it_has_values_and_nowhere_else(api: APIClient, answers: Run) -> None:
    assert api.get(f"/api/v1/runs/{answers.pk}/").json()["kind"] == "values"
    board = api.get(f"{SMALL}leaderboard/?measures=x:ms,AP,NumRet,Judged@10").json()["results"]
    assert [(row["run"]["tag"], row["rank"]) for row in board] == [
        ("good", 1), ("poor", 2), ("answers", 3),
    ]  # fmt: skip
    nothing = {"mean": None, "topics": 0}
    values = board[2]["values"]
    assert [values.pop(name) for name in ("AP", "NumRet", "Judged@10")] == [nothing] * 3
    assert (values["x:ms"]["mean"], board[2]["judged_at_10"]) == (11.0, None)

    by_ap = api.get(f"{SMALL}leaderboard/?measures=AP").json()["results"]
    assert (by_ap[2]["run"]["tag"], by_ap[2]["rank"], by_ap[2]["code"]) == (
        "answers", None, "no_value",
    )  # fmt: skip
    # Measures that are not stored, and the reason.
    body = api.get(f"/api/v1/runs/{answers.pk}/values/?measures=x:ms,RBP,nDCG@3").json()
    assert body["topics"][0]["values"] == {"x:ms": 10.0, "RBP(p=0.8)": None, "nDCG@3": None}
    assert set(body["topics"][0]["undefined"].values()) == {"no_ranking"}


def test_comparisons_take_it_where_all_have_values(api: APIClient, answers: Run) -> None:
    timed = api.get(f"{SMALL}comparison/?measures=x:ms").json()
    assert len(timed["runs"]) == 3
    assert len(api.get(f"{SMALL}comparison/?measures=AP").json()["runs"]) == 2
    assert len(api.get(f"{SMALL}comparison/?measures=AP,x:ms").json()["runs"]) == 2
    named = ",".join(str(run.pk) for run in Run.objects.all())
    refused = api.get(f"{SMALL}comparison/?measures=AP&runs={named}")
    assert (refused.status_code, refused.json()["code"]) == (400, "too_few_topics")
    for address in (
        "values/export/csv/?measures=x:ms,AP", "leaderboard/export/csv/?measures=x:ms,AP",
        "leaderboard/?measures=x:ms&statistics=all", "orders/?measures=x:ms,AP",
        "charts/means.csv?measures=x:ms", "design/?measures=AP", "difficulty/?measure=AP",
        "heat-map/export/csv/?measure=x:ms",
    ):  # fmt: skip
        assert api.get(f"{SMALL}{address}").status_code == 200, address


def test_what_needs_a_ranking_says_so_or_leaves_it_out(api: APIClient, answers: Run) -> None:
    own = f"/api/v1/runs/{answers.pk}/"
    for address, code in (
        ("curve/?measures=nDCG@3", "no_curve"), ("precision-recall/", "no_curve"),
        ("ranking/?topic=1", "no_ranking"),
    ):  # fmt: skip
        answer = api.get(own + address)
        assert (answer.status_code, answer.json()["code"]) in ((400, code), (404, code)), address
    assert len(api.get(f"{SMALL}curves/?measures=nDCG@3").json()["runs"]) == 2
    assert len(api.get(f"{SMALL}what-if/?measures=P@3").json()["runs"]) == 2

    pool = {"method": "depth", "k": 5, "runs": [str(answers.pk)]}
    refused = api.post(f"{SMALL}pools/", pool, format="json")
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_run")
    assert not StoredCurves.objects.filter(evaluation__run=answers).exists()
    assert JudgedView.objects.filter(evaluation__run=answers).exists()


def test_its_pages(alice: User, answers: Run) -> None:
    browser = Client()
    browser.force_login(alice)
    for page in ("", "topics/", "files/", "parameters/"):
        html = browser.get(f"/runs/{answers.pk}/{page}")
        assert html.status_code == 200, page
        assert "Curves</a>" not in html.content.decode()
    overview = browser.get(f"/runs/{answers.pk}/").content.decode()
    assert ("values come from tables" in overview, "Summary as" in overview) == (True, False)
    # The measures of tables, where the address names none.
    assert ("x:ms" in overview, "no topic has a value" in overview) == (True, False)
    board = browser.get("/collections/small/?measures=x:ms,AP").content.decode()
    assert ("no ranking" in board, "0/3" in board) == (True, False)

    pair = f"{answers.pk},{Run.objects.get(tag='good').pk}"
    both = browser.get(f"/collections/small/comparison/?measures=x:ms&runs={pair}")
    assert (both.status_code, b"Rankings of one topic" in both.content) == (200, False)

    page = "/collections/small/value-tables/"
    done = browser.post(page, {"action": "add", "tag": "more"}, follow=True)
    assert "Run alice/more added." in done.content.decode()
    wrong = browser.post(page, {"action": "add", "tag": "a b"})
    assert (wrong.status_code, Run.objects.filter(tag="a b").exists()) == (400, False)


def test_how_it_is_submitted(api: APIClient, collection: str, bob: User) -> None:
    for tag, content, name in (("a", GOOD, "file"), ("", "", "tag")):
        refused = add(api, tag, content)
        assert refused.status_code == 400, refused.content
        assert refused.json()["errors"][0]["pointer"] == f"/{name}"
    assert add(api, "a", passages="#").status_code == 400
    # A ranking without a line is no run without a ranking.
    assert add(api, "a", kind="ranking").status_code == 422

    assert add(api, "a", metadata='{"model": "m"}', dry_run="true").status_code == 200
    first = add(api, "a", metadata='{"model": "m"}', costs='{"latency_ms": 3}')
    assert (first.status_code, first.json()["metadata"]) == (202, {"model": "m"})
    assert add(api, "a").status_code == 200
    second = add(api, "b")
    assert (second.status_code, second.json()["warnings"]["counts"]) == (202, {})
    taken = upload(api, "collections/small/runs/", GOOD, tag="a")
    assert (taken.status_code, taken.json()["code"]) == (409, "tag_taken")

    # What organisers took out does not stop the other runs of the team.
    api.delete(f"/api/v1/runs/{second.json()['id']}/?reason=wrong")
    assert add(api, "b").json()["code"] == "run_removed"
    assert add(api, "c").status_code == 202
    assert add(client_of(bob), "d").status_code == 202


def test_other_judgements_and_checks(api: APIClient, answers: Run) -> None:
    upload(api, "collections/small/qrels/", "1 0 a 1\n2 0 b 1\n")
    evaluate_all()
    (row, *_) = api.get(f"{SMALL}leaderboard/?measures=x:ms&sort=x:ms").json()["results"][::-1]
    assert (row["run"]["tag"], row["values"]["x:ms"]["mean"]) == ("answers", 10.5)
    assert list(find_faults()) == []
    MetricVector.objects.filter(evaluation__run=answers, measure="AP").delete()
    values = api.get(f"/api/v1/runs/{answers.pk}/values/?measures=AP").json()
    assert values["means"]["AP"]["mean"] is None
