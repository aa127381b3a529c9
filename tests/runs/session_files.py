"""Session logs in each format, and reading them in tests."""

from __future__ import annotations

from typing import Any

from metrics.engine.sessions.blocks import Session, SessionBlock
from runs.errors import InvalidFile
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.sessions.reading import (
    SessionsSummary,
    use_sessions,
)

LIMITS = Limits()
JSONL = """\
{"session_id": "s1", "topic_id": "301", "searcher": "u7", "system": "A", "queries": [\
{"text": "crime", "time": 4.5, "documents": ["d1", "d7"], "scores": [9.5, 8], "clicked": ["d7"], "judged": {"d7": 2}, \
"scanned": 2}, {"text": "organized crime", "documents": []}, {"documents": ["d7"]}]}
{"id": 2, "queries": [{"documents": ["x"], "ranks": [3]}]}
"""
XML = """\
<?xml version="1.0"?>
<sessiontrack2014>
<session num="s1" userid="u7" system="A" starttime="10:00:00"><topic num="301"><desc>Crime</desc></topic>
<interaction num="1" starttime="00:01:04.5" scanned="2"><query>
  crime</query>
<results>
<result rank="2"><url>http://b/</url><clueweb12id>d7</clueweb12id></result>
<result rank="1"><url>http://a/</url><docno> d1 </docno></result>
</results>
<clicked><click num="1"><rank>2</rank></click><click num="2"><docno>d1</docno></click></clicked>
</interaction>
<interaction num="2" starttime="90"><query>organized crime</query><results/></interaction>
<interaction num="3"><query/><results><result><url>http://c/?a=1&amp;b</url></result></results></interaction>
<currentquery><query>crime now</query></currentquery>
</session>
</sessiontrack2014>
"""
FLAT = """\
# from the log
s1 1 d1 1 9.5 A 301 u7
s1 1 d7 2 8 A 301 u7
s1 2 - 0 0 A 301 u7
s1 3 d7 1 0 A\t301  u7
2 2 x 3 1 B
"""
Read = tuple[SessionsSummary, list[SessionBlock]]
Flat = list[tuple[Session, list[tuple[list[str], list[int]]]]]


def read(content: str | bytes, limits: Limits = LIMITS, format: str | None = None) -> Read:
    encoded = content.encode() if isinstance(content, str) else content
    return use_sessions(lambda: in_memory(encoded, limits), list, limits=limits, format=format)


def contents(blocks: list[SessionBlock]) -> Flat:
    """Every session with the documents and ranks of its queries."""
    contents: Flat = []
    for block in blocks:
        text = block.data.tobytes()
        for index, session in enumerate(block.sessions):
            queries = []
            for query in range(*block.query_starts[index : index + 2].tolist()):
                rows = range(*block.document_starts[query : query + 2].tolist())
                docs = [text[block.doc_starts[row] : block.doc_ends[row]].decode() for row in rows]
                queries.append((docs, [int(block.ranks[row]) for row in rows]))
            contents.append((session, queries))
    return contents


def found_in(content: str | bytes, **more: Any) -> Flat:
    summary, blocks = read(content, **more)
    summary.report.check()
    return contents(blocks)


def problems(
    content: str | bytes, limits: Limits = LIMITS, format: str | None = None
) -> list[tuple[int, str]]:
    try:
        report = read(content, limits, format)[0].report
    except InvalidFile as error:
        report = error.report
    return sorted({(problem.line, problem.code) for problem in report.problems})


FIRST = (Session(b"s1", b"301", b"u7", b"A"), [(["d1", "d7"], [1, 2]), ([], []), (["d7"], [1])])


def in_session(inner: str) -> str:
    return f'<log>\n<session num="s">\n{inner}\n</session></log>'
