"""The pages of comparisons that a worker makes: offered, waiting, made, failed, outliving what they were made from."""

from __future__ import annotations

import html as markup
import re
from typing import Any

import pytest
from django.test import Client

from metrics.models import Comparison
from metrics.services.comparisons.stored import compare
from runs.models import Run
from tests.conftest import QRELS, upload
from tests.shared_data import alice, api, module_data
from tests.web.comparing import browser, many, slow
from tests.web.test_pages import page

__all__ = ["alice", "api", "browser", "many", "module_data", "slow"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


def test_a_long_comparison_is_offered_to_a_worker(
    browser: Client, alice: Any, many: list[Run], slow: None
) -> None:
    path = "/collections/many/comparison/?tests=sign&seed=3"
    html = page(browser, path)
    assert "This comparison takes a while" in html
    assert "/login/?next=%2Fcollections%2Fmany%2Fcomparison%2F%3Ftests%3Dsign%26seed%3D3" in html
    assert not Comparison.objects.exists()
    browser.force_login(alice)
    html = page(browser, path)
    fields = dict(
        re.findall(
            r'<input type="hidden" name="(\w+)" value="([^"]*)"', html[html.index("queue/") :]
        )
    )
    assert (fields["tests"], fields["seed"]) == ("sign", "3")
    answer = browser.post("/collections/many/comparison/queue/", fields)
    stored = Comparison.objects.get()
    assert (answer.status_code, answer["Location"]) == (303, f"/comparisons/{stored.pk}/")
    again = browser.post("/collections/many/comparison/queue/", fields)
    assert again["Location"] == answer["Location"]
    assert Comparison.objects.count() == 1


def test_a_form_from_elsewhere_queues_nothing(alice: Any, many: list[Run]) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post("/collections/many/comparison/queue/", {"tests": "sign"}).status_code == 403
    assert not Comparison.objects.exists()


@pytest.fixture
def queued(browser: Client, alice: Any, many: list[Run], slow: None) -> Comparison:
    browser.force_login(alice)
    browser.post("/collections/many/comparison/queue/", {"tests": "sign"})
    return Comparison.objects.get()


def test_a_waiting_comparison_tells_how_far_it_is(browser: Client, queued: Comparison) -> None:
    for path in (f"/comparisons/{queued.pk}/", "/collections/many/comparison/?tests=sign"):
        answer = browser.get(path)
        assert "ETag" not in answer
        html = answer.content.decode()
        assert "In the queue" in html
        assert "No worker is running at the moment" in html
        assert f'hx-get="/comparisons/{queued.pk}/status/"' in html
    Comparison.objects.update(progress=0.42)
    piece = browser.get(f"/comparisons/{queued.pk}/status/")
    assert '<progress max="100" value="42"' in piece.content.decode()
    assert (piece["Cache-Control"], "HX-Refresh" in piece, b"<html" in piece.content) == (
        "no-store",
        False,
        False,
    )
    assert compare(comparison_id=str(queued.pk))
    done = browser.get(f"/comparisons/{queued.pk}/status/")
    assert done["HX-Refresh"] == "true"
    assert b"hx-get" not in done.content


def test_a_made_comparison_has_the_same_tables_and_is_found_again(
    browser: Client, queued: Comparison
) -> None:
    assert compare(comparison_id=str(queued.pk))
    stored, asked_again = (page(Client(), path) for path in (
        f"/comparisons/{queued.pk}/", "/collections/many/comparison/?tests=sign"
    ))  # fmt: skip
    for html in (stored, asked_again):
        assert "6 runs on 12 topics" in html
        assert html.count("<figure") == 2
        for source in re.findall(r'<a href="([^"]+\.svg[^"]*)" download', html):
            assert Client().get(markup.unescape(source)).status_code == 200, source
        assert f"/api/v1/comparisons/{queued.pk}/export/tex/" in html
    assert "ETag" in browser.get(f"/comparisons/{queued.pk}/")


def test_a_failed_comparison_says_why_and_is_tried_again(
    browser: Client, queued: Comparison
) -> None:
    Comparison.objects.update(
        state="failed", error_code="comparison_error", error_message="out of luck"
    )
    html = page(browser, f"/comparisons/{queued.pk}/")
    assert "Failed: out of luck" in html
    assert (
        "hx-get"
        not in html[html.index('id="status"') : html.index("</form>", html.index('id="status"'))]
    )
    fields = dict(
        re.findall(
            r'<input type="hidden" name="(\w+)" value="([^"]*)"', html[html.index("queue/") :]
        )
    )
    answer = browser.post("/collections/many/comparison/queue/", fields)
    assert answer["Location"] == f"/comparisons/{queued.pk}/"
    queued.refresh_from_db()
    assert queued.state == "queued"
    Comparison.objects.update(state="failed")
    assert "Log in</a> to retry" in page(Client(), f"/comparisons/{queued.pk}/")


def test_a_stored_comparison_outlives_judgements_and_runs(
    browser: Client, api: Any, queued: Comparison
) -> None:
    assert compare(comparison_id=str(queued.pk))
    run = Run.objects.filter(collection__slug="many").first()
    assert run
    assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    html = page(browser, f"/comparisons/{queued.pk}/")
    assert "1 of the compared runs has been withdrawn" in html
    assert f">{run.tag}<" not in html
    assert "5 runs on 12 topics" in html
    assert upload(api, "collections/many/qrels/", QRELS).status_code == 201
    stale = page(browser, f"/comparisons/{queued.pk}/")
    assert "stale, qrels v1" in stale
    assert 'id="curves"' not in stale
