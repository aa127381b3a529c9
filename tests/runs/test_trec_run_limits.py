"""Run files that are too much or no text: encodings, long lines, limits, how many problems are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs.errors import FileTooLarge, InvalidFile
from runs.formats.scanning import pieces
from runs.formats.trec_run import check_run
from tests.runs.run_files import GOOD, LIMITS, check, problems, refused, small_pieces, warnings

# Encodings


@pytest.mark.parametrize("size", [16, 64, 1000])
def test_bytes_that_are_not_utf8_are_refused_once_with_their_line(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    small_pieces(monkeypatch, size)
    content = b"# comment\n1 Q0 \xc3\xa9 1 9 t\n" + b"".join(
        b"1 Q0 d%d 1 %d t\n" % (i, -i) for i in range(20)
    )
    report = check(content + b"1 Q0 caf\xe9 1 -50 t\n2 Q0 a 1 1 t\n").report
    assert [(problem.line, problem.code) for problem in report.problems] == [
        (23, "undecodable_bytes")
    ]
    assert "0xe9" in report.problems[0].message


@pytest.mark.parametrize(
    "wrong", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x80", b"\x80"]
)
def test_no_other_encoding_is_guessed(wrong: bytes) -> None:
    assert problems(b"1 Q0 a 1 1 t\n1 Q0 b" + wrong + b" 2 0 t\n") == [(2, "undecodable_bytes")]
    assert problems(b"1 Q0 a 1 1 t\n# " + wrong + b"\n") == [(2, "undecodable_bytes")]


def test_long_text_is_decoded_by_stretches() -> None:
    lines = [f"1 Q0 \u00e9{index:0200} 1 {-index} t\n".encode() for index in range(12_000)]
    assert problems(b"".join(lines)) == []
    lines[11_000] = b"1 Q0 \xe9 1 -11000 t\n"
    assert problems(b"".join(lines)) == [(11_001, "undecodable_bytes")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_is_refused(encoding: str) -> None:
    codes = {code for _, code in problems(GOOD.encode(encoding))}
    assert codes & {"undecodable_bytes", "control_character"}


# Limits


def test_long_ids_and_lines_are_refused() -> None:
    longest = "a" * 1024
    assert problems(f"{longest} Q0 {longest} 1 1 t\n") == []
    assert problems(f"{GOOD}1 Q0 {longest}a 1 1 t\n") == [(4, "id_too_long")]
    assert problems(f"{GOOD}{longest}a Q0 a 1 1 t\n") == [(4, "id_too_long")]
    assert problems(f"{GOOD}2 Q0 y 1 1 t {'x' * 8192}\n{GOOD[:-1]} x\n") == [
        (4, "line_too_long"), (5, "duplicate_document"), (6, "duplicate_document"), (7, "duplicate_document"),
    ]  # fmt: skip


class Endless:
    """A stream that never ends and remembers how much of it was read."""

    def __init__(self, start: bytes, repeated: bytes) -> None:
        self.read_bytes, self.ahead, self.repeated = 0, start, repeated

    def read(self, size: int = -1, /) -> bytes:
        assert size > 0, "an unbounded read"
        if len(self.ahead) < size:
            self.ahead += self.repeated * (size // len(self.repeated) + 1)
        content, self.ahead = self.ahead[:size], self.ahead[size:]
        self.read_bytes += size
        return content


@pytest.mark.parametrize("repeated", [b"x", b" ", b"\0", b"\r", b"#"])
def test_a_line_without_end_is_refused_in_bounded_memory(repeated: bytes) -> None:
    stream = Endless(GOOD.encode() + b"\n3 Q0 ", repeated)
    with pytest.raises(InvalidFile) as caught:
        check_run(lambda: stream)
    assert (caught.value.report.problems[0].line, caught.value.code) == (5, "line_too_long")
    assert stream.read_bytes <= 3 * pieces.PIECE


@pytest.mark.parametrize(
    ("start", "repeated", "code"),
    [
        (b"", b"\n", "too_many_lines"),
        (b"1 Q0 a 1 1 t\n", b"\r\n", "too_many_lines"),
        (b"1 Q0 a 1 1 t\n", b"# comment\n", "too_many_lines"),
        (b"", b"1 Q0 a 1 1 t\n", "too_many_documents"),
        (b"", b"1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n", "too_many_lines"),
        (b"1 Q0 a 1 1 t\n", b"#" + b"x" * 5000 + b"\n", "too_large_at_once"),
    ],
)
def test_files_without_end_are_refused_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch, start: bytes, repeated: bytes, code: str
) -> None:
    small_pieces(monkeypatch, 100_000)
    limits = replace(LIMITS, lines=50_000, documents_per_topic=10_000, bytes_at_once=1_000_000)
    streams: list[Endless] = []

    def opener() -> Endless:
        streams.append(Endless(start, repeated))
        return streams[-1]

    with pytest.raises(FileTooLarge) as caught:
        check_run(opener, limits=limits)
    assert caught.value.code == code
    assert max(stream.read_bytes for stream in streams) <= 1_200_000


def test_each_limit_is_inclusive() -> None:
    three = replace(LIMITS, lines=3)
    assert check(GOOD, three).lines == check(GOOD[:-1], three).lines == 3
    assert refused(GOOD + "\n", three) == refused(GOOD + "#", three) == "too_many_lines"
    assert check(GOOD, replace(LIMITS, topics=2)).documents == 3
    assert refused(GOOD, replace(LIMITS, topics=1)) == "too_many_topics"
    assert check(GOOD, replace(LIMITS, documents_per_topic=2)).documents == 3
    assert refused(GOOD, replace(LIMITS, documents_per_topic=1)) == "too_many_documents"
    assert check(GOOD, replace(LIMITS, bytes_out=len(GOOD))).documents == 3
    assert refused(GOOD, replace(LIMITS, bytes_out=len(GOOD) - 1)) == "decompressed_too_large"


def test_a_limit_met_over_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch, 16)
    many = "".join(f"{topic} Q0 d{index} 1 1 t\n" for topic in range(10) for index in range(10))
    assert (
        check(many, replace(LIMITS, lines=100, topics=10, documents_per_topic=10)).documents == 100
    )
    assert refused(many, replace(LIMITS, lines=99)) == "too_many_lines"
    assert refused(many, replace(LIMITS, topics=9)) == "too_many_topics"
    assert refused(many, replace(LIMITS, documents_per_topic=9)) == "too_many_documents"


@pytest.mark.parametrize(
    "content", ["", "\n", "  \n\t\r\n", "# only\n# comments\n", "\ufeff", "\ufeff\n# x", "\r\n" * 9]
)
def test_a_file_without_a_line_of_a_run_is_refused(content: str) -> None:
    assert problems(content) == [(0, "empty_run")]


def test_more_than_a_thousand_documents_are_warned_about() -> None:
    lines = [f"7 Q0 d{index} {index} {-index} t\n" for index in range(1001)]
    assert warnings("".join(lines[:1000])) == []
    (warning,) = check("".join(lines)).report.warnings
    assert (warning.code, "1,001" in warning.message) == ("many_documents", True)


def test_problems_beyond_the_first_fifty_are_counted() -> None:
    report = check("1 Q0 a\n" * 80 + "1 Q0 a 1 x t\n" * 70).report
    assert (len(report.problems), report.counts) == (50, {"too_few_columns": 80, "bad_score": 70})
    with pytest.raises(InvalidFile, match="150 problems in total, the first 50 are listed"):
        report.check()
