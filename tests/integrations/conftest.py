"""What the tests with real libraries share: the client as its user has it, and collections of a few topics."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import evalhub_client as evh
import pytest

PAGES = Path(__file__).parents[2] / "docs/integrations"
Judgements = dict[str, dict[str, int]]


@pytest.fixture(scope="session")
def hub() -> Iterator[evh.Hub]:
    """The server of EVH_URL."""
    with evh.connect() as hub:
        yield hub


@pytest.fixture
def collection_of(hub: evh.Hub, tmp_path: Path) -> Callable[..., evh.Collection]:
    """Makes a collection of judgements, `{topic: {document: level}}`, with a short name that no other has."""

    def make(judgements: Judgements, **fields: Any) -> evh.Collection:
        slug = f"c-{uuid.uuid4().hex[:12]}"
        collection = hub.create_collection(slug, team=hub.me().teams[0]["slug"], **fields)
        lines = [
            f"{topic} 0 {doc} {level}\n"
            for topic, docs in judgements.items()
            for doc, level in docs.items()
        ]
        path = tmp_path / f"{slug}.qrels"
        path.write_text("".join(lines), encoding="utf-8")
        collection.upload_qrels(path)
        return collection

    return make


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Does what a page of docs/integrations says, and compares what it prints: blocks of Python, each with the block
    after it, and commands after `$ ` with the lines that follow them."""

    def run(page: str) -> None:
        monkeypatch.chdir(tmp_path)
        names: dict[str, Any] = {"__name__": "__main__"}
        text = (PAGES / page).read_text(encoding="utf-8")
        blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        ran = 0
        for number, (language, block) in enumerate(blocks):
            if language == "python":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(block, page, "exec"), names)
                # Before it may stand what the library itself prints.
                assert printed.getvalue().endswith(blocks[number + 1][1]), block
                ran += 1
            for command in (
                re.findall(r"^\$ (.*\n(?:(?!\$ ).*\n)*)", block, re.MULTILINE)
                if not language
                else ()
            ):
                line, _, expected = command.partition("\n")
                done = subprocess.run(
                    line, shell=True, check=False, stdout=-1, stderr=subprocess.STDOUT, text=True
                )
                assert done.stdout == expected, line
                ran += 1
        assert ran

    return run


@pytest.fixture
def check_page(hub: evh.Hub, tmp_path: Path) -> Callable[[str, evh.Collection], None]:
    """Runs the first example of a page of docs/integrations and compares what it prints with what the page says.

    The example is written for a collection `tiny` and the team alice. With WRITE_PAGES=1 the page
    is written anew.
    """

    def check(name: str, collection: evh.Collection) -> None:
        path = Path(__file__).parents[2] / f"docs/integrations/{name}.md"
        before, _, after = path.read_text(encoding="utf-8").partition("```python\n")
        example, between, output, rest = after.split("```", 3)
        start = f"{before}```python\n{example}```{between}```\n"
        example = example.replace('"tiny"', f'"{collection.slug}"').replace(
            "evalhub:tiny", f"evalhub:{collection.slug}"
        )
        done = subprocess.run(
            [sys.executable, "-c", example],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        replacements = {
            collection.slug: "tiny",
            hub.url: "http://127.0.0.1:8000",
            hub.me().teams[0]["slug"]: "alice",
        }
        printed = done.stdout
        for old, new in replacements.items():
            printed = printed.replace(old, new)
        if os.environ.get("WRITE_PAGES"):
            path.write_text(f"{start}{printed}```{rest}", encoding="utf-8")
        else:
            assert printed == output.removeprefix("\n")

    return check
