"""Judging a pool in the client: the errand of organisers and an assessor, and what its commands write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from evalhub.client import cli, commands
from runs.models import User
from tests.client.inside import hub_inside
from tests.client.test_pools import FIRST, JUDGING, SCHEMAS, SECOND
from tests.conftest import evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def answer(pairs: Path) -> Path:
    """The file of a program that finds one document relevant."""
    documents = [json.loads(line)["doc"] for line in pairs.read_text().splitlines()]
    assert {*documents} == {"p", "q", "s"}
    answers = [{"topic": "1", "doc": doc, "level": int(doc == "q")} for doc in documents]
    path = pairs.with_name("answers.jsonl")
    path.write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    return path


def test_organisers_have_a_pool_judged(
    api: APIClient,
    alice: User,
    bob: User,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    tmp_path: Path,
) -> None:
    validators = pytest.importorskip("jsonschema")
    users, checked = [alice], set()
    monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(users[-1]))

    def evh(name: str, *options: str, status: int = 0) -> tuple[list[dict[str, Any]], str]:
        words = name.split()
        assert cli.run([*words, *options, "--format", "json"]) == status
        out, err = capsys.readouterr()
        if not out:
            return [], err
        schema = {"$defs": SCHEMAS, **SCHEMAS[name]}
        validators.Draft202012Validator(schema).validate(json.loads(out))
        checked.add(name)
        return json.loads(out), err

    for tag, text in (("first", FIRST), ("second", SECOND)):
        assert upload(api, "collections/small/runs/", text, tag=tag).status_code == 202
    (draft,), _ = evh("pool make", "small", "--method", "depth", "-k", "2", "--with-judged")
    key = draft["id"]
    evh("pool freeze", key)
    rows, _ = evh("pool assign", key, "bob", "--topics", "1", "--copies", "2")
    assert [(row["assessor"], row["topic_id"], row["judged"]) for row in rows] == [("bob", "1", 0)]
    evh("pool assign", key, "alice", "--topics", "1,2", "--copies", "2")

    # Bob lets a program judge the documents, as with `evh judge`.
    users.append(bob)
    pairs = tmp_path / "pairs.jsonl"
    cli.run(["pool", "documents", key, "--to", str(pairs)])
    assert capsys.readouterr().err == "3 documents are to be judged.\n"
    answers = answer(pairs)
    rows, text = evh("pool judge-import", key, str(answers), "--form", "jsonl", "--dry-run")
    assert (rows[0]["lines"], "nothing is stored yet" in text) == (3, True)
    assert evh("pool judge-import", key, str(answers), "--form", "jsonl")[0][0]["new"] == 3
    assert evh("pool assignments", key)[0][0]["judged"] == 3
    assert evh("pool conflicts", key, status=4)[0] == []
    users.pop()

    own = tmp_path / "own.qrels"
    own.write_text("1 0 p 1\n1 0 q 1\n1 0 x 0\n")
    assert "own.qrels:3: not_in_pool: document 'x' of topic '1' is not in the pool" in evh(
        "pool judge-import", key, str(own), "--assessor", "alice", status=5
    )[1]  # fmt: skip
    own.write_text("1 0 p 1\n1 0 q 1\n1 0 s 0\n2 0 r 1\n")
    evh("pool judge-import", key, str(own), "--assessor", "alice")
    conflicts, _ = evh("pool conflicts", key)
    assert [(row["doc_id"], row["levels"]) for row in conflicts] == [("p", "alice 1, bob 0")]
    rows, text = evh("pool agreement", key)
    assert {row["coefficient"]: row["value"] for row in rows}["agreement"] == pytest.approx(2 / 3)
    assert text == "3 documents by 2 assessors\n"
    assert "adjudicate them" in evh("pool qrels", key, status=9)[1]
    decided = tmp_path / "decided.tsv"
    decided.write_text("1\tp\t1\tread again\n")
    assert evh("pool adjudicate", key, str(decided))[0][0]["note"] == "read again"
    (version,), _ = evh("pool qrels", key, "--note", "by two")
    assert (version["version"], version["levels"], version["active"]) == (2, {"0": 1, "1": 3}, True)
    evaluate_all()
    assert [row["tag"] for row in evh("leaderboard", "small")[0]] == ["first", "second"]

    evh("pool unassign", key, "bob")
    assert {row["assessor"] for row in evh("pool assignments", key)[0]} == {"alice"}
    assert checked >= JUDGING
