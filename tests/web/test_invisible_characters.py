"""Names and descriptions have no characters that nobody sees, whichever way they come in."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import ApiToken, Qrels, Run
from runs.models.text import check_line, check_text
from tests.conftest import GOOD, QRELS, upload
from tests.web.worlds import People

IN_NO_TEXT = ("\x00", "\x07", "\x1b", "\x7f", "\x85", "\u202e", "\u2066")
IN_NO_NAME = (*IN_NO_TEXT, "\n", "\r", "\t", "\u2028", "\u2029")


def test_a_name_has_one_line_and_one_direction(people: People, values: dict[str, Any]) -> None:
    owner, tokens = people.api["owner"], ApiToken.objects.count()
    for name in (f"a{character}b" for character in IN_NO_NAME):
        for method, path, body in (
            ("post", "collections/", {"slug": "two"}), ("patch", "collections/one/", {}), ("post", "tokens/", {}),
            ("post", "teams/", {"slug": "t"}),
        ):  # fmt: skip
            refused = getattr(owner, method)(f"/api/v1/{path}", {**body, "name": name})
            assert (refused.status_code, "name" in refused.json()["errors"][0]["pointer"]) == (
                400,
                True,
            ), path
        page = people.browsers["owner"].post(
            "/tokens/", {"name": name, "scopes": ["read"], "days": ""}
        )
        assert page.status_code == 400
    assert ApiToken.objects.count() == tokens


def test_a_description_may_have_lines_and_nothing_else(
    people: People, values: dict[str, Any]
) -> None:
    guest, run = people.api["participant"], f"/api/v1/runs/{values['run']}/"
    for text in (f"a\n\tb{character}c" for character in IN_NO_TEXT):
        form = {"description": text, "tag": "odd", "team": "guests"}
        assert upload(guest, "collections/one/runs/", GOOD, **form).status_code == 400
        file = SimpleUploadedFile("run", GOOD.encode())
        page = people.browsers["participant"].post(
            "/collections/one/submit/", {**form, "file": file}
        )
        assert page.status_code == 400
        assert (
            upload(
                people.api["owner"], "collections/one/qrels/", QRELS + "9 0 a 1\n", note=text
            ).status_code
            == 400
        )
        assert guest.patch(run, {"description": text}).status_code == 400
    assert not Run.objects.filter(tag="odd").exists()
    assert Qrels.objects.count() == 1
    assert guest.patch(run, {"description": "a\n\tb \u05d0"}).status_code == 200


def test_what_people_write_is_taken() -> None:
    for name in ("BM25 (k1=0.9)", "Łódź", "検索", "עברית \u200f", "naïve — “quoted”", "👩\u200d🔬"):
        check_line(name)
        check_text(f"{name}\r\n\t{name}")
    with pytest.raises(ValidationError, match=r"U\+0007 at position 3"):
        check_line("ab\x07")
