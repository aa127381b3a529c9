"""Convert files of the field into TREC's columns: runs of six, judgements of four.

Runs are taken in the form of MS MARCO (query, document, rank), as triples (query, document, score)
and as JSON; judgements with three columns, with BEIR's header, with the levels of NTCIR (`L2`), with
decimal levels and as JSON. A file is read once, a line or a topic at a time. Numbers stay the text
that the file has, so that none is rounded.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import IO, Any, NoReturn

from .errors import BadSource

MSMARCO, TRIPLES, JSON = RUN_FORMS = ("msmarco", "triples", "json")
# The server takes levels from -1000 to 1000.
MAX_LEVEL = 1000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_RANK = re.compile(r"[1-9]\d{0,8}")
_NTCIR = re.compile(r"L\d{1,4}")
_WHITE_SPACE = re.compile(r"\s")
# The first key of an object, and the first character of its value.
_FIRST_VALUE = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*(.)', re.DOTALL)
_JSON_START = re.compile(rb'\s*(\{\s*(["}]|\Z)|\[\s*([{\]]|\Z))')
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_TOPICS = ("query-id", "query_id", "qid", "q_id", "topic", "topic_id", "query")
_DOCUMENTS = ("corpus-id", "corpus_id", "docno", "doc_id", "docid", "document", "pid")
_NUMBERS = ("score", "relevance", "rel", "level", "label", "sim")
_CHUNK = 256 * 1024
# The JSON of one topic may have this many characters.
_MAX_VALUE = 64 * 1024 * 1024


class Number(str):
    """A number of a JSON file, as the text that the file has."""

    __slots__ = ()


def is_header(columns: list[str]) -> bool:
    """Return whether these are names of columns, such as BEIR's query-id, corpus-id, score."""
    if len(columns) not in (3, 4):
        return False

    first, *_, document, last = (column.lower() for column in columns)
    return first in _TOPICS and document in _DOCUMENTS and last in (*_NUMBERS, "rank")


def form_of_run(start: bytes) -> str:
    """Return the form of a run that begins so: one of RUN_FORMS, or "" for any other.

    Three columns are MS MARCO's if the third is the rank 1, otherwise triples.
    """
    if _is_json(start):
        return JSON

    columns = _first_columns(start)
    if len(columns) != 3:
        return ""
    return MSMARCO if columns[2] == "1" else TRIPLES


def is_foreign_qrels(start: bytes) -> bool:
    """Return whether judgements that begin so have another form than TREC's four columns."""
    if _is_json(start):
        return True

    for columns in _lines_of(start):
        if len(columns) == 3 or is_header(columns):
            return True
        if len(columns) != 4:
            return False
        if _NTCIR.fullmatch(columns[3]) or ("." in columns[3] and _NUMBER.fullmatch(columns[3])):
            return True

    return False


def looks_like_qrels(start: bytes) -> bool:
    """Return whether a file that begins so has judgements rather than a run."""
    columns = _first_columns(start)
    if _is_json(start):
        return False
    if is_header(columns):
        return columns[-1].lower() != "rank"
    return len(columns) == 4


def _is_json(start: bytes) -> bool:
    return _JSON_START.match(start.removeprefix(b"\xef\xbb\xbf")) is not None


def _lines_of(start: bytes) -> Iterator[list[str]]:
    """Yield the columns of the lines at the start of a file; its last one may be cut off."""
    lines = start.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    for number, line in enumerate(lines):
        columns = line.decode(errors="replace").split()
        is_whole = line.endswith((b"\n", b"\r")) or number == 0 or len(start) < _CHUNK // 4
        if columns and not columns[0].startswith("#") and is_whole:
            yield columns


def _first_columns(start: bytes) -> list[str]:
    return next(_lines_of(start), [])


