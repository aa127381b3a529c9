"""Small sets of sessions and judgements for tests of the engine, straight from lists and dictionaries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from metrics.engine.sessions.blocks import SessionBlock
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.judging import JudgedBy, judge_sessions
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.sessions.reading import use_sessions
from tests.engine.build import SEED, judgements_of

Record = Mapping[str, Any]
Qrels = Mapping[str, Mapping[str, int]]


def blocks_of(records: Sequence[Record]) -> list[SessionBlock]:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    summary, blocks = use_sessions(lambda: in_memory(content, DEFAULT_LIMITS), list, seed=SEED)
    summary.report.check()
    return blocks


def judged_sessions(
    records: Sequence[Record], qrels: Qrels, by: JudgedBy = "topic"
) -> JudgedSessions:
    return judge_sessions(blocks_of(records), judgements_of(qrels), by)


def session(
    *queries: Sequence[str],
    name: str = "s",
    topic: str = "t",
    scanned: Sequence[int] = (),
    **more: Any,
) -> Record:
    """A session by the documents of its queries; `scanned` says how far each was looked at."""
    texts: list[dict[str, Any]] = [{"documents": list(documents)} for documents in queries]
    for text, number in zip(texts, scanned, strict=False):
        text["scanned"] = number
    return {"session_id": name, "topic_id": topic, "queries": texts, **more}
