"""Comparisons that workers make: asked once, made once, found again, and not lost with a worker."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.engine.significance.pairs import Options
from metrics.models import Comparison, Evaluation
from metrics.services.comparisons import stored as stored_comparisons
from metrics.services.comparisons import workload
from metrics.services.comparisons.stored import compare, sweep_comparisons
from metrics.services.queue import lifecycle
from metrics.services.upkeep.integrity import find_faults
from runs.models import Collection, Qrels, Run, User
from tests.conftest import client_of
from tests.metrics.waiting import (
    QUERY,
    SCORED,
    address,
    compute_now,
    ids,
    queued,
    slow,
)
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "ids", "module_data", "queued", "slow"]


def test_a_long_comparison_is_asked_once_and_found_again(
    api: APIClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = api.get(SCORED, QUERY).json()
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    first, second = (
        api.get(SCORED, QUERY),
        api.get(SCORED, {**QUERY, "runs": ",".join(reversed(ids))}),
    )
    assert (first.status_code, second.status_code) == (202, 202)
    comparison = first.json()["comparison"]
    assert comparison == second.json()["comparison"]
    assert (comparison["state"], comparison["progress"], first["Location"]) == (
        "queued",
        0.0,
        comparison["url"],
    )
    assert api.get(comparison["url"]).json() == {"comparison": comparison}
    assert compare(comparison_id=comparison["id"])
    for answer in (api.get(SCORED, QUERY), api.get(comparison["url"])):
        assert answer.status_code == 200
        body = answer.json()
        assert (body["comparison"]["state"], body["comparison"]["progress"]) == ("compared", 1.0)
        # What a worker makes and keeps is what the request would have made.
        assert {**body, "comparison": None} == at_once
    assert Comparison.objects.count() == 1


def test_another_question_is_another_comparison(api: APIClient, ids: list[str], slow: None) -> None:
    for change in (
        {}, {"seed": "1"}, {"resamples": "3001"}, {"alpha": "0.01"}, {"confidence": "0.9"}, {"correction": "none"},
        {"tests": "sign"}, {"baseline": ids[0]}, {"baseline": ids[1]}, {"runs": ",".join(ids[:3])},
        {"zeros": "pratt"}, {"ties": "rounded"}, {"min_difference": "0.01"},
    ):  # fmt: skip
        assert api.get(SCORED, {**QUERY, **change}).status_code == 202
    assert Comparison.objects.count() == 13


def test_a_body_asks_for_more_runs_than_an_address_holds(api: APIClient, ids: list[str]) -> None:
    body = {
        "tests": ["paired_t", "sign"],
        "runs": ids[:3],
        "measures": ["AP"],
        "baseline": ids[1],
        "alpha": 0.01,
    }
    answer = api.post(SCORED, body)
    assert (answer.status_code, answer["Location"]) == (202, answer.json()["comparison"]["url"])
    stored = Comparison.objects.get()
    compute_now(stored)
    again = api.post(SCORED, body)
    assert (again.status_code, again.json()["comparison"]["state"]) == (200, "compared")
    read = api.get(address(stored)).json()
    query = {
        "tests": "paired_t,sign",
        "runs": ",".join(ids[:3]),
        "baseline": ids[1],
        "alpha": "0.01",
    }
    assert {**read, "comparison": None} == api.get(SCORED, query).json()
    for wrong, pointer in (
        ({"runs": ["x"]}, "/runs/0/"), ({"tests": ["x"]}, "/tests/0"), ({"seed": -1}, "/seed"),
        ({"runs": [str(uuid.uuid4())] * 1001}, "/runs"), ({"alpha": 2}, "alpha"),
    ):  # fmt: skip
        refused = api.post(SCORED, wrong)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"].rstrip("/")) == (
            400,
            pointer.rstrip("/"),
        )


def test_several_baselines_are_stored_in_their_order(api: APIClient, ids: list[str]) -> None:
    asked = {**QUERY, "tests": QUERY["tests"].split(","), "measures": ["AP"]}
    body = {**asked, "baseline": [ids[3], ids[1]]}
    assert api.post(SCORED, body).status_code == 202
    assert api.post(SCORED, {**asked, "baseline": [ids[1], ids[3]]}).status_code == 202
    stored = compute_now(Comparison.objects.earliest("created_at"))
    read = api.get(address(stored)).json()
    query = {**QUERY, "baseline": f"{ids[3]},{ids[1]}"}
    assert {**read, "comparison": None} == api.get(SCORED, query).json()
    assert read["family"]["baselines"] == [ids[3], ids[1]]

    api.delete(f"/api/v1/runs/{ids[3]}/")
    after = api.get(address(stored)).json()
    assert after["family"]["baselines"] == [None, ids[1]]
    assert {pair["b"] for pair in after["measures"][0]["pairs"]} == {ids[1]}


def test_a_token_that_may_read_may_ask(alice: User, ids: list[str]) -> None:
    assert client_of(alice, ["read"]).post(SCORED, {}).status_code == 202
    assert client_of(alice, ["submit"]).post(SCORED, {}).json()["code"] == "missing_scope"


def test_pages_of_a_stored_comparison_are_its_own(api: APIClient, queued: Comparison) -> None:
    compute_now(queued)
    first = api.get(address(queued), {"limit": "4", "sort": "p_value"}).json()
    second = api.get(first["next"]).json()
    assert len(first["measures"][0]["pairs"]) == len(second["measures"][0]["pairs"]) == 4
    whole = api.get(address(queued), {"sort": "p_value"}).json()["measures"][0]["pairs"]
    assert whole[:8] == first["measures"][0]["pairs"] + second["measures"][0]["pairs"]


def test_too_much_is_refused_before_anything_is_queued(
    api: APIClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "MOST_SECONDS", 0.001)
    answer = api.get(SCORED, {"tests": "bootstrap", "resamples": "10000000"})
    assert (answer.status_code, answer.json()["code"]) == (400, "too_much_work")
    monkeypatch.setattr(workload, "MOST_VERDICTS", 19)
    answer = api.post(SCORED, {"tests": ["paired_t", "sign"]})
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_results")
    assert not Comparison.objects.exists()


def test_no_more_than_so_many_wait(
    api: APIClient, ids: list[str], slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_comparisons, "MAX_UNFINISHED", 2)
    answers = [api.get(SCORED, {"seed": str(seed)}) for seed in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert (answers[2].json()["code"], answers[2]["Retry-After"]) == ("too_many_comparisons", "11")
    # What waits already may be asked for.
    assert api.get(SCORED, {"seed": "1"}).status_code == 202


# What is read


def test_a_deleted_run_no_longer_shows(api: APIClient, queued: Comparison, ids: list[str]) -> None:
    compute_now(queued)
    before = api.get(address(queued)).json()
    api.delete(f"/api/v1/runs/{ids[0]}/")
    after = api.get(address(queued)).json()
    assert ids[0] in str(before)
    assert ids[0] not in str(after)
    assert [caution["code"] for caution in after["cautions"]] == ["runs_deleted"]
    (was,), (now,) = before["measures"], after["measures"]
    assert now["pairs"] == [pair for pair in was["pairs"] if ids[0] not in (pair["a"], pair["b"])]
    assert (now["count"], now["tests"]["paired_t"]["family"]) == (6, 10)
    exported = b"".join(api.get(f"{address(queued)}export/csv/").streaming_content).decode()
    assert ids[0] not in exported
    # Asked anew it is another comparison, of the runs that are there.
    assert api.get(SCORED, QUERY).json()["comparison"]["id"] != str(queued.pk)


def test_a_deleted_baseline_leaves_no_pair(api: APIClient, ids: list[str], slow: None) -> None:
    api.get(SCORED, {**QUERY, "baseline": ids[2]})
    stored = compute_now(Comparison.objects.get())
    api.delete(f"/api/v1/runs/{ids[2]}/")
    answer = api.get(address(stored)).json()
    assert answer["family"] == {"kind": "baseline", "baseline": None, "runs": 5, "pairs": 4}
    assert (answer["measures"][0]["pairs"], ids[2] in str(answer)) == ([], False)
    assert api.get(f"{address(stored)}export/tex/", {}).status_code == 400
    assert b"".join(api.get(f"{address(stored)}export/csv/").streaming_content) == b""


def test_the_administration_shows_what_waits_and_what_failed(
    alice: User, queued: Comparison
) -> None:
    compute_now(queued)
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    browser = Client()
    browser.force_login(User.objects.get(pk=alice.pk))
    assert str(queued.pk) in browser.get("/admin/metrics/comparison/").content.decode()
    html = browser.get(f"/admin/metrics/comparison/{queued.pk}/change/").content.decode()
    assert queued.digest in html
    assert "lease_token" not in html.lower()


def test_new_judgements_make_it_stale_and_another_one_is_asked(
    api: APIClient, queued: Comparison, ids: list[str]
) -> None:
    compute_now(queued)
    old = Qrels.objects.get(collection__slug="scored")
    Qrels.objects.filter(pk=old.pk).update(active=False)
    Qrels.objects.create(
        collection=old.collection, version=2, active=True, sha256="1" * 64, size=1, lines=1, judgements=1,
        topics=1, topic_ids=["1"], levels={},
    )  # fmt: skip
    assert api.get(SCORED, QUERY).json()["code"] == "too_few_runs"
    answer = api.get(address(queued)).json()
    assert (answer["qrels"], answer["stale"]) == (1, True)


def test_whoever_may_not_see_the_scores_does_not_find_it(
    api: APIClient, bob: User, queued: Comparison, anonymous: APIClient
) -> None:
    compute_now(queued)
    Collection.objects.update(blind=True)
    for client, status in ((client_of(bob), 404), (anonymous, 404), (api, 200)):
        assert client.get(address(queued)).status_code == status
        export = client.get(f"{address(queued)}export/csv/")
        assert export.status_code == status
    assert client_of(bob).get(SCORED, QUERY).json()["code"] == "blind"
    Collection.objects.update(blind=False, visibility="private")
    assert anonymous.get(address(queued)).status_code == 404
    nobody = "00000000-0000-4000-8000-000000000000"
    texts = [
        anonymous.get(f"/api/v1/comparisons/{pk}/").content.decode() for pk in (queued.pk, nobody)
    ]
    assert texts[0].replace(str(queued.pk), nobody) == texts[1]


def test_reading_a_stored_comparison_asks_few_queries(
    anonymous: APIClient, queued: Comparison
) -> None:
    compute_now(queued)
    for path, query, most in ((address(queued), {}, 4), (SCORED, QUERY, 10)):
        with CaptureQueriesContext(connection) as queries:
            assert anonymous.get(path, query).status_code == 200
        assert len(queries) <= most, "\n".join(entry["sql"] for entry in queries)
        # The result is read once, and only where it is shown.
        assert sum('"content"' in entry["sql"] for entry in queries) == 1


def test_what_nobody_reads_is_forgotten(
    api: APIClient, queued: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute_now(queued)
    Comparison.objects.update(read_at=timezone.now() - timedelta(days=29))
    assert sweep_comparisons() == 0
    assert api.get(address(queued)).status_code == 200
    queued.refresh_from_db()
    assert queued.read_at > timezone.now() - timedelta(minutes=1)
    Comparison.objects.update(read_at=timezone.now() - timedelta(days=31))
    assert sweep_comparisons() == 1


def test_the_longest_unread_go_when_there_are_too_many(
    api: APIClient, ids: list[str], slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = []
    for seed in range(3):
        api.get(SCORED, {"seed": str(seed)})
        stored.append(compute_now(Comparison.objects.get(state="queued")))
    waiting = api.get(SCORED, {"seed": "3"}).json()["comparison"]["id"]
    Comparison.objects.filter(pk=stored[1].pk).update(read_at=timezone.now() - timedelta(days=3))
    monkeypatch.setattr(stored_comparisons, "KEPT_BYTES", stored[0].size + stored[2].size)
    assert sweep_comparisons() == 1
    remaining = {str(pk) for pk in Comparison.objects.values_list("pk", flat=True)}
    assert remaining == {str(stored[0].pk), str(stored[2].pk), waiting}


def test_faults_of_stored_comparisons_are_found(queued: Comparison) -> None:
    compute_now(queued)
    ours = ("comparison", "lease")

    def codes() -> set[str]:
        return {finding.code for finding in find_faults() if finding.code.startswith(ours)}

    assert codes() == set()
    Comparison.objects.update(query={**queued.query, "seed": 7})
    assert codes() == {"comparison_digest"}
    Comparison.objects.update(query=queued.query, content=b"not what it was")
    assert codes() == {"comparison_unreadable"}
    (finding,) = (finding for finding in find_faults() if finding.code == "comparison_unreadable")
    assert finding.repair
    finding.repair()
    assert codes() == set()
    assert compute_now(queued).state == "compared"
    lifecycle.try_failed_again(Comparison.objects.all())
    Comparison.objects.update(state="queued", content=None)
    assert lifecycle.claim(queued.pk, Comparison)
    Comparison.objects.update(lease_until=timezone.now() - timedelta(hours=1))
    assert codes() == {"lease_expired"}


def test_a_run_of_no_evaluation_left_is_not_found(
    api: APIClient, queued: Comparison, ids: list[str]
) -> None:
    compute_now(queued)
    Evaluation.objects.filter(run=ids[0]).delete()
    assert api.get(address(queued)).status_code == 404


@pytest.mark.parametrize(
    ("test", "runs", "topics", "resamples", "at_once"),
    [
        ("paired_t", 100, 50, 1, True), ("randomisation", 100, 50, 100_000, True), ("paired_t", 200, 250, 1, True),
        ("randomised_tukey_hsd", 100, 50, 100_000, True), ("bootstrap", 100, 50, 100_000, True),
        ("randomisation", 1000, 250, 10_000, False), ("bootstrap", 400, 50, 100_000, False),
        ("randomised_tukey_hsd", 200, 50, 100_000, False), ("mann_whitney", 1000, 50, 1, False),
        # All sign patterns of few topics: not as many as resamples were asked for.
        ("randomisation", 200, 10, 10_000_000, True),
    ],
)  # fmt: skip
def test_what_is_made_on_the_spot(
    test: str, runs: int, topics: int, resamples: int, at_once: bool
) -> None:
    seconds = workload.seconds_of(
        test, runs, topics, runs * (runs - 1) // 2, Options(resamples=resamples)
    )
    assert (seconds <= workload.AT_ONCE_SECONDS) is at_once, seconds


def test_runs_with_the_same_values_are_found_by_the_same_evaluations_only(
    api: APIClient, ids: list[str], slow: None
) -> None:
    """A run submitted meanwhile is part of the next comparison, not of the one that is stored."""
    api.get(SCORED, QUERY)
    run = Run.objects.get(pk=ids[0])
    more = Run.objects.create(
        collection=run.collection, team=run.team, tag="more", sha256="0" * 64, size=1, lines=1, documents=1, topics=30,
        tied_documents=0, grouped=True,
    )  # fmt: skip
    vector = Evaluation.objects.get(run=run).vectors.get(measure="AP")
    evaluation = Evaluation.objects.create(
        run=more, qrels=Qrels.objects.get(), scores="float64", state="evaluated"
    )
    vector.pk, vector.evaluation = None, evaluation
    vector.save()
    api.get(SCORED, QUERY)
    assert Comparison.objects.count() == 2