@dataclass
class RunConverter:
    """Converts a run of the `form` into six columns with a `tag`; `name` is that of the file.

    `guessed` says that the form was recognised, not named: then ranks have to count from 1 in each
    topic, since three columns may as well have scores. `identical` has the topics that retrieve a
    document with the id of the topic; with `drop_identical` these documents are left out.
    """

    name: str
    form: str
    tag: str
    guessed: bool = False
    drop_identical: bool = False
    identical: list[str] = field(default_factory=list)
    topics: int = 0
    documents: int = 0

    def note(self) -> str:
        """Say what was recognised and done."""
        if self.form == MSMARCO:
            return (
                f"{self.name}: a run in the form of MS MARCO (query, document, rank); the score of "
                "a document is its rank below 0: -1, -2, ..."
            )
        if self.form == TRIPLES:
            return f"{self.name}: a run of three columns (query, document, score)"
        documents, topics = _count(self.documents, "document"), _count(self.topics, "topic")
        return f"{self.name}: a run in JSON, {documents} of {topics}"

    def lines(self, file: IO[bytes]) -> Iterator[str]:
        """Yield the lines of the run; raise BadSource for a line that is not of the form."""
        rows = self._json(file) if self.form == JSON else self._columns(file)
        rank, last = 0, None
        for topic, document, score in rows:
            if topic != last:
                rank, last = 0, topic
                self.topics += 1
            if document == topic:
                self.identical.append(topic)
                if self.drop_identical:
                    continue

            rank += 1
            self.documents += 1
            yield f"{topic} Q0 {document} {rank} {score} {self.tag}\n"

        if not self.documents:
            raise BadSource(
                f"{self.name}: no document is left: each has the id of its topic"
                if self.identical
                else f"{self.name} has no documents"
            )

    def _columns(self, file: IO[bytes]) -> Iterator[tuple[str, str, str]]:
        topic_before, rank_before = "", 0
        for number, columns in _rows(self.name, file):
            if is_header(columns) and not topic_before:
                continue
            if len(columns) != 3:
                _refuse(self.name, number, f"{len(columns)} columns where 3 are expected")

            topic, document, text = columns
            if self.form == TRIPLES:
                if not _NUMBER.fullmatch(text):
                    _refuse(self.name, number, f"the score {text!r} is not a number")
                topic_before = topic
                yield topic, document, text
                continue

            if not _RANK.fullmatch(text):
                _refuse(
                    self.name,
                    number,
                    f"the rank {text!r} is not a whole number from 1; if the third column is a "
                    f"score, write evh convert run {self.name} --from triples",
                )
            rank = int(text)
            expected = rank_before + 1 if topic == topic_before else 1
            if self.guessed and rank != expected:
                _refuse(
                    self.name,
                    number,
                    f"three columns, of which the third does not count ranks: {rank} where "
                    f"{expected} is next. Say what it is: evh convert run {self.name} --from "
                    f"msmarco for ranks, --from triples for scores",
                )
            topic_before, rank_before = topic, rank
            yield topic, document, f"-{rank}"

    def _json(self, file: IO[bytes]) -> Iterator[tuple[str, str, str]]:
        for topic, ranking in _json_topics(self.name, file):
            for document, score in ranking:
                if not _NUMBER.fullmatch(score):
                    raise BadSource(
                        f"{self.name}: topic {topic}, document {document}: the score {score!r} is "
                        "not a number"
                    )

            # The order in which they are evaluated.
            ranking.sort(key=lambda row: (float(row[1]), row[0].encode()), reverse=True)
            for document, score in ranking:
                yield topic, document, score


