"""Judgements of single queries, of a file or of the searchers themselves.

A line of a file is `session query document level`. Real sessions are judged result by result: a
document may have one level for one query, another for the next. The judgements of a query are those
of a topic with the id `query_key(session, query)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from metrics.engine.judgement.judging import Judgements
from metrics.engine.sessions.blocks import SessionBlock
from metrics.engine.sessions.judging import query_key
from runs.errors import PROBLEMS_SHOWN, FileReport, FileTooLarge
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.scanning.pieces import Opener
from runs.formats.trec_qrels import QrelsSummary, read_qrels

_PIECE = 1024 * 1024
_LINE = re.compile(rb"^[ \t]*([^\s#]\S*)[ \t]+([1-9][0-9]{0,8})[ \t]", re.MULTILINE)
_BAD_LINE = re.compile(rb"^(?![ \t]*(?:#|\r?$|\S+[ \t]+[1-9][0-9]{0,8}[ \t])).+$", re.MULTILINE)


def read_session_qrels(
    open_qrels: Opener, *, limits: Limits = DEFAULT_LIMITS, seed: int = 0
) -> QrelsSummary:
    """Return the judgements of a file with query numbers in the second column.

    The report is like that of `read_qrels`.
    """
    content = _read_whole(open_qrels, limits).removeprefix(b"\xef\xbb\xbf")
    report = FileReport()

    for count, line in enumerate(_BAD_LINE.finditer(content)):
        number = 1 + content.count(b"\n", 0, line.start()) if count < PROBLEMS_SHOWN else 0
        message = "a line is 'session query document level', the query a whole number from 1 on"
        report.problem(number, "bad_query_number", message)

    report.check()
    keyed = _LINE.sub(rb"\1:\2 0 ", content)
    return read_qrels(lambda: in_memory(keyed, limits), limits=limits, seed=seed)


def own_judgements(
    blocks: Iterable[SessionBlock], *, limits: Limits = DEFAULT_LIMITS, seed: int = 0
) -> Judgements | None:
    """Return the searchers' own judgements in some sessions by query, or None without any."""
    lines = [line for block in blocks for line in _judgement_lines(block)]
    if not lines:
        return None

    summary = read_qrels(lambda: in_memory(b"".join(lines), limits), limits=limits, seed=seed)
    summary.report.check()
    return summary.judgements


def _judgement_lines(block: SessionBlock) -> Iterator[bytes]:
    for index, session in enumerate(block.sessions):
        start, end = block.query_starts[index : index + 2].tolist()
        for number, query in enumerate(block.queries[start:end], 1):
            key = query_key(session.session_id, number)
            yield from (b"%s 0 %s %d\n" % (key, doc, level) for doc, level in query.judged.items())


def _read_whole(open_qrels: Opener, limits: Limits) -> bytes:
    stream, parts, size = open_qrels(), list[bytes](), 0
    for chunk in iter(lambda: stream.read(_PIECE), b""):
        size += len(chunk)
        if size > limits.bytes_at_once:
            raise FileTooLarge(
                f"more than {limits.bytes_at_once:,} bytes of judgements", code="too_large_at_once"
            )

        parts.append(chunk)

    return b"".join(parts)
