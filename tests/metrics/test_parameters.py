"""Parameters on a leaderboard: columns, the order by one, files, and the keys of a collection with their values."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from evalhub.operating.backup import saved_models
from metrics.models import MetricVector
from runs.models import (
    Collection,
    Membership,
    Parameter,
    ParameterKey,
    Run,
    Team,
    User,
)
from runs.services.tracking.parameters import rebuild_parameters, store_parameters
from tests.conftest import client_of
from tests.metrics.boards import make_board, make_run, simulated
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

BOARD = "/api/v1/collections/board/"
METADATA: list[dict[str, Any]] = [
    {"bm25": {"k1": 0.9}, "model": "BM25"},
    {"bm25": {"k1": 1.2}, "model": "=cmd()"},
    {"bm25": {"k1": "high"}, "model": "bm25"},
    {"model": "a_b & | c", "note": "x" * 300},
    {"bm25": {"k1": True}},
    {"bm25": {"k1": 0.9}},
]
COSTS: list[dict[str, Any]] = [
    {"latency_ms": 12.5},
    {"latency_ms": {"value": 3, "low": 2, "high": 4}},
    {},
    {},
    {},
    {},
]


@pytest.fixture(scope="module")
def board(alice: User) -> Collection:
    """Six ranked runs, r0 to r5, and one that waits, with a parameter of its own."""
    collection = make_board(
        alice.personal_team, {"AP": simulated(6, 20), "P@10": simulated(6, 20, seed=9)}
    )
    runs = list(Run.objects.order_by("tag"))
    runs.append(make_run(collection, "late"))
    for run, metadata, costs in zip(
        runs, [*METADATA, {"bm25": {"k1": 0.1}, "own": 1}], [*COSTS, {}], strict=True
    ):
        run.metadata, run.costs = metadata, costs
    Run.objects.bulk_update(runs, ["metadata", "costs"])
    store_parameters(collection, runs)
    return collection


def rows(client: APIClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{BOARD}leaderboard/", query)
    assert answer.status_code == 200, answer.content
    rows: list[dict[str, Any]] = answer.json()["results"]
    return rows


def tags(client: APIClient, **query: Any) -> list[str]:
    return [row["run"]["tag"] for row in rows(client, **query)]


def test_columns_have_the_values_as_they_were_sent(anonymous: APIClient, board: Collection) -> None:
    columns = 'param:bm25.k1,cost:latency_ms,param:"model",submitted,param:bm25.k1'
    answer = anonymous.get(f"{BOARD}leaderboard/", {"columns": columns}).json()
    assert answer["columns"] == ["param:bm25.k1", "cost:latency_ms", "param:model", "submitted"]
    rows = {row["run"]["tag"]: row["columns"] for row in answer["results"]}
    assert [rows[f"r{number}"]["param:bm25.k1"] for number in range(6)] == [
        0.9,
        1.2,
        "high",
        None,
        True,
        0.9,
    ]
    assert [rows[f"r{number}"]["cost:latency_ms"] for number in range(3)] == [12.5, 3, None]
    assert rows["r0"]["param:model"] == "BM25"
    assert rows["late"]["submitted"] == Run.objects.get(tag="late").created_at.isoformat().replace(
        "+00:00", "Z"
    )


def test_rows_are_arranged_and_ranks_stay(anonymous: APIClient, board: Collection) -> None:
    by_rank = tags(anonymous)
    ranks = {row["run"]["tag"]: row["rank"] for row in rows(anonymous)}
    equal = [tag for tag in by_rank if tag in ("r0", "r5")]
    upwards = ["late", *equal, "r1", "r2", "r4", "r3"]
    downwards = ["r4", "r2", "r1", *equal, "late", "r3"]
    assert tags(anonymous, arrange="param:bm25.k1") == upwards
    assert tags(anonymous, arrange="-param:bm25.k1") == downwards
    assert tags(anonymous, arrange="param:bm25.k1", limit=3, offset=2) == upwards[2:5]
    assert tags(anonymous, arrange="-cost:latency_ms")[:2] == ["r0", "r1"]
    assert tags(anonymous, arrange="submitted", filter="status:ranked") == [
        f"r{number}" for number in range(6)
    ]
    listed = rows(anonymous, arrange="-param:bm25.k1", statistics="tiers", columns="param:model")
    assert {row["run"]["tag"]: row["rank"] for row in listed} == ranks


def test_filters_columns_and_order_change_no_statistics(
    anonymous: APIClient, board: Collection
) -> None:
    query = {"statistics": "all", "rank_resamples": 100}
    whole = {
        row["run"]["tag"]: row["statistics"] for row in rows(anonymous, **query) if row["rank"]
    }
    some = rows(
        anonymous, filter="param:bm25.k1>0.5", columns="param:model", arrange="param:model", **query
    )
    assert [row["run"]["tag"] for row in some] != []
    assert all(row["statistics"] == whole[row["run"]["tag"]] for row in some)


def test_means_are_filtered_by_what_is_stored(anonymous: APIClient, board: Collection) -> None:
    means = dict(
        MetricVector.objects.filter(measure="AP").values_list("evaluation__run__tag", "mean")
    )
    bound = sorted(means.values())[3]
    above = sorted(tag for tag, mean in means.items() if mean >= bound)
    assert sorted(tags(anonymous, filter=f"measure:AP>={bound}")) == above
    assert [
        means[tag] for tag in tags(anonymous, filter=f"measure:AP={bound} OR measure:AP<0")
    ] == [bound]
    assert tags(anonymous, filter="-measure:AP") == ["late"]


REFUSED = {
    "columns=param:bm25.k": "columns: no run here has a parameter bm25.k; there is bm25.k1",
    "columns=AP": "columns, character 1: a column is param:name, cost:name, label or submitted",
    "columns=param:model,,": "columns, character 13: a column is",
    "arrange=k1": "arrange=k1: rows are arranged by param:name, cost:name, label or submitted",
    "arrange=-cost:latency": "arrange: no run here has a cost latency; there is latency_ms",
}


@pytest.mark.parametrize("query", REFUSED)
def test_columns_that_are_not_there_are_refused(
    anonymous: APIClient, board: Collection, query: str
) -> None:
    answer = anonymous.get(f"{BOARD}leaderboard/?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_columns")
    assert REFUSED[query] in answer.json()["detail"]
    assert answer.json()["errors"][0]["pointer"] == query.partition("=")[0]


def test_files_hold_the_shown_columns(anonymous: APIClient, board: Collection) -> None:
    ParameterKey.objects.filter(name="latency_ms").update(unit="ms")
    query = {
        "columns": "param:bm25.k1,cost:latency_ms,param:model",
        "measures": "AP",
        "arrange": "cost:latency_ms",
    }
    files = {
        kind: anonymous.get(f"{BOARD}leaderboard/export/{kind}/", query).content.decode()
        for kind in ("csv", "md", "tex")
    }
    names, first, second, *_ = files["csv"].splitlines()
    assert ",param:bm25.k1,cost:latency_ms,param:model," in names
    assert ",1.2,3,'=cmd()," in first
    assert ",0.9,12.5,BM25," in second
    head, _, best, *_ = files["md"].splitlines()
    assert head.endswith("| AP | bm25.k1 | latency\\_ms (ms) | model |")
    assert best.endswith("| 1.2 | 3 | =cmd() |")
    assert "| a\\_b \\& \\| c |" in files["md"]
    assert r"a\_b \& \textbar{} c \\" in files["tex"]
    assert "Rows in the order of latency" in files["md"]


def test_a_leaderboard_that_is_remembered_knows_of_edits(api: APIClient, board: Collection) -> None:
    run, query = Run.objects.get(tag="r0"), {"columns": "param:bm25.k1", "filter": "tag:r0"}
    first = api.get(f"{BOARD}leaderboard/", query)
    assert (
        api.patch(f"/api/v1/runs/{run.pk}/", {"metadata": {"bm25": {"k1": 7}}}).status_code == 200
    )
    again = api.get(f"{BOARD}leaderboard/", query, headers={"If-None-Match": first["ETag"]})
    assert again.json()["results"][0]["columns"] == {"param:bm25.k1": 7}


def facets(client: APIClient, **query: Any) -> dict[str, Any]:
    answer = client.get(f"{BOARD}parameters/", query)
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_keys_are_listed_with_their_values(anonymous: APIClient, board: Collection) -> None:
    keys = facets(anonymous)
    assert [key["name"] for key in keys["results"]] == [
        "bm25.k1",
        "model",
        "note",
        "own",
        "latency_ms",
    ]
    assert keys["results"][0] == {
        "space": "param", "name": "bm25.k1", "unit": "", "note": "", "role": "setting", "runs": 6, "missing": 1,
        "types": {"number": 4, "text": 1, "boolean": 1}, "min": 0.1, "max": 1.2, "distinct": 5,
        "values": [{"value": 0.9, "runs": 2}, {"value": 0.1, "runs": 1}, {"value": 1.2, "runs": 1},
                   {"value": "high", "runs": 1}, {"value": True, "runs": 1}],
    }  # fmt: skip
    models = keys["results"][1]
    assert (models["distinct"], models["values"][0]) == (3, {"value": "bm25", "runs": 2})
    assert facets(anonymous, q="K1", filter="param:model")["results"][0]["missing"] == 1
    assert facets(anonymous, limit=1, offset=4)["results"][0]["space"] == "cost"
    assert facets(anonymous, q="zzz") == {
        "count": 0,
        "runs": 7,
        "next": None,
        "previous": None,
        "results": [],
    }
    pages = [facets(anonymous, limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [
        [page[way] and page[way].rpartition("&")[2] for way in ("next", "previous")]
        for page in pages
    ] == [
        ["offset=2", None],
        ["offset=4", "offset=0"],
        [None, "offset=2"],
    ]


def test_withdrawn_runs_are_not_counted(
    api: APIClient, anonymous: APIClient, board: Collection
) -> None:
    assert api.delete(f"/api/v1/runs/{Run.objects.get(tag='late').pk}/").status_code == 204
    keys = facets(anonymous)
    assert [key["name"] for key in keys["results"]] == ["bm25.k1", "model", "note", "latency_ms"]
    assert keys["results"][0]["min"] == 0.9


def test_organisers_describe_keys(api: APIClient, bob: User, board: Collection) -> None:
    address = f"{BOARD}parameters/param/bm25.k1/"
    fields = {"unit": "none", "note": "saturation of tf", "role": "ignored"}
    assert api.patch(address, fields).json() == {"space": "param", "name": "bm25.k1", **fields}
    assert facets(api)["results"][0] | fields == facets(api)["results"][0]
    assert client_of(bob).patch(address, fields).status_code == 403
    assert api.patch(f"{BOARD}parameters/param/zzz/", fields).status_code == 404
    assert api.patch(f"{BOARD}parameters/measure/AP/", fields).status_code == 404
    assert api.patch(address, {"role": "other"}).status_code == 400


def test_rows_are_no_part_of_a_backup_and_can_be_made_again(board: Collection) -> None:
    def stored() -> list[Any]:
        columns = ("owner__run__tag", "key__name", "number", "folded", "boolean")
        return sorted(Parameter.objects.values_list(*columns), key=repr)

    before = stored()
    assert Parameter not in saved_models()
    Parameter.objects.all().delete()
    rebuild_parameters()
    assert stored() == before


def test_a_blind_collection_has_the_keys_of_own_runs_alone(bob: User, board: Collection) -> None:
    """Keys, values, counts and near names of others are not there; the organiser has all."""
    guests = Team.objects.create(slug="guests", name="Guests")
    Membership.objects.create(team=guests, user=bob, role="member")
    Collection.objects.update(blind=True)
    Run.objects.filter(tag="r1").update(team=guests)
    guest = client_of(bob)
    keys = facets(guest)
    assert (keys["runs"], [key["name"] for key in keys["results"]]) == (
        1,
        ["bm25.k1", "model", "latency_ms"],
    )
    assert keys["results"][0]["values"] == [{"value": 1.2, "runs": 1}]
    refused = guest.get(f"{BOARD}parameters/", {"filter": "param:own"}).json()
    assert refused["detail"].endswith(
        "no run here has a parameter own; there are bm25.k1 and model"
    )
    for query in ("measure:AP>0", "status:ranked", "tag:x OR -measure:AP"):
        assert guest.get(f"{BOARD}parameters/", {"filter": query}).status_code == 403
    own = guest.patch(
        f"{BOARD}runs/metadata/",
        {"filter": "has:parameters", "metadata": {"x": 1}, "dry_run": True},
    )
    assert own.json()["runs"] == 1
