"""The titles of a collection's documents: replaced together by a file, and read by their ids."""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.db import connection, transaction

from runs.attention import check_client
from runs.errors import FileReport
from runs.formats.documents import DocumentText, read_documents
from runs.models import AuditEvent, Collection
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.collections.collections import locked_collection
from runs.services.storage.files import FileSource, upload_folder, upload_limits

_BATCH = 1000
_INSERT = """
    INSERT INTO runs_documenttitle (collection_id, doc_id, title, snippet) VALUES (%s, %s, %s, %s)
"""
# Ids that are looked up at once: databases limit the parameters of a query.
_IDS_AT_ONCE = 10_000
# The ids of a large file take more than a hundred megabytes: a process checks one at a time.
_CHECKING = threading.Lock()


@dataclass(frozen=True)
class DocumentsSummary:
    """The content of a file: its number of documents, of which `titled` have a title."""

    documents: int
    titled: int
    first: list[DocumentText]
    sha256: str
    report: FileReport


def check_documents(*, upload: Path, first: int = 0) -> DocumentsSummary:
    """Return the content of a file, and its `first` documents. Raise InvalidFile for problems."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        return _check(upload, nowhere, first)


def import_documents(
    *, collection: Collection, upload: Path, origin: Origin = SYSTEM
) -> DocumentsSummary:
    """Replace the titles of the collection's documents by those of a file.

    Raise InvalidFile with every problem; then nothing is changed.
    """
    with tempfile.TemporaryFile("w+", dir=upload_folder(), encoding="utf-8", newline="\n") as rows:
        # Nobody waits for a lock of the database while the file is read.
        summary = _check(upload, rows)
        rows.seek(0)

        with transaction.atomic():
            locked = locked_collection(collection)
            before = _delete(locked)
            _insert(locked, rows)
            record(
                origin,
                AuditEvent.Action.DOCUMENTS_REPLACED,
                locked,
                collection=locked,
                before={"documents": before},
                after={"documents": summary.documents, "sha256": summary.sha256},
            )

    return summary


def delete_documents(*, collection: Collection, origin: Origin = SYSTEM) -> int:
    """Delete the titles of the collection's documents and return their number."""
    with transaction.atomic():
        locked = locked_collection(collection)
        number = _delete(locked)
        if number:
            record(
                origin,
                AuditEvent.Action.DOCUMENTS_DELETED,
                locked,
                collection=locked,
                before={"documents": number},
            )

    return number


def read_titles(collection: Collection, doc_ids: Iterable[str]) -> dict[str, DocumentText]:
    """Return title and snippet of documents by their ids, empty where the collection has none."""
    ids = list(dict.fromkeys(doc_ids))
    titles = {doc_id: DocumentText(doc_id, "", "") for doc_id in ids}

    for start in range(0, len(ids), _IDS_AT_ONCE):
        batch = ids[start : start + _IDS_AT_ONCE]
        rows = collection.document_titles.filter(doc_id__in=batch).order_by()
        for row in rows.values_list("doc_id", "title", "snippet"):
            titles[row[0]] = DocumentText(*row)

    return titles


def _check(upload: Path, rows: IO[str], first: int = 0) -> DocumentsSummary:
    """Read a file to its end and write its documents as lines of columns.

    Their texts have no tabs and line ends.
    """
    report, source = FileReport(), FileSource(upload, upload_limits())
    documents = titled = 0
    shown: list[DocumentText] = []

    with _CHECKING:
        try:
            for document in read_documents(source.open, report):
                rows.write("\t".join(document) + "\n")
                documents += 1
                titled += bool(document.title)
                if len(shown) < first:
                    shown.append(document)
        finally:
            source.close()

    return DocumentsSummary(documents, titled, shown, source.sha256, report)


def _delete(collection: Collection) -> int:
    number, _ = collection.document_titles.order_by().delete()
    return number


def _insert(collection: Collection, rows: IO[str]) -> None:
    """Insert documents without model objects, for the reason of `_insert_topics`."""
    with connection.cursor() as cursor:
        while lines := list(itertools.islice(rows, _BATCH)):
            check_client()
            cursor.executemany(
                _INSERT, [(collection.pk, *line.rstrip("\n").split("\t")) for line in lines]
            )
