"""Sessions in the XML of the TREC session track: `<session num="1"><interaction num="1"><query>...<results>...`.

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
    """Yield the sessions of a file in blocks; what is wrong goes to the report. DTDs and entities are refused."""
    found = SessionList(report, limits, seed)
    parser = make_parser()
    parser.forbid_dtd = True
    handler = _SessionHandler(found, parser)
    parser.setContentHandler(handler)
    stream = open_sessions()
    try:
        for piece in iter(lambda: stream.read(_PIECE), b""):
            handler.count_lines(piece.count(b"\n"))
            parser.feed(piece)
            handler.check_length(len(piece))
            report.stop_when_full(handler.line)
            yield from found.take()
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
    yield from found.take(rest=True)


class _SessionHandler(ContentHandler):
    """Follows the parser: `path` holds the names of the open elements, `text` what the innermost said."""

    def __init__(self, found: SessionList, locator: Any) -> None:
        super().__init__()
        self.found = found
        self.locator = locator
        self.session: SessionText | None = None
        self.query: QueryText | None = None
        self.path: list[str] = []
        self.text: list[str] = []
        self.length = 0
        self.heard = False
        self.document: dict[str, str] = {}
        # Where in the query's documents each rank was given first.
        self.places: dict[int, int] = {}
        self.lines = self.elements = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        self._count(1 + len(attrs))
        name = name.lower()
        self.path.append(name)
        self.text, self.heard = [], True
        if len(self.path) > _DEPTH:
            self._stop("bad_xml", f"more than {_DEPTH} elements inside each other")
        if name in ("result", "click"):
            self.document = {"rank": attrs.get("rank", "")}
        elif self.query is None:
            self._begin(name, {key.lower(): value.strip() for key, value in attrs.items()})

    def processingInstruction(self, target: str, data: str) -> None:
        self._count(1)

    def characters(self, content: str) -> None:
        self.heard = True
        if self.query is not None:
            self.text.append(content)

    def endElement(self, name: str) -> None:
        name = self.path.pop()
        text = "".join(self.text).strip()
        self.text, self.heard = [], True
        if self.query is not None:
            self._end_in_query(name, text, self.query)
        elif name == "session" and self.session is not None:
            self.found.add(self.session)
            self.session, self.length = None, 0

    def check_length(self, size: int) -> None:
        """Refuse a session without end, and a tag without end, of which nothing is heard."""
        self.length = 0 if self.heard and self.session is None else self.length + size
        self.heard = False
        if self.length > self.found.limits.session_length:
            self._stop(
                "line_too_long",
                f"the session has more than {self.found.limits.session_length:,} bytes",
            )

    @property
    def line(self) -> int:
        return self.locator.getLineNumber() or 0

    def count_lines(self, lines: int) -> None:
        """Refuse more lines than any file may have."""
        self.lines += lines
        if self.lines > self.found.limits.lines:
            raise FileTooLarge(
                f"more than {self.found.limits.lines:,} lines", code="too_many_lines"
            )

    def _count(self, parts: int) -> None:
        """Refuse more elements and attributes than a file may have lines."""
        self.elements += parts
        if self.elements > self.found.limits.lines:
            message = f"more than {self.found.limits.lines:,} elements and attributes"
            raise FileTooLarge(message, code="too_many_lines")

    def _stop(self, code: str, message: str) -> None:
        self.found.report.problem(self.session.line if self.session else self.line, code, message)
        self.found.report.check()

    def _begin(self, name: str, given: dict[str, str]) -> None:
        """A session, its topic or a query begins, or something that says nothing of them."""
        if self.session is None:
            if name == "session":
                self._begin_session(given)
        elif name in _QUERY_TAGS:
            self.found.check_queries(len(self.session.queries) + 1)
            self._begin_query(given)
        elif name == "topic":
            self.session.topic_id = given.get("num") or given.get("id") or given.get("number") or ""

    def _begin_session(self, given: dict[str, str]) -> None:
        self.session = SessionText(
            self.line,
            session_id=given.get("num") or given.get("id", ""),
            topic_id=given.get("topic", ""),
            searcher=given.get("userid") or given.get("searcher", ""),
            system=given.get("system", ""),
        )
        self.length = 0

    def _begin_query(self, given: dict[str, str]) -> None:
        self.places = {}
        self.query = QueryText(self.line, ranks=[], time=self._time(given.get("starttime", "")))
        scanned = given.get("scanned", "")
        if re.fullmatch("[0-9]{1,9}", scanned):
            self.query.scanned = int(scanned)
        elif scanned:
            self.found.report.problem(
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
            self.session.queries.append(_in_order(query))
            self.query = None

    def _add_document(self, query: QueryText) -> None:
        rank, named = self.document.get("rank", ""), _id_of(self.document)
        place = int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 10 else 0
        if rank and not place:
            self.found.report.problem(
                self.line, "bad_rank", f"{rank[:40]!r} is not a rank, a whole number from 1 on"
            )
        ranks = query.ranks or []
        self.places.setdefault(place or len(ranks) + 1, len(ranks))
        query.documents.append(named)
        ranks.append(place or len(ranks) + 1)
        query.ranks = ranks
        self.found.check_documents(len(ranks))

    def _add_click(self, query: QueryText) -> None:
        """A click names its document, or the rank of one above it in the file."""
        named, rank = _id_of(self.document), self.document.get("rank", "")
        if (
            not named
            and rank.isascii()
            and rank.isdigit()
            and (place := self.places.get(int(rank[:9]))) is not None
        ):
            named = query.documents[place]
        if named:
            query.clicked.append(named)
        else:
            self.found.report.warning(
                self.line, "clicked_not_listed", "a click on no document of its query is left out"
            )

    def _time(self, text: str) -> float | None:
        """Seconds, or a clock's hours, minutes and seconds."""
        if _SECONDS.fullmatch(text):
            return float(text)
        if match := _CLOCK.fullmatch(text):
            return 3600 * int(match[1] or 0) + 60 * int(match[2]) + float(match[3])
        if text:
            self.found.report.warning(self.line, "bad_time", f"the time {text[:40]!r} is not read")
        return None


def _id_of(document: dict[str, str]) -> str:
    return next((document[tag] for tag in _ID_TAGS if document.get(tag)), "")


def _in_order(query: QueryText) -> QueryText:
    """Return the documents by rank, wherever in the file they stood."""
    ranks = query.ranks or []
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    query.documents = [query.documents[place] for place in order]
    query.ranks = [ranks[place] for place in order]
    return query
