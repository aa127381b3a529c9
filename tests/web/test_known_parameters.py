"""Nothing that is asked for is passed over: every address refuses parameters and fields that it does not read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import QueryDict
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from runs.models import Collection, Run
from runs.web.parameters import refusals
from tests.conftest import GOOD, POOR
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.access.addresses import ADDRESSES, API
from tests.web.access.bodies import BODIES
from tests.web.worlds import People

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words
CHANGING = [(name, method) for name in API for method in ADDRESSES[name].changes]
DESCRIBED = [ADDRESSES[name] for name in API if name not in ("schema", "api-docs")]


def with_nonsense(body: Any) -> tuple[Any, str]:
    """Return a body with a field that no address reads, and where it is."""
    if isinstance(body, list):
        return [{**body[0], "nonsense": "1"}], "/0/nonsense"
    return {**body, "nonsense": "1"}, "/nonsense"


def send(client: APIClient, method: str, path: str, body: Any) -> Any:
    """One request, after which everything is as before."""
    form = "multipart" if "file" in body else "json"
    with transaction.atomic():
        answer = (
            client.get(path)
            if method == "GET"
            else getattr(client, method.lower())(path, body, format=form)
        )
        transaction.set_rollback(True)
    return answer


def problem(answer: Any) -> tuple[int, str, str]:
    assert answer["Content-Type"] == "application/problem+json", answer.content[:300]
    body = json.loads(answer.content)
    return answer.status_code, body["code"], body["errors"][0]["pointer"]


def test_every_address_refuses_a_field_that_it_does_not_read(
    people: People, values: dict[str, Any]
) -> None:
    for name, method in CHANGING:
        path = ADDRESSES[name].path(values)
        # Staff have no team and change nothing of one.
        role = {
            "token": "owner",
            "member": "owner",
            "members": "owner",
            "entry": "participant",
        }.get(name, "staff")
        client = people.api[role]
        body, pointer = with_nonsense(BODIES.get((name, method), dict)())
        answer = send(client, method, path, body)
        assert problem(answer) == (400, "unknown_field", pointer), (
            name,
            method,
            answer.content,
        )


def test_what_is_read_is_what_the_description_declares() -> None:
    document = SchemaGenerator().get_schema(public=True)
    names, declared = {}, {}
    for address in DESCRIBED:
        for method in address.methods:
            names[address.name, method] = set(address.reads(method))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            declared[path, method.upper()] = {
                parameter["name"]
                for parameter in operation.get("parameters", [])
                if parameter["in"] == "query"
            }
    assert len(declared) == len(names) > 60
    assert sorted(map(sorted, declared.values())) == sorted(map(sorted, names.values()))


def test_a_request_has_no_other_fields_in_the_description_either() -> None:
    schemas = SchemaGenerator().get_schema(public=True)["components"]["schemas"]
    assert schemas["NewTeamRequest"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["Team"]


MEANT = {
    "runs/{run}/values/?measure=AP": "unknown parameter 'measure'; did you mean 'measures'?",
    "collections/small/leaderboard/?measure=AP": "unknown parameter 'measure'; did you mean 'measures'?",
    "collections/small/difference/?measures=AP": "unknown parameter 'measures'; did you mean 'measure'?",
    "collections/small/leaderboard/?Filter=a": "unknown parameter 'Filter'; did you mean 'filter'?",
    "runs/{run}/values/?foo=1": "unknown parameter 'foo'; this address reads measures, scores, qrels",
    "runs/{run}/?foo=1": "unknown parameter 'foo'; this address reads none",
    "collections/small/runs/?metadata__k1=0.9": "unknown parameter 'metadata__k1'; this address reads limit, offset,"
    " team, tag, sha256, status, submitted_after, submitted_before",
    "runs/{run}/charts/topics.svg?depth=5": "unknown parameter 'depth'; this address reads measure, other,",
    "collections/small/charts/ranks.svg?depth=3": "unknown parameter 'depth'; this address reads measures, measure,",
    "collections/small/leaderboard/export/csv/?offset=3": "unknown parameter 'offset'; this address reads",
}


@pytest.mark.parametrize(("path", "message"), MEANT.items(), ids=list(MEANT))
def test_the_nearest_parameter_is_named(
    anonymous: APIClient, submit: Any, path: str, message: str
) -> None:
    answer = anonymous.get("/api/v1/" + path.format(run=submit(GOOD).pk))
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(message)
    assert answer.json()["code"] == "unknown_parameter"


def test_the_nearest_parameter_is_named_at_every_address() -> None:
    """With a letter doubled, in capitals, and without an end."""
    tried = 0
    for address in DESCRIBED:
        for method in address.methods:
            known = address.reads(method)
            for name in known:
                for wrong in {
                    name[0] + name,
                    name.upper(),
                    name[:-1] if len(name) > 4 else name.title(),
                } - set(known):
                    (refusal,) = refusals(QueryDict(f"{wrong}=1"), known)
                    assert re.search(r"did you mean '(\w+)'\?$", refusal.message)[1] in known  # type: ignore[index]
                    tried += 1
    assert tried > 1000


VALUES = {
    "GET runs/?status=queud": "status: 'queud' is not one of received, queued, ",
    "GET leaderboard/?order=dsc": "order='dsc': order is one of desc, asc; did you mean 'desc'?",
    "GET leaderboard/?statistics=tirs": "did you mean 'tiers'?",
    "GET leaderboard/?measures=ndgc@10": "did you mean nDCG@10?",
    "GET comparison/?tests=paired-t": "unknown test 'paired-t'; did you mean 'paired_t'? known: ",
    "GET comparison/?correction=hol": "unknown correction 'hol'; did you mean 'holm'? known: ",
    "PATCH ?visibility=publik": "visibility: 'publik' is not one of public, team, private; did you mean 'public'?",
    "POST comparison/?correction=hol": "correction: 'hol' is not one of holm, ",
}


@pytest.mark.parametrize(("text", "message"), VALUES.items(), ids=list(VALUES))
def test_the_nearest_value_is_named(api: APIClient, submit: Any, text: str, message: str) -> None:
    """Those of a query; of a change, the same text as a body."""
    submit(GOOD)
    submit(POOR)
    method, _, rest = text.partition(" ")
    path, _, query = f"/api/v1/collections/small/{rest}".partition("?")
    name, _, value = query.partition("=")
    answer = (
        api.get(path, {name: value})
        if method == "GET"
        else getattr(api, method.lower())(path, {name: value})
    )
    assert answer.status_code == 400
    assert message in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("leaderboard/?sort=AP&sort=P@3", "sort"),
        ("runs/?tag=a&tag=b", "tag"),
        ("runs/?limit=1&limit=2", "limit"),
        ("comparison/?measures=AP&measure=P@3", "measure"),
        ("comparison/?tests=sign&test=paired_t", "test"),
    ],
)
def test_a_parameter_given_twice_is_refused(
    anonymous: APIClient, submit: Any, query: str, pointer: str
) -> None:
    submit(GOOD)
    submit(POOR)
    answer = anonymous.get(f"/api/v1/collections/small/{query}")
    assert problem(answer) == (400, "repeated_parameter", pointer)


def test_lists_add_up_where_they_are_repeated(anonymous: APIClient, submit: Any) -> None:
    run = submit(GOOD)
    answer = anonymous.get(f"/api/v1/runs/{run.pk}/values/?measures=AP&measures=P@3,RR")
    assert list(answer.json()["means"]) == ["AP", "P@3", "RR"]
    twice = anonymous.get(f"/api/v1/runs/{run.pk}/values/?qrels=1&qrels=2")
    assert (twice.status_code, twice.json()["errors"][0]["pointer"]) == (400, "qrels")


def test_what_cannot_be_changed_is_not_passed_over(api: APIClient, submit: Any) -> None:
    run = submit(GOOD)
    answer = api.patch(f"/api/v1/runs/{run.pk}/", {"tag": "x", "description": "new"})
    assert problem(answer) == (400, "read_only_field", "/tag")
    assert (
        answer.json()["detail"]
        == "tag cannot be set here; what can is description, metadata, costs, replicate"
    )
    assert Run.objects.get(pk=run.pk).description == ""
    assert problem(api.patch("/api/v1/collections/small/", {"slug": "x"})) == (
        400,
        "read_only_field",
        "/slug",
    )
    wrong = api.patch("/api/v1/collections/small/", {"level_label": {}})
    assert wrong.json()["detail"] == "unknown field 'level_label'; did you mean 'level_labels'?"
    assert Collection.objects.get().level_labels == {}


@pytest.mark.parametrize(
    ("query", "fields", "pointer"),
    [("", {"tag": ["a", "b"]}, "/tag"), ("?tag=a", {"tag": "b"}, "/tag")],
)
def test_a_field_given_twice_is_refused(
    api: APIClient, collection: str, query: str, fields: dict[str, Any], pointer: str
) -> None:
    body = {"file": SimpleUploadedFile("run", GOOD.encode()), **fields}
    answer = api.post(f"/api/v1/collections/small/runs/{query}", body, format="multipart")
    assert problem(answer) == (400, "repeated_field", pointer)
    assert not Run.objects.exists()


def test_a_file_in_a_field_of_another_name_is_named(api: APIClient, collection: str) -> None:
    body = {"files": SimpleUploadedFile("run", GOOD.encode())}
    answer = api.post("/api/v1/collections/small/runs/", body, format="multipart")
    assert problem(answer) == (400, "unknown_field", "/files")
    assert answer.json()["detail"] == "unknown field 'files'; did you mean 'file'?"


def test_who_may_not_ask_is_told_that_first(anonymous: APIClient, collection: str) -> None:
    assert anonymous.post("/api/v1/collections/?nonsense=1", {}).status_code == 401


def test_the_description_comes_in_the_format_that_is_asked_for(anonymous: APIClient) -> None:
    assert json.loads(anonymous.get("/api/v1/schema/?format=json").content)["openapi"]
    assert anonymous.get("/api/v1/schema/").content.startswith(b"openapi:")
    assert anonymous.get("/api/v1/schema/?format=pdf").status_code == 404


@pytest.mark.parametrize("where", ["leaderboard/", "leaderboard/export/csv/"])
def test_how_statistics_are_made_is_not_said_of_none(
    anonymous: APIClient, submit: Any, where: str
) -> None:
    submit(GOOD)
    submit(POOR)
    path = f"/api/v1/collections/small/{where}"
    for query in ("test=sign", "alpha=0.1", "seed=3", "rank_resamples=200", "correction=none"):
        assert problem(anonymous.get(f"{path}?{query}")) == (400, "required", "statistics"), query
        assert anonymous.get(f"{path}?statistics=intervals&{query}").status_code == 200, query
