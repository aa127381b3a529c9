"""Values of TIRA and Every Eval Ever become tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalhub.client import cli

# As in the tests of tira.check_format: two files that were put together.
TIRA = """\
run-01 979\trelstring\t'----------'
run-01 979\trecall_5\t0.10
run-01 all\trecall_5\t0.1
run-01 980\trecall_5\t٣

run_id\tquery_id\tmeasure\tvalue
run-02 979 recall_5 1e-3
"""


def instance(**fields: Any) -> str:
    """A line with the fields that the schema requires."""
    return json.dumps(
        {
            "schema_version": "0.2.1", "evaluation_id": "e", "model_id": "openai/gpt-4.1-mini",
            "evaluation_name": "Vital (strict)", "sample_id": "301", "interaction_type": "single_turn",
            "input": {"raw": "?", "reference": []}, "output": {"raw": ["!"]}, "answer_attribution": [],
            "evaluation": {"score": 0.30000000000000004, "is_correct": False}, **fields,
        }
    )  # fmt: skip


def converted(capsys: Any, path: Path, *options: str) -> list[str]:
    assert cli.run(["convert", "values", str(path), *options]) == 0
    lines: list[str] = capsys.readouterr().out.splitlines()
    return lines


def test_tables_of_tira(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "leaderboard.txt"
    path.write_text(TIRA, "utf-8")
    assert converted(capsys, path, "--from", "tira", "--run", "run-02=lab/dense") == [
        "run-01\t979\trecall_5\t0.10",
        "lab/dense\t979\trecall_5\t1e-3",
    ]
    path.write_text("run-01 979 recall_5\n")
    assert cli.run(["convert", "values", str(path), "--from", "tira"]) != 0
    assert "leaderboard.txt:1: 3 columns" in capsys.readouterr().err


def test_instances_of_every_eval_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a_samples.jsonl"
    path.write_text(instance() + "\n" + instance(sample_id="302", model_id="lab/other") + "\n")
    options = ("--from", "every-eval-ever", "--run", "openai/gpt-4.1-mini=gpt41")
    assert converted(capsys, path, *options) == [
        "gpt41\t301\tVital_strict_\t0.30000000000000004",
        "other\t302\tVital_strict_\t0.30000000000000004",
    ]
    renamed = (*options, "--measure", "Vital (strict)=vital_strict")
    assert converted(capsys, path, *renamed)[0].split("\t")[2] == "vital_strict"

    path.write_text(instance(evaluation_name="x:-quality"))
    assert converted(capsys, path, *options)[0].split("\t")[2] == "_quality"

    for line, reason in (
        ("{", "not a line of JSON"),
        ('{"model_id": "m"}', "no sample_id"),
        (instance(evaluation={"score": "high"}), "evaluation.score is not a number"),
        (instance(evaluation_name="long" * 20), "a measure cannot be called 'longlong"),
        (instance(evaluation_name=""), "a measure cannot be called ''"),
        (instance(sample_id="3\t01"), "the name of a topic is '3\\t01'"),
        (instance(model_id="lab/"), "the name of a run is ''"),
    ):
        path.write_text(line)
        assert cli.run(["convert", "values", str(path), "--from", "every-eval-ever"]) != 0
        assert f"a_samples.jsonl:1: {reason}" in capsys.readouterr().err
