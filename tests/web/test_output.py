"""What goes out: attachments, error pages, sessions (cases A17 to A20, B26, B32)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from evalhub.client.output import format_rows
from runs.formats.comma_separated import neutral
from runs.models import Collection, Run, User
from tests.conftest import GOOD, POOR, upload
from tests.web.worlds import KNOWN, body_of, submit_form

pytestmark = pytest.mark.words
ROOT = Path(__file__).resolve().parent.parent.parent
HOSTILE = "<script>alert(1)</script>"
Submit = Callable[..., Run]


def test_a_download_is_an_attachment_that_no_browser_runs(api: APIClient, collection: str) -> None:
    """A19."""
    content = GOOD.replace(" a ", " <svg/onload=alert(1)> ")
    known = SimpleUploadedFile("known.html", KNOWN.encode())
    run = submit_form(api, "small", content, known=known).json()["id"]
    for path in (f"runs/{run}/file/", f"runs/{run}/known/", "collections/small/qrels/1/file/"):
        answer = api.get(f"/api/v1/{path}")
        body_of(answer)
        assert answer["Content-Disposition"].startswith('attachment; filename="'), path
        assert answer["Content-Type"] == "text/plain", path
        assert answer["X-Content-Type-Options"] == "nosniff", path
        assert "form-action 'self'" in answer["Content-Security-Policy"], path
        assert "default-src 'self'" in answer["Content-Security-Policy"], path


# Passwords and tokens of accounts are written as they are; tests/runs/test_account_files.py tests the rest.
WRITES_CSV = {
    "runs/formats/comma_separated.py",
    "evalhub/client/output.py",
    "evalhub/management/account_files.py",
}


def test_no_other_module_writes_csv() -> None:
    """A17: one that comes to do so neutralises its text cells, is named here, and has a test of that."""
    for package in ("evalhub", "runs", "metrics"):
        for path in (ROOT / package).rglob("*.py"):
            if str(path.relative_to(ROOT)) not in WRITES_CSV:
                assert not re.search(r"csv\.(writer|DictWriter)", path.read_text()), path


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_there_is_no_csv_whose_cells_a_spreadsheet_would_run(text: str) -> None:
    """A17."""
    assert neutral(text) == f"'{text}"
    assert neutral(f"a{text}") == f"a{text}"


@pytest.mark.parametrize(("chosen", "delimiter"), [("csv", ","), ("tsv", "\t")])
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_neither_is_there_any_of_the_client(text: str, chosen: str, delimiter: str) -> None:
    """A17. No name has a line end."""
    rows = [{"tag": text, "value": -1.5}, {"tag": f"a{text}", "value": 0}]
    rows_read = list(csv.reader(io.StringIO(format_rows(rows, chosen)), delimiter=delimiter))
    assert rows_read == [["tag", "value"], [f"'{text}", "-1.5"], [f"a{text}", "0"]]


def test_hostile_text_is_text_in_every_export(api: APIClient, submit: Submit) -> None:
    """A17: tags may begin with a hyphen; differences may too, and stay numbers."""
    submit(GOOD, tag="-1")
    submit(POOR, tag="_b-")
    export = "/api/v1/collections/small/comparison/export/"
    (row,) = csv.DictReader(io.StringIO(body_of(api.get(f"{export}csv/?measure=AP")).decode()))
    assert (row["tag_a"], row["tag_b"]) == ("'-1", "_b-")
    Collection.objects.update(name="<b>{\\x} $5_a & ^~#% 100|`*[l](u)\n|")
    markdown = body_of(api.get(f"{export}md/")).decode()
    assert r"\<b\>\{\\x\} \$5\_a \& ^\~\#% 100\|\`\*\[l\](u) \|" in markdown
    assert r"| \_b- |" in markdown
    latex = body_of(api.get(f"{export}tex/")).decode()
    escaped = (
        r"\textless{}b\textgreater{}\{\textbackslash{}x\} \$5\_a \& \textasciicircum{}\textasciitilde{}\#\% 100"
        r"\textbar{}\textasciigrave{}*[l](u) \textbar{}"
    )
    assert escaped in latex


def test_hostile_text_is_never_html_in_a_refusal(api: APIClient, submit: Submit) -> None:
    """A18: for pages tests/web/test_pages.py has the same."""
    run = submit(GOOD)
    for path in (f"collections/{HOSTILE}/", f"measures/{HOSTILE}/", f"runs/{run.pk}/curve/?measure={HOSTILE}",
                 f"collections/small/leaderboard/?measures={HOSTILE}", f"collections/small/runs/?status={HOSTILE}",
                 f"collections/small/qrels/{HOSTILE}/"):  # fmt: skip
        answer = api.get(f"/api/v1/{path}")
        assert (answer.status_code // 100, answer["Content-Type"]) == (
            4,
            "application/problem+json",
        ), path
        assert answer["X-Content-Type-Options"] == "nosniff"
    named = SimpleUploadedFile(f"{HOSTILE}.txt", GOOD.encode())
    answer = api.post(
        "/api/v1/collections/small/runs/", {"file": named, "tag": HOSTILE}, format="multipart"
    )
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert HOSTILE not in answer.content.decode()


def test_a_session_needs_a_csrf_token_and_a_token_needs_none(api: APIClient, alice: User) -> None:
    """A20."""
    body = {"slug": "x", "name": "x"}
    session = APIClient(enforce_csrf_checks=True)
    session.force_login(alice)
    refused = session.post("/api/v1/collections/", body)
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert not Collection.objects.exists()
    header = {"HTTP_AUTHORIZATION": api._credentials["HTTP_AUTHORIZATION"]}  # type: ignore[attr-defined]
    assert (
        APIClient(enforce_csrf_checks=True).post("/api/v1/collections/", body, **header).status_code
        == 201
    )
    # A cookie adds nothing to a token, and a wrong token is not saved by one.
    header["HTTP_AUTHORIZATION"] = "Bearer evh_00000000_x"
    assert session.get("/api/v1/teams/", **header).status_code == 401


def test_a_form_from_elsewhere_is_refused_without_advice(db: None) -> None:
    """A20."""
    answer = Client(enforce_csrf_checks=True).post(
        "/admin/login/", {"username": "x", "password": "y"}
    )
    assert answer.status_code == 403
    assert "Not allowed" in answer.content.decode()
    assert "settings" not in answer.content.decode().lower()


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("get", "nothing/", 404, "not_found"),
        ("get", "collections/%00/", 404, "not_found"),
        ("get", "collections/?limit=%FF", 400, "invalid"),
        ("put", "collections/", 405, "method_not_allowed"),
        ("options", "collections/", 405, "method_not_allowed"),
        ("options", "collections/small/topics/", 405, "method_not_allowed"),
        ("trace", "collections/", 405, "method_not_allowed"),
    ],
)
def test_refusals_of_the_framework_are_problems(
    api: APIClient, collection: str, method: str, path: str, status: int, code: str
) -> None:
    answer = api.generic(method.upper(), f"/api/v1/{path}")
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), (
        answer.content
    )
    assert answer.json()["code"] == code
    assert set(answer.json()) == {"type", "title", "status", "code", "detail", "errors", "instance"}


def test_a_host_that_is_not_ours_is_refused(api: APIClient) -> None:
    answer = api.get("/api/v1/collections/", HTTP_HOST="evil.example")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert "evil" not in answer.content.decode()


def test_a_body_that_is_too_large_is_a_problem(
    api: APIClient, settings: Any, collection: str
) -> None:
    settings.EVALHUB_MAX_UPLOAD_BYTES = 100
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    file = upload(api, "collections/small/runs/", GOOD * 9)
    assert (file.status_code, file["Content-Type"]) == (413, "application/problem+json")
    answer = api.post("/api/v1/collections/", {"slug": "x", "name": "x", "description": "x" * 5000})
    assert (answer.status_code, answer["Content-Type"]) == (413, "application/problem+json")
    assert answer.json()["code"] == "body_too_large"


def test_what_breaks_says_nothing_of_the_inside(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(user: Any) -> Any:
        raise ZeroDivisionError("secret /srv/path SELECT")

    monkeypatch.setattr("runs.api.collections.collections.collections_of", explode)
    monkeypatch.setattr("metrics.pages.home.collections_of", explode)
    client = Client(raise_request_exception=False)
    answer = client.get("/api/v1/collections/")
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
    assert answer.json()["code"] == "server_error"
    page = client.get("/")
    assert page.status_code == 500
    for text in (answer.content, page.content):
        assert b"secret" not in text
        assert b"Traceback" not in text
