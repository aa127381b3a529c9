"""Files of the field become TREC's columns, exactly and in bounded memory, or are refused by line."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evalhub.client import BadSource
from evalhub.client.converting import MSMARCO, TRIPLES, QrelsConverter, RunConverter
from evalhub.client.sources import Source, is_run, read_qrels, read_source, tag_of_file


def text_of(source: Source) -> str:
    with source.open() as file:
        content = file.read()
    return (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode()


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        # MS MARCO: query, document, rank.
        ("q1\td1\t1\nq1\td2\t2\nq2\td3\t1\n", "q1 Q0 d1 1 -1 x\nq1 Q0 d2 2 -2 x\nq2 Q0 d3 1 -1 x\n"),
        # Scores stay the text of the file, in the order in which they are evaluated.
        (
            '{"q": {"a": 0.10000000000000000555, "b": 2, "c": 1e-7, "d": 2.0}}',
            "q Q0 d 1 2.0 x\nq Q0 b 2 2 x\nq Q0 a 3 0.10000000000000000555 x\nq Q0 c 4 1e-7 x\n",
        ),
        ('{"q": {"a": 1}}\n{"r": {"a": 2}}\n', "q Q0 a 1 1 x\nr Q0 a 1 2 x\n"),
        (
            '{"query_id": "q", "doc_id": "a", "score": 1}\n{"query_id": "q", "doc_id": "b", "score": 3}\n',
            "q Q0 b 1 3 x\nq Q0 a 2 1 x\n",
        ),
        (
            '[{"qid": 7, "results": [{"corpus_id": "a", "score": 1.5}]}]',
            "7 Q0 a 1 1.5 x\n",
        ),
    ],
)  # fmt: skip
def test_runs_become_six_columns(content: str, lines: str) -> None:
    for source in (content.encode(), io.BytesIO(gzip.compress(content.encode()))):
        assert text_of(read_source(source, "x")) == lines


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"q": {"a": 1, "a": 2}}', "run:1: topic q: document a is there twice"),
        ('{"q": {"a": 1},\n"q": {"b": 2}}', "run:2: topic q is there twice"),
        ('{"q":\n{"a": NaN}}', "run:2: NaN is not a number"),
        ('{"q": {"a": "0.5"}}', "topic q, document a: '0.5' is not a number"),
        ('{"q": {"a": true}}', "topic q, document a: True is not a number"),
        ('{"q": {"a b": 1}}', "white space"),
        ('{"q": {"a": 1}', "run:1: not JSON"),
        ('{"q": 7}', "a record has a topic"),
        ('{"q": {}}', "has no documents"),
        ("q1 d1 0.5\n", "--from triples"),
        ("q1 d1 1\nq1 d2 7\n", "run:2: .* 7 where 2 is next"),
        ("q1 0 d1 1\n", "evh qrels upload COLLECTION run"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "evh qrels upload COLLECTION run"),
    ],
)
def test_what_is_no_run_is_refused_with_its_line(content: str, says: str) -> None:
    with pytest.raises(BadSource, match=says):
        read_source(content.encode(), "x")


def test_three_columns_are_what_their_user_says() -> None:
    scores = b"q1 d1 0.5\nq1 d2 7\n"
    triples = RunConverter("f", TRIPLES, "x").lines(io.BytesIO(scores))
    assert list(triples) == ["q1 Q0 d1 1 0.5 x\n", "q1 Q0 d2 2 7 x\n"]
    ranks = RunConverter("f", MSMARCO, "x").lines(io.BytesIO(b"q1 d2 7\nq1 d1 3\n"))
    assert list(ranks) == ["q1 Q0 d2 1 -7 x\n", "q1 Q0 d1 2 -3 x\n"]
    with pytest.raises(BadSource, match=r"f:1: the rank '0\.5' is not a whole number"):
        list(RunConverter("f", MSMARCO, "x").lines(io.BytesIO(scores)))


@pytest.mark.parametrize(
    ("content", "scale", "lines"),
    [
        # BEIR: the lines keep their numbers, so that the server's warnings name those of the file.
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t1\n", None, "\nq1 0 d1 1\nq1 0 d1 1\n"),
        ("q1 d1 L2\n# x\nq1 d2 L0\n", None, "q1 0 d1 2\n\nq1 0 d2 0\n"),
        ("q1 5 d1 L2\n", None, "q1 5 d1 2\n"),
        ("q1 0 d1 1.0\nq1 0 d2 -2.00\n", None, "q1 0 d1 1\nq1 0 d2 -2\n"),
        ("q1 0 d1 0.7\nq1 0 d2 1\nq1 0 d3 0.05\n", 20, "q1 0 d1 14\nq1 0 d2 20\nq1 0 d3 1\n"),
        ('{"q1": {"d1": 1, "d2": 0}}', None, "q1 0 d1 1\nq1 0 d2 0\n"),
        ("q1 0 d1 1\n", None, "q1 0 d1 1\n"),
    ],
)
def test_judgements_become_four_columns(content: str, scale: int | None, lines: str) -> None:
    assert text_of(read_qrels(content.encode(), scale)) == lines


@pytest.mark.parametrize(
    ("content", "scale", "says"),
    [
        ("q 0 a 1\nq 0 b 0.7\n", 3, r"qrels:2: the level 0.7 times 3 is 2.1, not .* --scale 10"),
        ("q 0 b 0.7\nq 0 a 0.25\n", None, r"qrels:1: the level 0.7 is not .* 70 .* --scale 100"),
        ("q 0 a 0.3333333\n", None, "no scale up to 1,000"),
        ("q 0 a 200.5\n", None, "no scale up to 1,000"),
        ("q 0 a 101\n", 10, "beyond 1,000"),
        ("q 0 a high\nq 0 b 0.5\n", 10, "qrels:1: the level 'high' is not a number"),
        ("q a L1\nq 0 b L2\n", None, "qrels:2: 4 columns where 3 are expected"),
        ("q 0 a 0.5\n", 0, "a scale is a whole number"),
    ],
)
def test_no_level_is_rounded(content: str, scale: int | None, says: str) -> None:
    with pytest.raises(BadSource, match=says):
        read_qrels(content.encode(), scale)


def test_every_tenth_is_exact() -> None:
    """In binary, 0.1 * 3 is not 0.3: every level is a fraction of whole numbers instead."""
    content = "".join(f"q 0 d{number} {number / 10}\n" for number in range(1001))
    levels = [line.split()[3] for line in text_of(read_qrels(content.encode(), 10)).splitlines()]
    assert levels == [str(Fraction(number)) for number in range(1001)]


def test_a_json_file_has_the_tag_of_its_name(tmp_path: Path) -> None:
    for name, content in (("run.json", '{"q": {"a": 1}}'), ("splade.tsv", "q\ta\t1\n")):
        path = tmp_path / name
        path.write_text(content)
        stem = path.stem
        assert (is_run(path), tag_of_file(path), read_source(path).tag) == (True, stem, stem)


def test_dropped_documents_are_counted() -> None:
    source = read_source(b'{"1": {"1": 2, "a": 1}, "2": {"a": 1}}', "x", drop_identical=True)
    assert (source.identical, source.dropped) == (("1",), True)
    assert text_of(source) == "1 Q0 a 1 1 x\n2 Q0 a 1 1 x\n"
    with pytest.raises(BadSource, match="each has the id of its topic"):
        read_source(b'{"1": {"1": 2}}', "x", drop_identical=True)


class Endless(io.RawIOBase):
    """A file that is made as it is read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest = parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or next(self._parts, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def test_memory_holds_one_topic() -> None:
    """25 MB of JSON with long ids take a tenth of that: one topic is read at a time."""
    ranking = json.dumps({f"document-{number}" * 100: number for number in range(20)}).encode()
    topics = (b'%s"q%d": %s' % (b"," if n else b"{", n, ranking) for n in range(1000))
    file: Any = io.BufferedReader(Endless(itertools.chain(topics, [b"}"])))
    converter = RunConverter("f", "json", "x")
    tracemalloc.start()
    try:
        lines = sum(1 for _ in converter.lines(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (lines, converter.topics) == (20_000, 1000)
    assert peak < 3_000_000


def test_notes_say_what_was_done() -> None:
    converter = QrelsConverter("f.tsv", 10)
    list(converter.lines(io.BytesIO(b"query-id corpus-id score\nq d 0.1\n")))
    assert converter.note().startswith("f.tsv: the header query-id, corpus-id, score is left out; ")
    assert "levels times 10: 0.1 became 1" in converter.note()
