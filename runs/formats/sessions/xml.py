"""Sessions in the XML of the TREC session track.

    <session num="1" userid="7" starttime="0"><topic num="28"/>
      <interaction num="1" starttime="4.05"><query>...</query>
        <results><result rank="1"><url>...</url><clueweb12id>...</clueweb12id></result></results>
        <clicked><click num="1"><rank>1</rank><docno>...</docno></click></clicked>
      </interaction>
      <currentquery>...</currentquery>
    </session>

A document's id is its docno, docid or ClueWeb id, else its URL. The track's current query has no
ranking yet and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

from defusedxml import DefusedXmlException
from defusedxml.sax import make_parser

from metrics.engine.sessions.blocks import SessionBlock
from runs.errors import FileReport, FileTooLarge
from runs.formats.limits import Limits
from runs.formats.scanning.pieces import Opener
from runs.formats.sessions.listing import QueryText, SessionList, SessionText

_PIECE = 256 * 1024
_DEPTH = 50
_QUERY_TAGS = ("interaction", "iteration", "query-result")
_ID_TAGS = ("docno", "doc_id", "docid", "clueweb12id", "clueweb09id", "url")
_CLOCK = re.compile(r"(?:(\d{1,5}):)?(\d{1,5}):(\d{1,2}(?:\.\d{1,9})?)")
_SECONDS = re.compile(r"\d{1,15}(?:\.\d{1,9})?")


def read(
    open_sessions: Opener, report: FileReport, limits: Limits, seed: int, grouped: bool = True
) -> Iterator[SessionBlock]:
    """Yield the sessions of a file in blocks; problems go to the report.

    DTDs and entities are refused.
    """
    session_list = SessionList(report, limits, seed)
    parser = make_parser()
    parser.forbid_dtd = True
    handler = _SessionHandler(session_list, parser)
    parser.setContentHandler(handler)
    stream = open_sessions()
    try:
        for chunk in iter(lambda: stream.read(_PIECE), b""):
            handler.count_lines(chunk.count(b"\n"))
            parser.feed(chunk)
            handler.check_length(len(chunk))
            report.stop_when_full(handler.line)
            yield from session_list.take()

        parser.close()
    except SAXParseException as error:
        report.problem(
            error.getLineNumber() or 0, "bad_xml", f"not well-formed XML: {error.getMessage()}"
        )
    except DefusedXmlException:
        report.problem(
            parser.getLineNumber() or 0,
            "bad_xml",
            "a document type or an entity is declared; remove it",
        )

    yield from session_list.take(rest=True)


class _SessionHandler(ContentHandler):
    """Collects sessions; `path` has the open elements, `text` the text of the innermost one."""

    def __init__(self, session_list: SessionList, locator: Any) -> None:
        super().__init__()
        self.session_list = session_list
        self.locator = locator
        self.session: SessionText | None = None
        self.query: QueryText | None = None
        self.path: list[str] = []
        self.text: list[str] = []
        self.length = 0
        self.had_event = False
        self.document: dict[str, str] = {}

        # The position in the query's documents at which each rank was given first.
        self.positions: dict[int, int] = {}
        self.line_count = self.element_count = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        self._count(1 + len(attrs))
        name = name.lower()
        self.path.append(name)
        self.text, self.had_event = [], True

        if len(self.path) > _DEPTH:
            self._refuse("bad_xml", f"more than {_DEPTH} elements inside each other")

        if name in ("result", "click"):
            self.document = {"rank": attrs.get("rank", "")}
        elif self.query is None:
            self._start_element(name, {key.lower(): value.strip() for key, value in attrs.items()})

    def processingInstruction(self, target: str, data: str) -> None:
        self._count(1)

    def characters(self, content: str) -> None:
        self.had_event = True
        if self.query is not None:
            self.text.append(content)

    def endElement(self, name: str) -> None:
        name = self.path.pop()
        text = "".join(self.text).strip()
        self.text, self.had_event = [], True
        if self.query is not None:
            self._end_in_query(name, text, self.query)
        elif name == "session" and self.session is not None:
            self.session_list.add(self.session)
            self.session, self.length = None, 0

    def check_length(self, size: int) -> None:
        """Refuse a session without end, and a tag without end, which causes no events."""
        self.length = 0 if self.had_event and self.session is None else self.length + size
        self.had_event = False
        if self.length > self.session_list.limits.session_length:
            self._refuse(
                "line_too_long",
                f"the session has more than {self.session_list.limits.session_length:,} bytes",
            )

    @property
    def line(self) -> int:
        return self.locator.getLineNumber() or 0

    def count_lines(self, lines: int) -> None:
        """Raise FileTooLarge for more lines than a file may have."""
        self.line_count += lines
        if self.line_count > self.session_list.limits.lines:
            raise FileTooLarge(
                f"more than {self.session_list.limits.lines:,} lines", code="too_many_lines"
            )

    def _count(self, parts: int) -> None:
        """Raise FileTooLarge for more elements and attributes than a file may have lines."""
        self.element_count += parts
        if self.element_count > self.session_list.limits.lines:
            message = f"more than {self.session_list.limits.lines:,} elements and attributes"
            raise FileTooLarge(message, code="too_many_lines")

    def _refuse(self, code: str, message: str) -> None:
        self.session_list.report.problem(
            self.session.line if self.session else self.line, code, message
        )
        self.session_list.report.check()

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a session or a query, or set the topic; other elements are ignored."""
        if self.session is None:
            if name == "session":
                self._begin_session(attributes)
        elif name in _QUERY_TAGS:
            self.session_list.check_queries(len(self.session.queries) + 1)
            self._begin_query(attributes)
        elif name == "topic":
            self.session.topic_id = (
                attributes.get("num") or attributes.get("id") or attributes.get("number") or ""
            )

    def _begin_session(self, attributes: dict[str, str]) -> None:
        self.session = SessionText(
            self.line,
            session_id=attributes.get("num") or attributes.get("id", ""),
            topic_id=attributes.get("topic", ""),
            searcher=attributes.get("userid") or attributes.get("searcher", ""),
            system=attributes.get("system", ""),
        )
        self.length = 0

    def _begin_query(self, attributes: dict[str, str]) -> None:
        self.positions = {}
        self.query = QueryText(
            self.line, ranks=[], time=self._time(attributes.get("starttime", ""))
        )
        scanned = attributes.get("scanned", "")
        if re.fullmatch("[0-9]{1,9}", scanned):
            self.query.scanned = int(scanned)
        elif scanned:
            self.session_list.report.problem(
                self.line, "bad_value", "`scanned` must be a number of documents, 0 or above"
            )

    def _end_in_query(self, name: str, text: str, query: QueryText) -> None:
        if name in _ID_TAGS or (name == "rank" and text):
            self.document[name] = text
        elif name == "query":
            query.text = " ".join(text.split())
        elif name == "result":
            self._add_document(query)
        elif name == "click":
            self._add_click(query)
        elif name in _QUERY_TAGS and self.session is not None:
            self.session.queries.append(_sorted_by_rank(query))
            self.query = None

    def _add_document(self, query: QueryText) -> None:
        rank, document_id = self.document.get("rank", ""), _id_of(self.document)
        number = int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 10 else 0
        if rank and not number:
            self.session_list.report.problem(
                self.line, "bad_rank", f"{rank[:40]!r} is not a rank, a whole number from 1 on"
            )

        ranks = query.ranks or []
        self.positions.setdefault(number or len(ranks) + 1, len(ranks))
        query.documents.append(document_id)
        ranks.append(number or len(ranks) + 1)
        query.ranks = ranks
        self.session_list.check_documents(len(ranks))

    def _add_click(self, query: QueryText) -> None:
        """Add a click: it names its document, or the rank of one above it in the file."""
        document_id, rank = _id_of(self.document), self.document.get("rank", "")
        if not document_id and rank.isascii() and rank.isdigit():
            position = self.positions.get(int(rank[:9]))
            if position is not None:
                document_id = query.documents[position]

        if document_id:
            query.clicked.append(document_id)
        else:
            self.session_list.report.warning(
                self.line, "clicked_not_listed", "a click on no document of its query is left out"
            )

    def _time(self, text: str) -> float | None:
        """Return the seconds of a text, or of a clock's hours, minutes and seconds."""
        if _SECONDS.fullmatch(text):
            return float(text)
        if match := _CLOCK.fullmatch(text):
            return 3600 * int(match[1] or 0) + 60 * int(match[2]) + float(match[3])

        if text:
            self.session_list.report.warning(
                self.line, "bad_time", f"the time {text[:40]!r} is not read"
            )

        return None


def _id_of(document: dict[str, str]) -> str:
    return next((document[tag] for tag in _ID_TAGS if document.get(tag)), "")


def _sorted_by_rank(query: QueryText) -> QueryText:
    """Return the query with its documents sorted by rank."""
    ranks = query.ranks or []
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    query.documents = [query.documents[position] for position in order]
    query.ranks = [ranks[position] for position in order]
    return query
