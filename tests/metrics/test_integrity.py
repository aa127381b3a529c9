"""fsck: every invariant is broken once, found, and repaired where that loses nothing."""

from __future__ import annotations

import errno
import gzip
import io
import os
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
import zstandard
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.queue import lifecycle
from metrics.services.upkeep import integrity
from metrics.services.upkeep.integrity import find_faults
from runs.models import Collection, Membership, Qrels, RememberedAnswer, Run, Team, User
from runs.services.storage.files import examine_stored, upload_folder
from runs.services.storage.installs import settle
from runs.services.storage.stores.folder import stored_path
from tests.conftest import GOOD, QRELS, evaluate_all, upload


def fsck(*options: str) -> tuple[int, str]:
    """The exit status and what was printed."""
    out = io.StringIO()
    try:
        call_command("fsck", *options, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def codes(*, fast: bool = False) -> list[str]:
    return [finding.code for finding in find_faults(fast=fast)]


@pytest.fixture
def run(submit: Callable[..., Run]) -> Run:
    return submit(GOOD)


def test_a_sound_install_has_no_fault(run: Run) -> None:
    assert fsck() == (0, "fsck: 0 faults\n")


def drop_view(run: Run) -> None:
    JudgedView.objects.all().delete()


def spoil_view(run: Run) -> None:
    JudgedView.objects.update(content=b"x")


def cut_vector(run: Run) -> None:
    MetricVector.objects.filter(measure="AP").update(content=b"12345678")


def change_depth(run: Run) -> None:
    Evaluation.objects.update(judged_depth=F("judged_depth") + 1)


def expire_lease(run: Run) -> None:
    hold_lease(run, -60)


def stretch_lease(run: Run) -> None:
    hold_lease(run, 3600)


def hold_lease(run: Run, seconds: float) -> None:
    until = timezone.now() + timedelta(seconds=seconds)
    Evaluation.objects.update(state="evaluating", lease_token=uuid.uuid4(), lease_until=until)


def queue_deleted(run: Run) -> None:
    Run.objects.update(deleted_at=timezone.now())
    Evaluation.objects.update(state="queued")


def forget_to_queue(run: Run) -> None:
    Evaluation.objects.all().delete()


def lose_team(run: Run) -> None:
    User.objects.create(username="lonely")


def lose_membership(run: Run) -> None:
    Membership.objects.all().delete()


REPAIRABLE: dict[str, Callable[[Run], None]] = {
    "view_missing": drop_view,
    "view_unreadable": spoil_view,
    "vector_length": cut_vector,
    "depth_altered": change_depth,
    "lease_expired": expire_lease,
    "lease_too_long": stretch_lease,
    "deleted_run_queued": queue_deleted,
    "run_not_queued": forget_to_queue,
    "no_personal_team": lose_team,
    "not_in_personal_team": lose_membership,
}


@pytest.mark.slow
@pytest.mark.parametrize("code", list(REPAIRABLE))
def test_what_can_be_repaired_is(run: Run, code: str) -> None:
    REPAIRABLE[code](run)
    status, text = fsck()
    assert (status, f"wrong {code}: " in text) == (1, True), text
    status, text = fsck("--repair")
    assert (status, f"repaired wrong {code}: " in text) == (0, True), text
    evaluate_all()
    # A vector that was taken away is a note, until it is queued again.
    assert fsck()[0] == 0
    fsck("--repair")
    evaluate_all()
    assert fsck() == (0, "fsck: 0 faults\n")
    live = Evaluation.objects.filter(run__deleted_at=None)
    # The collection's two measures, and Judged@10.
    assert all(e.state == "evaluated" and e.vectors.count() == 3 for e in live)


def remove_file(run: Run) -> None:
    stored_path(run.sha256).unlink()


def alter_file(run: Run) -> None:
    stored_path(run.sha256).write_text(GOOD.replace("3.0", "0.5"))


def put_a_folder_in_its_place(run: Run) -> None:
    remove_file(run)
    stored_path(run.sha256).mkdir()


def lie_about_size(run: Run) -> None:
    Run.objects.update(size=1)


def lie_about_topics(run: Run) -> None:
    Qrels.objects.update(topic_ids=["1"])


def ask_for_nonsense(run: Run) -> None:
    Collection.objects.update(measures=["nDCG@10", "AP", "Nonsense@3"])


def judge_by_others(run: Run) -> None:
    other = Collection.objects.create(slug="other", name="Other", team=run.team)
    qrels = Qrels.objects.get()
    qrels.pk, qrels.collection = None, other
    qrels.save(force_insert=True)
    Evaluation.objects.update(qrels=qrels)


FATAL: dict[str, Callable[[Run], None]] = {
    "file_missing": remove_file,
    "file_altered": alter_file,
    "file_unreadable": put_a_folder_in_its_place,
    "file_size": lie_about_size,
    "qrels_topics": lie_about_topics,
    "measure_unknown": ask_for_nonsense,
    "foreign_qrels": judge_by_others,
}


@pytest.mark.parametrize("code", list(FATAL))
def test_what_needs_an_administrator_is_named_with_what_to_do(run: Run, code: str) -> None:
    FATAL[code](run)
    for options in ((), ("--repair",)):
        status, text = fsck(*options)
        (line,) = [line for line in text.splitlines() if line.startswith(f"wrong {code}: ")]
        assert (status, ";" in line) == (1, True), text


def test_fast_looks_for_files_and_does_not_read_them(run: Run) -> None:
    alter_file(run)
    assert (codes(fast=True), codes()) == ([], ["file_altered"])
    remove_file(run)
    assert codes(fast=True) == ["file_missing"]


def test_a_disk_that_fails_is_no_altered_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of a plain file nor of a compressed one, and nothing else goes unsaid."""

    class Failing(io.BytesIO):
        """Gives what tells its compression, and nothing once it is read from the beginning again."""

        seeks = 0

        def seek(self, offset: int, whence: int = 0, /) -> int:
            self.seeks += 1
            return super().seek(offset, whence)

        def read(self, size: int | None = -1, /) -> bytes:
            if self.seeks >= 2:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size)

        def readinto(self, buffer: Any, /) -> int:
            raise OSError(errno.EIO, "Input/output error")

    remove_file(run)
    for content in (GOOD.encode(), gzip.compress(GOOD.encode()), zstandard.compress(GOOD.encode())):
        monkeypatch.setattr(Path, "open", lambda path, mode, content=content: Failing(content))
        findings = examine_stored(run.sha256)
        assert (findings.state, findings.reason) == ("unreadable", "Input/output error")


def test_findings_are_printed_as_they_are_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a later look ends the command."""
    lose_team(run)

    def fail() -> NoReturn:
        raise RuntimeError("the next look")

    monkeypatch.setattr(integrity, "_find_in_leases", fail)
    out = io.StringIO()
    with pytest.raises(RuntimeError, match="the next look"):
        call_command("fsck", stdout=out)
    assert "wrong no_personal_team: " in out.getvalue()


def test_notes_are_no_faults(run: Run, api: APIClient) -> None:
    orphan = stored_path("ab" * 32)
    orphan.parent.mkdir(parents=True)
    for path in (orphan, upload_folder() / "x.upload"):
        path.write_bytes(b"x")
        os.utime(path, (time.time() - 90_000,) * 2)
    Team.objects.create(slug="empty", name="Empty")
    old = timezone.now() - timedelta(days=3)
    answer: dict[str, Any] = {"digest": "x", "status": 202, "body": {}, "created_at": old}
    RememberedAnswer.objects.create(user=User.objects.get(), key="k", **answer)
    MetricVector.objects.filter(measure="AP").delete()
    expected = {"orphan_file", "old_upload", "old_keys", "team_without_members", "vector_missing"}
    assert set(codes()) == expected
    assert fsck()[0] == 0
    assert fsck("--repair")[0] == 0
    evaluate_all()
    assert codes() == ["team_without_members"]


def test_young_files_without_a_row_are_noted_and_kept(run: Run) -> None:
    Run.objects.update(deleted_at=timezone.now())
    Evaluation.objects.all().delete()
    assert codes() == []
    Run.objects.all().delete()
    assert codes() == ["young_orphan"]
    assert fsck("--repair")[0] == 0
    assert stored_path(run.sha256).exists()


def test_a_service_at_work_has_no_fault(api: APIClient, collection: str) -> None:
    for number in range(3):
        upload(api, "collections/small/runs/", GOOD, tag=f"run-{number}")
    lifecycle.claim(Evaluation.objects.earliest("pk").pk)
    upload(api, "collections/small/qrels/", QRELS + "9 0 a 1\n")
    assert codes() == []


def test_the_sweep_command_says_what_it_took(db: None, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("sweep", stdout=out)
    assert (
        out.getvalue()
        == "swept: 0 files, 0 uploads, 0 idempotency keys, 0 comparisons, 0 deliveries, 0 mails\n"
    )


@pytest.mark.sqlite("PostgreSQL keeps the types of columns")
def test_stored_bytes_that_became_text_are_made_bytes_again(submit: Callable[..., Run]) -> None:
    submit(GOOD)
    right = [(bytes(row.content), row.digest) for row in MetricVector.objects.order_by("pk")]
    with connection.cursor() as cursor:
        for table in ("metrics_metricvector", "metrics_judgedview"):
            cursor.execute(f'UPDATE "{table}" SET content = CAST(content AS TEXT)')
    status, output = fsck()
    assert status == 1
    assert output.count("wrong value_type:") == len(right) + 1
    for _ in range(2):
        status, output = fsck("--repair")
        evaluate_all()
    assert (status, output) == (0, "fsck: 0 faults\n")
    assert sorted((bytes(row.content), row.digest) for row in MetricVector.objects.all()) == sorted(
        right
    )


@pytest.mark.parametrize("content", [b"", b"\xff\xfe" * 40])
def test_a_damaged_key_is_a_fault(db: None, settings: Any, content: bytes) -> None:
    settle()
    settings.EVALHUB_SECRET_KEY = ""
    key = settings.EVALHUB_DATA / "secret.key"
    key.write_bytes(content)
    status, text = fsck("--repair")
    assert (status, "wrong key_damaged: the secret key in" in text) == (1, True), text
    settings.EVALHUB_SECRET_KEY = "k" * 50
    assert fsck()[0] == 0
