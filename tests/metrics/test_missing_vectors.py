"""A change of a collection's measures is work for workers: until it is done, runs keep their values
and ranks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import (
    Evaluation,
    JudgedView,
    MetricVector,
    StoredCurves,
    VectorUpdate,
)
from metrics.services.queue.lifecycle import LeaseLost, claim, queue_interrupted, reap_expired
from metrics.services.queue.queueing import queue_missing
from metrics.services.upkeep.dispatch import Dispatcher
from metrics.services.values import evaluate as evaluating
from metrics.services.values import judged_views, missing
from metrics.services.values.missing import store_missing
from runs.models import Collection, Qrels, Run, TopicAttributes
from tests.conftest import GOOD, POOR, evaluate_all, upload

SMALL = "/api/v1/collections/small/"
BOARD = f"{SMALL}leaderboard/"
FORMER = ["nDCG@10", "AP"]
# By hand: of five documents each, the relevant ones of the three topics.
PRECISIONS = [(2 + 1 + 1) / 15, (1 + 1 + 0) / 15]
ADDED = [*FORMER, "P@5", "DCG(gains='exp')@5"]


@pytest.fixture
def runs(submit: Callable[..., Run]) -> list[Run]:
    return [submit(GOOD), submit(POOR)]


def change(api: APIClient, measures: list[str]) -> None:
    assert api.patch(SMALL, {"measures": measures}).status_code == 200


def read(api: APIClient, address: str = BOARD) -> Any:
    response = api.get(address)
    assert response.status_code == 200, response.content
    return response.json()


def names(rows: Any) -> set[str]:
    return set(rows.values_list("measure", flat=True))


def means(board: Any, measure: str) -> list[Any]:
    return [row["values"][measure]["mean"] for row in board["results"]]


def test_with_the_worker_off_nothing_is_computed_and_with_it_on_all_is_there(
    api: APIClient, runs: list[Run]
) -> None:
    before = read(api)
    vectors = dict(MetricVector.objects.values_list("pk", "digest"))
    change(api, ADDED)

    board = read(api)
    assert board["computing"] == {"DCG(gains='exp')@5": 2, "P@5": 2}
    assert [row["rank"] for row in board["results"]] == [1, 2]
    assert board["states"] == {"evaluated": 2}
    assert not board["provisional"]
    for measure in FORMER:
        assert means(board, measure) == means(before, measure)
    assert means(board, "P@5") == [None, None]
    assert dict(MetricVector.objects.values_list("pk", "digest")) == vectors
    assert names(StoredCurves.objects) == {"nDCG"}
    progress = read(api, f"{SMALL}evaluations/")
    assert (progress["computing"], progress["done"]) == (board["computing"], False)

    evaluate_all()
    assert names(MetricVector.objects) == {*ADDED, "Judged@10"}
    assert MetricVector.objects.count() == 2 * 5
    assert names(StoredCurves.objects) == {"nDCG", "nDCG(gains='exp')"}
    # What was there is as it was: nothing was evaluated again.
    assert vectors.items() <= dict(MetricVector.objects.values_list("pk", "digest")).items()
    board = read(api)
    assert board["computing"] == {}
    assert means(board, "P@5") == pytest.approx(PRECISIONS)
    assert read(api, f"{SMALL}evaluations/")["done"]


def test_a_board_on_selected_topics_and_in_groups_leaves_new_measures_to_workers(
    api: APIClient, runs: list[Run]
) -> None:
    change(api, ["P@5", "AP"])
    TopicAttributes.objects.create(
        collection=runs[0].collection, topic_id="1", attributes={"type": "short"}
    )
    with patch.object(judged_views, "make_vector", side_effect=AssertionError("computed")):
        board = read(api, f"{BOARD}?topics=topic:*&by=type")

    assert [(row["rank"], row["code"]) for row in board["results"]] == [(None, "computing")] * 2
    assert means(board, "P@5") == [None, None]
    assert None not in means(board, "AP")
    assert {group["mean"] for row in board["results"] for group in row["groups"].values()} == {None}


def test_added_vectors_are_those_of_a_run_evaluated_anew(api: APIClient, runs: list[Run]) -> None:
    columns = ("evaluation", "measure", "mean", "topics", "digest", "mean_digest")
    change(api, ADDED)
    evaluate_all()
    added = set(MetricVector.objects.values_list(*columns))
    curves = set(StoredCurves.objects.values_list("evaluation", "measure", "digest"))

    Evaluation.objects.update(state="queued")
    evaluate_all()
    assert set(MetricVector.objects.values_list(*columns)) == added
    assert set(StoredCurves.objects.values_list("evaluation", "measure", "digest")) == curves


def test_a_board_ranked_by_a_measure_that_is_computed_says_so(
    api: APIClient, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(api, ["P@5", "AP"])
    board = read(api)
    rows = board["results"]
    assert [(row["rank"], row["code"]) for row in rows] == [(None, "computing")] * 2
    assert board["provisional"]
    assert "Computing P@5 of 2 runs." in " ".join(
        api.get("/collections/small/").content.decode().split()
    )

    # When its time is over a worker gives the job back, with what it has stored.
    monkeypatch.setattr(missing, "_TOGETHER", 1)
    monkeypatch.setattr(missing, "_SECONDS", 0.0)
    assert not store_missing(qrels_id=VectorUpdate.objects.get().pk)
    monkeypatch.undo()
    board = read(api)
    assert board["computing"] == {"P@5": 1}
    assert [row["rank"] for row in board["results"]] == [1, None]
    table = api.get(f"{BOARD}export/md/").content.decode()
    assert "Provisional: 1 of 2 runs have P@5." in table

    evaluate_all()
    assert [row["rank"] for row in read(api)["results"]] == [1, 2]
    assert "Computing" not in api.get("/collections/small/").content.decode()


def test_changes_that_need_no_vectors_queue_nothing(api: APIClient, runs: list[Run]) -> None:
    for changes in ({"name": "Other"}, {"measures": ["AP"]}, {"measures": FORMER}):
        assert api.patch(SMALL, changes).status_code == 200
    assert not VectorUpdate.objects.exists()


def test_measures_of_others_are_computed_for_the_reader_and_not_stored(
    api: APIClient, runs: list[Run]
) -> None:
    stored = MetricVector.objects.count()
    change(api, ADDED)
    board = read(api, f"{BOARD}?measures=P@3,P@5")
    assert None not in means(board, "P@3")
    assert board["computing"] == {"P@5": 2}
    assert MetricVector.objects.count() == stored


def test_a_killed_worker_loses_no_work(
    api: APIClient, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(api, ADDED)
    (job,) = VectorUpdate.objects.all()

    monkeypatch.setattr(missing, "_TOGETHER", 1)
    store, chunks = missing._store_missing, []

    def die(*arguments: Any) -> None:
        if chunks:
            raise KeyboardInterrupt
        chunks.append(store(*arguments))

    monkeypatch.setattr(missing, "_store_missing", die)
    with pytest.raises(KeyboardInterrupt):
        store_missing(qrels_id=job.pk)
    monkeypatch.undo()
    job.refresh_from_db()
    assert job.state == "computing"
    assert MetricVector.objects.filter(measure="P@5").count() == 1

    VectorUpdate.objects.update(lease_until=timezone.now() - timezone.timedelta(seconds=1))
    assert reap_expired() == 1
    evaluate_all()
    assert read(api)["computing"] == {}
    assert MetricVector.objects.filter(measure="P@5").count() == 2


def test_a_change_meanwhile_takes_the_job_from_its_worker(api: APIClient, runs: list[Run]) -> None:
    change(api, ADDED)
    (job,) = VectorUpdate.objects.all()
    lease = claim(job.pk, VectorUpdate)
    assert lease
    change(api, [*ADDED, "RR"])

    with pytest.raises(LeaseLost):
        missing._work(lease, threading.Event())
    assert names(MetricVector.objects) == {*FORMER, "Judged@10"}
    evaluate_all()
    assert names(MetricVector.objects) == {*ADDED, "RR", "Judged@10"}


def test_the_job_waits_for_runs_that_are_evaluated_by_the_former_measures(
    api: APIClient, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(api, "collections/small/runs/", GOOD, tag="third")
    late = Evaluation.objects.get(state="queued")
    store = evaluating._store

    def change_first(*arguments: Any) -> bool:
        change(api, ADDED)
        assert not store_missing(qrels_id=VectorUpdate.objects.get().pk)
        assert VectorUpdate.objects.get().state == "queued"
        return store(*arguments)

    monkeypatch.setattr(evaluating, "_store", change_first)
    assert evaluating.evaluate(evaluation_id=late.pk)
    monkeypatch.undo()
    assert not late.vectors.filter(measure="P@5").exists()

    VectorUpdate.objects.update(not_before=None)
    evaluate_all()
    assert late.vectors.filter(measure="P@5").exists()
    assert VectorUpdate.objects.get().state == "computed"


def test_what_is_evaluated_again_meanwhile_is_left_to_its_worker(
    api: APIClient, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(api, ADDED)
    views_of = missing.views_of

    def slowly(pks: Any) -> Any:
        views = list(views_of(pks))
        Evaluation.objects.filter(run=runs[0]).update(since=F("created_at"))
        return views

    monkeypatch.setattr(missing, "views_of", slowly)
    assert not store_missing(qrels_id=VectorUpdate.objects.get().pk)
    stored = MetricVector.objects.filter(measure="P@5").values_list("evaluation__run", flat=True)
    assert list(stored) == [runs[1].pk]


def test_a_run_with_a_damaged_view_is_evaluated_again_and_others_are_completed(
    api: APIClient, runs: list[Run]
) -> None:
    change(api, ADDED)
    JudgedView.objects.filter(evaluation__run=runs[0]).update(content=b"damaged")
    assert store_missing(qrels_id=VectorUpdate.objects.get().pk)
    states = dict(Evaluation.objects.values_list("run", "state"))
    assert states == {runs[0].pk: "queued", runs[1].pk: "evaluated"}

    evaluate_all()
    assert MetricVector.objects.filter(measure="P@5").count() == 2


def test_an_upgraded_install_gets_what_it_lacks_from_workers(runs: list[Run]) -> None:
    StoredCurves.objects.all().delete()
    MetricVector.objects.filter(measure="Judged@10").delete()
    assert (queue_missing(), queue_missing()) == (1, 0)
    evaluate_all()
    assert StoredCurves.objects.count() == 2
    assert MetricVector.objects.filter(measure="Judged@10").count() == 2
    assert queue_missing() == 0


def test_a_measure_that_cannot_be_computed_fails_the_job_alone(
    api: APIClient, runs: list[Run]
) -> None:
    change(api, ADDED)
    Collection.objects.update(measures=["nDCG@10", "Unheard"])
    assert not store_missing(qrels_id=VectorUpdate.objects.get().pk)
    job = VectorUpdate.objects.get()
    assert (job.state, job.attempts) == ("failed", 1)
    assert "Unheard" in job.error_message
    assert queue_missing() == 0
    assert set(Evaluation.objects.values_list("state", flat=True)) == {"evaluated"}


def test_judgements_that_are_active_again_get_the_measures_of_now(
    api: APIClient, runs: list[Run]
) -> None:
    upload(api, "collections/small/qrels/", "1 0 b 3\n")
    evaluate_all()
    change(api, ADDED)
    evaluate_all()
    first = Qrels.objects.get(version=1)
    assert not MetricVector.objects.filter(measure="P@5", evaluation__qrels=first).exists()

    assert api.post(f"{SMALL}qrels/1/activate/").status_code == 200
    assert read(api)["computing"] == {"DCG(gains='exp')@5": 2, "P@5": 2}
    evaluate_all()
    assert MetricVector.objects.filter(measure="P@5", evaluation__qrels=first).count() == 2


def test_dispatchers_send_the_job_and_a_start_returns_it(api: APIClient, runs: list[Run]) -> None:
    change(api, ADDED)
    (job,) = VectorUpdate.objects.all()
    sent: list[int] = []
    Dispatcher(lambda pk: None, publish_vectors=sent.append).round()
    assert sent == [job.pk]
    assert claim(job.pk, VectorUpdate)
    assert queue_interrupted() == 1
