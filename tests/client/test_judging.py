"""Judgements by a model: pairs are written, judged by the script of the guide, and stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalhub.client import cli, commands
from evalhub.client.errors import WrongOption
from evalhub.client.judging import filled, first_documents, read_answers
from runs.models import Qrels, Run, User
from tests.client.inside import hub_inside
from tests.conftest import GOOD, QRELS, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

GUIDE = Path(__file__).resolve().parents[2] / "docs/how-to/judgements-by-a-model.md"
DEEP = GOOD.splitlines()[0].split()[0] + " Q0 new-1 9 -1.0 deep\n"


@pytest.fixture
def evh(
    alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> Callable[..., str]:
    monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(alice))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, status: int = 0) -> str:
        code = cli.run([*arguments])
        out, err = capsys.readouterr()
        assert code == status, err
        return out + err

    return call


@pytest.mark.django_db
def test_a_model_fills_the_holes_of_a_version(
    api: Any, collection: str, submit: Callable[..., Run], evh: Callable[..., str], tmp_path: Path
) -> None:
    topic = DEEP.split()[0]
    submit(GOOD + DEEP, tag="deep")
    topics = f"{topic}\tcheap flights\n"
    assert upload(api, f"collections/{collection}/topics/", topics, method="put").status_code == 200
    (tmp_path / "texts.jsonl").write_text(
        '{"_id": "new-1", "title": "Cheap flights", "text": "to the sea"}\n'
    )

    output = evh("judge", "pairs", collection, "--texts", "texts.jsonl", "--to", "pairs.jsonl")
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    judged = {tuple(line.split()[::2]) for line in QRELS.splitlines()}
    retrieved = {tuple(line.split()[:3:2]) for line in (GOOD + DEEP).splitlines()}
    expected = retrieved - {(topic_id, document) for topic_id, document in judged}
    assert {(pair["topic"], pair["doc"]) for pair in pairs} == expected
    assert f"{len(pairs)} pairs" in output

    # The script of the guide, as it is printed there.
    (script,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    exec(script, {})
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    levels = {(answer["topic"], answer["doc"]): answer["level"] for answer in answers}
    assert levels[topic, "new-1"] == 2

    evh("judge", "store", collection, "answers.jsonl", "--model", "word-overlap-1", "--parent", "1")
    version = Qrels.objects.get(version=2)
    assert (version.author_kind, version.model) == ("mixed", "word-overlap-1")
    assert (version.parent and version.parent.version, version.derivation) == (1, "filled")
    assert version.judgements == Qrels.objects.get(version=1).judgements + len(pairs)
    assert not version.active

    # A version of the answers alone is by the model.
    evh("judge", "store", collection, "answers.jsonl", "--model", "word-overlap-1")
    assert Qrels.objects.get(version=3).author_kind == "model"
    assert "judged partly by model" in evh("qrels", "list", collection)
    table = evh("qrels", "agreement", collection, "2", "--format", "json")
    rows, _ = json.JSONDecoder().raw_decode(table)
    assert (rows[0]["coefficient"], rows[0]["value"]) == ("agreement", 1)


def test_runs_are_ordered_by_the_tie_rule() -> None:
    lines = ["1 Q0 a 1 2.0 t", "1 Q0 c 2 2.0 t", "1 Q0 b 3 16777217 t", "1 Q0 d 4 16777216 t"]
    assert first_documents(lines, 3) == {"1": ["b", "d", "c"]}
    assert first_documents(lines, 3, single=True) == {"1": ["d", "b", "c"]}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: this is not JSON"),
        ("[]", "line 2: write a JSON object"),
        ('{"topic": 1, "doc": "a", "level": 1}', "line 2: topic"),
        ('{"topic": "1", "doc": "a b", "level": 1}', "line 2: doc"),
        ('{"topic": "1", "doc": "b", "level": "1"}', "line 2: level"),
        ('{"topic": "1", "doc": "b", "level": true}', "line 2: level"),
        ('{"topic": "1", "doc": "a", "level": 2}', "line 2: document 'a' of topic '1' has level 2"),
    ],
)
def test_an_answer_that_is_no_judgement_is_named_by_its_line(line: str, words: str) -> None:
    with pytest.raises(WrongOption, match=re.escape(words)):
        read_answers(['{"topic": "1", "doc": "a", "level": 1, "note": "yes"}', line])


def test_answers_do_not_replace_judgements_of_the_parent() -> None:
    answers = read_answers(['{"topic": "1", "doc": "a", "level": 1}'])
    assert filled(b"1 0 b 2", answers) == b"1 0 b 2\n1 0 a 1\n"
    with pytest.raises(WrongOption, match="judged by the parent"):
        filled(b"1 0 a 2\n", answers)
