"""The description of the API says which problems each address answers, as docs/api/errors.md does for people."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from evalhub.described_problems import CODES, summary_of
from evalhub.problems import _STATUS
from tests.web.test_pages import SCRIPT_OR_STYLE
from tests.web.worlds import People

ERRORS = Path(__file__).parents[2] / "docs/api/errors.md"
# What is answered before any operation is found.
OF_THE_SERVER = {405: {"method_not_allowed"}, 414: {"address_too_long"}, 431: {"headers_too_large"}}
NO_ANSWERS = {"not_implemented"}


@pytest.fixture(scope="module")
def paths() -> Any:
    return SchemaGenerator().get_schema(public=True)["paths"]


def test_the_documentation_has_the_same_codes_by_status() -> None:
    documented: dict[frozenset[int], set[str]] = {}
    for statuses, codes in re.findall(
        r"^\| ([\d, ]{3,})[^|]*\| (.*) \|$", ERRORS.read_text(), re.MULTILINE
    ):
        key = frozenset(int(text) for text in re.findall(r"\d{3}", statuses))
        # What stands in brackets is said of a code.
        named = re.findall(r"`([a-z_]+)`", re.sub(r"\([^)]*\)", "", codes))
        documented[key] = documented.get(key, set()) | set(named) - NO_ANSWERS
    every = {status: set(codes.split()) for status, codes in CODES.items()} | OF_THE_SERVER
    for statuses, codes in documented.items():
        known = set().union(*(every.get(status, set()) for status in statuses))
        assert codes <= known, (statuses, codes - known)
    missing = set().union(*every.values()) - set().union(*documented.values())
    assert not missing


def test_every_error_has_a_status_that_is_described() -> None:
    assert set(_STATUS.values()) <= CODES.keys()


def test_every_operation_names_its_problems(paths: Any) -> None:
    for path, methods in paths.items():
        for method, operation in methods.items():
            statuses = set(operation["responses"])
            assert {"400", "401", "403", "429", "500", "503"} <= statuses, (path, method)
            assert ("404" in statuses) or "{" not in path, path
            assert ({"408", "413", "415", "507"} <= statuses) == (method != "get"), (path, method)


def test_every_operation_has_a_summary_of_its_own(paths: Any) -> None:
    summaries = [
        operation["summary"] for methods in paths.values() for operation in methods.values()
    ]
    assert len(summaries) > 200
    assert len(set(summaries)) == len(summaries)
    for summary in summaries:
        assert 8 <= len(summary) <= 140, summary
        assert re.fullmatch(r"[A-Z][^`\n]+[^.,;:]", summary), summary


@pytest.mark.parametrize(
    ("method", "summary"),
    [
        ("GET", "The notes about a run, latest first"),
        ("POST", "The notes about a run: adds one"),
        ("PATCH", "The notes about a run: changes its text"),
        ("DELETE", "The notes about a run: deletes it"),
        ("PUT", "The notes about a run, latest first"),
    ],
)
def test_a_summary_is_the_clause_of_its_method(method: str, summary: str) -> None:
    text = "The notes about a run, latest first; POST adds one; its\nteam may. PATCH changes its `text`, "
    assert summary_of(f"{text}DELETE deletes it. More of it.\n\nAnd more.", method) == summary
    assert summary_of("DELETE takes it out. More.", "DELETE") == "Takes it out"


def test_what_only_some_addresses_answer_is_described_there_alone(paths: Any) -> None:
    def with_status(status: str) -> set[tuple[str, str]]:
        return {
            (method, path.removeprefix("/api/v1/"))
            for path, methods in paths.items()
            for method, operation in methods.items()
            if status in operation["responses"]
        }

    assert with_status("412") == {
        ("patch", "collections/{collection}/"), ("patch", "runs/{run}/"), ("delete", "runs/{run}/"),
        ("put", "runs/{run}/metadata/"),
        ("patch", "session-sets/{session_set}/"), ("delete", "session-sets/{session_set}/"),
    }  # fmt: skip
    # A key that came with another body, and a body that can be read and not be kept.
    keyed = {
        (method, path.removeprefix("/api/v1/"))
        for path, methods in paths.items()
        for method, operation in methods.items()
        if any(
            parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())
        )
    }
    assert {method for method, _ in keyed} == {"post"}
    assert with_status("422") - keyed == {
        ("put", "collections/{collection}/topics/"), ("put", "collections/{collection}/documents/"),
        ("put", "collections/{collection}/topic-attributes/"),
        ("patch", "collections/{collection}/runs/metadata/"),
        ("post", "collections/{collection}/parameters/csv/"),
        ("patch", "runs/{run}/"), ("put", "runs/{run}/metadata/"), ("put", "runs/{run}/links/"),
        ("patch", "entries/{entry}/"),
    }  # fmt: skip
    assert keyed <= with_status("422")
    assert ("get", "collections/{collection}/leaderboard/") in with_status("304")
    assert ("get", "collections/{collection}/runs/") not in with_status("304")


def test_what_is_described_is_answered(people: People, values: dict[str, Any]) -> None:
    owner = people.api["owner"]
    refused = owner.get("/api/v1/collections/", headers={"Accept": "image/png"})
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")
    wrong = owner.post("/api/v1/collections/one/release/", "x", content_type="text/plain")
    assert (wrong.status_code, wrong.json()["code"]) == (415, "unsupported_media_type")
    method = owner.delete("/api/v1/collections/one/")
    assert (method.status_code, method.json()["code"]) == (405, "method_not_allowed")


def test_the_page_of_all_calls_has_first_calls_of_this_server(people: People) -> None:
    answer = people.browsers["member"].get("/api/v1/docs/", headers={"host": "localhost"})
    html = answer.content.decode()
    assert "unsafe-eval" not in answer["Content-Security-Policy"]
    own_script = rb'<script src="/api/v1/docs/\?script=" defer>'
    assert not SCRIPT_OR_STYLE.search(re.sub(own_script, b"", answer.content))
    for recipe in (
        "-F file=@bm25.run http://localhost/api/v1/collections/tiny/runs/",
        'evh.connect("http://localhost"',
        '"http://localhost/api/v1/collections/tiny/values/export/csv/?measures=AP"',
    ):
        assert recipe in html
    # The way back, and who is logged in.
    assert '<a class="brand" href="/">' in html
    assert "member</summary>" in html
    script = people.browsers["member"].get("/api/v1/docs/?script=")
    assert (script["Content-Type"], b'url: "/api/v1/schema/"' in script.content) == (
        "application/javascript",
        True,
    )
