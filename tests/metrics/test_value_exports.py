"""Values by topic as tables: of all runs in one request, and of one run."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from rest_framework.test import APIClient

from metrics.exports.values.matrix import MATRIX_EXPORTS
from metrics.services.boards import matrix
from runs.models import Run, User
from tests.conftest import GOOD, POOR, QRELS
from tests.metrics.scored import make_scored, simulated

pytestmark = pytest.mark.words
VALUES = "/api/v1/collections/small/values/"


@pytest.fixture
def runs(submit: Callable[..., Run]) -> list[Run]:
    return [submit(GOOD), submit(POOR)]


def rows_of(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.content
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_all_runs_in_one_answer_have_the_values_of_each(
    anonymous: APIClient, runs: list[Run]
) -> None:
    query = {"measures": "nDCG@10,AP,ASL"}
    answer = anonymous.get(VALUES, query).json()
    assert [run["tag"] for run in answer["runs"]] == ["good", "poor"]
    for row, run in enumerate(runs):
        alone = anonymous.get(f"/api/v1/runs/{run.pk}/values/", query).json()["topics"]
        assert answer["topics"] == [topic["topic_id"] for topic in alone]
        for name, values in answer["values"].items():
            assert values[row] == [topic["values"][name] for topic in alone]
    # POOR does not find what ASL looks for.
    assert None in answer["values"]["ASL"][1]


def test_a_long_table_has_a_row_for_each_run_and_topic(
    anonymous: APIClient, runs: list[Run]
) -> None:
    rows = rows_of(anonymous.get(f"{VALUES}export/csv/", {"measures": "AP,ASL"}))
    assert list(rows[0]) == ["run", "team", "tag", "topic", "AP", "ASL"]
    answer = anonymous.get(VALUES, {"measures": "AP,ASL"}).json()
    table = [(row["run"], row["tag"], row["topic"], row["AP"], row["ASL"]) for row in rows]
    expected = [
        (run["id"], run["tag"], topic, *("" if value is None else repr(value) for value in values))
        for run, *columns in zip(
            answer["runs"], answer["values"]["AP"], answer["values"]["ASL"], strict=True
        )
        for topic, *values in zip(answer["topics"], *columns, strict=True)
    ]
    assert table == expected


def test_a_wide_table_has_a_column_for_each_run(
    anonymous: APIClient, submit: Callable[..., Run]
) -> None:
    """One is called like the column of topics, one begins as a formula does."""
    submit(GOOD)
    named = submit(POOR.replace("poor", "topic"))
    submit(POOR.replace("poor", "-x"))
    rows = rows_of(anonymous.get(f"{VALUES}export/csv/", {"measures": "AP", "layout": "wide"}))
    assert list(rows[0]) == ["topic", "good", f"topic {named.pk}", "'-x"]
    answer = anonymous.get(VALUES, {"measures": "AP"}).json()
    columns = [[float(row[name]) for row in rows] for name in list(rows[0])[1:]]
    assert columns == answer["values"]["AP"]


def test_parquet_has_the_same_columns(anonymous: APIClient, runs: list[Run]) -> None:
    answer = anonymous.get(f"{VALUES}export/parquet/", {"measures": "AP,ASL"})
    assert answer["Content-Type"] == MATRIX_EXPORTS["parquet"].content_type
    table = parquet.read_table(io.BytesIO(answer.content))
    rows = rows_of(anonymous.get(f"{VALUES}export/csv/", {"measures": "AP,ASL"}))
    assert table.column_names == list(rows[0])
    values = [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in table.to_pylist()
    ]
    assert values == rows
    assert table.schema.field("ASL").type == "double"


def test_a_server_without_pyarrow_says_what_to_take_instead(
    anonymous: APIClient, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = anonymous.get(f"{VALUES}export/parquet/")
    assert (answer.status_code, answer.json()["code"]) == (400, "format_not_installed")


@pytest.mark.slow
def test_a_run_in_trec_evals_lines_is_what_the_command_prints(
    anonymous: APIClient, runs: list[Run], tmp_path: Path
) -> None:
    for name, text in (("qrels", QRELS), ("good", GOOD), ("poor", POOR)):
        (tmp_path / name).write_text(text)
    for run in runs:
        answer = anonymous.get(
            f"/api/v1/runs/{run.pk}/values/export/trec_eval/", {"measures": "AP,nDCG@10,NumRelRet"}
        )
        command = [
            sys.executable,
            "-m",
            "evalhub",
            "eval",
            "-q",
            "-c",
            *("-m", "AP", "-m", "nDCG@10", "-m", "num_rel_ret"),
        ]
        printed = subprocess.run(
            [*command, tmp_path / "qrels", tmp_path / run.tag],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        lines = {
            line for line in answer.content.decode().splitlines() if not line.startswith("runid")
        }
        assert lines == set(printed.replace("num_rel_ret", "NumRelRet  ").splitlines())


def test_too_much_at_once_is_refused_with_what_to_do(
    anonymous: APIClient, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = make_scored("scored", alice.personal_team, simulated(4, 10))
    monkeypatch.setattr(matrix, "MAX_VALUES", 39)
    address = "/api/v1/collections/scored/values/"
    answer = anonymous.get(address)
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_values")
    assert (
        "40 values requested (runs: 4, measures: 1, topics: 10)"
        in answer.json()["errors"][0]["detail"]
    )
    assert [
        run["id"] for run in anonymous.get(address, {"runs": ",".join(ids[2:0:-1])}).json()["runs"]
    ] == ids[2:0:-1]
    wide = anonymous.get(
        f"{address}export/csv/", {"runs": ids[0], "measures": "AP,AP(rel=2)", "layout": "wide"}
    )
    assert (wide.status_code, wide.json()["errors"][0]["pointer"]) == (400, "layout")


def test_the_pages_lead_to_them(anonymous: APIClient, runs: list[Run]) -> None:
    board = anonymous.get("/collections/small/?measures=AP").content.decode()
    assert f'href="{VALUES}export/csv/?measures=AP"' in board
    run = anonymous.get(f"/runs/{runs[0].pk}/?measures=AP,P@3").content.decode()
    assert f'href="/api/v1/runs/{runs[0].pk}/values/export/trec_eval/?measures=AP%2CP%403"' in run
