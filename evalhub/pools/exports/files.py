"""Files of a pool for assessors: the documents of a topic, and all topics as a zip archive."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from typing import IO
from urllib.parse import quote

from evalhub.pools.models import Pool
from evalhub.pools.services.drawing import file_order
from evalhub.pools.services.pool_file import read_topics
from runs.attention import keep_going

# Larger archives wait on the disk.
_IN_MEMORY = 8 * 1024 * 1024
# The first time that the format has: the same pool is the same archive.
_TIME = (1980, 1, 1, 0, 0, 0)


def _tab_separated(pool: Pool, topic_id: str, doc_ids: Sequence[str]) -> str:
    head = f"# pool {pool.pk}\n# topic {topic_id}\n# sha256 {pool.sha256}\n"
    return head + "".join(f"{topic_id}\t{doc_id}\n" for doc_id in doc_ids)


def _trec(pool: Pool, topic_id: str, doc_ids: Sequence[str]) -> str:
    return "".join(f"{topic_id} 0 {doc_id}\n" for doc_id in doc_ids)


def _json_lines(pool: Pool, topic_id: str, doc_ids: Sequence[str]) -> str:
    rows = ({"topic_id": topic_id, "doc_id": doc_id} for doc_id in doc_ids)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


FORMS: dict[str, Callable[[Pool, str, Sequence[str]], str]] = {
    "tsv": _tab_separated,
    "trec": _trec,
    "jsonl": _json_lines,
}
MEDIA_TYPES = {
    "tsv": "text/tab-separated-values; charset=utf-8",
    "trec": "text/plain; charset=utf-8",
    "jsonl": "application/x-ndjson; charset=utf-8",
}


def topic_file(
    *, pool: Pool, topic_id: str, doc_ids: Sequence[str], form: str, assessor: str = ""
) -> bytes:
    """Return the file of a topic, in the order of an assessor."""
    return FORMS[form](pool, topic_id, file_order(pool, topic_id, doc_ids, assessor)).encode()


def archive(*, pool: Pool, form: str, assessor: str = "") -> IO[bytes]:
    """Return a zip archive with the file of each topic, opened at its beginning."""
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for topic_id, documents in read_topics(pool):
            keep_going()
            content = topic_file(
                pool=pool,
                topic_id=topic_id,
                doc_ids=[document.doc_id for document in documents],
                form=form,
                assessor=assessor,
            )
            name = f"{quote(topic_id, safe=' ')}.{form}"
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(member, content)

    file.seek(0)
    return file
