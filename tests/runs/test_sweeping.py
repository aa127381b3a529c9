"""The sweeper takes away what nobody needs, and never what somebody is storing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.services.upkeep.dispatch import _sweep
from metrics.services.upkeep.integrity import find_faults
from runs.models import Qrels, Run, SessionSet
from runs.services.storage.files import storing, sweeping, upload_folder
from runs.services.storage.installs import settle
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.folder import stored_path
from runs.services.submissions.sweeping import LEAST_MOST, delete_orphan, is_named, sweep
from tests.conftest import GOOD, POOR, upload

pytestmark = pytest.mark.words

RUNS = "collections/small/runs/"
DAY = 24 * 3600


def age(path: Path, seconds: float = DAY + 60) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def age_all() -> None:
    """Make every file, and every withdrawal, older than a day."""
    for entry in the_store().entries():
        age(stored_path(entry.sha256))
    for model in (Run, SessionSet):
        model.objects.exclude(deleted_at=None).update(
            deleted_at=timezone.now() - timedelta(seconds=DAY + 60)
        )


def test_files_that_rows_name_stay(api: APIClient, submit: Callable[..., Run]) -> None:
    run = submit(GOOD)
    age_all()
    assert (sweep().files, stored_path(run.sha256).exists()) == (0, True)
    assert stored_path(Qrels.objects.get().sha256).exists()


@pytest.mark.queries
def test_a_file_goes_with_the_last_run_that_names_it(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    first, two = submit(GOOD), submit(GOOD, tag="copy")
    assert first.sha256 == two.sha256
    api.delete(f"/api/v1/runs/{first.pk}/")
    age_all()
    assert (sweep().files, stored_path(first.sha256).exists()) == (0, True)
    api.delete(f"/api/v1/runs/{two.pk}/")
    # For a day its team can restore it.
    assert (sweep().files, stored_path(first.sha256).exists()) == (0, True)
    age_all()
    assert (sweep().files, stored_path(first.sha256).exists()) == (1, False)
    assert Run.objects.exclude(deleted_at=None).count() == 2
    again = submit(GOOD)
    assert (again.sha256, stored_path(first.sha256).exists()) == (first.sha256, True)


def test_known_documents_stay_with_their_run(
    api: APIClient, collection: str, tmp_path: Path
) -> None:
    (tmp_path / "run").write_text(GOOD)
    (tmp_path / "known").write_text("1 a\n")
    with (tmp_path / "run").open("rb") as file, (tmp_path / "known").open("rb") as known:
        answer = api.post(f"/api/v1/{RUNS}", {"file": file, "known": known}, format="multipart")
    assert answer.status_code == 202, answer.content
    age_all()
    assert sweep().files == 0
    api.delete(f"/api/v1/runs/{answer.json()['id']}/")
    age_all()
    assert sweep().files == 2


def test_what_is_younger_than_a_day_stays(db: None) -> None:
    young, old = upload_folder() / "young.upload", upload_folder() / "old.upload"
    for path in (young, old):
        path.write_bytes(b"x")
    age(young, DAY - 60)
    age(old)
    orphan = stored_path("ab" * 32)
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x")
    age(orphan, DAY - 60)
    swept = sweep()
    assert (swept.files, swept.uploads) == (0, 1)
    assert young.exists()
    assert orphan.exists()


def test_an_orphan_whose_bytes_come_in_at_this_moment_stays(
    api: APIClient, submit: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has an old file; a submission has found it there and has not committed its row yet."""
    gone = submit(GOOD)
    api.delete(f"/api/v1/runs/{gone.pk}/")
    age_all()
    orphan, tried = stored_path(gone.sha256), []
    save = Run.save

    def sweep_meanwhile(*arguments: Any, **options: Any) -> None:
        assert not is_named(gone.sha256)
        tried.append(delete_orphan(orphan.name))
        save(*arguments, **options)

    monkeypatch.setattr(Run, "save", sweep_meanwhile)
    assert upload(api, RUNS, GOOD).status_code == 202
    assert tried == [False]
    assert orphan.exists()
    assert sweep().files == 0


def test_a_submission_waits_while_an_orphan_is_deleted(tmp_path: Path) -> None:
    entered = threading.Event()

    def store() -> None:
        with storing():
            entered.set()

    with sweeping():
        thread = threading.Thread(target=store)
        thread.start()
        assert not entered.wait(0.3)
    thread.join()
    assert entered.is_set()


def test_submissions_do_not_wait_for_each_other() -> None:
    with storing(), storing():
        pass
    with storing(), pytest.raises(BlockingIOError), sweeping():
        pass


def test_a_file_that_went_missing_comes_back_with_the_same_submission(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    run = submit(GOOD)
    submit(POOR)
    stored_path(run.sha256).unlink()
    assert upload(api, RUNS, GOOD).status_code == 200
    assert stored_path(run.sha256).read_text() == GOOD


def orphan(number: int) -> Path:
    """A stored file, older than a day, that no row names."""
    path = stored_path(f"{number:064x}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GOOD)
    age(path)
    return path


def test_a_sweep_that_would_take_too_much_takes_nothing(
    db: None, caplog: pytest.LogCaptureFixture
) -> None:
    settle()
    orphans = [orphan(number) for number in range(LEAST_MOST + 1)]
    assert (sweep().files, sweep().spared) == (0, LEAST_MOST + 1)
    _sweep()
    assert "too many to be deleted unasked" in caplog.text
    with pytest.raises(CommandError, match=f"evalhub sweep --most {LEAST_MOST + 1}"):
        call_command("sweep", most=LEAST_MOST)
    assert all(path.exists() for path in orphans)
    (note,) = find_faults()
    assert (note.code, note.repair, f"--most {LEAST_MOST + 1}" in note.message) == (
        "orphan_file",
        None,
        True,
    )
    orphans.pop().unlink()
    assert sweep().files == LEAST_MOST
    for number in range(LEAST_MOST + 1):
        orphan(number)
    call_command("sweep", most=LEAST_MOST + 1)
    assert list(the_store().entries()) == []


def test_a_tenth_of_a_large_store_may_go(
    api: APIClient, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "runs.services.submissions.sweeping.is_named", lambda sha256: int(sha256, 16) >= 30
    )
    for number in range(300):
        orphan(number)
    assert sweep().files == 30
    assert len(list(the_store().entries())) == 270