@dataclass
class QrelsConverter:
    """Converts judgements into four columns with whole levels; `name` is that of the file.

    Every level is multiplied by `scale`, a whole number. A level that is not whole then is refused:
    none is rounded.
    """

    name: str
    scale: int | None = None
    is_json: bool = False
    _seen: dict[str, None] = field(default_factory=dict)
    # The first level that is not whole: its line or topic, and its text.
    _fraction: tuple[str, str] | None = None
    _denominator: int = 1
    _largest: Fraction = Fraction(0)

    def note(self) -> str:
        """Say what was recognised and done."""
        return f"{self.name}: {'; '.join(self._seen)}"

    def lines(self, file: IO[bytes]) -> Iterator[str]:
        """Yield the lines of the judgements, in text as many as the file has.

        Raise BadSource for a line that is not of the form, and for levels that no scale makes whole.
        """
        if self.scale is not None and not 1 <= self.scale <= MAX_LEVEL:
            raise BadSource(f"a scale is a whole number from 1 to {MAX_LEVEL}, not {self.scale}")

        yield from self._json(file) if self.is_json else self._columns(file)
        if self._fraction:
            self._refuse_fraction(*self._fraction)
        if self.scale and self.scale > 1:
            self._see(
                f"levels times {self.scale}: {_text(Fraction(1, self.scale))} became 1, which "
                "counts as relevant unless a measure has another rel"
            )

    def _see(self, what: str) -> None:
        self._seen[what] = None

    def _columns(self, file: IO[bytes]) -> Iterator[str]:
        width, line_before = 0, 0
        for number, columns in _rows(self.name, file):
            # A line keeps its number, so that the server's warnings name those of the file.
            yield "\n" * (number - line_before - 1)
            line_before = number
            if not width and is_header(columns):
                self._see("the header " + ", ".join(columns) + " is left out")
                width = len(columns)
                yield "\n"
                continue

            width = width or len(columns)
            if width not in (3, 4) or len(columns) != width:
                expected = f"{width} are expected" if width in (3, 4) else "3 or 4 are expected"
                _refuse(self.name, number, f"{len(columns)} columns where {expected}")
            if width == 3:
                self._see("three columns (query, document, level), so the iteration is 0")

            topic, *iteration, document, text = columns
            level = self._level(text, f"{self.name}:{number}")
            yield f"{topic} {iteration[0] if iteration else 0} {document} {level}\n"

    def _json(self, file: IO[bytes]) -> Iterator[str]:
        topics = judgements = 0
        for topic, levels in _json_topics(self.name, file):
            topics += 1
            for document, text in levels:
                judgements += 1
                level = self._level(text, f"{self.name}: topic {topic}, document {document}")
                yield f"{topic} 0 {document} {level}\n"

        if not judgements:
            raise BadSource(f"{self.name} has no judgements")
        self._see(f"{_count(judgements, 'judgement')} of {_count(topics, 'topic')} in JSON")

    def _level(self, text: str, place: str) -> int:
        if _NTCIR.fullmatch(text):
            self._see("levels of NTCIR: L0 became 0, L1 became 1, ...")
            text = text[1:]
        if not _NUMBER.fullmatch(text):
            raise BadSource(f"{place}: the level {text!r} is not a number")

        exact = Fraction(text)
        level = exact * (self.scale or 1)
        self._largest = max(self._largest, abs(exact))
        if level.denominator != 1:
            # The file is read to its end, to name the scale that makes every level whole.
            self._fraction = self._fraction or (place, text)
            self._denominator = lcm(self._denominator, exact.denominator)
            return 0

        if abs(level) > MAX_LEVEL:
            raise BadSource(
                f"{place}: the level {text}{f' times {self.scale}' if self.scale else ''} is "
                f"beyond {MAX_LEVEL:,}"
            )
        if self.scale is None and not text.lstrip("+-").isdigit():
            self._see("levels such as 1.0 became whole numbers")
        return int(level)

    def _refuse_fraction(self, place: str, text: str) -> NoReturn:
        times = (
            f" times {self.scale} is {_text(Fraction(text) * self.scale)}," if self.scale else ""
        )
        scale = 10
        while scale % self._denominator and scale < MAX_LEVEL:
            scale *= 10
        if scale % self._denominator:
            scale = self._denominator

        problem = f"{place}: the level {text}{times or ' is'} not a whole number"
        if scale > MAX_LEVEL or self._largest * scale > MAX_LEVEL:
            raise BadSource(
                f"{problem}, and no scale up to {MAX_LEVEL:,} makes every level whole and at most "
                f"{MAX_LEVEL:,}; round the levels in the file"
            )
        whole = int(Fraction(text) * scale)
        raise BadSource(
            f"{problem}; this makes it {whole} and every level whole: evh qrels upload COLLECTION "
            f"{self.name} --scale {scale}"
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _text(number: Fraction) -> str:
    return f"{float(number):.6g}"


def _refuse(name: str, number: int, problem: str) -> NoReturn:
    raise BadSource(f"{name}:{number}: {problem}")


def _rows(name: str, file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the columns of each line that is neither empty nor a comment."""
    for number, line in enumerate(file, 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        try:
            columns = text.decode().split()
        except UnicodeDecodeError:
            _refuse(name, number, "is not UTF-8")
        if columns and not columns[0].startswith("#"):
            yield number, columns


def _json_topics(name: str, file: IO[bytes]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each topic with its documents and their numbers, as text.

    A file is {topic: {document: number}}, perhaps a line for each topic; or it has records with a
    topic, a document and a number, or with a topic and `results`, one a line or in a list. Records
    of a topic that follow each other are yielded together.
    """
    stream = _JsonStream(name, file)
    topics: set[str] = set()
    topic_before, ranking = "", list[tuple[str, str]]()
    for topic, rows, is_record in stream.topics():
        if not topic or _WHITE_SPACE.search(topic):
            stream.fail(f"topic {topic!r}: an id is empty or has white space")
        if not is_record and topic in topics:
            stream.fail(f"topic {topic} is there twice")

        if topic != topic_before and ranking:
            yield topic_before, _checked(stream, topic_before, ranking)
            ranking = []
        topics.add(topic)
        topic_before = topic
        ranking += rows

    if ranking:
        yield topic_before, _checked(stream, topic_before, ranking)


def _checked(
    stream: _JsonStream, topic: str, ranking: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the documents of a topic; raise BadSource for a bad id and one that is there twice."""
    documents: set[str] = set()
    for document, _ in ranking:
        if not document or _WHITE_SPACE.search(document):
            stream.fail(f"topic {topic}, document {document!r}: an id is empty or has white space")
        if document in documents:
            stream.fail(f"topic {topic}: document {document} is there twice")
        documents.add(document)

    return ranking


class _Pairs(list[tuple[str, Any]]):
    """A JSON object, with every key that it has."""


class _JsonStream:
    """Reads the topics of a JSON file and never holds more than the text of one."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._name = name
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        self._buffer, self._at, self._line, self._ended = "", 0, 1, False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_Pairs,
            parse_int=Number,
            parse_float=Number,
            parse_constant=lambda text: self.fail(f"{text} is not a number"),
        )

    def topics(self) -> Iterator[tuple[str, list[tuple[str, str]], bool]]:
        """Yield topics, documents with numbers, and whether they are from a record."""
        in_list = False
        while character := self._peek():
            if character == "[" and not in_list:
                in_list = True
                self._at += 1
            elif character in ",]" and in_list:
                self._at += 1
            elif character != "{":
                self.fail(f"{character!r} where a topic is expected")
            elif self._has_topics():
                yield from self._members()
            else:
                yield *self._record(self._value()), True

        # The caller's file is not this reader's to close.
        self._text.detach()

    def fail(self, problem: str) -> NoReturn:
        raise BadSource(f"{self._name}:{self._line_here()}: {problem}")

    def _line_here(self) -> int:
        return self._line + self._buffer.count("\n", 0, self._at)

    def _more(self) -> bool:
        """Read further, twice as much as what is not used yet; return whether there is more."""
        rest = self._buffer[self._at :]
        if len(rest) > _MAX_VALUE:
            self.fail(f"the JSON of a topic has more than {_MAX_VALUE:,} characters, or no end")

        self._line = self._line_here()
        try:
            chunk = self._text.read(max(_CHUNK, len(rest)))
        except UnicodeDecodeError:
            self.fail("is not UTF-8")
        self._buffer, self._at, self._ended = rest + chunk, 0, not chunk
        return not self._ended

    def _peek(self) -> str:
        """Return the next character that is not white space, "" at the end."""
        while True:
            match = _JSON_SPACE.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _take(self, expected: str) -> str:
        character = self._peek()
        if not character or character not in expected:
            self.fail(f"not JSON: {character!r} where one of {expected!r} is expected")
        self._at += 1
        return character

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    self.fail(f"not JSON: {error.msg}")
            except RecursionError:
                self.fail("not JSON of topics: too many brackets in each other")
            else:
                self._at = end
                return value

    def _has_topics(self) -> bool:
        """Return whether the object here has objects: {topic: {document: number}}."""
        while True:
            if match := _FIRST_VALUE.match(self._buffer, self._at):
                return match[1] == "{"
            if not self._more():
                return True

    def _members(self) -> Iterator[tuple[str, list[tuple[str, str]], bool]]:
        self._take("{")
        if self._peek() == "}":
            self._at += 1
            return

        separator = ","
        while separator == ",":
            topic = self._value()
            self._take(":")
            ranking = self._value()
            if not isinstance(topic, str) or not isinstance(ranking, _Pairs):
                self.fail(f"topic {topic} is not an object of documents with numbers")
            yield str(topic), [self._row(topic, *pair) for pair in ranking], False
            separator = self._take(",}")

    def _record(self, record: Any) -> tuple[str, list[tuple[str, str]]]:
        fields = dict(record) if isinstance(record, _Pairs) else {}
        topic = _first_of(fields, _TOPICS)
        results = fields.get("results", [record])
        if not isinstance(topic, str) or not isinstance(results, list):
            self.fail(
                "a record has a topic (query_id), a document (doc_id) and a number (score), or "
                "results with the last two"
            )

        rows = []
        for result in results:
            result_fields = dict(result) if isinstance(result, _Pairs) else {}
            document = _first_of(result_fields, _DOCUMENTS)
            if not isinstance(document, str):
                self.fail(f"topic {topic}: a record without a document (doc_id)")
            rows.append(self._row(topic, document, _first_of(result_fields, _NUMBERS)))

        return str(topic), rows

    def _row(self, topic: str, document: str, number: Any) -> tuple[str, str]:
        if not isinstance(number, Number | str) or not _is_number(number):
            self.fail(f"topic {topic}, document {document}: {number!r} is not a number")
        return str(document), str(number)


def _is_number(text: str) -> bool:
    # A text in quotes may be a level of NTCIR, but no other number.
    return isinstance(text, Number) or _NTCIR.fullmatch(text) is not None


def _first_of(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if name in fields), None)
