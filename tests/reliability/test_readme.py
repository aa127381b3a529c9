"""The README's commands work as they are pasted."""

from __future__ import annotations

from pathlib import Path

from tests.reliability.readme import check_answers, run_readme
from tests.reliability.servers import Server


def test_every_line_of_the_readme_works(embedded: Server, tmp_path: Path) -> None:
    token = embedded.client().headers["Authorization"].removeprefix("Bearer ")
    check_answers(run_readme(embedded.url, token, tmp_path))
