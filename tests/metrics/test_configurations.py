"""Configurations compared: what differs, what is the same, what changed since a baseline, and who may ask."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from rest_framework.test import APIClient

from metrics.services.tracking import configurations as service
from runs.models import Collection, Label, ParameterKey, Run, User
from runs.services.tracking.parameters import store_parameters
from tests.conftest import client_of
from tests.metrics.boards import make_board, make_run, simulated
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]

ADDRESS = "/api/v1/collections/board/configurations/"
METADATA: list[dict[str, Any]] = [
    {
        "bm25": {"k1": 0.9, "b": 0.4},
        "model": "BM25",
        "stemmed": True,
        "seed": 1,
        "platform": {"cpu": "x"},
    },
    {"bm25": {"k1": 1.2, "b": 0.4}, "model": "bm25", "stemmed": 1, "seed": 2},
    {
        "bm25": {"k1": 0.9000000000000001, "b": "0.4"},
        "model": "BM25",
        "note": "new",
        "list": list(range(30)),
    },
    {},
]


@pytest.fixture(scope="module")
def board(alice: User) -> Collection:
    """Ranked runs r0 to r2, and one that waits."""
    collection = make_board(alice.personal_team, {"AP": simulated(3, 20)})
    runs = [*Run.objects.order_by("tag"), make_run(collection, "late")]
    for run, metadata in zip(runs, METADATA, strict=True):
        run.metadata, run.costs = metadata, {"latency_ms": 1}
    Run.objects.bulk_update(runs, ["metadata", "costs"])
    store_parameters(collection, runs)
    ParameterKey.objects.filter(name="seed").update(role="ignored")
    ParameterKey.objects.filter(name="bm25.b").update(unit="share")
    return collection


def run_id(tag: str) -> str:
    return str(Run.objects.get(tag=tag).pk)


def compare(client: APIClient, **query: Any) -> dict[str, Any]:
    answer = client.get(ADDRESS, query)
    assert answer.status_code == 200, answer.content
    payload: dict[str, Any] = answer.json()
    return payload


def test_values_differ_by_type_and_numbers_by_twelve_digits(
    anonymous: APIClient, board: Collection
) -> None:
    answer = compare(anonymous, filter="status:ranked")
    assert [run["tag"] for run in answer["runs"]] == ["r0", "r1", "r2"]
    assert {parameter["name"]: parameter["values"] for parameter in answer["differ"]} == {
        "bm25.b": [0.4, 0.4, "0.4"],
        "bm25.k1": [0.9, 1.2, 0.9000000000000001],
        "model": ["BM25", "bm25", "BM25"],
        "note": [None, None, "new"],
        "stemmed": [True, 1, None],
    }
    assert {parameter["name"] for parameter in answer["ignored"]} == {"seed", "platform.cpu"}
    assert (answer["same"], answer["compared"], [run["left_out"] for run in answer["runs"]]) == (
        [],
        5,
        [0, 0, 1],
    )
    assert (
        next(parameter["unit"] for parameter in answer["differ"] if parameter["name"] == "bm25.b")
        == "share"
    )
    pair = compare(anonymous, runs=f"{run_id('r2')},{run_id('r0')}")
    assert [run["tag"] for run in pair["runs"]] == ["r2", "r0"]
    assert [parameter["name"] for parameter in pair["differ"]] == ["bm25.b", "note", "stemmed"]
    assert pair["same"] == [
        {"name": "bm25.k1", "unit": "", "value": 0.9000000000000001},
        {"name": "model", "unit": "", "value": "BM25"},
    ]
    assert "changes" not in pair


def test_changes_since_a_baseline(anonymous: APIClient, alice: User, board: Collection) -> None:
    first = Run.objects.get(tag="r0")
    Label.objects.create(collection=board, team=first.team, name="main", run=first)
    answer = compare(anonymous, runs=f"{run_id('r2')},{run_id('late')}", baseline="label:main")
    assert (answer["baseline"], [run["tag"] for run in answer["runs"]]) == (
        str(first.pk),
        ["r0", "r2", "late"],
    )
    changed, emptied = answer["changes"]
    assert changed == {
        "run": run_id("r2"),
        "changed": [{"name": "bm25.b", "before": 0.4, "after": "0.4"}],
        "added": [{"name": "note", "value": "new"}],
        "removed": [{"name": "stemmed", "value": True}],
    }
    assert (emptied["changed"], emptied["added"]) == ([], [])
    assert [parameter["name"] for parameter in emptied["removed"]] == [
        "bm25.b",
        "bm25.k1",
        "model",
        "stemmed",
    ]
    # A baseline that the filter does not select comes first all the same, and one that it selects
    # comes once.
    assert [
        run["tag"] for run in compare(anonymous, filter="r1", baseline=str(first.pk))["runs"]
    ] == ["r0", "r1"]
    assert len(compare(anonymous, baseline=str(first.pk))["runs"]) == 4


@pytest.mark.parametrize(
    ("query", "code", "pointer", "message"),
    [
        (
            {"runs": "{r0}"},
            "too_few_runs",
            "runs",
            "1 run; configurations of 2 to 200 runs are compared",
        ),
        (
            {"filter": "nowhere"},
            "too_few_runs",
            "filter",
            "no runs; configurations of 2 to 200 runs are compared",
        ),
        (
            {"runs": "{r0},{other}"},
            "unknown_run",
            "runs",
            "run {other} is not in collection board, or is withdrawn",
        ),
        (
            {"baseline": "{other}"},
            "unknown_run",
            "baseline",
            "run {other} is not in collection board",
        ),
        ({"runs": "{r0},x"}, "invalid", "runs", "'x' is not the id of a run"),
        ({"runs": "label:none"}, "unknown_label", "runs", "there is no label:none"),
        (
            {"runs": "{r0},{r1}", "filter": "r2"},
            "repeated_parameter",
            "filter",
            "give only one of them",
        ),
        (
            {"filter": "param:bm25.k>1"},
            "bad_filter",
            "filter",
            "no run here has a parameter bm25.k",
        ),
        ({"run": "{r0}"}, "unknown_parameter", "run", "unknown parameter 'run'"),
    ],
)
def test_what_cannot_be_compared_is_said(
    anonymous: APIClient,
    board: Collection,
    query: dict[str, str],
    code: str,
    pointer: str,
    message: str,
) -> None:
    names = {tag: run_id(tag) for tag in ("r0", "r1")} | {
        "other": "00000000-0000-4000-8000-000000000000"
    }
    answer = anonymous.get(ADDRESS, {name: text.format(**names) for name, text in query.items()})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert message.format(**names) in error["detail"]


def test_comparisons_are_limited(
    anonymous: APIClient, board: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusal(**query: str) -> tuple[str, str]:
        answer = anonymous.get(ADDRESS, query).json()
        return answer["code"], answer["errors"][0]["detail"]

    for name, most, message in (
        (
            "MAX_RUNS",
            3,
            (
                "too_many_runs",
                "more than 3 runs; name some with runs=, or select fewer with filter=",
            ),
        ),
        (
            "MAX_VALUES",
            27,
            ("too_many_values", "7 parameters of 4 runs; at most 27 values are compared"),
        ),
        (
            "MAX_CHARACTERS",
            18,
            ("too_many_values", "texts of 19 characters; at most 18 are compared"),
        ),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(service, name, most)
            code, detail = refusal()
            assert (code, detail[: len(message[1])]) == message
    with monkeypatch.context() as patch:
        patch.setattr(service, "MAX_RUNS", 3)
        named = ",".join(str(run) for run in Run.objects.values_list("pk", flat=True))
        assert refusal(runs=named)[0] == "too_many_runs"
        assert len(compare(anonymous, filter="status:ranked")["runs"]) == 3


def test_a_participant_compares_the_runs_of_own_teams_alone(bob: User, board: Collection) -> None:
    """Of a blind collection; what others have is not there, even where it is named."""
    Collection.objects.update(blind=True)
    Run.objects.filter(tag__in=["r0", "r1"]).update(team=bob.personal_team)
    guest = client_of(bob)
    own = compare(guest)
    assert [run["tag"] for run in own["runs"]] == ["r0", "r1"]
    assert [parameter["name"] for parameter in own["differ"]] == ["bm25.k1", "model", "stemmed"]
    hidden = guest.get(ADDRESS, {"runs": f"{run_id('r0')},{run_id('r2')}"})
    nobody = guest.get(ADDRESS, {"runs": f"{run_id('r0')},00000000-0000-4000-8000-000000000000"})
    assert hidden.status_code == 400
    assert hidden.json()["errors"][0]["detail"].replace(run_id("r2"), "") == nobody.json()[
        "errors"
    ][0]["detail"].replace("00000000-0000-4000-8000-000000000000", "")
    assert guest.get(ADDRESS, {"filter": "measure:AP>0"}).status_code == 403
    assert client_of(None).get(ADDRESS).json()["code"] == "too_few_runs"


def rows_of_file(client: APIClient, **query: Any) -> list[dict[str, str]]:
    answer = client.get(f"{ADDRESS}export/csv/", query)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Disposition"] == 'attachment; filename="board-configurations.csv"'
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_the_file_has_a_row_for_each_run_the_best_first(
    anonymous: APIClient, board: Collection
) -> None:
    rows = rows_of_file(anonymous)
    assert {row["tag"] for row in rows} == {"r0", "r1", "r2", "late"}
    assert rows[-1]["tag"] == "late"
    means = [float(row["AP"]) for row in rows[:-1]]
    assert means == sorted(means, reverse=True)
    by_tag = {row["tag"]: row for row in rows}
    assert [by_tag[tag]["param:bm25.k1"] for tag in ("r0", "r1", "late")] == ["0.9", "1.2", ""]
    assert [by_tag[tag]["param:stemmed"] for tag in ("r0", "r1", "r2")] == ["true", "1", ""]
    assert list(by_tag["r0"])[-2:] == ["param:platform.cpu", "param:seed"]
    against = rows_of_file(anonymous, baseline=run_id("r1"))
    assert (against[0]["tag"], against[0]["changes"]) == ("r1", "0")


def test_the_file_of_a_blind_collection_has_own_runs_without_means(
    alice: User, bob: User, board: Collection
) -> None:
    for tag in ("b1", "b2"):
        run = make_run(board, tag)
        Run.objects.filter(pk=run.pk).update(team=bob.personal_team, metadata={"own": tag})
    Collection.objects.update(blind=True)
    rows = rows_of_file(client_of(bob))
    assert [list(row.values())[1:] for row in rows] == [["bob", "b1", "b1"], ["bob", "b2", "b2"]]
    assert list(rows[0]) == ["run", "team", "tag", "param:own"]
    assert "AP" in rows_of_file(client_of(alice))[0]
