"""What a hostile or careless client may send: every attempt is refused by name, and leaves nothing behind."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from rest_framework.test import APIClient

from runs.models import ApiToken, Collection, Qrels, Run, Team, Topic
from tests.conftest import GOOD, POOR, QRELS, upload

RUNS, QRELS_PATH, TOPICS = "collections/small/runs/", "collections/small/qrels/", "collections/small/topics/"
LISTS = ("collections/", RUNS, QRELS_PATH, TOPICS, "collections/small/leaderboard/", "teams/", "tokens/", "measures/")
Refuse = Callable[..., dict[str, Any]]


def counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Run, Qrels, Collection, Topic, Team, ApiToken))  # type: ignore[attr-defined]


def send(
    client: APIClient, method: str, path: str, body: Any = b"", kind: str = "application/json", **extra: Any
) -> Any:
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return client.generic(method, f"/api/v1/{path}", content, content_type=kind, **extra)


def problem_of(answer: Any, status: int, code: str, attempt: str = "") -> dict[str, Any]:
    """The problem details of an answer, which has this status and code."""
    assert answer.status_code >= 400, (attempt, answer.content)
    body: dict[str, Any] = json.loads(answer.content)
    assert (answer.status_code, body["code"]) == (status, code), (attempt, body)
    assert answer["Content-Type"] == "application/problem+json"
    assert body["status"] == status
    assert body["type"] == f"urn:evalhub:problem:{code}"
    assert body["detail"]
    assert body["title"]
    assert isinstance(body["errors"], list)
    return body


@pytest.fixture
def refuse(api: APIClient, collection: str, settings: Any) -> Any:
    """Send a request that must be refused: nothing is stored, and everything works as before."""
    api.raise_request_exception = False

    def send_and_check(
        status: int, code: str, method: str, path: str, *args: Any, attempt: str = "", **extra: Any
    ) -> dict[str, Any]:
        before = counts()
        body = problem_of(send(api, method, path, *args, **extra), status, code, attempt or path)
        assert counts() == before, attempt or path
        return body

    yield send_and_check
    assert list((Path(settings.EVALHUB_DATA) / "uploads").glob("*")) == []
    for path in LISTS:
        answer = send(api, "GET", path)
        assert answer.status_code == 200, (path, answer.content)
    assert upload(api, RUNS, POOR, tag="after").status_code == 202
    assert upload(api, QRELS_PATH, QRELS + "9 0 a 1\n").status_code == 201


def as_file(refuse: Refuse, status: int, code: str, content: bytes | str, path: str = RUNS, **extra: Any) -> Any:
    return refuse(status, code, "PUT" if path == TOPICS else "POST", path, content, "text/plain", **extra)


# Tokens


HEADERS = (
    "Bearer",
    "Bearer x",
    "Bearer a b",
    "Token evh_00000000_x",
    "bearer evh__",
    "Bearer \u00e9",
    "Bearer " + "x" * 9000,
)


def test_every_bad_token_gets_the_same_answer(anonymous: APIClient, collection: str) -> None:
    anonymous.raise_request_exception = False
    for header in HEADERS:
        for method, path in (("GET", "collections/"), ("POST", RUNS), ("DELETE", "tokens/x/")):
            answer = send(anonymous, method, path, GOOD, "text/plain", HTTP_AUTHORIZATION=header)
            body = problem_of(answer, 401, "authentication_failed", header)
            assert body["detail"] == "the token is unknown, expired or revoked"
            assert answer["WWW-Authenticate"] == "Bearer"


def test_without_a_token_nothing_is_read_of_an_upload(anonymous: APIClient, collection: str) -> None:
    for method, path in (("POST", RUNS), ("POST", QRELS_PATH), ("PUT", TOPICS), ("POST", "collections/")):
        answer = send(anonymous, method, path, b"\x1f\x8b" + b"x" * 100, "text/plain")
        problem_of(answer, 401, "not_authenticated")
        assert answer["WWW-Authenticate"] == "Bearer"


# Bodies


KINDS = ("", "application/json", "application/xml", "application/x-www-form-urlencoded", "a/b/c;;;=", "x" * 5000)


@pytest.mark.parametrize(("method", "path"), [("POST", RUNS), ("POST", QRELS_PATH), ("PUT", TOPICS)])
def test_other_content_types_are_refused(refuse: Refuse, method: str, path: str) -> None:
    for kind in KINDS:
        refuse(415, "unsupported_media_type", method, path, GOOD, kind, attempt=kind)


def part(content: str = GOOD, disposition: str = 'name="file"; filename="run.txt"', headers: str = "") -> str:
    return f"--x\r\nContent-Disposition: form-data; {disposition}\r\n{headers}\r\n{content}\r\n"


MULTIPART = "multipart/form-data; boundary=x"
LONG_NAME = f'name="file"; filename="{"x" * 70_000}"'
BASE64 = "Content-Transfer-Encoding: base64\r\n"
FORMS = {
    "no boundary": (part() + "--x--\r\n", "multipart/form-data", "parse_error"),
    "boundary not ASCII": (part() + "--x--\r\n", "multipart/form-data; boundary=\u00e9", "parse_error"),
    "cut in a header": (part()[:30], MULTIPART, "parse_error"),
    "cut in the file": (part()[:120], MULTIPART, "parse_error"),
    "cut before the last boundary": (part(), MULTIPART, "parse_error"),
    "cut in the last boundary": (part() + "--x-", MULTIPART, "parse_error"),
    "empty": ("", MULTIPART, "invalid"),
    "no part": ("--x--\r\n", MULTIPART, "invalid"),
    "two files": (part() + part() + "--x--\r\n", MULTIPART, "parse_error"),
    "two files of two names": (part() + part(POOR, 'name="b"; filename="b"') + "--x--\r\n", MULTIPART, "parse_error"),
    "another name": (part(disposition='name="run"; filename="a"') + "--x--\r\n", MULTIPART, "unknown_field"),
    "a field for a file": (part(disposition='name="file"') + "--x--\r\n", MULTIPART, "invalid"),
    "no file name": (part(disposition='name="file"; filename=""') + "--x--\r\n", MULTIPART, "invalid"),
    "bad base64": (part("!!!!!", headers=BASE64) + "--x--\r\n", MULTIPART, "parse_error"),
    "a name of 70,000": (part(disposition=LONG_NAME) + "--x--\r\n", MULTIPART, "parse_error"),
    "300 fields": ("".join(part("1", f'name="a{i}"') for i in range(300)) + "--x--\r\n", MULTIPART, "bad_request"),
    "a field of 3 MB": (part("x" * 3_000_000, 'name="tag"') + "--x--\r\n", MULTIPART, "bad_request"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "path"), [("POST", RUNS), ("POST", QRELS_PATH), ("PUT", TOPICS)])
def test_broken_forms_are_refused(refuse: Refuse, method: str, path: str) -> None:
    for name, (body, kind, code) in FORMS.items():
        refuse(400, code, method, path, body, kind, attempt=name)


NAMES = ["../../etc/passwd", "C:\\CON", "a\0b", "x" * 500, "\u202egpj.exe", "/", "..", "a%00b", "run.gz"]


def test_a_file_name_is_never_used(api: APIClient, collection: str, settings: Any) -> None:
    for name in NAMES:
        answer = send(api, "POST", RUNS, part(disposition=f'name="file"; filename="{name}"') + "--x--\r\n", MULTIPART)
        stored = [path.name for path in (settings.EVALHUB_DATA / "files").glob("*/*")]
        if answer.status_code in (200, 202):
            assert answer.json()["sha256"] in stored, name
        else:
            problem_of(answer, 400, "invalid", name)
        assert all(len(file) == 64 for file in stored)


def test_a_claimed_charset_changes_nothing(api: APIClient, collection: str) -> None:
    for charset in ("idna", "utf-7", "utf-16", "raw_unicode_escape", "bogus", "latin-1"):
        body = part() + part(f"mine-{charset}", 'name="tag"') + "--x--\r\n"
        answer = send(api, "POST", RUNS, body, f"{MULTIPART}; charset={charset}")
        assert (answer.status_code, answer.json()["tag"]) == (202, f"mine-{charset}")
        assert send(api, "POST", RUNS, GOOD, f"text/plain; charset={charset}").status_code in (200, 202)


def test_a_body_cut_short_is_refused(refuse: Refuse) -> None:
    """A connection that breaks must not leave half a run under its tag."""
    for body, kind in ((GOOD, "text/plain"), (GOOD, "application/gzip"), (part()[:150], MULTIPART)):
        cut = {"CONTENT_LENGTH": "1000", "wsgi.input": io.BytesIO(body.encode())}
        refuse(400, "parse_error", "POST", RUNS, b"", kind, **cut)


def test_a_length_that_is_no_number_is_refused(refuse: Refuse) -> None:
    for length in ("-1", "\u0661\u0660", "+90", "9" * 4000):
        refuse(400, "parse_error", "POST", RUNS, GOOD, "text/plain", CONTENT_LENGTH=length)
    for length in ("", "x", "9" * 5000):
        refuse(400, "invalid", "POST", RUNS, GOOD, "text/plain", CONTENT_LENGTH=length)
    refuse(422, "empty_run", "POST", RUNS, GOOD, "text/plain", CONTENT_LENGTH="0")


def test_a_body_over_the_limit_is_refused_before_it_is_read(refuse: Refuse, settings: Any) -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("the body was read")

    for kind in ("text/plain", MULTIPART):
        huge = {"CONTENT_LENGTH": str(settings.EVALHUB_MAX_UPLOAD_BYTES + 2_000_000), "wsgi.input": Unread()}
        refuse(413, "file_too_large", "POST", RUNS, b"", kind, **huge)


def test_a_file_over_the_limit_is_refused_while_it_is_read(refuse: Refuse, settings: Any) -> None:
    settings.EVALHUB_MAX_UPLOAD_BYTES = 1000
    large = "# " + "x" * 998 + "\n" + GOOD
    refuse(413, "file_too_large", "POST", RUNS, large, "text/plain")
    refuse(413, "file_too_large", "POST", RUNS, part(large) + "--x--\r\n", MULTIPART)


# Files


def zeros(size: int) -> bytes:
    return gzip.compress(b"\0" * (1 << 20)) * (size >> 20)


Z = zstandard.ZstdCompressor(write_checksum=True).compress(GOOD.encode())
WINDOW = zstandard.ZstdCompressor(
    compression_params=zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
).compressobj()
GZ = gzip.compress(GOOD.encode())
FILES: dict[str, tuple[int, str, bytes | str]] = {
    "empty in gzip": (422, "empty_run", gzip.compress(b"")),
    "blank lines": (422, "empty_run", "\n \r\n\t\n"),
    "comments": (422, "empty_run", "# a\n# b\n"),
    "five columns": (422, "too_few_columns", GOOD + "4 Q0 a 1 2.0\n"),
    "score nan": (422, "bad_score", GOOD + "4 Q0 a 1 nan good\n"),
    "score inf": (422, "bad_score", GOOD + "4 Q0 a 1 -inf good\n"),
    "score 1e999": (422, "bad_score", GOOD + "4 Q0 a 1 1e999 good\n"),
    "score 1_000": (422, "bad_score", GOOD + "4 Q0 a 1 1_000 good\n"),
    "score of full-width digits": (422, "bad_score", GOOD + "4 Q0 a 1 \uff11\uff12 good\n"),
    "score 0x10": (422, "bad_score", GOOD + "4 Q0 a 1 0x10 good\n"),
    "duplicate": (422, "duplicate_document", GOOD + "1 Q0 a 9 0 good\n"),
    "two tags": (422, "mixed_tags", GOOD + "4 Q0 a 1 2.0 bad\n"),
    "a script for a tag": (422, "bad_run_tag", GOOD.replace("good", "<script>")),
    "a path for a tag": (422, "bad_run_tag", GOOD.replace("good", "../x")),
    "a tag of 5 kB": (422, "bad_run_tag", GOOD.replace("good", "x" * 5000)),
    "a document id of 1 MB": (422, "line_too_long", f"1 Q0 {'x' * 1_000_000} 1 1 t\n"),
    "a line of 10 MB": (422, "line_too_long", GOOD + "x" * 10_000_000),
    "NUL": (422, "control_character", GOOD + "4 Q0 a\0 1 2.0 good\n"),
    "VT": (422, "control_character", GOOD + "4 Q0 a\x0b 1 2.0 good\n"),
    "FF": (422, "control_character", GOOD + "4 Q0 a\x0c 1 2.0 good\n"),
    "lone CR": (422, "control_character", GOOD.replace("\n", "\r")),
    "Latin-1": (422, "undecodable_bytes", GOOD.encode() + b"4 Q0 \xe9 1 2.0 good\n"),
    "UTF-16": (422, "undecodable_bytes", GOOD.encode("utf-16")),
    "a header": (422, "bad_score", "qid Q0 docid rank score tag\n" + GOOD),
    "a topic with a hash": (422, "ambiguous_comment", "#" + GOOD),
    "a number of 8,000 digits": (422, "bad_score", GOOD + f"4 Q0 a 1 {'9' * 8000} good\n"),
    "1e and 100,000 digits": (422, "bad_score", GOOD + f"4 Q0 a 1 1e{'1' * 100_000} good\n"),
    "truncated gzip": (422, "bad_gzip", GZ[:-10]),
    "gzip with a wrong CRC": (422, "bad_gzip", GZ[:-8] + b"abcd" + GZ[-4:]),
    "gzip and garbage": (422, "bad_gzip", GZ + b"garbage"),
    "gzip's first bytes": (422, "bad_gzip", GZ[:2]),
    "truncated zstd": (422, "bad_zstd", Z[:-5]),
    "zstd and garbage": (422, "bad_zstd", Z + b"garbage"),
    "zstd with a huge window": (422, "bad_zstd", WINDOW.compress(GOOD.encode()) + WINDOW.flush()),
    "gzip in gzip": (415, "unsupported_media_type", gzip.compress(GZ)),
    "xz": (415, "unsupported_media_type", lzma.compress(GOOD.encode())),
    "bzip2": (415, "unsupported_media_type", bz2.compress(GOOD.encode())),
    "zip": (415, "unsupported_media_type", b"PK\x03\x04" + b"\0" * 100),
    "a bomb of one line": (422, "line_too_long", zeros(1 << 30)),
    "a bomb of blank lines": (413, "too_many_lines", gzip.compress(b"\n" * (1 << 20)) * 30),
    "a bomb of one document": (413, "too_many_documents", gzip.compress(b"1 Q0 a 1 1 t\n" * 80_000) * 40),
}  # fmt: skip


def test_bad_runs_are_refused_by_code(refuse: Refuse) -> None:
    for name, (status, code, content) in FILES.items():
        body = as_file(refuse, status, code, content, attempt=name)
        if status == 422:
            assert body["errors"][0]["code"] == code
            assert len(body["errors"]) <= 50


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (GOOD + "4 Q0 a 1 high good\n", "bad_score", 6),
        ("\ufeff# a\r\n\r\n" + GOOD.replace("\n", "\r\n") + "4 Q0 a 1 high good", "bad_score", 8),
        (GOOD + "1 Q0 a 9 0 good\n", "duplicate_document", 6),
    ],
)
def test_the_line_is_named(refuse: Refuse, content: str, code: str, line: int) -> None:
    body = as_file(refuse, 422, code, content)
    assert body["errors"][0]["line"] == line
    assert body["detail"].startswith(f"line {line}: ")


QRELS_FILES: dict[str, tuple[int, str, bytes | str]] = {
    "blank lines": (422, "empty_qrels", "\n\n"),
    "three columns": (422, "too_few_columns", "1 a 1\n"),
    "five columns of numbers": (422, "ambiguous_level", "1 0 a 1 1\n"),
    "a fraction": (422, "bad_level", "1 0 a 1.0\n"),
    "text": (422, "bad_level", "1 0 a yes\n"),
    "a level of a million": (422, "bad_level", "1 0 a 1000000\n"),
    "a level of 20 digits": (422, "bad_level", "1 0 a 99999999999999999999\n"),
    "two levels": (422, "conflicting_judgement", "1 0 a 1\n1 0 a 2\n"),
    "two levels of 5,000 digits": (422, "conflicting_judgement", f"1 0 a 1\n1 0 a {'0' * 5000}2\n"),
    "NUL": (422, "control_character", "1 0 a\0 1\n"),
    "Latin-1": (422, "undecodable_bytes", b"1 0 \xe9 1\n"),
    "truncated gzip": (422, "bad_gzip", gzip.compress(QRELS.encode())[:-3]),
    "xz": (415, "unsupported_media_type", lzma.compress(QRELS.encode())),
    "a bomb of one line": (422, "line_too_long", zeros(1 << 30)),
    "a bomb of blank lines": (413, "too_many_lines", gzip.compress(b"\n" * (1 << 20)) * 30),
}  # fmt: skip


def test_bad_qrels_are_refused_by_code(refuse: Refuse) -> None:
    for name, (status, code, content) in QRELS_FILES.items():
        as_file(refuse, status, code, content, QRELS_PATH, attempt=name)


TOPIC_FILES: dict[str, tuple[int, str, bytes | str]] = {
    "blank lines": (422, "no_topics", "\n\n"),
    "no tab": (422, "too_few_columns", "1\n"),
    "UTF-16": (422, "undecodable_bytes", "1\ta\n".encode("utf-16")),
    "NUL": (422, "control_character", "1\ta\0\n"),
    "twice": (422, "duplicate_topic", "1\ta\n1\tb\n"),
    "truncated gzip": (422, "bad_gzip", gzip.compress(b"1\ta\n" * 50)[:-3]),
    "truncated zstd": (422, "bad_zstd", zstandard.compress(b"1\ta\n" * 50)[:-3]),
    "zip": (415, "unsupported_media_type", b"PK\x03\x04"),
    "a bomb": (413, "decompressed_too_large", zeros(100 << 20)),
}  # fmt: skip


def test_bad_topics_are_refused_by_code(refuse: Refuse) -> None:
    for name, (status, code, content) in TOPIC_FILES.items():
        as_file(refuse, status, code, content, TOPICS, attempt=name)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_topics_are_read_whole(api: APIClient, collection: str, compress: Callable[[bytes], bytes]) -> None:
    content = "".join(f"{number}\t{'what ' * 800}\n" for number in range(1000)).encode()
    assert upload(api, TOPICS, compress(content), "put").json()["topics"] == 1000


def test_a_dry_run_refuses_the_same_and_stores_nothing(refuse: Refuse, api: APIClient) -> None:
    refuse(422, "bad_score", "POST", f"{RUNS}?dry_run=true", "1 Q0 a 1 x t\n", "text/plain")
    refuse(422, "bad_level", "POST", f"{QRELS_PATH}?dry_run=true", "1 0 a x\n", "text/plain")
    before = counts()
    assert upload(api, RUNS, GOOD, dry_run="true").status_code == 200
    assert counts() == before


# Fields of uploads


RUN_FIELDS = [
    "tag=%00", "tag=", f"tag={'x' * 65}", "tag=..%2F", "tag=%3Cscript%3E", "tag=%EF%BC%A1", "tag=a%20b", "team=bob",
    "team=%00", "team=", "team=99999999999999999999", "metadata={", "metadata=[]", "metadata=%7B%22a%22:NaN%7D",
    "metadata=%7B%22a%22:1e999%7D", "metadata=%7B%22a%22:%22%5Cu0000%22%7D",
    "metadata=%7B%22a%22:%22%5Cud800%22%7D",
    f"metadata={'[' * 5000}", f"metadata={'%7B%22a%22:' * 25}1{'%7D' * 25}", "description=%00",
    f"description={'x' * 20_001}",
]  # fmt: skip


def test_bad_fields_of_a_run_are_refused_with_a_pointer(refuse: Refuse) -> None:
    for query in RUN_FIELDS:
        body = refuse(400, "invalid", "POST", f"{RUNS}?{query}", GOOD, "text/plain")
        assert {entry["pointer"] for entry in body["errors"]} == {"/" + query.partition("=")[0]}


def test_bad_fields_of_qrels_are_refused_with_a_pointer(refuse: Refuse) -> None:
    for query in ("note=%00", f"note={'x' * 501}", "activate=maybe", "activate=", "activate=null"):
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
        assert [error["pointer"] for error in errors] == ([pointer] if pointer else []), (path, body)


def test_json_of_eleven_megabytes_is_refused(api: APIClient, collection: str) -> None:
    before = counts()
    answer = send(api, "POST", "collections/", {"slug": "n", "name": "n", "description": "x" * 11_000_000})
    assert 400 <= answer.status_code < 500
    assert answer["Content-Type"] == "application/problem+json"
    assert counts() == before


def test_names_are_taken_once(refuse: Refuse) -> None:
    body = refuse(409, "slug_taken", "POST", "collections/", {"slug": "small", "name": "n"})
    assert body["errors"][0]["pointer"] == "/slug"
    refuse(409, "slug_taken", "POST", "collections/", b'{"slug": "new", "slug": "small", "name": "n"}')


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
        made = {"slug": "n", "name": "n", name: value}
        refuse(400, "read_only_field", "POST", "collections/", made, attempt=name)
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


MOMENTS = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9" * 5000, 2**70, "2020-01-01", True, {}]
TOKEN_NAMES = [None, "", True, "x" * 101, "\0", "\ud800", [], {}]


def test_bad_tokens_are_not_made(refuse: Refuse) -> None:
    refuse(400, "invalid", "POST", "tokens/", {})
    for name in TOKEN_NAMES:
        refuse(400, "invalid", "POST", "tokens/", {"name": name}, attempt=repr(name))
    for moment in MOMENTS:
        refuse(400, "invalid", "POST", "tokens/", {"name": "x", "expires_at": moment}, attempt=repr(moment))


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
def test_addresses_without_anything_are_not_found(api: APIClient, collection: str, method: str) -> None:
    before = counts()
    for path in ADDRESSES:
        answer = send(api, method, path, b"{}" if method in ("PATCH", "POST") else b"")
        assert answer.status_code == 404 or (method != "GET" and answer.status_code == 405), path
        code = "not_found" if answer.status_code == 404 else "method_not_allowed"
        problem_of(answer, answer.status_code, code, path)
    assert counts() == before


PAGES = [
    "limit=0", "limit=-1", "limit=201", "limit=2147483648", "limit=9223372036854775808", "limit=1_0", "limit=%001",
    "limit=%EF%BC%91", "limit=1.0", f"limit={'9' * 5000}", "offset=-1", "offset=1000001", "offset=x",
    "offset=1180591620717411303424",
]  # fmt: skip


def test_pages_that_mean_nothing_are_refused(refuse: Refuse) -> None:
    for path in ("collections/", RUNS, QRELS_PATH, TOPICS, "collections/small/leaderboard/"):
        for query in PAGES:
            refuse(400, "invalid", "GET", f"{path}?{query}")


FILTERS = [
    "team=%00", "tag=%00", "status=x", "status=%00", "submitted_after=x", "submitted_before=2026-13-01",
    "submitted_after=0000-00-00", f"submitted_after={'9' * 5000}", "submitted_after=2026-01-01T00:00:00%2B99:99",
]  # fmt: skip


def test_filters_that_mean_nothing_are_refused(refuse: Refuse) -> None:
    for query in FILTERS:
        refuse(400, "invalid", "GET", f"{RUNS}?{query}")
    refuse(400, "bad_request", "GET", f"{RUNS}?{'tag=1&' * 2000}")
    refuse(400, "bad_request", "GET", f"{RUNS}?{'&'.join(f'a{number}=1' for number in range(2000))}")


def test_a_moment_outside_the_calendar_is_refused(refuse: Refuse) -> None:
    for moment in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"):
        refuse(400, "out_of_range", "GET", f"{RUNS}?submitted_after={moment}")


UNKNOWN = [
    "team=%FF", "tag=%ED%A0%80", "tag=%25", "tag=%zz", "tag='%3B--", f"tag={'x' * 10_000}",
]  # fmt: skip
UNREAD = ["x" * 10_000, "%00=1", "ordering=sha256", "ordering=password", "ordering=-evaluations__means", "o=1"]


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
    "AP'%3BDROP%20TABLE": "unknown_measure", "%00": "unknown_measure", "%ED%A0%80": "unknown_measure",
    "((((": "unknown_measure", "(" * 190: "unknown_measure", "P" * 5000: "unknown_measure",
    "P(rel=1e9)@5": "bad_parameter", "P(rel=1)@5,nope": "unknown_measure", "P@1," * 2000: "too_many_measures",
    ",".join(f"P@{cutoff}" for cutoff in range(1, 1000)): "too_many_measures",
}  # fmt: skip


def test_measures_that_mean_nothing_are_refused(api: APIClient, refuse: Refuse) -> None:
    run = upload(api, RUNS, GOOD).json()["id"]
    for measures, code in MEASURES.items():
        for path in ("collections/small/leaderboard/", f"runs/{run}/values/"):
            assert refuse(400, code, "GET", f"{path}?measures={measures}")["errors"][0]["pointer"] == "measures"
        refuse(400, code, "GET", f"collections/small/comparison/?measure={measures}")


# Methods and headers


@pytest.mark.parametrize("method", ["TRACE", "PUT", "DELETE", "PATCH", "CONNECT", "MADE-UP"])
def test_other_methods_are_refused(refuse: Refuse, method: str) -> None:
    refuse(405, "method_not_allowed", method, "collections/")
    refuse(405, "method_not_allowed", method, RUNS)


def test_other_formats_and_hosts_are_refused(refuse: Refuse) -> None:
    refuse(406, "not_acceptable", "GET", "collections/", HTTP_ACCEPT="application/xml")
    told = refuse(400, "bad_request", "GET", "collections/", HTTP_HOST="evil.example")
    assert "EVALHUB_ALLOWED_HOSTS" in told["detail"]
    refuse(400, "bad_request", "GET", "collections/", HTTP_HOST="a b\0")
