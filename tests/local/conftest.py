"""Fixtures of the commands that work on files alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalhub.local.eval import main

Call = Callable[..., tuple[int, str, str]]

# Scattered topics, three tags, a tie, scores that are one as float32, a level below 0, an unjudged
# document, a topic without a relevant document, one without an answer and one without judgements.
QRELS = "10 0 a 2\n10 0 b 0\n10 0 c 1\n10 0 e -1\n9 0 x 1\n9 0 y 0\n8 0 z 3\n7 0 n 0\n"
RUN = (
    "9 Q0 y 1 2.0 first\n10 Q0 u 1 16777216.0 second\n9 Q0 x 2 2.0 first\n10 Q0 a 2 16777217.0 second\n"
    "10 Q0 e 3 3.0 second\n10 Q0 b 4 1.0 second\n7 Q0 n 1 1.0 last\n99 Q0 n 1 1.0 last\n"
)


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes]) -> Call:
    """Call the command; returns its exit status, its output and what it said."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["evalhub", "eval", *map(str, arguments)])
        out, error = capsysbinary.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, out.decode(), error.decode()

    return run


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    qrels, run = tmp_path / "small.qrels", tmp_path / "small.run"
    qrels.write_text(QRELS)
    run.write_text(RUN)
    return qrels, run
