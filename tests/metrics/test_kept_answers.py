"""Answers in files: read by every process, never when damaged, and bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from metrics.services import kept_answers
from metrics.services.kept_answers import keep, recall, sweep_kept
from runs.services import changes
from runs.services.changes import mark_changed, take_settled


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.EVALHUB_DATA, settings.EVALHUB_KEPT_ANSWERS_BYTES = tmp_path, 2**20
    return tmp_path / "answers"


def test_what_is_kept_is_found_by_its_key_alone(folder: Path) -> None:
    keep("one", b"content" * 1000)
    assert recall("one") == b"content" * 1000
    assert recall("two") is None
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("at", [0, 31, 32, -1])
def test_a_damaged_file_is_not_there_and_goes(folder: Path, at: int) -> None:
    keep("one", b"content")
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)
    assert recall("one") is None
    assert not file.exists()


def test_a_file_of_another_key_or_another_server_is_not_there(folder: Path, settings: Any) -> None:
    keep("one", b"content")
    (file,) = folder.iterdir()
    keep("two", b"other")
    (other,) = set(folder.iterdir()) - {file}
    os.replace(other, file)
    assert recall("one") is None
    keep("one", b"content")
    settings.SECRET_KEY = "another"
    assert recall("one") is None


def test_the_least_recently_asked_for_go_first_and_all_after_a_day(
    folder: Path, settings: Any
) -> None:
    for number in range(4):
        keep(f"{number}", os.urandom(1000))
    now = time.time()
    for number in range(4):
        os.utime(kept_answers._path(f"{number}"), (now - 100 + number,) * 2)
    recall("0")
    settings.EVALHUB_KEPT_ANSWERS_BYTES = 2500
    assert sweep_kept() == 2
    assert [recall(f"{number}") is not None for number in range(4)] == [True, False, False, True]
    for file in folder.iterdir():
        os.utime(file, (now - 2 * kept_answers.KEPT_SECONDS,) * 2)
    assert sweep_kept() == 2


def test_few_large_answers_stay_near_the_limit_too(folder: Path) -> None:
    for name in range(30):
        keep(str(name), os.urandom(2**18))
        assert sum(file.stat().st_size for file in folder.iterdir()) < 1.5 * 2**20
    assert recall("29")


def test_nothing_is_kept_where_it_is_off_or_cannot_be_written(folder: Path, settings: Any) -> None:
    keep("large", b"x" * (kept_answers.MOST_BYTES + 1))
    settings.EVALHUB_KEPT_ANSWERS_BYTES = 0
    keep("off", b"x")
    mark_changed(1)
    assert not folder.exists()
    settings.EVALHUB_KEPT_ANSWERS_BYTES, settings.EVALHUB_DATA = 2**20, folder / "missing"
    keep("nowhere", b"x")
    mark_changed(1)
    assert (recall("nowhere"), sweep_kept(), take_settled()) == (None, 0, [])


def test_a_collection_settles_once_and_only_without_new_evaluations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_changed(7)
    assert take_settled() == []
    monkeypatch.setattr(changes, "SETTLED_SECONDS", -1.0)
    assert take_settled() == [7]
    assert take_settled() == []
