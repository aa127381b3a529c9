"""Pools in the client: the errand of organisers, and what its commands write."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from evalhub.client import cli, commands
from runs.models import User
from tests.client.inside import hub_inside
from tests.conftest import GOOD, POOR, upload
from tests.reliability.servers import ROOT
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]
# Commands on evaluated runs, in the second test.
JUDGED = {"pool reusability", "pool undecided"}
SCHEMAS: dict[str, Any] = json.loads((ROOT / "docs/client.schema.json").read_text())["$defs"]
# Of test_judging_pools.py.
JUDGING = {
    f"pool {name}"
    for name in (
        "assignments", "assign", "judge-import", "conflicts", "adjudicate", "agreement", "qrels"
    )
}  # fmt: skip
FIRST = "1 Q0 p 1 3 first\n1 Q0 q 2 2 first\n2 Q0 r 1 1 first\n"
SECOND = "1 Q0 q 1 3 second\n1 Q0 s 2 2 second\n2 Q0 r 1 1 second\n"


def test_organisers_make_a_pool_and_give_out_its_files(
    api: APIClient,
    alice: User,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    tmp_path: Path,
) -> None:
    validators = pytest.importorskip("jsonschema")
    monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(alice))
    checked = set()

    def evh(name: str, *options: str, status: int = 0) -> tuple[list[dict[str, Any]], str]:
        words = name.split()
        assert cli.run([*words[:2], *options, *words[2:], "--format", "json"]) == status
        out, err = capsys.readouterr()
        if not out:
            return [], err

        schema = {"$defs": SCHEMAS, **SCHEMAS[name]}
        validators.Draft202012Validator(schema).validate(json.loads(out))
        checked.add(name)
        return json.loads(out), err

    for tag, text in (("first", FIRST), ("second", SECOND)):
        assert upload(api, "collections/small/runs/", text, tag=tag).status_code == 202

    depth = ("small", "--method", "depth", "-k", "2")
    rows, text = evh("pool make --dry-run", *depth)
    assert [(row["tag"], row["@1"], row["@2"]) for row in rows] == [
        ("first", 2, 3), ("second", 3, 4),
    ]  # fmt: skip
    assert text == "4 documents on 2 topics; nothing is stored\n"
    assert evh("pool list", "small")[0] == []

    strata = ("small", "--method", "sample", "--stratum", "1-2")
    assert "write ranks and a rate, as in 11-100:0.1" in evh("pool make", *strata, status=2)[1]
    extra = tmp_path / "extra.txt"
    extra.write_text("1 t\n2\n")
    more = (*depth, "--extra", str(extra))
    assert "line 2: write a topic" in evh("pool make", *more, status=2)[1]

    extra.write_text("1 t\n")
    (draft,), _ = evh("pool make", *more, "--note", "first pool")
    assert (draft["documents"], draft["note"], draft["state"]) == (5, "first pool", "draft")
    key = draft["id"]
    assert "freeze it first" in evh("pool files", key, status=9)[1]
    assert evh("pool freeze", key)[0][0]["state"] == "frozen"
    assert evh("pool publish", key)[0][0]["shown"] is True
    assert evh("pool publish", key, "--hide")[0][0]["shown"] is False
    assert len(evh("pool show", key)[0][0]["sha256"]) == 64
    assert "a frozen pool stays" in evh("pool delete", key, status=9)[1]

    counts = [(row["tag"], row["unique"]) for row in evh("pool statistics", key)[0]]
    assert counts == [("first", 1), ("second", 1)]

    archive, topic = tmp_path / "kim.zip", tmp_path / "1.trec"
    evh("pool files", key, "--assessor", "kim", "--out", str(archive))
    assert zipfile.ZipFile(archive).namelist() == ["1.tsv", "2.tsv"]
    evh("pool files", key, "--topic", "1", "--form", "trec", "--out", str(topic))
    assert sorted(topic.read_text().splitlines()) == ["1 0 p", "1 0 q", "1 0 s", "1 0 t"]

    (second,), _ = evh("pool make", *depth, "--with-judged")
    evh("pool delete", second["id"])
    assert [row["id"] for row in evh("pool list", "small")[0]] == [key]
    assert checked == {name for name in SCHEMAS if name.startswith("pool ")} - JUDGED - JUDGING


def test_what_the_judgements_do_not_reach(
    submit: Any, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    validators = pytest.importorskip("jsonschema")
    monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(alice))
    submit(GOOD)
    submit(POOR)

    printed = {}
    for action, options in (
        ("reusability", ("small", "--by", "run", "--depth", "1")),
        ("undecided", ("small", "good", "poor", "-m", "P@2")),
    ):
        assert cli.run(["pool", action, *options, "--format", "json"]) == 0
        out, err = capsys.readouterr()
        schema = {"$defs": SCHEMAS, **SCHEMAS[f"pool {action}"]}
        validators.Draft202012Validator(schema).validate(json.loads(out))
        printed[action] = json.loads(out), err

    rows, text = printed["reusability"]
    assert [row["run"].partition("/")[2] for row in rows] == ["good", "poor"]
    assert "runs were pooled" in text
    rows, text = printed["undecided"]
    # Document u of topic 1, at rank 2 of the second run alone.
    assert [(row["doc_id"], row["rank_a"], row["rank_b"]) for row in rows] == [("u", None, 2)]
    assert "P@2" in text
