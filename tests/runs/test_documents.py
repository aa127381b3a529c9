"""Titles of documents: the files that are read and refused, and what a collection keeps of them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError
from rest_framework.test import APIClient

from runs.errors import FileReport, FileTooLarge, InvalidFile
from runs.formats import documents as reader
from runs.formats.documents import DocumentText, read_documents
from runs.models import AuditEvent, Collection, DocumentTitle
from runs.services.collections import documents as service
from runs.services.collections.documents import import_documents, read_titles
from tests.conftest import upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

SMALL = "/api/v1/collections/small/documents/"


def documents_of(content: str | bytes, report: FileReport | None = None) -> list[DocumentText]:
    data = content.encode() if isinstance(content, str) else content
    return list(read_documents(lambda: io.BytesIO(data), report or FileReport()))


def test_columns_and_lines_of_json_are_read() -> None:
    columns = b"\xef\xbb\xbfa\tCats  and\tWhiskers.\r\n\nb\tDogs\n c \t\n"
    assert documents_of(columns) == [
        ("a", "Cats and", "Whiskers."), ("b", "Dogs", ""), ("c", "", ""),
    ]  # fmt: skip
    lines = [
        {"_id": "a", "title": "Cats", "text": "Many\n\nlines", "metadata": {"url": "x"}},
        {"docno": 7, "title": None, "contents": "Only text"},
        {"id": "b", "title": "<b>Bold</b> & more"},
    ]
    assert documents_of("\n".join(map(json.dumps, lines))) == [
        ("a", "Cats", "Many lines"), ("7", "", "Only text"), ("b", "<b>Bold</b> & more", ""),
    ]  # fmt: skip


def test_long_texts_are_cut_after_a_word() -> None:
    report = FileReport()
    line = json.dumps({"id": "a", "title": "word " * 100, "text": "  " + "snippet " * 100_000})
    ((_, title, snippet),) = documents_of(line, report)
    assert (len(title), title[-6:]) == (300, " word…")
    assert (len(snippet), snippet[-9:]) == (240, " snippet…")
    assert report.counts == {"title_cut": 1}


def test_control_characters_are_left_out() -> None:
    report = FileReport()
    line = json.dumps({"id": "a", "title": "C\u0000a\u202et\ud800s", "text": "\u001b[1m\u0085x"})
    assert documents_of(line, report) == [("a", "Cats", "[1m x")]
    assert report.counts == {"control_character": 1}


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("", [(0, "no_documents")]),
        ("a\n", [(1, "too_few_columns")]),
        ("a\thttps://a\ttitle\tbody\n", [(1, "too_many_columns")]),
        ("a\tx\n\tx\nb c\tx\na\tx\n", [(2, "missing_doc_id"), (3, "bad_doc_id"), (4, "duplicate_document")]),
        ("\u00e9" * 513 + "\tx", [(1, "bad_doc_id")]),
        (b"a\tx\nb\t\xff\n", [(2, "undecodable_bytes")]),
        ("a\tx".encode("utf-16"), [(1, "undecodable_bytes")]),
        ('{"id": "a"}\n{\n[1]', [(2, "bad_json"), (3, "bad_json")]),
        ('{"id": "a", "title": ["x"]}', [(1, "bad_text")]),
        ('{"id": true}', [(1, "bad_doc_id")]),
        ('{"title": "x"}', [(1, "missing_doc_id")]),
        ('{"id": "\\ud800"}', [(1, "bad_doc_id")]),
        ('{"id": ' + "1" * 5000 + "}", [(1, "bad_json")]),
        ('{"id": ' + "[" * 50_000, [(1, "bad_json")]),
        ('{"id": ' + "[" * 200_000, [(1, "bad_json")]),
    ],
)  # fmt: skip
def test_problems_have_a_line_and_a_code(
    content: str | bytes, problems: list[tuple[int, str]]
) -> None:
    with pytest.raises(InvalidFile) as refused:
        documents_of(content)
    report = refused.value.report
    assert [(problem.line, problem.code) for problem in report.problems] == problems


def test_a_file_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidFile, match=r"line 2: the line has more than 4,194,304 bytes"):
        documents_of("a\tx\nb\t" + "x" * 6_000_000)
    with pytest.raises(InvalidFile, match="after 50 problems the file was read no further"):
        documents_of("a\n" * 1000)

    monkeypatch.setattr(reader, "MAX_DOCUMENTS", 2)
    with pytest.raises(InvalidFile, match="line 3: the file has more than 2 documents"):
        documents_of("a\tx\nb\tx\nc\tx\n")
    with pytest.raises(FileTooLarge, match="more than 4 lines"):
        documents_of("\n" * 10)


@pytest.mark.django_db
def test_a_file_replaces_all_titles_or_none(
    api: APIClient, collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Collection.objects.get(slug=collection)
    content = "".join(f"d{number}\ttitle {number}\n" for number in range(2500))
    (tmp_path / "titles.gz").write_bytes(gzip.compress(content.encode()))
    summary = import_documents(collection=small, upload=tmp_path / "titles.gz")
    assert (summary.documents, summary.titled) == (2500, 2500)

    answer = upload(api, f"collections/{collection}/documents/", "a\tx\nb\n", "put")
    assert (answer.status_code, answer.json()["errors"][0]["line"]) == (422, 2)
    assert small.document_titles.count() == 2500

    # Half of a file is never stored, even if the database fails.
    def fail(*args: Any, **fields: Any) -> None:
        raise IntegrityError("the disk is full")

    monkeypatch.setattr(service, "record", fail)
    (tmp_path / "few.tsv").write_text("a\tx\n")
    with pytest.raises(IntegrityError):
        import_documents(collection=small, upload=tmp_path / "few.tsv")
    assert small.document_titles.count() == 2500

    monkeypatch.undo()
    import_documents(collection=small, upload=tmp_path / "few.tsv")
    assert read_titles(small, ["a", "d1", "a"]) == {"a": ("a", "x", ""), "d1": ("d1", "", "")}


@pytest.mark.django_db
def test_titles_are_replaced_listed_and_deleted(
    api: APIClient, anonymous: APIClient, collection: str
) -> None:
    checked = upload(api, "collections/small/documents/?dry_run=true", "a\tCats\nb\t\n", "put")
    assert (checked.status_code, checked.json()["documents"]) == (200, 2)
    assert anonymous.get(SMALL).json()["count"] == 0

    body = upload(api, "collections/small/documents/", "b\t\tMeow\na\tCats\n", "put").json()
    assert (body["documents"], body["titled"], len(body["sha256"])) == (2, 1, 64)
    assert anonymous.get(SMALL).json()["results"] == [
        {"doc_id": "a", "title": "Cats", "snippet": ""},
        {"doc_id": "b", "title": "", "snippet": "Meow"},
    ]

    assert anonymous.delete(SMALL).status_code == 401
    assert [api.delete(SMALL).status_code for _ in range(2)] == [204, 204]
    assert not DocumentTitle.objects.exists()
    events = AuditEvent.objects.filter(action__startswith="documents.").order_by("pk")
    assert [(event.action, event.before.get("documents")) for event in events] == [
        ("documents.replaced", 0),
        ("documents.deleted", 2),
    ]


@pytest.mark.django_db
def test_titles_are_deleted_with_their_collection(api: APIClient, collection: str) -> None:
    api.post("/api/v1/collections/", {"slug": "empty", "name": "Empty"})
    for slug in ("empty", "small"):
        upload(api, f"collections/{slug}/documents/", "a\tx\n", "put")
    Collection.objects.get(slug="empty").delete()
    assert DocumentTitle.objects.get().collection.slug == "small"
