"""The commands of the README and of the tutorial work as they are pasted."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest

from tests.reliability.readme import blocks_of, check_answers, run_commands, run_readme
from tests.reliability.servers import ROOT, Server


def token_of(server: Server) -> str:
    return server.client().headers["Authorization"].removeprefix("Bearer ")


def test_every_line_of_the_readme_works(embedded: Server, tmp_path: Path) -> None:
    check_answers(run_readme(embedded.url, token_of(embedded), tmp_path))


def test_the_tutorial_prints_what_it_says(embedded: Server, tmp_path: Path) -> None:
    """With the files that it downloads, from the folder of real data."""
    data = os.environ.get("EVALHUB_REAL_DATA")
    if not data:
        pytest.skip("EVALHUB_REAL_DATA names no folder of real runs")
    blocks = blocks_of(ROOT / "docs/tutorial.md")
    script = "".join(text for language, text in blocks if language == "sh")
    script, downloads = re.subn(r"^.*curl .*\n", "", script, flags=re.MULTILINE)
    assert downloads == 2
    real = Path(data) / "trec-covid-round1"
    (tmp_path / "qrels-rnd1.txt").write_bytes((real / "qrels/qrels-rnd1.txt").read_bytes())
    for tag in re.findall(r'RUNS="(.*)"', script)[0].split():
        (tmp_path / tag).write_bytes(gzip.decompress((real / f"runs/{tag}.gz").read_bytes()))

    printed = run_commands(script, embedded.url, token_of(embedded), tmp_path)

    outputs = [text for language, text in blocks if not language and "make " not in text]
    assert len(outputs) == 5
    for text in outputs:
        if not text.startswith("evh qrels"):
            assert text.replace("alice/", "admin/") in printed
