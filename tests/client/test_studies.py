"""What explains the values of a collection, in the client: 24 runs of a grid of two parameters, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from evalhub.client import Hub, cli, commands
from runs.models import Collection, Run, User
from tests.client.inside import hub_inside
from tests.engine.studies import grid_study
from tests.metrics.boards import describe, make_board
from tests.reliability.servers import ROOT
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]


@pytest.fixture(scope="module")
def study(alice: User) -> Collection:
    """24 runs of a grid in which k1 = 1.2 is better; each costs more than the one before."""
    values, (k1, b) = grid_study(np.random.default_rng(4), 0.05)
    collection = make_board(alice.personal_team, {"AP": values})
    settings: list[dict[str, Any]] = [
        {"bm25": {"k1": k1.values[i][0], "b": b.values[j][0]}}
        for i, j in zip(k1.codes, b.codes, strict=True)
    ]
    describe(collection, settings, [{"ms": 10 + place} for place in range(len(settings))])
    return collection


@pytest.fixture(scope="module")
def hub(alice: User, study: Collection) -> Hub:
    return hub_inside(alice)


def test_parameters_are_read_from_all_pages(hub: Hub, hub_of: Callable[..., Hub]) -> None:
    rows = hub.collection("board").parameters("bm25").rows()
    assert [(row["name"], row["runs"]) for row in rows] == [("bm25.b", 24), ("bm25.k1", 24)]
    low = hub.collection("board").parameters(filter="param:bm25.k1<0.8").rows()
    assert {row["name"]: row["max"] for row in low}["bm25.k1"] < 0.8
    offsets: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        offset = int(request.url.params.get("offset", 0))
        offsets.append(request.url.params.get("offset"))
        results = [{"name": str(place)} for place in range(offset, min(offset + 100, 205))]
        return httpx.Response(200, json={"count": 205, "runs": 1, "results": results})

    assert len(hub_of(answer).collection("c").parameters().rows()) == 205
    assert offsets == [None, "100", "200"]


def test_configurations_name_runs_in_any_way(hub: Hub) -> None:
    board = hub.collection("board")
    first, second = board.runs(limit=200)[:2]
    names = [f"{run.team}/{run.tag}" for run in (first, second)]
    beside = board.configurations([first, names[1]], baseline=second)
    # The baseline is the first column.
    assert list(beside.rows()[0]) == ["name", "unit", "kind", names[1], names[0]]
    assert {row["name"]: row["kind"] for row in beside.rows()}.keys() == {"bm25.b", "bm25.k1"}
    differs = {
        row["name"]: (row[names[1]], row[names[0]])
        for row in beside.rows()
        if row["kind"] == "differs"
    }
    assert {row["name"]: (row["before"], row["after"]) for row in beside.since()} == differs
    assert {row["run"] for row in beside.since()} == {names[0]}
    assert beside.page.endswith(
        f"/collections/board/configurations/?runs={first.id}%2C{second.id}&baseline={second.id}"
    )
    assert board.configurations(filter="param:bm25.k1=0.9").since() == []


def test_importance_has_changes_and_levels_and_a_chart(hub: Hub) -> None:
    importance = hub.collection("board").importance("AP", filter="param:bm25.k1>0")
    better = [row for row in importance.rows() if (row["name"], row["to"]) == ("bm25.k1", 1.2)]
    assert [row["from"] for row in better] == [0.9]
    assert better[0]["low"] > 0
    levels = [row for row in importance.levels() if row["name"] == "bm25.k1"]
    assert max(levels, key=lambda row: row["mean"])["value"] == 1.2
    assert {row["runs"] for row in levels} == {6}
    assert importance.chart()._repr_svg_().startswith("<svg")  # type: ignore[union-attr]


def test_the_frontier_names_what_beats_a_run(hub: Hub) -> None:
    rows = hub.collection("board").frontier("AP", "ms").rows()
    assert [row["cost"] for row in rows] == sorted(row["cost"] for row in rows)
    assert rows[0]["status"] == "frontier"
    beaten = next(row for row in rows if row["status"] == "dominated")
    assert beaten["by"] in {f"{row['team']}/{row['tag']}" for row in rows}
    two = hub.collection("board").runs(limit=200)[:2]
    assert len(hub.collection("board").frontier(runs=two).rows()) == 2


def test_topics_by_difficulty(hub: Hub) -> None:
    board = hub.collection("board")
    hardest = board.difficulty("AP", 3)
    assert len(hardest.rows()) == 3
    means = [row["mean"] for row in board.difficulty("AP").rows()]
    assert means == sorted(means)
    assert hardest.rows()[0]["mean"] == means[0]


def test_what_the_commands_write_is_what_their_schema_says(
    alice: User,
    study: Collection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    tmp_path: Path,
) -> None:
    """With rows, which the errand's few runs do not have."""
    jsonschema = pytest.importorskip("jsonschema")
    schemas = json.loads((ROOT / "docs/client.schema.json").read_text())["$defs"]
    monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(alice))
    for name, *options in (
        ("parameters", "--name", "k1"), ("configurations",), ("importance",), ("importance --levels", "--levels"),
        ("frontier", "--cost", "ms", "--across"),
    ):  # fmt: skip
        assert cli.run([name.split()[0], "board", *options, "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert rows, name
        jsonschema.Draft202012Validator({"$defs": schemas, **schemas[name]}).validate(rows)
    table = tmp_path / "parameters.csv"
    table.write_text("tag,seed\n" + f"{Run.objects.first().tag},7\n")  # type: ignore[union-attr]
    upload = ["parameters", "board", "--upload", str(table), "--format", "json"]
    for options, words in (
        (["--dry-run"], "1 of 1 runs would change."),
        ([], "1 of 1 runs changed."),
    ):
        assert cli.run([*upload, *options]) == 0
        out, err = capsys.readouterr()
        assert words in err
        schema = {"$defs": schemas, **schemas["parameters --upload"]}
        jsonschema.Draft202012Validator(schema).validate(json.loads(out))
    table.write_text("tag,seed\nnowhere,7\n")
    assert cli.run(upload) != 0
    assert (
        "parameters.csv:2: unknown_run: your teams have no run nowhere" in capsys.readouterr().err
    )
    assert cli.run(["configurations", "board", "--changes"]) == 2
    assert "--baseline RUN" in capsys.readouterr().err
    assert (
        cli.run(["importance", "board", "--filter", "param:bm25.k1=0.9", "--format", "json"]) == 0
    )
    assert "fewer than 12" in capsys.readouterr().err
