"""The members of a team change, withdraw and restore its submissions in the browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from metrics.models import Evaluation
from runs.models import AuditEvent, Label, LabelMove, Run, SessionSet, User
from runs.services.storage.stores.folder import stored_path
from tests.conftest import GOOD, POOR, SESSIONS, upload
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "collection", "module_data", "submit"]


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
    actions = (
        AuditEvent.objects.filter(actor="alice").order_by("id").values_list("action", flat=True)
    )
    assert list(actions)[-3:] == ["run.changed", "run.deleted", "run.restored"]
    assert browser.post(path, {"action": "restore"}).status_code == 400


def test_labels_are_made_moved_and_deleted(browser: Client, submit: Any) -> None:
    first, second = submit(GOOD), submit(POOR)
    path, other = f"/runs/{first.pk}/change/", f"/runs/{second.pk}/change/"
    assert "Move label" not in page(browser, path)
    answer = browser.post(path, {"action": "label", "label": "main", "note": "the first"})
    assert (answer.status_code, answer["Location"]) == (303, f"{path}#labels")
    assert "Label main names good now." in text_of(page(browser, path))
    for fields, status, says in (
        ({"label": "no good"}, 400, "A label has up to 40 letters"),
        ({"label": "main"}, 409, "decide again below"),
        ({"label": "main", "expected": str(second.pk)}, 409, "decide again below"),
        ({"label": "main", "expected": "x"}, 400, "alid UUID"),
    ):
        refused = browser.post(other, {"action": "label", **fields})
        assert (refused.status_code, says in refused.content.decode()) == (status, True), fields
    (expected,) = set(re.findall(r'name="expected" value="([^"]*)"', page(browser, other)))
    assert (
        browser.post(other, {"action": "label", "label": "main", "expected": expected}).status_code
        == 303
    )
    assert "Move label main to good" in page(browser, path)
    moves = LabelMove.objects.order_by("pk").values_list(
        "from_run", "to_run", "note", "by__username"
    )
    assert list(moves) == [
        (None, first.pk, "the first", "alice"),
        (first.pk, second.pk, "", "alice"),
    ]
    # It has been moved since the page was read.
    stale = browser.post(path, {"action": "delete-label", "label": "main", "expected": expected})
    assert (stale.status_code, Label.objects.count()) == (409, 1)
    assert (
        browser.post(
            path, {"action": "delete-label", "label": "main", "expected": second.pk}
        ).status_code
        == 303
    )
    assert not Label.objects.exists()
    assert "Label main deleted." in text_of(page(browser, other))
    gone = browser.post(path, {"action": "delete-label", "label": "main"})
    assert (gone.status_code, "abel main no longer exists" in gone.content.decode()) == (
        409,
        True,
    )
    assert "deleted" not in text_of(page(browser, path))


def test_a_labelled_run_is_withdrawn_with_its_labels_where_asked(
    browser: Client, submit: Any
) -> None:
    path = f"/runs/{submit(GOOD).pk}/change/"
    assert "drop_labels" not in page(browser, path)
    browser.post(path, {"action": "label", "label": "main"})
    refused = browser.post(path, {"action": "withdraw"})
    assert (refused.status_code, "is labelled main" in refused.content.decode()) == (409, True)
    assert "Delete its label, too: main" in text_of(refused.content.decode())
    assert browser.post(path, {"action": "withdraw", "drop_labels": "yes"}).status_code == 303
    assert (Label.objects.count(), Run.objects.filter(deleted_at=None).count()) == (0, 0)
    assert browser.post(path, {"action": "label", "label": "main"}).status_code == 400


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
