"""Runs of every shape become the same file."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalhub.client import BadSource
from evalhub.client.sources import (
    GENERIC,
    Source,
    read_as_it_is,
    read_source,
    tag_of_file,
    tag_of_name,
)

RESULTS = {"2": {"b": 1.5, "a": 1.5, "ä": 1.5, "c": 0.1}, "1": {"x": -1.0, "y": 7}}
LINES = "2 Q0 ä 1 1.5 bm25\n2 Q0 b 2 1.5 bm25\n2 Q0 a 3 1.5 bm25\n2 Q0 c 4 0.1 bm25\n"
LINES += "1 Q0 y 1 7.0 bm25\n1 Q0 x 2 -1.0 bm25\n"
Scored = namedtuple("Scored", "query_id doc_id score")


def bytes_of(source: Source) -> bytes:
    with source.open() as file:
        content = file.read()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


class Table:
    """A table as pandas and polars have it."""

    def __init__(self, *names: str) -> None:
        self.columns = names
        rows = [
            (topic, doc, score)
            for topic, ranking in RESULTS.items()
            for doc, score in ranking.items()
        ]
        self._columns = dict(zip(names, zip(*rows, strict=True), strict=True))

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


ROWS = [(topic, doc, score) for topic, ranking in RESULTS.items() for doc, score in ranking.items()]


@pytest.mark.parametrize(
    "content",
    [
        RESULTS, ROWS, iter(ROWS), [Scored(*row) for row in ROWS], Table("qid", "docno", "score"),
        Table("query_id", "doc_id", "score"), LINES.encode(), io.BytesIO(LINES.encode()),
    ],
    ids=lambda source: type(source).__name__,
)  # fmt: skip
def test_every_shape_is_the_same_file(content: Any) -> None:
    source = read_source(content, "bm25")
    assert bytes_of(source).decode() == LINES
    assert source.sha256 == hashlib.sha256(LINES.encode()).hexdigest()
    assert source.tag == "bm25"


def test_a_run_of_ranx_brings_its_name() -> None:
    kind = type(
        "Run",
        (),
        {"__module__": "ranx.data_structures.run", "to_dict": lambda self: RESULTS, "name": "bm25"},
    )
    assert bytes_of(read_source(kind())).decode() == LINES


def test_the_scores_are_read_back_as_the_same_numbers() -> None:
    scores = {f"d{number}": math.sqrt(number) * 10 ** (number % 40 - 20) for number in range(200)}
    body = bytes_of(read_source({"1": scores}, "x")).decode().splitlines()
    assert {line.split()[2]: float(line.split()[4]) for line in body} == scores


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"1": {"a": math.nan}}, "topic 1, document a: the score is nan"),
        ({"1": {"a": "high"}}, "topic 1, document a: the score 'high' is not a number"),
        ({"1": {"a b": 1.0}}, "white space"),
        ({"": {"a": 1.0}}, "empty"),
        ([("1", "a", 1.0), ("1", "a", 2.0)], "topic 1: document a is there twice"),
        ([("1", "a")], "is not a triple"),
        ({}, "no documents"),
        (7, "a int is not a run"),
        (SimpleNamespace(columns=["q", "d"]), "has no column qid"),
        (b"", "empty"),
        ("nowhere.run", "no such file"),
        (b"\x1f\x8b cut short", "not a whole gzip file"),
    ],
)
def test_what_cannot_be_sent_is_refused_here(source: Any, says: str) -> None:
    with pytest.raises(BadSource, match=says):
        read_source(source, "x")


def test_a_dictionary_needs_a_tag_that_names_it() -> None:
    for tag in (None, "Anserini"):
        with pytest.raises(BadSource, match="give it a tag"):
            read_source(RESULTS, tag)


@pytest.mark.parametrize("own", [*sorted(GENERIC), "Anserini", "STANDARD"])
def test_a_generic_tag_never_becomes_a_name(tmp_path: Path, own: str) -> None:
    path = tmp_path / "bm25 rm3.res.gz"
    path.write_bytes(gzip.compress(f"1 Q0 a 1 1.0 {own}\n".encode()))
    assert read_source(path).tag == tag_of_file(path) == "bm25-rm3"
    path.write_bytes(gzip.compress(b"# a comment\n1 Q0 a 1 1.0 mine\n"))
    assert read_source(path).tag == tag_of_file(path) == "mine"
    assert read_source(path, "other").tag == "other"


def test_a_name_becomes_a_tag_that_the_server_takes() -> None:
    assert [tag_of_name(name) for name in ("a.run.gz", "ü.txt", "x" * 99, "a.b.trec")] == [
        "a",
        "run",
        "x" * 64,
        "a.b",
    ]


def test_what_is_large_is_sent_compressed_and_alike_each_time(tmp_path: Path) -> None:
    body = "".join(f"1 Q0 d{number} 1 {number} big\n" for number in range(20_000)).encode()
    path = tmp_path / "big.run"
    path.write_bytes(body)
    first, second = read_source(path), read_source(body)
    assert first.body.getbuffer() == second.body.getbuffer()  # type: ignore[attr-defined]
    assert len(first.body.getbuffer()) < len(body) / 2  # type: ignore[attr-defined]
    assert bytes_of(first) == body
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(body))
    assert {source.sha256 for source in (first, second, read_source(packed))} == {
        hashlib.sha256(body).hexdigest()
    }


def test_an_attached_file_is_sent_as_it_is(tmp_path: Path) -> None:
    content = gzip.compress(b"a" * 200_000)
    (tmp_path / "log.gz").write_bytes(content)
    for source in (
        read_as_it_is(tmp_path / "log.gz"),
        read_as_it_is(io.BytesIO(content), "log.gz"),
    ):
        with source.open() as body:
            assert (source.name, body.read()) == ("log.gz", content)
    assert read_as_it_is(b"", "empty.log").sha256 == hashlib.sha256(b"").hexdigest()
    for unusable, name, says in ((b"x", None, "bytes have no name"), ("nowhere.txt", None, "there is no such file"),
                              (io.StringIO("x"), "a.txt", "opened in binary mode")):  # fmt: skip
        with pytest.raises(BadSource, match=says):
            read_as_it_is(unusable, name)
