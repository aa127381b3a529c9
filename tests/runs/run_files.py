"""Reading run files in tests: rows, problems, warnings."""

from __future__ import annotations

import pytest

from runs.errors import FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.scanning import pieces
from runs.formats.trec_run import RunSummary, check_run, read_run

LIMITS = Limits()
Rows = dict[str, list[tuple[str, float]]]


def to_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def check(content: str | bytes, limits: Limits = LIMITS, tag: str | None = None) -> RunSummary:
    return check_run(lambda: in_memory(to_bytes(content), limits), tag=tag, limits=limits)


def rows_of(content: str | bytes, limits: Limits = LIMITS) -> Rows:
    """The rankings of a sound run, read as an evaluation reads them."""
    summary = check(content, limits)
    summary.report.check()
    rows: Rows = {}
    opener = lambda: in_memory(to_bytes(content), limits)  # noqa: E731
    for block in read_run(opener, grouped=summary.grouped, limits=limits):
        text, starts = block.data.tobytes(), block.topic_starts.tolist()
        names = [text[a:b].decode() for a, b in zip(block.doc_starts, block.doc_ends, strict=True)]
        for index, topic in enumerate(block.topic_ids):
            part = slice(starts[index], starts[index + 1])
            rows[topic.decode()] = list(zip(names[part], block.scores[part].tolist(), strict=True))
    return rows


def problems(
    content: str | bytes, limits: Limits = LIMITS, tag: str | None = None
) -> list[tuple[int, str]]:
    try:
        report = check(content, limits, tag).report
    except UnsupportedFile as error:
        return [(0, error.code)]
    except InvalidFile as error:
        report = error.report
    return sorted({(problem.line, problem.code) for problem in report.problems})


def warnings(content: str | bytes, tag: str | None = None) -> list[tuple[int, str]]:
    report = check(content, tag=tag).report
    report.check()
    return [(line, warning.code) for warning in report.warnings for line in warning.lines or [0]]


def refused(content: str | bytes, limits: Limits) -> str:
    with pytest.raises(FileTooLarge) as caught:
        check(content, limits)
    return caught.value.code


def small_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pieces, "PIECE", size)


GOOD = "1 Q0 a 1 3.0 t\n1 Q0 b 2 2.0 t\n2 Q0 x 1 1.0 t\n"
ROWS: Rows = {"1": [("a", 3.0), ("b", 2.0)], "2": [("x", 1.0)]}


# Scores

NUMBERS = [
    "1", "+1", "-1", "0", "-0", "+0.0", "007", "5.", ".5", "-.5", "+5.", "1e5", "1E5", "1e+5", "1e-5", "5.e2", ".5e2",
    "0.1", "0.30000000000000004", "2.2250738585072014e-308", "5e-324", "1e-400", "1.7976931348623157e308",
    "123456789012345", "1234567890123456", "12345678901234567890", "9007199254740993", "0.000000000000000000000001",
    "0.1234567890123456789012345678901234567890", "4.35", "0.000001234567890123456", "1e22", "1e23", "8.41e21",
    "9.5367431640625e-07", "00000000000000000000000000000000000000000000000000000000000000000000000000000000001.5",
    "179769313486231570000000000000000000000000000000000000000000000000000000000000000000000000000000000000.0",
]  # fmt: skip
