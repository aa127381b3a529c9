"""The page of value tables: what organisers declare there, what is uploaded, and what a board says of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import ExternalMeasure, TableValues, User
from tests.conftest import GOOD, POOR, evaluate_all, submit_run, upload

pytestmark = [pytest.mark.django_db, pytest.mark.words]
PAGE = "/collections/small/value-tables/"


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def send(client: Client, action: str, content: str = "", **fields: str) -> Any:
    file = {"file": SimpleUploadedFile("values.tsv", content.encode())} if content else {}
    return client.post(PAGE, {"action": action, **fields, **file}, follow=True)


def test_a_measure_is_declared_filled_and_ranks(
    api: APIClient, alice: User, bob: User, collection: str
) -> None:
    submit_run(api, GOOD, tag="good")
    upload(api, "collections/small/runs/", POOR, tag="poor")
    evaluate_all()
    browser, guest = browser_of(alice), browser_of(bob)
    html = guest.get(PAGE).content.decode()
    assert ("the organisers declare them" in html, 'name="file"' in html) == (True, False)
    # A table of judged answers declares its measures.
    assert 'name="file"' in browser.get(PAGE).content.decode()

    fields = {
        "name": "ms",
        "direction": "lower",
        "unit": "ms",
        "low": "0",
        "description": "<i>time</i>",
    }
    html = send(browser, "declare", **fields).content.decode()
    assert "x:ms declared." in html
    assert "&lt;i&gt;time&lt;/i&gt;" in html
    wrong = send(browser, "declare", name="a b", direction="lower", description="zero")
    html = wrong.content.decode()
    assert (wrong.status_code, "Use 1 to 60 letters" in html) == (400, True)
    assert ('value="lower" selected' in html, 'value="zero" selected' in html) == (True, False)

    refused = send(browser, "upload", "good 1 ms -5\nnobody 1 ms 5\n")
    assert refused.status_code == 422
    assert "values of x:ms are at least 0" in refused.content.decode()
    checked = send(browser, "check", "good 1 ms 5\n").content.decode()
    assert "The table can be uploaded" in checked
    assert not TableValues.objects.exists()
    done = send(browser, "upload", "good 1 ms 5\ngood 9 ms 7\npoor 1 ms 4\n", tool="timer")
    assert "Table 1 uploaded: 3 values of 2 runs, with 1 warning." in done.content.decode()

    board = browser.get("/collections/small/?measures=x:ms,AP").content.decode()
    assert "from the organisers; lower is better; ms; &lt;i&gt;time&lt;/i&gt;" in board
    assert "Ranked by x:ms, lowest first" in board
    assert board.index(">poor<") < board.index(">good<")

    assert send(guest, "delete", measure="x:ms").status_code == 403
    assert (
        "x:ms and its values deleted." in send(browser, "delete", measure="x:ms").content.decode()
    )
    assert not ExternalMeasure.objects.exists()
