"""Answers that all processes share: found by their keys alone, never when damaged, and bounded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from metrics.services import answer_store
from metrics.services.answer_store import forget_all, keep, recall
from runs.services.audit import revisions
from runs.services.audit.revisions import mark_changed, take_settled

FILES = "django.core.cache.backends.filebased.FileBasedCache"


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    place = tmp_path / "answers"
    in_files = {"BACKEND": FILES, "LOCATION": place, "OPTIONS": {"MAX_ENTRIES": 9}}
    settings.EVALHUB_DATA, settings.EVALHUB_KEPT_ANSWERS_BYTES = tmp_path, 2**20
    settings.CACHES = {**settings.CACHES, "answers": in_files}
    return place


def test_what_is_kept_is_found_by_its_key_alone(folder: Path) -> None:
    keep("one", {"content": b"content" * 1000}, took=1.0)
    assert recall("one") == {"content": b"content" * 1000}
    assert recall("two") is None
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_file_with_any_damaged_byte_is_not_there(folder: Path) -> None:
    keep("one", b"content", took=1.0)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        assert recall("one") in (None, b"content"), place
        file.write_bytes(content[:place])
        assert recall("one") is None, place
    keep("one", b"again", took=1.0)
    assert recall("one") == b"again"


def test_a_file_of_another_key_or_another_release_is_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep("one", b"content", took=1.0)
    (file,) = folder.iterdir()
    keep("two", b"other", took=1.0)
    (other,) = set(folder.iterdir()) - {file}
    os.replace(other, file)
    assert recall("one") is None
    keep("one", b"content", took=1.0)
    monkeypatch.setattr(answer_store, "release_digest", lambda: "another")
    assert recall("one") is None


def test_there_are_only_so_many_files_and_none_when_all_are_forgotten(folder: Path) -> None:
    for name in range(30):
        keep(str(name), os.urandom(100), took=1.0)
        assert len(list(folder.iterdir())) <= 9
    assert recall("29")
    forget_all()
    assert not list(folder.iterdir())


def test_what_is_fast_large_or_cannot_be_written_is_not_kept(
    folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_store, "LEAST_SECONDS", 0.01)
    keep("fast", b"x", took=0.009)
    keep("large", os.urandom(settings.EVALHUB_LARGEST_ANSWER_BYTES), took=1.0)
    assert not folder.exists()
    folder.write_text("no folder")
    keep("nowhere", b"x", took=1.0)
    assert (recall("fast"), recall("large"), recall("nowhere")) == (None, None, None)


def test_collections_are_not_marked_where_nothing_is_kept(folder: Path, settings: Any) -> None:
    settings.EVALHUB_KEPT_ANSWERS_BYTES = 0
    mark_changed(1)
    settings.EVALHUB_KEPT_ANSWERS_BYTES, settings.EVALHUB_DATA = 2**20, folder / "missing"
    mark_changed(1)
    assert take_settled() == []
    assert not (folder.parent / "changed").exists()


def test_a_collection_settles_once_and_only_without_new_evaluations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_changed(7)
    assert take_settled() == []
    monkeypatch.setattr(revisions, "SETTLED_SECONDS", -1.0)
    assert take_settled() == [7]
    assert take_settled() == []
