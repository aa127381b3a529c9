"""Made-up run files, against a plain reader that is written here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import fields
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metrics.engine.judgement.ranking import hash_spans
from runs.errors import InvalidFile
from runs.formats.scanning import kernel
from runs.formats.scanning.ahead import few_threads
from runs.formats.scanning.columns import CHECKED_RUN, QRELS, RUN, Columns, Layout
from runs.formats.scanning.kernel import scan
from runs.formats.scanning.scan import PADDING
from tests.readers import of_a_reader
from tests.runs.run_files import LIMITS, NUMBERS, check, problems, rows_of, small_pieces

# The same file read by a reader that is slow and plain

_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _split(line: bytes) -> list[bytes]:
    return [column for column in re.split(rb"[ \t]+", line) if column]


def naive(
    content: bytes,
) -> tuple[set[tuple[int, str]], dict[bytes, list[tuple[bytes, float]]], bool]:
    """The problems by line, the rankings, and whether each topic's sound lines stand together."""
    problems: set[tuple[int, str]] = set()
    topics: list[bytes] = []
    rows: dict[bytes, list[tuple[bytes, float]]] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        columns = _split(line.removesuffix(b"\r"))
        complete = len(columns) >= 6
        score = columns[4] if complete and _NUMBER.fullmatch(columns[4]) else None
        if not columns:
            continue
        if columns[0].startswith(b"#"):
            if score is not None and columns[0] != b"#" and columns[0][1:2] != b"\r":
                problems.add((number, "ambiguous_comment"))
            continue
        codes = set()
        if not complete:
            codes.add("too_few_columns")
        elif score is None or not math.isfinite(float(score)):
            codes.add("bad_score")
        if any(byte < 32 or byte == 127 for column in columns[:7] for byte in column):
            codes.add("control_character")
        problems |= {(number, code) for code in codes}
        if codes or score is None:
            continue
        ranking = rows.setdefault(columns[0], [])
        if columns[2] in (document for document, _ in ranking):
            problems.add((number, "duplicate_document"))
        ranking.append((columns[2], float(score)))
        topics.append(columns[0])
    return problems, rows, len(list(groupby(topics))) == len(rows)


def outcome(content: bytes) -> tuple[set[tuple[int, str]], dict[bytes, list[tuple[bytes, float]]]]:
    """What our reader makes of the same bytes."""
    summary = check(content, tag="t")
    problems = {(problem.line, problem.code) for problem in summary.report.problems}
    try:
        rows = rows_of(content) if not problems else {}
    except InvalidFile:
        rows = {}
    return problems, {
        topic.encode(): [(d.encode(), s) for d, s in ranking] for topic, ranking in rows.items()
    }


SPACE = st.sampled_from([" ", "\t", "  ", " \t ", "\t\t"])
ID = st.sampled_from(
    [
        "1",
        "2",
        "10",
        "a",
        "b",
        "#a",
        "#1",
        "d-1",
        "d\u00e9",
        "d\u00a0x",
        "\u2028",
        "x" * 9,
        "x" * 17,
        "0",
    ]
)
ODD = st.sampled_from(["a\rb", "\x0b", "\x0c", "a\0", "\x7f", "\x1f"])
SCORE = st.sampled_from(
    [*NUMBERS, "nan", "1e400", "1_0", "\uff11", "0x1", "1e", "."]
) | st.floats().map(repr)


@st.composite
def line(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 19))
    if kind == 0:
        return draw(
            st.sampled_from(
                [
                    "",
                    " ",
                    "\t \t",
                    "#",
                    "# comment",
                    "#1 Q0 a 1 2 t",
                    "# 1 Q0 a 1 2 t",
                    " #x y",
                    "\r",
                ]
            )
        )
    identifier = ODD if kind == 1 else ID
    rank = st.sampled_from(["1", "2", "0", "x", "1.5"])
    columns = [
        draw(ID),
        "Q0",
        draw(identifier),
        draw(rank),
        draw(SCORE if kind == 2 else st.sampled_from(NUMBERS)),
        "t",
    ]
    columns = columns[: draw(st.integers(1, 5))] if kind == 3 else columns
    columns += ["more"] * draw(st.integers(0, 2)) if kind == 4 else []
    start = draw(SPACE) if kind == 5 else ""
    return start + draw(SPACE).join(columns) + (draw(SPACE) if kind == 6 else "")


@st.composite
def file(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(line(), max_size=25))
    if draw(st.booleans()):
        lines.sort(key=lambda text: (text.split() or [""])[0])
    ends = draw(
        st.lists(st.sampled_from(["\n", "\r\n", "\n\n"]), min_size=len(lines), max_size=len(lines))
    )
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    text = text.removesuffix("\n") if draw(st.booleans()) else text
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + text.encode()


@pytest.fixture(scope="module")
def tiny_pieces() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield lambda size: small_pieces(patch, size)


@pytest.mark.slow
@of_a_reader
@given(content=file(), size=st.sampled_from([1, 8, 16, 30, 60, 10_000]))
def test_every_file_is_read_as_a_plain_reader_reads_it(
    tiny_pieces: Callable[[int], None], content: bytes, size: int
) -> None:
    tiny_pieces(size)
    expected, rankings, grouped = naive(content)
    problems, rows = outcome(content)
    if rankings or expected:
        assert problems == expected
        assert rows == ({} if expected else rankings)
    else:
        assert problems == {(0, "empty_run")}
    summary = check(content, tag="t")
    assert summary.lines == len(content.removeprefix(b"\xef\xbb\xbf").split(b"\n")) - (
        content.endswith(b"\n") or not content
    )
    if not expected:
        assert summary.grouped == grouped


@of_a_reader
@example([b"PK\x03\x04"], 50)
@given(
    st.lists(st.binary(max_size=40) | st.text(max_size=30).map(str.encode), max_size=12),
    st.sampled_from([3, 50]),
)
def test_any_bytes_are_read_or_refused_and_never_raise_anything_else(
    tiny_pieces: Callable[[int], None], lines: list[bytes], size: int
) -> None:
    tiny_pieces(size)
    result = problems(b"\n".join(lines), tag="t")
    assert result or rows_of(b"\n".join(lines))


@of_a_reader
@given(
    content=file(),
    part=st.sampled_from([1, 20, 60]),
    layout=st.sampled_from([RUN, CHECKED_RUN, QRELS]),
)
def test_parts_that_are_scanned_at_the_same_time_are_scanned_as_one(
    content: bytes, part: int, layout: Layout
) -> None:
    arguments = content + PADDING, len(content), layout, 3, 7, LIMITS
    expected = scan(*arguments)
    with pytest.MonkeyPatch.context() as patch, few_threads(3):
        patch.setattr(kernel, "_LARGE", part)
        columns = scan(*arguments)
    for field in fields(Columns):
        assert np.array_equal(
            getattr(columns, field.name),
            getattr(expected, field.name),
            equal_nan=field.name == "number",
        )


@pytest.mark.slow
@of_a_reader
@given(
    st.lists(
        st.text("abcxyz0189-_\u00e9\U0001f600", min_size=1, max_size=40), min_size=1, max_size=20
    ),
    st.integers(0, 2**63 - 1),
)
def test_the_hash_of_the_kernel_is_that_of_numpy(names: list[str], seed: int) -> None:
    content = "".join(f"1 Q0 {name} 1 1 t\n" for name in names).encode()
    columns = scan(content + PADDING, len(content), RUN, 1, seed, LIMITS)
    expected = hash_spans(columns.data, columns.spans[:, 2], columns.spans[:, 3], seed)
    assert columns.hashes.tolist() == expected.tolist()
