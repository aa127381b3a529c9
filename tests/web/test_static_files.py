"""Static files: kept for good under a name that changes with them, compressed, and never an old one."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.templatetags.static import static
from django.test import Client

from evalhub.serving import static_files
from evalhub.serving.static_files import StaticFiles, find_file, read_file
from metrics.services import answer_store
from runs.models import User

pytestmark = pytest.mark.words

SHEET, FAVICON = "evalhub/style.css", "evalhub/favicon.svg"
ADDRESS = re.compile(r'(?:href|src)="(/static/[^"]+)"')


@pytest.fixture
def browser(db: None) -> Client:
    return Client()


def body(answer: Any) -> bytes:
    content: bytes = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return content


def on_disk(name: str) -> bytes:
    return Path(str(finders.find(name))).read_bytes()


def test_a_file_is_kept_for_good_under_the_name_with_its_digest(browser: Client) -> None:
    address = static(SHEET)
    assert re.fullmatch(r"/static/evalhub/style\.[0-9a-f]{12}\.css", address)
    answer = browser.get(address)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["Content-Type"] == "text/css; charset=utf-8"
    assert "Cookie" not in answer.get("Vary", "")
    assert body(answer) == on_disk(SHEET)
    assert browser.head(address)["Content-Length"] == answer["Content-Length"]
    assert browser.post(address).status_code == 405


def test_it_is_compressed_once_for_whoever_reads_gzip(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = static(SHEET)
    plain = browser.get(address)
    packed = browser.get(address, headers={"Accept-Encoding": "gzip, br"})
    assert (packed["Content-Encoding"], packed["Vary"]) == ("gzip", "Accept-Encoding")
    assert plain.get("Content-Encoding") is None
    assert plain["Vary"] == "Accept-Encoding"
    assert gzip.decompress(body(packed)) == on_disk(SHEET)
    assert len(body(packed)) < 0.35 * len(on_disk(SHEET))
    monkeypatch.setattr("evalhub.serving.static_files.gzip.compress", None)
    assert body(browser.get(address, headers={"Accept-Encoding": "gzip"})) == body(packed)


def test_no_file_is_read_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all installed files, to read and compress some hundred took a tenth of a server's start."""
    monkeypatch.setattr(static_files, "_files", {})
    served = StaticFiles(lambda request: HttpResponse())
    assert len(served.files) > 100
    assert static_files._files == {}


def test_a_picture_is_not_compressed_again(tmp_path: Path) -> None:
    for name, expected in (("picture.png", False), ("picture.svg", True)):
        picture = tmp_path / name
        picture.write_bytes(bytes(1000))
        assert bool(read_file(picture).compressed) == expected


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_whoever_has_it_gets_nothing_again(browser: Client, encoding: str) -> None:
    headers = {"Accept-Encoding": encoding}
    first = browser.get(static(SHEET), headers=headers)
    again = browser.get(static(SHEET), headers={**headers, "If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["Cache-Control"] == first["Cache-Control"]


def test_another_releases_name_gets_what_there_is_and_is_not_kept(browser: Client) -> None:
    known = find_file(SHEET)
    assert known
    address = static(SHEET).replace(known.digest, "0123456789ab")
    answer = browser.get(address)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "max-age=0, public")
    assert body(answer) == on_disk(SHEET)
    assert browser.get("/static/evalhub/none.0123456789ab.css").status_code == 404
    assert browser.get("/static/../evalhub/settings.0123456789ab.py").status_code == 404


def test_under_its_own_name_it_is_asked_for_each_time(browser: Client) -> None:
    """Style sheets of the administration name others so."""
    answer = browser.get(f"/static/{FAVICON}")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "max-age=0, public")
    answer.close()


def test_a_file_that_changes_gets_another_name(
    browser: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the next process; this one serves under the old name what it had."""
    sheet = tmp_path / "style.css"
    sheet.write_text("a { color: red }")
    monkeypatch.setattr("evalhub.serving.static_files.finders.find", lambda name: str(sheet))
    monkeypatch.setattr(static_files, "_files", {})
    before = static(SHEET)
    sheet.write_text("a { color: blue }")
    assert static(SHEET) == before
    assert browser.get(before).content == b"a { color: red }"
    monkeypatch.setattr(static_files, "_files", {})
    assert static(SHEET) != before
    assert browser.get(static(SHEET)).content == b"a { color: blue }"


def test_a_page_that_names_it_changes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its tag stays, and a browser keeps the page with the old name in it."""
    package = tmp_path / "evalhub"
    package.mkdir()
    sheet = package / "style.css"
    monkeypatch.setattr(answer_store, "_PACKAGES", ("evalhub",))
    monkeypatch.setattr(
        answer_store.apps, "get_app_config", lambda name: type("App", (), {"path": str(package)})
    )
    digests = set()
    for text in ("a {}", "b {}"):
        sheet.write_text(text)
        digests.add(answer_store.release_digest.__wrapped__())
    assert len(digests) == 2
    monkeypatch.setattr(answer_store, "version", lambda name: "another release")
    assert answer_store.release_digest.__wrapped__() not in digests


@pytest.mark.parametrize(
    "address", ["/", "/measures/", "/login/", "/nowhere/", "/admin/", "/api/v1/docs/"]
)
def test_every_page_names_what_may_be_kept(browser: Client, address: str) -> None:
    browser.force_login(User.objects.create_superuser("root"))
    page = browser.get(address).content.decode()
    named = ADDRESS.findall(page)
    assert len(named) > 2
    for url in named:
        answer = browser.get(url)
        assert answer.status_code == 200, url
        assert "immutable" in answer["Cache-Control"], url
        answer.close()


def test_a_missing_file_breaks_no_page() -> None:
    assert static("evalhub/none.css") == "/static/evalhub/none.css"
