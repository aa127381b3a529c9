"""The members of a team change, withdraw and restore its submissions in the browser."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from metrics.models import Evaluation
from runs.models import AuditEvent, Run, SessionSet, User
from runs.services.files import stored_path
from tests.conftest import GOOD, SESSIONS, upload
from tests.web.test_pages import page, text_of


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def test_a_run_is_described_withdrawn_and_restored(browser: Client, submit: Any) -> None:
    run = submit(GOOD)
    path = f"/runs/{run.pk}/change/"
    assert path in page(browser, f"/runs/{run.pk}/")
    answer = browser.post(path, {"action": "describe", "description": "BM25\nk1 0.9"})
    assert (answer.status_code, answer["Location"]) == (303, f"/runs/{run.pk}/")
    assert "BM25<br>k1 0.9" in page(browser, f"/runs/{run.pk}/")
    wrong = browser.post(path, {"action": "describe", "description": "hidden \x01 mark"})
    assert (wrong.status_code, "U+0001" in wrong.content.decode()) == (400, True)
    assert "hidden" in wrong.content.decode()
    assert browser.post(path, {"action": "withdraw"})["Location"] == path
    assert "good withdrawn. You can restore it for a day." in text_of(page(browser, path))
    page(browser, f"/runs/{run.pk}/", 404)
    assert browser.post(path, {"action": "describe", "description": "x"}).status_code == 400
    assert browser.post(path, {"action": "restore"})["Location"] == f"/runs/{run.pk}/"
    assert Evaluation.objects.get(run=run).state == "evaluated"
    actions = AuditEvent.objects.filter(actor="alice").order_by("id").values_list("action", flat=True)
    assert list(actions)[-3:] == ["run.changed", "run.deleted", "run.restored"]
    assert browser.post(path, {"action": "restore"}).status_code == 400


def test_what_cannot_be_restored_says_why(browser: Client, submit: Any) -> None:
    run = submit(GOOD)
    path = f"/runs/{run.pk}/change/"
    browser.post(path, {"action": "withdraw"})
    other = submit(GOOD + "9 Q0 z 1 1.0 good\n")
    answer = browser.post(path, {"action": "restore"})
    assert (answer.status_code, "has another" in answer.content.decode()) == (409, True)
    assert browser.post(f"/runs/{other.pk}/change/", {"action": "withdraw"}).status_code == 303
    stored_path(run.sha256).unlink()
    assert "no longer stored" in browser.post(path, {"action": "restore"}).content.decode()
    assert not Run.objects.filter(deleted_at=None).exists()


def test_a_session_set_is_withdrawn(browser: Client, collection: str, api: Any) -> None:
    pk = upload(api, "collections/small/sessions/", SESSIONS).json()["id"]
    path = f"/session-sets/{pk}/change/"
    assert path in page(browser, f"/session-sets/{pk}/")
    assert browser.post(path, {"action": "withdraw"}).status_code == 303
    assert SessionSet.objects.get().deleted_at
    assert "Restore sessions" in page(browser, path)


def test_others_neither_find_nor_reach_it(submit: Any, bob: User, api: Any) -> None:
    run, other = submit(GOOD), Client()
    path = f"/runs/{run.pk}/change/"
    other.force_login(bob)
    assert path not in page(other, f"/runs/{run.pk}/")
    assert path not in page(Client(), f"/runs/{run.pk}/")
    assert other.post(path, {"action": "withdraw"}).status_code == 403
    assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert other.get(path).status_code == 404
    assert other.post(path, {"action": "restore"}).status_code == 404
    secured = Client(enforce_csrf_checks=True)
    secured.force_login(run.submitted_by)
    assert secured.post(path, {"action": "restore"}).status_code == 403
