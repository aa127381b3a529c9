"""A backup is always worth something: of damaged files, of damaged archives, whatever is sound comes back."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from evalhub.operating.backup import FAULTS, HashedReader, Unreadable, write_backup
from evalhub.operating.restoring import Backup, BadBackup
from metrics.services.upkeep.integrity import find_faults
from runs.models import Qrels, Run
from runs.services.storage.stores.folder import stored_path
from tests.conftest import GOOD
from tests.reliability.backups import BOARD, attempt, counts, restore, rewrite, start_anew


def test_a_backup_whose_rows_were_altered_is_refused_before_anything_is_installed(
    filled: APIClient, settings: Any, tmp_path: Path
) -> None:
    path = tmp_path / "b.tar"
    write_backup(path)
    rewrite(
        path,
        lambda name, b: b.replace(b'"good"', b'"fine"') if name == "rows/runs.run.jsonl" else b,
    )
    start_anew(settings, tmp_path / "other")
    for options in ((), ("--verify",)):
        out = io.StringIO()
        with pytest.raises(CommandError, match="nothing was installed"):
            call_command("restore", str(path), *options, stdout=out)
        assert "wrong rows/runs.run.jsonl: content differs" in out.getvalue()
    assert not Run.objects.exists()


@pytest.mark.parametrize("damage", ["content differs", "missing"])
def test_a_backup_with_a_damaged_file_installs_everything_else(
    filled: APIClient, settings: Any, tmp_path: Path, damage: str
) -> None:
    good, others = (
        Run.objects.get(tag="good").sha256,
        set(Run.objects.values_list("sha256", flat=True)),
    )
    board, before, path = filled.get(BOARD).json()["results"], counts(), tmp_path / "b.tar"
    write_backup(path)
    altered = (
        (lambda b: b.replace(b"3.0", b"9.0")) if damage == "content differs" else (lambda b: None)
    )
    rewrite(path, lambda name, b: altered(b) if good in name else b)
    status, text = attempt("restore", str(path), "--verify")
    assert (status, f"wrong files/{good}: {damage}" in text) == (1, True), text
    start_anew(settings, tmp_path / "other")
    status, text = attempt("restore", str(path))
    assert (status, "stored files not restored: 1;" in text, counts()) == (1, True, before), text
    assert filled.get(BOARD).json()["results"][:2] == board[:2]
    assert not stored_path(good).exists()
    assert all(stored_path(sha256).exists() for sha256 in others - {good})
    assert {finding.code for finding in find_faults()} == {"file_missing"}


def test_a_damaged_header_in_a_backup_costs_its_file_alone(
    filled: APIClient, settings: Any, tmp_path: Path
) -> None:
    """Not everything behind it, the manifest included."""
    path, before = tmp_path / "b.tar", counts()
    write_backup(path)
    with tarfile.open(path) as tar:
        names = tar.getnames()
        hidden = next(name for name in names if name.startswith("files/"))
        place = tar.getmember(hidden).offset
    content = bytearray(path.read_bytes())
    content[place + 3] ^= 1
    path.write_bytes(bytes(content))
    with tarfile.open(path) as tar:
        assert len(tar.getnames()) < len(names) - 1
    start_anew(settings, tmp_path / "other")
    status, text = attempt("restore", str(path))
    assert (status, text.count("wrong "), f"wrong {hidden}: missing" in text, counts()) == (
        1,
        1,
        True,
        before,
    ), text
    contents = {f"files/{stored.name}" for stored in (tmp_path / "other" / "files").glob("*/*")}
    assert contents == {name for name in names if name.startswith("files/")} - {hidden}


def alter(path: Path) -> None:
    path.write_text(GOOD.replace("3.0", "9.0"))


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("state", "damage"),
    [("altered", alter), ("unreadable", replace_by_folder), ("missing", Path.unlink)],
)
def test_a_damaged_stored_file_is_told_and_the_rest_comes_back(
    filled: APIClient, settings: Any, tmp_path: Path, state: str, damage: Callable[[Path], None]
) -> None:
    sha256, path, before = Run.objects.get(tag="good").sha256, tmp_path / "b.tar", counts()
    damage(stored_path(sha256))
    status, text = attempt("backup", str(path))
    assert (status, f"the stored file {sha256} {FAULTS[state]}" in text) == (1, True), text
    backup = Backup(path)
    assert (backup.manifest[state], list(backup.faults())) == ([sha256], [])
    assert (f"altered/{sha256}" in backup.manifest["members"]) == (state == "altered")
    assert sha256 not in backup.files
    backup.close()
    start_anew(settings, tmp_path / "other")
    status, text = attempt("restore", str(path))
    assert (
        status,
        f"not in the backup: files/{sha256}, which {FAULTS[state]} " in text,
        counts(),
    ) == (
        1,
        True,
        before,
    ), text
    assert {finding.code for finding in find_faults()} == {"file_missing"}


def test_a_stored_file_that_fails_while_it_is_copied_leaves_a_whole_backup(
    filled: APIClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a disk does: the bytes that were read before are taken out of the archive again."""
    sha256, usual = Run.objects.get(tag="good").sha256, HashedReader.read

    def read(reader: HashedReader, size: int = -1) -> bytes:
        content = usual(reader, size)
        if content.startswith(GOOD.encode()[:10]):
            raise Unreadable("Input/output error")
        return content

    monkeypatch.setattr(HashedReader, "read", read)
    manifest = write_backup(tmp_path / "b.tar")
    monkeypatch.undo()
    assert sha256 in manifest["unreadable"]
    backup = Backup(tmp_path / "b.tar")
    assert list(backup.faults()) == []
    backup.close()


