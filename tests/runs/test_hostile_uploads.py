"""What a hostile or careless client may send: every attempt is refused by name, and leaves nothing behind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from rest_framework.test import APIClient

from tests.conftest import GOOD, POOR, QRELS, upload
from tests.runs.refusals import (
    QRELS_PATH,
    RUNS,
    TOPICS,
    Refuse,
    as_file,
    counts,
    problem_of,
    refuse,
    send,
)
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data", "refuse"]


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


def test_without_a_token_nothing_is_read_of_an_upload(
    anonymous: APIClient, collection: str
) -> None:
    for method, path in (
        ("POST", RUNS),
        ("POST", QRELS_PATH),
        ("PUT", TOPICS),
        ("POST", "collections/"),
    ):
        answer = send(anonymous, method, path, b"\x1f\x8b" + b"x" * 100, "text/plain")
        problem_of(answer, 401, "not_authenticated")
        assert answer["WWW-Authenticate"] == "Bearer"


# Bodies


KINDS = (
    "",
    "application/json",
    "application/xml",
    "application/x-www-form-urlencoded",
    "a/b/c;;;=",
    "x" * 5000,
)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", RUNS), ("POST", QRELS_PATH), ("PUT", TOPICS)]
)
def test_other_content_types_are_refused(refuse: Refuse, method: str, path: str) -> None:
    for kind in KINDS:
        refuse(415, "unsupported_media_type", method, path, GOOD, kind, attempt=kind)


def part(
    content: str = GOOD, disposition: str = 'name="file"; filename="run.txt"', headers: str = ""
) -> str:
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
    "a field of 3 MB": (part("x" * 3_000_000, 'name="tag"') + "--x--\r\n", MULTIPART, "body_too_large"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path"), [("POST", RUNS), ("POST", QRELS_PATH), ("PUT", TOPICS)]
)
def test_broken_forms_are_refused(refuse: Refuse, method: str, path: str) -> None:
    for name, (body, kind, code) in FORMS.items():
        refuse(
            413 if code == "body_too_large" else 400, code, method, path, body, kind, attempt=name
        )


NAMES = [
    "../../etc/passwd",
    "C:\\CON",
    "a\0b",
    "x" * 500,
    "\u202egpj.exe",
    "/",
    "..",
    "a%00b",
    "run.gz",
]


def test_a_file_name_is_never_used(api: APIClient, collection: str, settings: Any) -> None:
    for name in NAMES:
        answer = send(
            api,
            "POST",
            RUNS,
            part(disposition=f'name="file"; filename="{name}"') + "--x--\r\n",
            MULTIPART,
        )
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
        assert send(api, "POST", RUNS, GOOD, f"text/plain; charset={charset}").status_code in (
            200,
            202,
        )


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
        huge = {
            "CONTENT_LENGTH": str(settings.EVALHUB_MAX_UPLOAD_BYTES + 2_000_000),
            "wsgi.input": Unread(),
        }
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


@pytest.mark.slow
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
def test_compressed_topics_are_read_whole(
    api: APIClient, collection: str, compress: Callable[[bytes], bytes]
) -> None:
    content = "".join(f"{number}\t{'what ' * 800}\n" for number in range(1000)).encode()
    assert upload(api, TOPICS, compress(content), "put").json()["topics"] == 1000


def test_a_dry_run_refuses_the_same_and_stores_nothing(refuse: Refuse, api: APIClient) -> None:
    refuse(422, "bad_score", "POST", f"{RUNS}?dry_run=true", "1 Q0 a 1 x t\n", "text/plain")
    refuse(422, "bad_level", "POST", f"{QRELS_PATH}?dry_run=true", "1 0 a x\n", "text/plain")
    before = counts()
    assert upload(api, RUNS, GOOD, dry_run="true").status_code == 200
    assert counts() == before
