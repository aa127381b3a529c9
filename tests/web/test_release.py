"""Releasing a blind collection while its runs are evaluated, and what is shown together (cases F32, A5, A10, A25)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from metrics.models import Evaluation
from metrics.services.queue.lifecycle import claim
from metrics.services.values.evaluate import evaluate
from runs.models import AuditEvent, Collection, Run
from tests.conftest import GOOD, evaluate_all
from tests.web.worlds import People, add_qrels, make_collection, make_runs, run_ids, submit_form

BOARD = "/api/v1/collections/one/leaderboard/"
# Values of single topics.
TOPICS = ("values/", "curve/?per_topic=true", "precision-recall/?per_topic=true")


def board_of(people: People, role: str) -> dict[str, Any]:
    board: dict[str, Any] = people.api[role].get(BOARD).json()
    return board


def release(people: People) -> Any:
    return people.api["owner"].post("/api/v1/collections/one/release/")


def test_a_release_shows_what_is_evaluated_and_the_rest_when_it_is(people: People) -> None:
    """F32: one run evaluated, one in a worker's hands, one queued; everything shown is of the judgements released."""
    add_qrels(people, make_collection(people, "one", blind=True))
    for tag in ("done", "held", "queued"):
        assert (
            submit_form(people.api["participant"], "one", GOOD, team="guests", tag=tag).status_code
            == 202
        )
    done, waiting, _ = Evaluation.objects.order_by("pk")
    assert evaluate(evaluation_id=done.pk)
    lease = claim(waiting.pk)
    assert lease
    assert release(people).status_code == 200
    first = board_of(people, "participant")
    rows = [
        (row["run"]["tag"], row["state"], row["values"]["AP"]["mean"] is None)
        for row in first["results"]
    ]
    assert rows == [
        ("done", "ranked", False),
        ("held", "evaluating", True),
        ("queued", "queued", True),
    ]
    assert first["states"] == {"evaluated": 1, "evaluating": 1, "queued": 1}
    assert first == {**board_of(people, "anonymous")} == {**board_of(people, "owner")}
    # The worker that held it died; another one takes it over.
    Evaluation.objects.filter(pk=waiting.pk).update(
        state="queued", lease_token=None, lease_until=None
    )
    assert evaluate_all() == 2
    last = board_of(people, "participant")
    assert [row["run"]["tag"] for row in last["results"]] == ["done", "held", "queued"]
    assert {row["qrels"] for row in last["results"]} == {1}
    assert {row["rank"] for row in last["results"]} == {1}
    assert (
        AuditEvent.objects.get(action="collection.released").after["qrels"] == first["qrels"] == 1
    )


def test_new_judgements_and_a_release_show_one_version_only(people: People) -> None:
    """F32, A11: whichever comes first, no board has values of two versions among its ranks."""
    add_qrels(people, make_collection(people, "one", blind=True))
    make_runs(people, "one")
    add_qrels(people, "one", "1 0 b 1\n2 0 y 1\n")
    assert release(people).status_code == 200
    board = board_of(people, "anonymous")
    assert (board["qrels"], board["ranked"]) == (2, 0)
    assert all(row["stale"] and row["qrels"] == 1 for row in board["results"])
    evaluate_all()
    assert {(row["qrels"], row["stale"]) for row in board_of(people, "anonymous")["results"]} == {
        (2, False)
    }


def test_means_and_what_they_are_means_of_are_shown_and_hidden_together(people: People) -> None:
    """A5: there is no collection that shows means only (decision 0013); whoever sees none sees no topic either."""
    add_qrels(people, make_collection(people, "one", blind=True))
    run = make_runs(people, "one")
    paths = [BOARD, *(f"/api/v1/runs/{run}/{path}" for path in TOPICS)]
    for released in (False, True):
        for role in ("participant", "owner", "staff"):
            codes = {people.api[role].get(path).status_code for path in paths}
            assert codes == ({403} if role == "participant" and not released else {200}), (
                role,
                released,
            )
        assert people.api["other"].get(paths[1]).status_code == (200 if released else 404)
        if not released:
            assert release(people).status_code == 200


def test_a_collection_that_was_made_private_takes_no_more_runs_of_others(people: People) -> None:
    """A10: what one does not see one does not submit to, from the moment of the change; runs stay."""
    add_qrels(people, make_collection(people, "one"))
    make_runs(people, "one")
    assert (
        people.api["owner"].patch("/api/v1/collections/one/", {"visibility": "private"}).status_code
        == 200
    )
    late = submit_form(people.api["participant"], "one", GOOD, team="guests", tag="late")
    assert (late.status_code, late.json()["code"]) == (404, "not_found")
    assert Run.objects.count() == 2
    assert submit_form(people.api["owner"], "one", GOOD, team="lab", tag="own").status_code == 202


def test_a_collection_with_runs_is_not_deleted(people: People) -> None:
    """A25: the API has no way to, and the command refuses it."""
    add_qrels(people, make_collection(people, "one"))
    make_runs(people, "one")
    assert people.api["owner"].delete("/api/v1/collections/one/").status_code == 405
    with pytest.raises(CommandError, match="collection one is not empty"):
        call_command("delete_collection", "one")
    assert Collection.objects.filter(slug="one").exists()
    assert len(run_ids("one")) == Evaluation.objects.filter(state="evaluated").count() == 2
    assert not AuditEvent.objects.filter(action="collection.deleted").exists()
