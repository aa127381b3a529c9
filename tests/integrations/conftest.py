"""What the tests with real libraries share: the client as its user has it, and collections of a few topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import evalhub_client as evh
import pytest

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
        made = hub.create_collection(slug, team=hub.me().teams[0]["slug"], **fields)
        lines = [f"{topic} 0 {doc} {level}\n" for topic, docs in judgements.items() for doc, level in docs.items()]
        path = tmp_path / f"{slug}.qrels"
        path.write_text("".join(lines), encoding="utf-8")
        made.upload_qrels(path)
        return made

    return make
