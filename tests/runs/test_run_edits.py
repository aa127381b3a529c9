"""Editing metadata and costs of stored runs: patches, many runs at once, and the history that stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from metrics.services.upkeep.integrity import find_faults
from runs.models import AuditEvent, Collection, Parameter, ParameterKey, ParameterSet, Run, User
from runs.services.tracking.parameters import MAX_KEYS
from tests.conftest import GOOD, client_of

pytestmark = pytest.mark.words

RUNS = "/api/v1/collections/small/runs/"


def send(api: APIClient, tag: str = "good", content: str = GOOD, **fields: Any) -> Any:
    form = {
        name: json.dumps(value) if isinstance(value, dict) else value
        for name, value in fields.items()
    }
    return api.post(
        RUNS,
        {"file": SimpleUploadedFile("run", content.encode()), "tag": tag, **form},
        format="multipart",
    )


def rows() -> dict[str, Any]:
    """What is searched, by run and name."""
    rows: dict[str, Any] = {}
    for row in Parameter.objects.select_related("owner__run", "key"):
        value = next(value for value in (row.number, row.folded, row.boolean) if value is not None)
        rows.setdefault(row.owner.run.tag, {})[str(row.key)] = value
    return rows


@pytest.fixture
def address(api: APIClient, collection: str) -> str:
    """The address of a run with parameters and costs."""
    metadata = {"bm25.k1": 0.9, "model": "BM25", "long": list(range(30)), "on": True}
    answer = send(api, metadata=metadata, costs={"latency_ms": 12.1})
    assert answer.status_code == 202, answer.content
    return f"/api/v1/runs/{answer.json()['id']}/"


@pytest.mark.queries
def test_a_submission_says_parameters_and_costs(api: APIClient, address: str) -> None:
    body = api.get(address).json()
    assert body["metadata"] == {
        "bm25": {"k1": 0.9},
        "model": "BM25",
        "long": list(range(30)),
        "on": True,
    }
    assert body["costs"] == {"latency_ms": 12.1}
    assert [warning["code"] for warning in body["warnings"]["warnings"]] == ["parameters_left_out"]
    assert rows() == {
        "good": {
            "param:bm25.k1": 0.9,
            "param:model": "bm25",
            "param:on": True,
            "cost:latency_ms": 12.1,
        }
    }
    assert ParameterSet.objects.get().left_out == 1


@pytest.mark.queries
def test_a_header_is_part_of_the_metadata(api: APIClient, collection: str) -> None:
    header = (
        "# ir_metadata.start\n# platform:\n#   cpu: x\n# method:\n#   k1: 0.9\n# resources:\n#   runtime:\n"
        "#     wallclock: 171 ms\n# ir_metadata.end\n"
    )
    body = send(api, content=header + GOOD, metadata={"method": {"k1": 1.2}}).json()
    assert body["metadata"] == {"platform": {"cpu": "x"}, "method": {"k1": 1.2}}
    assert body["costs"] == {"wallclock_ms": 171}
    assert [warning["code"] for warning in body["warnings"]["warnings"]] == ["header_overridden"]
    roles = dict(ParameterKey.objects.values_list("name", "role"))
    assert roles == {"platform.cpu": "ignored", "method.k1": "setting", "wallclock_ms": "setting"}


@pytest.mark.parametrize("blind", [False, True])
def test_an_upload_names_the_runs_with_its_file_that_its_submitter_sees(
    api: APIClient, address: str, blind: bool
) -> None:
    Collection.objects.update(blind=blind)
    bob = client_of(User.objects.create_user("bob"))
    answer = send(bob)
    assert answer.status_code == 202
    messages = [warning["message"] for warning in answer.json()["warnings"]["warnings"]]
    same = "the same ranking as alice/good: the files are identical"
    assert messages == ([] if blind else [same])
    assert bob.get(answer.json()["url"]).json()["warnings"]["counts"] == {}
    again = send(bob, tag="again").json()["warnings"]["warnings"][-1]
    assert again["code"] == "same_file"
    assert ("alice" in again["message"]) != blind
    assert "bob/good" in again["message"]


def test_the_same_file_again_changes_nothing_and_says_so(api: APIClient, address: str) -> None:
    again = send(api, metadata={"bm25.k1": 1.2})
    assert again.status_code == 200
    assert "metadata_differs" in again.json()["warnings"]["counts"]
    assert "metadata_differs" not in api.get(address).json()["warnings"]["counts"]
    assert rows()["good"]["param:bm25.k1"] == 0.9
    assert "metadata_differs" not in send(api).json()["warnings"]["counts"]


@pytest.mark.parametrize("kind", ["application/json", "application/merge-patch+json"])
def test_a_patch_is_merged(api: APIClient, address: str, kind: str) -> None:
    patch = {
        "metadata": {"bm25": {"b": 0.4}, "on": None, "model": "x" * 300},
        "costs": {"price": {"value": 1, "n": 3}},
    }
    answer = api.patch(address, json.dumps(patch), content_type=kind)
    assert answer.status_code == 200, answer.content
    assert answer.json()["metadata"] == {
        "bm25": {"k1": 0.9, "b": 0.4},
        "model": "x" * 300,
        "long": list(range(30)),
    }
    assert answer.json()["costs"] == {"latency_ms": 12.1, "price": {"value": 1, "n": 3}}
    assert rows()["good"] == {
        "param:bm25.k1": 0.9, "param:bm25.b": 0.4, "param:model": "x" * 200, "cost:latency_ms": 12.1, "cost:price": 1,
    }  # fmt: skip


@pytest.mark.queries
def test_a_patch_may_name_the_state_that_it_changes(api: APIClient, address: str) -> None:
    tag = api.get(address)["ETag"]
    assert api.patch(address, {"costs": {"price": 1}}, headers={"If-Match": tag}).status_code == 200
    assert api.patch(address, {"costs": {"price": 2}}, headers={"If-Match": tag}).status_code == 412
    put = {"metadata": {"new": 1}}
    assert api.put(f"{address}metadata/", put, headers={"If-Match": tag}).status_code == 412
    assert api.put(f"{address}metadata/", put).json()["metadata"] == {"new": 1}
    assert rows()["good"] == {"param:new": 1, "cost:latency_ms": 12.1, "cost:price": 1}


REFUSED = {
    "key_conflict": {"metadata": {"a": 1, "a.b": 2}},
    "bad_key": {"metadata": {"a..b": 2}},
    "text_too_long": {"metadata": {"a": "x" * 6001}},
    "not_finite": '{"metadata": {"a": 1e999}}',
    "bad_cost": {"costs": {"latency_ms": {"low": 1}}},
    "too_large": {"metadata": {f"k{number}": "x" * 5000 for number in range(19)}},
}


@pytest.mark.parametrize(("code", "patch"), REFUSED.items(), ids=list(REFUSED))
def test_what_cannot_be_kept_is_refused_whole(
    api: APIClient, address: str, code: str, patch: Any
) -> None:
    before = api.get(address).json()
    if code == "too_large":
        assert api.patch(address, {"metadata": {"z": ["x" * 5000]}}).status_code == 200
        before = api.get(address).json()
    body = patch if isinstance(patch, str) else json.dumps(patch)
    answer = api.patch(address, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.content
    assert {**api.get(address).json(), "status": 0} == {**before, "status": 0}


@pytest.mark.queries
def test_the_first_value_stays_readable(api: APIClient, address: str) -> None:
    api.patch(address, {"metadata": {"bm25": {"k1": 1.2}}, "description": "x"})
    api.patch(address, {"description": "y"})
    api.patch(
        address, {"metadata": {"bm25": {"k1": True}, "long": None}, "costs": {"latency_ms": None}}
    )
    first, second = api.get(f"{address}history/").json()["edits"]
    assert first["actor"] == "alice"
    assert first["changes"] == [{"space": "param", "name": "bm25.k1", "before": 0.9, "after": 1.2}]
    assert {change["name"]: (change["before"], change["after"]) for change in second["changes"]} == {
        "bm25.k1": (1.2, True), "long": (list(range(30)), None), "latency_ms": (12.1, None),
    }  # fmt: skip


def test_edits_of_an_earlier_release_are_read(api: APIClient, address: str) -> None:
    run = Run.objects.get()
    AuditEvent.objects.create(
        action="run.changed", object_type="run", object_id=str(run.pk), collection=run.collection,
        before={"metadata": {"bm25.k1": 0.9, "a": 1}}, after={"metadata": {"bm25.k1": 0.4, "a": 1}},
    )  # fmt: skip
    (edit,) = api.get(f"{address}history/").json()["edits"]
    assert edit["changes"] == [{"space": "param", "name": "bm25.k1", "before": 0.9, "after": 0.4}]
    assert edit["actor"] == ""


def test_others_read_the_edits_without_names(
    anonymous: APIClient, bob: User, api: APIClient, address: str
) -> None:
    api.patch(address, {"metadata": {"x": 1}})
    for client in (anonymous, client_of(bob)):
        (edit,) = client.get(f"{address}history/").json()["edits"]
        assert edit["actor"] is None
        assert edit["changes"][0]["name"] == "x"


@pytest.fixture
def three(api: APIClient, collection: str) -> dict[str, str]:
    """The ids of three runs by tag."""
    metadata = {"one": {"k": 1, "m": {"x": 1}}, "two": {"k": 2}, "three": {"k": 3, "new": 1}}
    return {tag: send(api, tag, metadata=own).json()["id"] for tag, own in metadata.items()}


BULK = "/api/v1/collections/small/runs/metadata/"


@pytest.mark.queries
def test_many_runs_are_changed_together(api: APIClient, three: dict[str, str]) -> None:
    body = {"filter": "param:k<3", "metadata": {"seed": 1}, "rename": {"k": "bm25.k1"}}
    tried = api.patch(BULK, {**body, "dry_run": True}).json()
    assert (tried["dry_run"], tried["runs"], tried["changed"]) == (True, 2, 2)
    assert all("param:seed" not in values for values in rows().values())
    done = api.patch(BULK, body).json()
    assert done["results"] == tried["results"]
    assert rows() == {
        "one": {"param:bm25.k1": 1, "param:m.x": 1, "param:seed": 1},
        "two": {"param:bm25.k1": 2, "param:seed": 1},
        "three": {"param:k": 3, "param:new": 1},
    }
    named = {"runs": [three["one"]], "rename": {"m": "deep.er"}}
    (changed,) = api.patch(BULK, named).json()["results"]
    assert [(change["name"], change["before"], change["after"]) for change in changed["changes"]] == [
        ("m.x", 1, None), ("deep.er.x", None, 1),
    ]  # fmt: skip
    assert (
        api.patch(BULK, {"runs": list(three.values()), "metadata": {"seed": 1}}).json()["changed"]
        == 1
    )
    # The names that no run has any more.
    assert {finding.code for finding in find_faults()} == {"unused_parameters"}


def test_all_runs_are_changed_or_none(api: APIClient, three: dict[str, str]) -> None:
    answer = api.patch(BULK, {"filter": "", "rename": {"k": "new"}} | {"filter": "param:k"})
    assert (answer.status_code, answer.json()["code"]) == (422, "key_conflict")
    assert "run three: there is a value at new already" in answer.json()["detail"]
    assert all("param:k" in values for values in rows().values())


@pytest.mark.queries
def test_only_own_runs_are_changed(api: APIClient, bob: User, three: dict[str, str]) -> None:
    other = client_of(bob)
    body = {"metadata": {"seed": 1}}
    assert other.patch(BULK, {**body, "filter": "param:k"}).json()["runs"] == 0
    answer = other.patch(BULK, {**body, "runs": list(three.values())})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    unknown = api.patch(BULK, {**body, "runs": ["00000000-0000-4000-8000-000000000000"]})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_run")


@pytest.mark.parametrize(
    "body", [{}, {"metadata": {}}, {"filter": "x"}, {"filter": "x", "runs": [], "metadata": {}}]
)
def test_a_change_says_which_runs_and_what(
    api: APIClient, three: dict[str, str], body: Any
) -> None:
    assert api.patch(BULK, body).status_code == 400


@pytest.mark.queries
def test_a_collection_has_room_for_so_many_names(api: APIClient, three: dict[str, str]) -> None:
    small = Collection.objects.get()
    count = ParameterKey.objects.count()
    ParameterKey.objects.bulk_create(
        ParameterKey(collection=small, space="param", name=f"n{number}")
        for number in range(MAX_KEYS - count - 1)
    )
    body = send(api, "four", metadata={"k": 4, "y1": 1, "y2": 1}).json()
    assert "parameters_left_out" in body["warnings"]["counts"]
    assert rows()["four"] == {"param:k": 4, "param:y1": 1}
    assert ParameterSet.objects.get(run__tag="four").left_out == 1
    assert {finding.code for finding in find_faults()} == {"unused_parameters"}


@pytest.mark.queries
def test_fsck_finds_and_writes_rows_that_differ(api: APIClient, three: dict[str, str]) -> None:
    before = rows()
    Parameter.objects.filter(key__name="k", owner__run__tag="one").update(number=5)
    Parameter.objects.filter(owner__run__tag="two").delete()
    (finding,) = [finding for finding in find_faults() if not finding.note]
    assert finding.code == "parameters_differ"
    assert "2 runs of collection small" in finding.message
    assert finding.repair
    finding.repair()
    assert rows() == before
    assert list(find_faults()) == []
