"""The addresses of docs/sources.md: each answers, and what it names exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from metrics.engine.grammar import parse_measure
from runs.models import Run
from tests.conftest import SESSIONS, evaluate_all, upload
from tests.test_docs import ROOT

TEXT = (ROOT / "docs/sources.md").read_text()
ADDRESSES = re.findall(r"`((?:runs|collections|session-sets)/\{[^`]+)`", TEXT)
QRELS = "1 0 a 2\n1 0 b 1\n1 0 c 3\n1 0 n 0\n2 0 x 1\n2 0 y 2\n3 0 z 3\n3 0 w 1\n"
RUNS = ("1 Q0 a 1 3 t\n1 Q0 n 2 2 t\n1 Q0 c 3 1 t\n2 Q0 x 1 2 t\n", "1 Q0 b 1 9 t\n2 Q0 y 1 9 t\n3 Q0 w 1 8 t\n")


@pytest.fixture
def names(api: APIClient, submit: Callable[..., Run]) -> dict[str, str]:
    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    assert api.patch("/api/v1/collections/small/", {"documents": 1000}, format="json").status_code == 200
    run, other = (str(submit(text, tag=tag).pk) for text, tag in zip(RUNS, ("one", "two"), strict=True))
    made = upload(api, "collections/small/sessions/", SESSIONS)
    evaluate_all()
    return {"run": run, "other": other, "collection": "small", "set": made.json()["id"]}


def test_every_address_answers(api: APIClient, names: dict[str, str]) -> None:
    assert len(ADDRESSES) > 30
    for address in ADDRESSES:
        asked = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], address)
        answer = api.get(f"/api/v1/{quote(asked, safe='/?&=,;()@.')}")
        assert answer.status_code == 200, (address, answer.content[:300])


def test_every_name_of_ntcir_is_a_measure() -> None:
    rows = re.findall(r"^\| [^`|]+ \| (`.+) \|$", TEXT.partition("## NTCIR")[2], re.MULTILINE)
    found = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(found) > 12
    for name in found:
        assert parse_measure(name)
