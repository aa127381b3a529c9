"""An address without its final slash: what changes something is done, what only reads is sent to the whole address."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import Run, User
from tests.conftest import GOOD
from tests.shared_data import alice, api, collection, module_data
from tests.web.access.addresses import ADDRESSES
from tests.web.worlds import add_qrels, arguments, make_collection, make_people, make_runs

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words
RUNS = "/api/v1/collections/small/runs"
CHANGING = [(name, method) for name, address in ADDRESSES.items() for method in address.changes]


def send(client: APIClient, path: str, **headers: str) -> Any:
    form = {"file": SimpleUploadedFile("good.run", GOOD.encode()), "tag": "mine"}
    return client.post(path, form, format="multipart", headers=headers)


def test_a_file_sent_without_the_slash_is_stored(api: APIClient, collection: str) -> None:
    answer = send(api, RUNS)
    assert answer.status_code == 202, answer.content
    assert answer.json()["tag"] == "mine"
    assert [str(run.pk) for run in Run.objects.all()] == [answer.json()["id"]]


def test_both_forms_of_an_address_are_one_request_to_an_idempotency_key(
    api: APIClient, collection: str
) -> None:
    answers = [send(api, path, **{"Idempotency-Key": "one"}) for path in (RUNS, f"{RUNS}/", RUNS)]
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [
        None,
        "true",
        "true",
    ]
    assert Run.objects.count() == 1


def test_no_request_that_changes_something_is_redirected_to_its_slash(db: None) -> None:
    people = make_people()
    make_collection(people, "one")
    add_qrels(people, "one")
    values = arguments(people, "one", make_runs(people, "one"))
    for name, method in CHANGING:
        whole = ADDRESSES[name].path(values)
        answer = people.api["anonymous"].generic(method, whole.removesuffix("/"))
        assert answer.status_code == people.api["anonymous"].generic(method, whole).status_code, (
            name,
            method,
        )
        assert answer.status_code != 301, (name, method)
        # The same view has seen it, under the same address.
        assert answer.wsgi_request.resolver_match.view_name.rpartition(":")[2] == name, (
            name,
            method,
        )
        assert answer.wsgi_request.path == whole, (name, method)


def test_a_change_and_a_deletion_reach_their_object(api: APIClient, collection: str) -> None:
    run = send(api, RUNS).json()["id"]
    assert api.patch(f"/api/v1/runs/{run}", {"description": "changed"}).status_code == 200
    assert Run.objects.get(pk=run).description == "changed"
    assert api.delete(f"/api/v1/runs/{run}").status_code == 204
    assert Run.objects.get(pk=run).deleted_at is not None


def test_reading_is_redirected_and_keeps_its_query(api: APIClient, collection: str) -> None:
    answer = api.get(f"{RUNS}?tag=a&limit=3")
    assert (answer.status_code, answer["Location"]) == (301, f"{RUNS}/?tag=a&limit=3")


def test_an_address_that_is_none_stays_none(api: APIClient, collection: str) -> None:
    for path in ("/api/v1/collections/small/nothing", "/nothing", "/admin/nothing"):
        assert api.post(path).status_code in (302, 404), path


def test_a_form_of_a_page_needs_its_csrf_token_either_way(alice: User, collection: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    for path in ("/collections/small/submit", "/collections/small/submit/"):
        form = {"file": SimpleUploadedFile("good.run", GOOD.encode())}
        assert browser.post(path, form).status_code == 403, path
    assert not Run.objects.exists()


def test_passwords_are_counted_either_way(settings: Any, db: None) -> None:
    settings.EVALHUB_LOGIN_RATE = 2
    codes = [
        Client().post("/login", {"username": "a", "password": "b"}).status_code for _ in range(4)
    ]
    assert codes == [200, 200, 429, 429]
