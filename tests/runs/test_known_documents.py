"""Known documents: the file line by line, and what comes of it over the API."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from metrics.engine.errors import EvalHubError
from runs.errors import FileTooLarge, InvalidFile
from runs.formats import known_documents
from runs.formats.compression import in_memory
from runs.formats.known_documents import KnownSummary, read_known
from runs.formats.limits import Limits
from runs.models import Run, User
from tests.conftest import GOOD, POOR, client_of, evaluate_all, upload
from tests.readers import of_a_reader
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words

LIMITS = Limits()
KNOWN = "1 a\n1 b\n2 x\n1 expected 4\n"
READ = ({"1": ["a", "b"], "2": ["x"]}, {"1": 4})
Found = tuple[dict[str, list[str]], dict[str, int]]


def read(content: str | bytes, limits: Limits = LIMITS) -> KnownSummary:
    encoded = content.encode() if isinstance(content, str) else content
    return read_known(lambda: in_memory(encoded, limits), limits=limits)


def found_in(content: str | bytes) -> Found:
    """Documents by topic, and the expected numbers."""
    summary = read(content)
    summary.report.check()
    block, documents, text = (
        summary.known.documents,
        dict[str, list[str]](),
        summary.known.documents.data.tobytes(),
    )
    topics = block.topics_of(np.arange(summary.count))
    for topic, start, end in zip(topics, block.doc_starts, block.doc_ends, strict=True):
        documents.setdefault(block.topic_ids[topic].decode(), []).append(text[start:end].decode())
    return documents, {topic.decode(): number for topic, number in summary.known.expected.items()}


def problems(content: str | bytes, limits: Limits = LIMITS) -> list[tuple[int, str]]:
    try:
        report = read(content, limits).report
    except InvalidFile as error:
        report = error.report
    return sorted({(problem.line, problem.code) for problem in report.problems})


@pytest.mark.parametrize(
    "content",
    [
        KNOWN,
        KNOWN.replace(" ", "\t"),
        KNOWN.replace(" ", "  \t"),
        KNOWN.replace("\n", "\r\n"),
        "\ufeff " + KNOWN.replace("\n", " \n\n\r\n  "),
        KNOWN.removesuffix("\n"),
        "# read before\n#topic document\n#9 expected 3\n" + KNOWN + "#\n",
        "1 expected 4\n1 a\n2 x\n1 b\n",
        "1 a\n1 b\n2 x\n1 expected +004\n",
    ],
)
def test_white_space_comments_and_the_order_of_topics_change_nothing(content: str) -> None:
    assert found_in(content) == READ
    assert read(content).count == 3


def test_topics_may_be_named_for_their_number_alone() -> None:
    assert found_in("7 expected 2\n") == ({}, {"7": 2})
    assert read("7 expected 2\n1 a\n").topics == ["1", "7"]


def test_a_document_may_have_any_name() -> None:
    assert found_in("1 expected\n1 =4\n1 #a\n") == ({"1": ["expected", "=4", "#a"]}, {})


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("3", "too_few_columns"),
        ("expected", "too_few_columns"),
        ("3 0 a 1", "too_many_columns"),
        ("3 a 4", "too_many_columns"),
        ("3 Expected 4", "too_many_columns"),
        ("3 expectedx 4", "too_many_columns"),
        ("3 expected 4 5", "too_many_columns"),
        ("3 expected 0", "bad_expected"),
        ("3 expected -1", "bad_expected"),
        ("3 expected 1.0", "bad_expected"),
        ("3 expected 1e3", "bad_expected"),
        ("3 expected ten", "bad_expected"),
        ("3 expected nan", "bad_expected"),
        ("3 expected 1000001", "bad_expected"),
        ("3 expected " + "9" * 400, "bad_expected"),
        ("3 a\x01b", "control_character"),
        ("3 a\x7f", "control_character"),
        ("3 " + "x" * 1025, "id_too_long"),
        ("3 a" + " " * 9000, "line_too_long"),
        ("1 expected 5", "conflicting_expected"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(line: str, code: str) -> None:
    assert problems(f"# comment\n{KNOWN}\n{line}\n3 c\n") == [(7, code)]


def test_every_bad_line_is_reported_at_once() -> None:
    content = "1\n1 a\n1 a b\n1 expected x\n1 \x02\n"
    codes = ["too_few_columns", "too_many_columns", "bad_expected", "control_character"]
    assert problems(content) == list(zip([1, 3, 4, 5], codes, strict=True))


def test_two_numbers_for_a_topic_are_named_with_both_lines() -> None:
    (problem,) = read("1 expected 4\n2 expected 4\n1 expected 5\n").report.problems
    assert problem.message == "topic '1' expects 5 relevant documents, but 4 in line 1"


def test_what_is_repeated_is_warned_about_and_counts_once() -> None:
    content = "1 a\n2 a\n1 expected 3\n1 a\n1 b\n1 expected 3\n"
    assert found_in(content) == ({"1": ["a", "b"], "2": ["a"]}, {"1": 3})
    (warning,) = read(content).report.warnings
    assert (warning.code, warning.count, sorted(warning.lines)) == ("duplicate_known", 2, [4, 6])


def test_repetitions_beyond_fifty_are_counted() -> None:
    report = read("1 a\n" * 80).report
    (warning,) = report.warnings
    assert (warning.count, report.counts["duplicate_known"]) == (79, 79)
    assert warning.lines == list(range(2, 12))


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", "\ufeff"])
def test_a_file_that_names_nothing_is_refused(content: str) -> None:
    assert problems(content) == [(0, "empty_known")]


@pytest.mark.parametrize(
    ("content", "line"), [(b"1 a\n1 \xff\n", 2), ("1 a\n".encode("utf-16"), 1)]
)
def test_text_that_is_not_utf8_is_refused_with_its_line(content: bytes, line: int) -> None:
    assert problems(content) == [(line, "undecodable_bytes")]


def test_a_person_knows_no_million_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_documents, "KNOWN_LINES", 3)
    assert read("1 a\n1 b\n1 c\n").count == 3
    with pytest.raises(FileTooLarge, match="more than 3 lines"):
        read("1 a\n1 b\n1 c\n1 d\n")


def test_more_topics_than_the_limit_are_refused() -> None:
    with pytest.raises(FileTooLarge, match="more than 2 topics"):
        read("1 a\n2 a\n3 expected 1\n", Limits(topics=2))


IDS = st.text("abc#é=0", min_size=1, max_size=3)
TOPICS = st.sampled_from(["1", "2", "é"])
ROWS = st.lists(st.tuples(TOPICS, IDS | st.integers(1, 2)), min_size=1)


@of_a_reader
@given(ROWS)
def test_a_file_is_read_as_a_dictionary_reads_it(rows: list[tuple[str, str | int]]) -> None:
    content, wanted = "", (dict[str, list[str]](), dict[str, int]())
    for topic, what in rows:
        number = isinstance(what, int)
        if number and wanted[1].setdefault(topic, what) != what:
            continue
        content += f"{topic} expected {what}\n" if number else f"{topic} {what}\n"
        if not number and what not in wanted[0].setdefault(topic, []):
            wanted[0][topic].append(what)
    assert found_in(content) == wanted


PARTS = st.sampled_from(
    [b"1", b"a", b"expected", b"4", b"#", b" ", b"\t", b"\r", b"\n", b"\0", b"\xc3\xa9", b"\xff"]
)


@of_a_reader
@given(st.binary(max_size=60) | st.lists(PARTS, max_size=40).map(b"".join))
def test_any_bytes_are_read_or_refused_and_never_raise_anything_else(content: bytes) -> None:
    try:
        summary = read(content)
    except EvalHubError:
        return
    assert summary.report.problems or summary.count or summary.known.expected


# Over the API


def send(
    client: APIClient, known: str | bytes | None = KNOWN, run: str = GOOD, **fields: Any
) -> Any:
    """Submit a run as a form, with known documents or without."""
    files = {"file": SimpleUploadedFile("run.txt", run.encode())}
    if known is not None:
        files["known"] = SimpleUploadedFile(
            "known.txt", known if isinstance(known, bytes) else known.encode()
        )
    return client.post("/api/v1/collections/small/runs/", {**files, **fields}, format="multipart")


def stored(settings: Any) -> set[str]:
    return {path.name for path in (Path(settings.EVALHUB_DATA) / "files").glob("*/*")}


MEASURES = (
    "Coverage,Coverage@1,Novelty,RelativeRecall,RelativeRecall(expected=1),RecallEffort(expected=2)"
)


def values(api: APIClient, run: dict[str, Any]) -> dict[str, list[float | None]]:
    """The values of each measure, topic by topic."""
    answer = api.get(run["url"] + "values/", {"measures": MEASURES}).json()
    names = answer["topics"][0]["values"]
    return {name: [topic["values"][name] for topic in answer["topics"]] for name in names}


def test_known_documents_are_kept_with_the_run_and_measured(
    api: APIClient, collection: str
) -> None:
    """Of topic 1 the user knew the relevant a and expected 4; of 2 the relevant x; of 3 nothing."""
    answer = send(api)
    assert answer.status_code == 202
    run = answer.json()
    assert (run["known_sha256"], run["known_documents"]) == (
        hashlib.sha256(KNOWN.encode()).hexdigest(),
        3,
    )
    evaluate_all()
    assert values(api, run) == {
        "Coverage": [1, 1, None],
        "Coverage@1": [1, 1, None],
        "Novelty": [0.5, 0, None],
        "RelativeRecall": [0.5, None, None],
        "RelativeRecall(expected=1)": [2, 1, 1],
        "RecallEffort(expected=2)": [1, None, None],
    }
    means = api.get(run["url"] + "values/", {"measures": "Novelty"}).json()["means"]
    assert means == {
        "Novelty": {"mean": 0.25, "topics": 2, "aggregate": "mean", "sampling_error": None}
    }


def test_a_run_without_known_documents_has_null_and_says_so(
    api: APIClient, collection: str
) -> None:
    run = send(api, None).json()
    assert (run["known_sha256"], run["known_documents"], run["known_warnings"]) == ("", 0, {})
    evaluate_all()
    assert values(api, run)["Novelty"] == [None, None, None]
    assert api.get(run["url"] + "values/", {"measures": "Coverage"}).json()["means"][
        "Coverage"
    ] == {
        "mean": None,
        "topics": 0,
        "aggregate": "mean",
        "sampling_error": None,
    }
    assert api.get(run["url"] + "known/").status_code == 404


def test_measures_of_the_collection_are_stored_and_new_judgements_see_what_was_known(
    api: APIClient, collection: str
) -> None:
    api.patch("/api/v1/collections/small/", {"measures": ["Coverage", "AP"]})
    run = send(api, KNOWN, POOR).json()
    evaluate_all()
    board = api.get("/api/v1/collections/small/leaderboard/").json()
    assert board["results"][0]["values"]["Coverage"] == {"mean": 0.5, "topics": 2}
    assert upload(api, "collections/small/qrels/", "1 0 b 1\n2 0 x 1\n").status_code == 201
    evaluate_all()
    assert values(api, run)["Coverage"] == [1, 1]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_the_file_is_named_by_its_content_and_read_by_who_reads_the_run(
    compress: Callable[[bytes], bytes],
    api: APIClient,
    anonymous: APIClient,
    bob: User,
    collection: str,
    settings: Any,
) -> None:
    run = send(api, compress(KNOWN.encode())).json()
    assert stored(settings) >= {run["sha256"], run["known_sha256"]}
    for client in (api, anonymous):
        answer = client.get(f"{run['url']}known/")
        assert b"".join(answer.streaming_content) == KNOWN.encode()
        assert "good.known" in answer["Content-Disposition"]
    api.patch("/api/v1/collections/small/", {"visibility": "team"})
    for client in (client_of(bob), anonymous):
        assert client.get(f"{run['url']}known/").status_code == 404
    api.delete(run["url"])
    assert api.get(f"{run['url']}known/").status_code == 404


def test_the_same_submission_is_the_run_that_is_there_and_other_knowledge_is_not(
    api: APIClient, collection: str, settings: Any
) -> None:
    first = send(api).json()
    again = send(api)
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    before = stored(settings)
    for known in (None, "1 a\n"):
        refused = send(api, known)
        assert (refused.status_code, refused.json()["code"]) == (409, "tag_taken")
        assert refused.json()["errors"][0]["pointer"] == "/tag"
        assert "different known documents" in refused.json()["detail"]
    assert stored(settings) == before
    assert send(api, "1 a\n", tag="another-user").status_code == 202


@pytest.mark.parametrize(
    ("known", "status", "code", "line"),
    [
        ("1 a\n1\n", 422, "too_few_columns", 2),
        ("1 a b\n", 422, "too_many_columns", 1),
        ("", 422, "empty_known", None),
        (b"\x1f\x8b\x08\x00broken", 422, "bad_gzip", None),
        (b"PK\x03\x04", 415, "unsupported_media_type", "none"),
    ],
)
def test_bad_known_documents_refuse_the_run_and_point_to_their_field(
    api: APIClient,
    collection: str,
    settings: Any,
    known: str | bytes,
    status: int,
    code: str,
    line: Any,
) -> None:
    before = stored(settings)
    for fields in ({}, {"dry_run": "true"}):
        answer = send(api, known, **fields)
        body = answer.json()
        assert (answer.status_code, body["code"]) == (status, code)
        assert body["detail"].startswith("known documents: ")
        assert (body["errors"][0]["pointer"], body["errors"][0].get("line", "none")) == (
            "/known",
            line,
        )
    assert not Run.objects.exists()
    assert stored(settings) == before
    assert list((Path(settings.EVALHUB_DATA) / "uploads").glob("*")) == []


def test_more_than_the_limit_is_refused_for_either_file(
    api: APIClient, collection: str, settings: Any
) -> None:
    settings.EVALHUB_MAX_UPLOAD_BYTES = 200
    answer = send(api, "1 a\n" * 100)
    assert (answer.status_code, answer.json()["code"]) == (413, "file_too_large")
    assert list((Path(settings.EVALHUB_DATA) / "uploads").glob("*")) == []


def test_a_dry_run_says_what_is_known_and_stores_nothing(
    api: APIClient, collection: str, settings: Any
) -> None:
    before = stored(settings)
    body = send(api, KNOWN + "2 x\n", dry_run="true").json()
    assert (body["known_documents"], body["known_warnings"]["counts"]) == (
        3,
        {"duplicate_known": 1},
    )
    assert not Run.objects.exists()
    assert stored(settings) == before


def test_warnings_of_both_files_stay_apart(api: APIClient, collection: str) -> None:
    upload(api, "collections/small/topics/", "1\twhat\n2\twho\n3\twhy\n", "put")
    run = send(api, KNOWN + "8 expected 3\n9 a\n2 x\n").json()
    assert run["warnings"]["counts"] == {}
    assert run["known_warnings"]["counts"] == {"topic_outside": 2, "duplicate_known": 1}


@pytest.mark.parametrize(("method", "path"), [("post", "qrels"), ("put", "topics")])
def test_no_other_upload_takes_known_documents(
    api: APIClient, collection: str, method: str, path: str
) -> None:
    files = {
        "file": SimpleUploadedFile("f", b"1 0 a 1\n"),
        "known": SimpleUploadedFile("k", b"1 a\n"),
    }
    answer = getattr(api, method)(f"/api/v1/collections/small/{path}/", files, format="multipart")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_field")


def test_a_known_field_that_is_no_file_is_refused(api: APIClient, collection: str) -> None:
    form = {"file": SimpleUploadedFile("run.txt", GOOD.encode()), "known": "1 a"}
    in_form = api.post("/api/v1/collections/small/runs/", form, format="multipart")
    in_address = upload(api, "collections/small/runs/", GOOD, known="1 a")
    for answer, pointer in ((in_form, "/known"), (in_address, "known")):
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)


def test_the_page_of_a_run_links_to_what_was_known(api: APIClient, collection: str) -> None:
    with_known, without = send(api).json(), send(api, None, POOR).json()
    link = f"/api/v1/runs/{with_known['id']}/known/"
    assert link in Client().get(f"/runs/{with_known['id']}/files/").content.decode()
    assert "known/" not in Client().get(f"/runs/{without['id']}/files/").content.decode()