def test_a_stored_file_that_was_altered_before_an_older_backup_is_found(
    filled: APIClient, tmp_path: Path
) -> None:
    """Older ones hold it under its name, with a manifest that agrees."""
    sha256, path = Run.objects.get(tag="good").sha256, tmp_path / "b.tar"
    write_backup(path)
    wrong = GOOD.replace("3.0", "9.0").encode()

    def change(name: str, content: bytes) -> bytes:
        if name == "manifest.json":
            manifest = json.loads(content)
            member = manifest["members"][f"files/{sha256}"]
            member.update(size=len(wrong), sha256=hashlib.sha256(wrong).hexdigest())
            manifest.update(format=1)
            return json.dumps(manifest).encode()
        return wrong if name == f"files/{sha256}" else content

    rewrite(path, change)
    backup = Backup(path)
    assert [str(fault) for fault in backup.faults()] == [
        f"files/{sha256}: its decompressed content has a different SHA-256"
    ]
    backup.close()


def test_a_file_cut_short_is_no_backup(filled: APIClient, tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    write_backup(path)
    content = path.read_bytes()
    for size in (0, 100, len(content) // 2):
        path.write_bytes(content[:size])
        with pytest.raises(BadBackup, match="truncated"):
            Backup(path)


def test_a_missing_file_is_named_and_the_rest_is_saved(filled: APIClient, tmp_path: Path) -> None:
    sha256 = Qrels.objects.get().sha256
    stored_path(sha256).unlink()
    manifest = write_backup(tmp_path / "b.tar")
    assert manifest["missing"] == [sha256]
    backup = Backup(tmp_path / "b.tar")
    assert list(backup.faults()) == []
    backup.close()


def test_a_manifest_that_was_altered_is_refused_in_words(filled: APIClient, tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    write_backup(path)
    whole = path.read_bytes()
    changes: dict[str, Callable[[bytes], bytes]] = {
        "is damaged": lambda b: b.replace(b'"made_at": "20', b'"made_at": "21'),
        "manifest is not the one that": lambda b: b.replace(
            b'"engine_version"', b'"engine_versjon"'
        ),
        "names no format": lambda b: b.replace(b'"format"', b'"fprmat"'),
        "has format 3": lambda b: b.replace(b'"format": 2', b'"format": 3'),
        "is not a backup: ": lambda b: b"[]",
        "or is truncated": lambda b: b[:-5],
        "its manifest is not the one": lambda b: json.dumps({"format": 1, "rows": {}}).encode(),
    }
    for message, change in changes.items():
        path.write_bytes(whole)
        rewrite(path, lambda name, b, change=change: change(b) if name == "manifest.json" else b)
        with pytest.raises(CommandError, match=message):
            restore(path, "--verify")
