"""The limits of an uploaded file, beyond which reading stops."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Upper bounds of an uploaded file. The defaults admit an MS-MARCO-sized run and little more.

    `..._at_once` limits what is in memory: a topic, judgements, or a run with interleaved topics.
    `session_length` limits the bytes of a session in one line or element. `queries`,
    `session_documents` (with clicks and judgements) and `session_ids`, the bytes of all ids of
    sessions, topics, searchers and systems, limit what is stored of a whole log. `archives` admits
    archives, and compressed files inside compressed files, for artifacts.
    """

    bytes_in: int = 512 * 1024 * 1024
    bytes_out: int = 2 * 1024 * 1024 * 1024
    bytes_at_once: int = 256 * 1024 * 1024
    lines: int = 20_000_000
    lines_at_once: int = 5_000_000
    line_length: int = 8192
    id_length: int = 1024
    topics: int = 200_000
    documents_per_topic: int = 1_000_000
    sessions: int = 200_000
    session_ids: int = 128 * 1024 * 1024
    queries: int = 5_000_000
    session_documents: int = 10_000_000
    queries_per_session: int = 1_000
    documents_per_query: int = 10_000
    session_length: int = 16 * 1024 * 1024
    archives: bool = False


DEFAULT_LIMITS = Limits()
