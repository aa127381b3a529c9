"""Fields, JSON bodies and addresses that mean nothing: each is refused by its code and changes nothing."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from runs.models import Collection
from tests.conftest import GOOD, POOR, upload
from tests.runs.refusals import QRELS_PATH, RUNS, TOPICS, Refuse, counts, problem_of, refuse, send
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data", "refuse"]


# Fields of uploads


RUN_FIELDS = [
    "tag=", f"tag={'x' * 65}", "tag=..%2F", "tag=%3Cscript%3E", "tag=%EF%BC%A1", "tag=a%20b", "team=bob",
    "team=", "team=99999999999999999999", "metadata={", "metadata=[]",
    "metadata=%7B%22a%22:%22%5Cu0000%22%7D",
    "metadata=%7B%22a%22:%22%5Cud800%22%7D",
    f"metadata={'[' * 5000}", f"metadata={'%7B%22a%22:' * 25}1{'%7D' * 25}",
    f"description={'x' * 20_001}",
]  # fmt: skip


def test_bad_fields_of_a_run_are_refused_with_a_pointer(refuse: Refuse) -> None:
    for query in RUN_FIELDS:
        body = refuse(400, "invalid", "POST", f"{RUNS}?{query}", GOOD, "text/plain")
        assert {entry["pointer"] for entry in body["errors"]} == {"/" + query.partition("=")[0]}
    for number in ("NaN", "1e999"):
        body = refuse(
            422, "not_finite", "POST", f"{RUNS}?metadata=%7B%22a%22:{number}%7D", GOOD, "text/plain"
        )
        assert {entry["pointer"] for entry in body["errors"]} == {"/metadata"}


def test_bad_fields_of_qrels_are_refused_with_a_pointer(refuse: Refuse) -> None:
    for query in (f"note={'x' * 501}", "activate=maybe", "activate=", "activate=null"):
        body = refuse(400, "invalid", "POST", f"{QRELS_PATH}?{query}", "1 0 a 1\n", "text/plain")
        assert {entry["pointer"] for entry in body["errors"]} == {"/" + query.partition("=")[0]}


# JSON

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
JSON: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "invalid"),
    "half": (b'{"slug":', "parse_error"),
    "NaN": (b'{"slug": "n", "name": NaN}', "parse_error"),
    "Latin-1": (b'{"slug": "\xe9"}', "parse_error"),
    "a list": (b"[]", "invalid"),
    "text": (b'"x"', "invalid"),
    "null": (b"null", "invalid"),
    "100,000 lists": (b"[" * 100_000, "out_of_range"),
    "100,000 objects": (DEEP, "out_of_range"),
    "800 lists": (b'{"slug": "n", "name": ' + b"[" * 800 + b"]" * 800 + b"}", "invalid"),
    "a number of 5,000 digits": (b'{"slug": "n", "name": "n", "documents": ' + b"9" * 5000 + b"}", "parse_error"),
    "2^63": (b'{"slug": "n", "name": "n", "documents": 9223372036854775808}', "invalid"),
    "2^70": (b'{"slug": "n", "name": "n", "documents": 1180591620717411303424}', "invalid"),
    "-1": (b'{"slug": "n", "name": "n", "documents": -1}', "invalid"),
    "1e400": (b'{"slug": "n", "name": "n", "documents": 1e400}', "invalid"),
    "true for a number": (b'{"slug": "n", "name": "n", "documents": true}', "invalid"),
    "NUL": (b'{"slug": "n", "name": "\\u0000"}', "invalid"),
    "a control character": (b'{"slug": "n", "name": "a\\u001b[1m"}', "invalid"),
    "NUL in an unknown key": (b'{"slug": "n", "name": "n", "a\\u0000": 1}', "invalid"),
    "half a surrogate pair": (b'{"slug": "n", "name": "\\ud800"}', "invalid"),
    "NUL in a key": (b'{"slug": "n", "name": "n", "level_labels": {"\\u0000": 1}}', "invalid"),
    "half a surrogate pair in a key": (b'{"slug": "n", "name": "n", "level_labels": {"\\ud800": 1}}', "invalid"),
    "infinity in an object": (b'{"slug": "n", "name": "n", "level_labels": {"1": 1e999}}', "invalid"),
    "a list for an object": (b'{"slug": "n", "name": "n", "level_labels": []}', "invalid"),
    "an object of 200 kB": (b'{"slug": "n", "name": "n", "level_labels": {"1": "' + b"x" * 200_000 + b'"}}', "invalid"),
    "an object for text": (b'{"slug": "n", "name": {}}', "invalid"),
    "true for text": (b'{"slug": "n", "name": true}', "invalid"),
    "null for text": (b'{"slug": "n", "name": null}', "invalid"),
    "text for a list": (b'{"slug": "n", "name": "n", "measures": "AP"}', "invalid"),
    "an object for a list": (b'{"slug": "n", "name": "n", "measures": {}}', "invalid"),
    "a list in a list": (b'{"slug": "n", "name": "n", "measures": [["AP"]]}', "invalid"),
    "an unknown measure": (b'{"slug": "n", "name": "n", "measures": ["AP", "x"]}', "invalid"),
    "no measure": (b'{"slug": "n", "name": "n", "measures": []}', "invalid"),
    "a measure of 5,000 letters": (b'{"slug": "n", "name": "n", "measures": ["' + b"P" * 5000 + b'"]}', "invalid"),
    "an object for a team": (b'{"slug": "n", "name": "n", "team": {"a": 1}}', "invalid"),
    "another's team": (b'{"slug": "n", "name": "n", "team": "bob"}', "invalid"),
    "a list for a choice": (b'{"slug": "n", "name": "n", "visibility": ["public"]}', "invalid"),
    "a path for a slug": (b'{"slug": "../x", "name": "n"}', "invalid"),
    "capitals in a slug": (b'{"slug": "Small", "name": "n"}', "invalid"),
    "a letter that looks like another": ('{"slug": "sm\u0430ll", "name": "n"}'.encode(), "invalid"),
    "a name of 201 letters": (b'{"slug": "n", "name": "' + b"x" * 201 + b'"}', "invalid"),
}  # fmt: skip


def test_bad_json_is_refused(refuse: Refuse) -> None:
    for name, (body, code) in JSON.items():
        refuse(400, code, "POST", "collections/", body, attempt=name)


def test_a_json_body_beyond_its_limit_is_told_so(refuse: Refuse) -> None:
    body = b'{"slug": "n", "name": "n", "description": "' + b"x" * 2_100_000 + b'"}'
    refuse(413, "body_too_large", "POST", "collections/", body)


HALVES = {
    ("POST", "collections/small/comparison/", '{"tests": ["t", "a\\ud800b"]}'): "/tests/1",
    ("POST", "collections/small/comparison/", '{"correction": "\\udfff"}'): "/correction",
    ("POST", "collections/small/comparison/", '{"zeros": "\\ud800"}'): "/zeros",
    ("POST", "collections/small/comparison/", '{"\\ud800": 1}'): None,
    ("POST", "collections/small/evaluations/", '{"scores": "\\ud800"}'): "/scores",
    ("PATCH", "collections/small/", '{"visibility": "\\ud800"}'): "/visibility",
    ("POST", "tokens/", '{"name": "n", "scopes": ["\\ud800"]}'): "/scopes/0",
    ("POST", "tokens/", '["\\ud83d\\ude00", "\\ude00\\ud83d"]'): "/1",
}


def test_half_a_surrogate_pair_is_refused_where_it_stands(refuse: Refuse) -> None:
    for (method, path, body), pointer in HALVES.items():
        errors = refuse(400, "invalid", method, path, body, attempt=f"{path} {body}")["errors"]
        assert [error["pointer"] for error in errors] == ([pointer] if pointer else []), (
            path,
            body,
        )


def test_json_of_eleven_megabytes_is_refused(api: APIClient, collection: str) -> None:
    before = counts()
    answer = send(
        api, "POST", "collections/", {"slug": "n", "name": "n", "description": "x" * 11_000_000}
    )
    assert 400 <= answer.status_code < 500
    assert answer["Content-Type"] == "application/problem+json"
    assert counts() == before


def test_names_are_taken_once(refuse: Refuse) -> None:
    body = refuse(409, "slug_taken", "POST", "collections/", {"slug": "small", "name": "n"})
    assert body["errors"][0]["pointer"] == "/slug"
    refuse(
        409, "slug_taken", "POST", "collections/", b'{"slug": "new", "slug": "small", "name": "n"}'
    )


def test_a_tag_is_taken_once(api: APIClient, refuse: Refuse) -> None:
    upload(api, RUNS, GOOD)
    body = refuse(409, "tag_taken", "POST", f"{RUNS}?tag=good", POOR, "text/plain")
    assert body["errors"][0]["pointer"] == "/tag"


def test_what_may_not_be_changed_is_not(api: APIClient, refuse: Refuse) -> None:
    run = upload(api, RUNS, GOOD).json()
    wanted = {"status": "evaluated", "sha256": "0" * 64, "tag": "z", "team": "bob", "topics": 9}
    for name, value in wanted.items():
        change = {"description": "new", name: value}
        refuse(400, "read_only_field", "PATCH", f"runs/{run['id']}/", change, attempt=name)
    assert send(api, "GET", f"runs/{run['id']}/").json()["description"] == ""
    for name, value in {"runs": 7, "active_qrels": 3, "created_at": "2026-01-01T00:00:00Z"}.items():
        fields = {"slug": "n", "name": "n", name: value}
        refuse(400, "read_only_field", "POST", "collections/", fields, attempt=name)
    refuse(400, "unknown_field", "POST", "collections/", {"slug": "n", "name": "n", "id": 1})
    assert not Collection.objects.filter(slug="n").exists()


CHANGES = [
    b"[]", b'{"description": null}', b'{"description": {}}', b'{"metadata": []}', b'{"metadata": null}',
    b'{"metadata": {"a": "\\u0000"}}', b'{"metadata": {"a": "\\udfff"}}',
    b'{"metadata": ' + b'{"a":' * 30 + b"1" + b"}" * 31,
]  # fmt: skip


def test_bad_changes_of_a_run_are_refused(api: APIClient, refuse: Refuse) -> None:
    run = upload(api, RUNS, GOOD).json()
    for body in CHANGES:
        refuse(400, "invalid", "PATCH", f"runs/{run['id']}/", body, attempt=body.decode())


MOMENTS = [
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "9" * 5000,
    2**70,
    "2020-01-01",
    True,
    {},
]
TOKEN_NAMES = [None, "", True, "x" * 101, "\0", "\ud800", [], {}]


def test_bad_tokens_are_not_made(refuse: Refuse) -> None:
    refuse(400, "invalid", "POST", "tokens/", {})
    for name in TOKEN_NAMES:
        refuse(400, "invalid", "POST", "tokens/", {"name": name}, attempt=repr(name))
    for moment in MOMENTS:
        refuse(
            400,
            "invalid",
            "POST",
            "tokens/",
            {"name": "x", "expires_at": moment},
            attempt=repr(moment),
        )


# Addresses, filters and pages

ZERO = "00000000-0000-0000-0000-000000000000"


ADDRESSES = [
    "collections/%00/", "collections/%FF/", "collections/..%2f..%2fetc/", f"collections/{'a' * 5000}/",
    "collections/small/qrels/0/", "collections/small/qrels/2147483648/",
    "collections/small/qrels/9223372036854775808/",
    "collections/small/qrels/1180591620717411303424/", f"collections/small/qrels/{'9' * 5000}/",
    "collections/small/qrels/-1/", "collections/small/qrels/%D9%A1/", "runs/x/", f"runs/{ZERO}/", "runs/%00/",
    f"runs/{ZERO}/file/", f"runs/{ZERO}/values/", "tokens/%00/", "nothing/", "collections/small/nothing/",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE", "POST"])
def test_addresses_without_anything_are_not_found(
    api: APIClient, collection: str, method: str
) -> None:
    before = counts()
    for path in ADDRESSES:
        answer = send(api, method, path, b"{}" if method in ("PATCH", "POST") else b"")
        assert answer.status_code == 404 or (method != "GET" and answer.status_code == 405), path
        code = "not_found" if answer.status_code == 404 else "method_not_allowed"
        problem_of(answer, answer.status_code, code, path)
    assert counts() == before


PAGES = [
    "limit=0", "limit=-1", "limit=201", "limit=2147483648", "limit=9223372036854775808", "limit=1_0",
    "limit=%EF%BC%91", "limit=1.0", f"limit={'9' * 5000}", "offset=-1", "offset=1000001", "offset=x",
    "offset=1180591620717411303424",
]  # fmt: skip


@pytest.mark.slow
def test_pages_that_mean_nothing_are_refused(refuse: Refuse) -> None:
    for path in ("collections/", RUNS, QRELS_PATH, TOPICS, "collections/small/leaderboard/"):
        for query in PAGES:
            refuse(400, "invalid", "GET", f"{path}?{query}")


FILTERS = [
    "status=x", "submitted_after=x", "submitted_before=2026-13-01",
    "submitted_after=0000-00-00", f"submitted_after={'9' * 5000}", "submitted_after=2026-01-01T00:00:00%2B99:99",
]  # fmt: skip


def test_filters_that_mean_nothing_are_refused(refuse: Refuse) -> None:
    for query in FILTERS:
        refuse(400, "invalid", "GET", f"{RUNS}?{query}")
    refuse(400, "bad_request", "GET", f"{RUNS}?{'tag=1&' * 2000}")
    refuse(
        400, "bad_request", "GET", f"{RUNS}?{'&'.join(f'a{number}=1' for number in range(2000))}"
    )


def test_no_parameter_has_a_nul(refuse: Refuse) -> None:
    """PostgreSQL has no text with one, so that no address may ask for it."""
    for path in (
        "runs/?tag=",
        "runs/?limit=1",
        "labels/main/?team=",
        "leaderboard/?measures=",
        "leaderboard/?view=",
    ):
        refuse(400, "control_character", "GET", f"collections/small/{path}%00")
    for path in ("runs/?tag=", "runs/?description=", "qrels/?note="):
        refuse(400, "control_character", "POST", f"collections/small/{path}%00", GOOD, "text/plain")


def test_a_moment_outside_the_calendar_is_refused(refuse: Refuse) -> None:
    for moment in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"):
        refuse(400, "out_of_range", "GET", f"{RUNS}?submitted_after={moment}")


UNKNOWN = [
    "team=%FF", "tag=%ED%A0%80", "tag=%25", "tag=%zz", "tag='%3B--", f"tag={'x' * 10_000}",
]  # fmt: skip
UNREAD = [
    "x" * 10_000,
    "%00=1",
    "ordering=sha256",
    "ordering=password",
    "ordering=-evaluations__means",
    "o=1",
]


def test_what_no_filter_knows_changes_no_order(api: APIClient, collection: str) -> None:
    sent = [upload(api, RUNS, GOOD, tag=tag).json()["id"] for tag in ("a", "b")]
    for query in UNKNOWN:
        answer = send(api, "GET", f"{RUNS}?{query}")
        assert answer.status_code == 200, query
        assert [run["id"] for run in answer.json()["results"]] in ([], sent[::-1]), query
    for query in UNREAD:
        problem_of(send(api, "GET", f"{RUNS}?{query}"), 400, "unknown_parameter", query)
    problem_of(send(api, "GET", f"{RUNS}?limit=1&limit=x"), 400, "repeated_parameter")


MEASURES = {
    "x": "unknown_measure", "SDCG": "unknown_measure", "P_0": "bad_parameter", "P@0": "bad_parameter",
    "P@1000000001": "bad_parameter", "P@-1": "bad_parameter", "nDCG@%EF%BC%91": "bad_parameter", "P": "bad_parameter",
    "AP'%3BDROP%20TABLE": "unknown_measure", "%ED%A0%80": "unknown_measure",
    "((((": "unknown_measure", "(" * 190: "unknown_measure", "P" * 5000: "unknown_measure",
    "P(rel=1e9)@5": "bad_parameter", "P(rel=1)@5,nope": "unknown_measure", "P@1," * 2000: "too_many_measures",
    ",".join(f"P@{cutoff}" for cutoff in range(1, 1000)): "too_many_measures",
}  # fmt: skip


@pytest.mark.slow
def test_measures_that_mean_nothing_are_refused(api: APIClient, refuse: Refuse) -> None:
    run = upload(api, RUNS, GOOD).json()["id"]
    for measures, code in MEASURES.items():
        for path in ("collections/small/leaderboard/", f"runs/{run}/values/"):
            assert (
                refuse(400, code, "GET", f"{path}?measures={measures}")["errors"][0]["pointer"]
                == "measures"
            )
        refuse(400, code, "GET", f"collections/small/comparison/?measure={measures}")


# Methods and headers


@pytest.mark.parametrize("method", ["TRACE", "PUT", "DELETE", "PATCH", "CONNECT", "MADE-UP"])
def test_other_methods_are_refused(refuse: Refuse, method: str) -> None:
    refuse(405, "method_not_allowed", method, "collections/")
    refuse(405, "method_not_allowed", method, RUNS)


def test_other_formats_and_hosts_are_refused(refuse: Refuse) -> None:
    refuse(406, "not_acceptable", "GET", "collections/", HTTP_ACCEPT="application/xml")
    answer = refuse(400, "bad_request", "GET", "collections/", HTTP_HOST="evil.example")
    assert "EVALHUB_ALLOWED_HOSTS" in answer["detail"]
    refuse(400, "bad_request", "GET", "collections/", HTTP_HOST="a b\0")
