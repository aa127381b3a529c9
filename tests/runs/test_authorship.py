"""Who judged a version of judgements, and from which other one it was made."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from rest_framework.test import APIClient

from runs.models import AuditEvent, Collection, Qrels
from runs.services.collections.authorship import of_reduced
from tests.conftest import upload
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

pytestmark = pytest.mark.django_db
PATH = "collections/judged/qrels/"
PARENT = "1 0 a 1\n1 0 b 0\n2 0 a 2\n"
MODEL = {"author_kind": "model", "author": "umbrela", "model": "tiny-1"}


@pytest.fixture(scope="module")
def judged(api: APIClient) -> APIClient:
    body = {"slug": "judged", "name": "Judged", "visibility": "public"}
    assert api.post("/api/v1/collections/", body, format="json").status_code == 201
    assert send(api, PARENT).status_code == 201
    return api


def send(api: APIClient, content: str, **fields: Any) -> Any:
    return upload(api, PATH, content, **fields)


def test_a_version_keeps_who_judged_and_its_prompt(judged: APIClient) -> None:
    prompt = "Is this passage relevant?\n"
    fields = {**MODEL, "prompt": prompt, "parent": 1, "derivation": "replaced"}
    answer = send(judged, "1 0 a 0\n1 0 b 0\n2 0 a 1\n", **fields, produced_at="2027-03-01T12:00Z")
    assert answer.status_code == 201, answer.content
    version = judged.get(f"/api/v1/{PATH}2/").json()
    assert version | MODEL == version
    assert version["prompt"] == prompt
    assert version["prompt_sha256"] == hashlib.sha256(prompt.encode()).hexdigest()
    assert (version["parent"], version["derivation"]) == (1, "replaced")
    assert version["produced_at"] == "2027-03-01T12:00:00Z"
    assert version["authors"] == "judged by model tiny-1"

    listed = judged.get(f"/api/v1/{PATH}").json()["results"]
    assert [row["authors"] for row in listed] == ["judged by model tiny-1", ""]
    assert "prompt" not in listed[0]
    event = AuditEvent.objects.filter(action=AuditEvent.Action.QRELS_UPLOADED).latest("pk")
    assert event.after["model"] == "tiny-1"

    # A version without some of its topics has the same authors.
    reduced = of_reduced(Qrels.objects.get(version=2))
    assert (reduced.kind, reduced.model, reduced.parent) == ("model", "tiny-1", None)


def test_the_same_judgements_by_another_judge_are_another_version(judged: APIClient) -> None:
    assert send(judged, PARENT, **MODEL).status_code == 201
    again = send(judged, PARENT, **MODEL)
    assert (again.status_code, again.json()["version"]) == (200, 2)
    # Without authors, they are the latest version with these judgements: it stays labelled.
    assert send(judged, PARENT).json()["authors"] == "judged by model tiny-1"
    assert send(judged, PARENT, author_kind="person").json()["version"] == 3


@pytest.mark.parametrize(
    ("derivation", "content", "codes"),
    [
        ("filled", PARENT + "2 0 b 1\n", set()),
        ("filled", "1 0 a 0\n2 0 a 2\n2 0 b 1\n", {"missing_judgement", "changed_judgement"}),
        ("sampled", "2 0 a 2\n", set()),
        ("sampled", "2 0 a 1\n2 0 b 1\n", {"added_judgement", "changed_judgement"}),
        ("replaced", "2 0 a 0\n1 0 b 3\n1 0 a 0\n", set()),
        ("replaced", "2 0 a 0\n1 0 b 3\n3 0 a 0\n", {"added_judgement", "missing_judgement"}),
    ],
)
def test_every_judgement_is_compared_with_the_parent(
    judged: APIClient, derivation: str, content: str, codes: set[str]
) -> None:
    fields = {"parent": 1, "derivation": derivation, "activate": False}
    checked = send(judged, content, **fields, dry_run=True)
    answer = send(judged, content, **fields)
    if not codes:
        assert (checked.status_code, answer.status_code) == (200, 201), answer.content
        return

    assert checked.status_code == answer.status_code == 422
    assert {problem["code"] for problem in answer.json()["errors"]} == codes
    assert "of topic '" in answer.json()["errors"][0]["detail"]
    assert Collection.objects.get(slug="judged").qrels.count() == 1


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"author_kind": "model"}, "/model"),
        ({"author_kind": "robot"}, "/author_kind"),
        ({"author_kind": "person", "model": "tiny-1"}, "/model"),
        ({"prompt": "Relevant?"}, "/prompt"),
        ({"author": "Kim"}, "/author_kind"),
        ({**MODEL, "prompt": "Relevant?", "prompt_sha256": "0" * 64}, "/prompt_sha256"),
        ({**MODEL, "prompt_sha256": "12"}, "/prompt_sha256"),
        ({"parent": 1}, "/derivation"),
        ({"derivation": "filled"}, "/parent"),
        ({"parent": 9, "derivation": "filled"}, "/parent"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(
    judged: APIClient, fields: dict[str, Any], pointer: str
) -> None:
    answer = send(judged, "1 0 a 1\n", **fields)
    assert answer.status_code in (400, 422)
    assert pointer in str(answer.json())
    assert Collection.objects.get(slug="judged").qrels.count() == 1
