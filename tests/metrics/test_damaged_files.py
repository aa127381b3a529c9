"""A stored file that is damaged or missing: no value, and evaluated once it is sent again."""

from __future__ import annotations

import gzip

import pytest
from rest_framework.test import APIClient

from metrics.models import Evaluation, MetricVector
from metrics.services.queue import lifecycle
from metrics.services.queue.damage import files_of
from metrics.services.values.evaluate import evaluate
from runs.errors import StoredValueCorrupt
from runs.models import Qrels, Run
from runs.services.storage.files import upload_folder
from runs.services.storage.stores.folder import stored_path
from tests.conftest import GOOD, QRELS, upload
from tests.metrics.queued import queued, state

__all__ = ["queued"]


def test_a_missing_file_delays_an_evaluation_until_it_is_back(
    api: APIClient, collection: str, queued: Evaluation
) -> None:
    path = stored_path(queued.run.sha256)
    content = path.read_bytes()
    path.unlink()
    for _ in range(lifecycle.MAX_ATTEMPTS + 1):
        Evaluation.objects.update(not_before=None)
        evaluate(evaluation_id=queued.pk)
        assert (state(queued), queued.attempts, queued.error_code) == (
            "queued",
            0,
            "stored_file_missing",
        )
    status = api.get(f"/api/v1/runs/{queued.run_id}/").json()["status"]
    assert (status["state"], status["code"], status["queue"]["waits_for"]) == (
        "queued",
        "stored_file_missing",
        "retry",
    )
    assert "is missing" in status["reason"]
    assert lifecycle.claim(queued.pk) is None
    # Sent again it is there at once.
    assert (
        upload(api, f"collections/{collection}/runs/", content, tag=queued.run.tag).status_code
        == 200
    )
    assert evaluate(evaluation_id=queued.pk)


def test_a_damaged_file_fails_and_gives_no_value(queued: Evaluation) -> None:
    stored_path(queued.run.sha256).write_bytes(GOOD.replace("3.0", "0.5").encode())
    evaluate(evaluation_id=queued.pk)
    assert state(queued) == "failed"
    assert queued.error_code == "stored_file_corrupt"
    assert not MetricVector.objects.exists()


def test_a_file_sent_again_replaces_a_damaged_one_and_is_evaluated(
    api: APIClient, collection: str
) -> None:
    """Under the same tag and under another, plain and compressed, with judgements alike."""
    path, judged = f"collections/{collection}/runs/", stored_path(Qrels.objects.get().sha256)
    packed = gzip.compress(GOOD.encode())
    upload(api, path, packed, tag="one")
    stored = stored_path(Run.objects.get().sha256)
    for damaged in (b"1 Q0 a 1 0.5 good\n", stored.read_bytes()[:-9]):
        stored.write_bytes(damaged)
        Evaluation.objects.update(state="queued")
        evaluate(evaluation_id=Evaluation.objects.get().pk)
        assert Evaluation.objects.get().error_code == "stored_file_corrupt"
        answer = upload(api, path, packed, tag="one")
        assert (answer.status_code, answer.json()["status"]["state"]) == (200, "queued")
        assert stored.read_bytes() == packed
        assert evaluate(evaluation_id=Evaluation.objects.get().pk)
    stored.write_bytes(b"")
    assert upload(api, path, GOOD, tag="two").status_code == 202
    assert evaluate(evaluation_id=Evaluation.objects.get(run__tag="two").pk)
    # Also of what failed before somebody else's upload replaced the file.
    Evaluation.objects.filter(run__tag="one").update(
        state="failed", error_code="stored_file_corrupt"
    )
    assert upload(api, path, GOOD, tag="one").json()["status"]["state"] == "queued"
    judged.write_text("1 0 a 0\n")
    assert upload(api, f"collections/{collection}/qrels/", QRELS).status_code == 200
    assert judged.read_text() == QRELS
    assert list(upload_folder().iterdir()) == []


def test_a_sound_file_sent_again_stays_and_nothing_is_evaluated_again(
    api: APIClient, collection: str
) -> None:
    path = f"collections/{collection}/runs/"
    upload(api, path, GOOD)
    before = stored_path(Run.objects.get().sha256).stat().st_ino
    Evaluation.objects.update(state="failed", error_code="evaluation_crashed")
    assert upload(api, path, gzip.compress(GOOD.encode())).status_code == 200
    assert stored_path(Run.objects.get().sha256).stat().st_ino == before
    assert Evaluation.objects.get().state == "failed"


def test_a_compressed_file_that_was_cut_fails_as_damaged(api: APIClient, collection: str) -> None:
    upload(api, f"collections/{collection}/runs/", gzip.compress(GOOD.encode()))
    queued = Evaluation.objects.get()
    path = stored_path(queued.run.sha256)
    path.write_bytes(path.read_bytes()[:-9])
    evaluate(evaluation_id=queued.pk)
    assert state(queued) == "failed"
    assert queued.error_code == "stored_file_corrupt"


def test_an_evaluation_that_a_leaderboard_lists_and_the_database_lacks_is_damage(
    queued: Evaluation,
) -> None:
    assert files_of([queued.pk], {queued.pk: Evaluation.objects.with_files().get()}) == [
        (queued.pk, True)
    ]
    with pytest.raises(StoredValueCorrupt, match="lacks 1 evaluation"):
        files_of([queued.pk, queued.pk + 1], {queued.pk: queued})
