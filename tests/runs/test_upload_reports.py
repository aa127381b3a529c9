"""What the answer to an upload says: problems with their causes and total, warnings by kind, topics that match none."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from runs.errors import FileReport
from runs.models import Collection, Run
from runs.services.storage.reports import grouped, report_as_json
from tests.conftest import GOOD, QRELS, upload

pytestmark = pytest.mark.words

RUNS = "collections/small/runs/"
REVERSED = "".join(
    f"{topic} Q0 d{rank} {rank} {rank}.5 up\n" for topic in (1, 2, 3) for rank in range(1, 101)
)


def warnings_of(answer: Any) -> dict[str, dict[str, Any]]:
    """The warnings of an accepted run by their codes."""
    assert answer.status_code in (200, 202), answer.content
    return {entry["code"]: entry for entry in answer.json()["warnings"]["warnings"]}


def test_a_run_whose_ranks_contradict_its_scores_says_so_once(
    api: APIClient, collection: str
) -> None:
    warning = {
        "line": 2,
        "code": "rank_contradicts_score",
        "message": "297 of 300 lines have a rank that contradicts their score; scores decide",
        "count": 297,
        "lines": list(range(2, 12)),
    }
    assert warnings_of(upload(api, RUNS, REVERSED, dry_run=True)) == {
        "rank_contradicts_score": warning
    }
    assert warnings_of(upload(api, RUNS, REVERSED)) == {"rank_contradicts_score": warning}
    (listed,) = api.get(f"/api/v1/{RUNS}").json()["results"]
    assert listed["warnings"] == {"warnings": [warning], "counts": {"rank_contradicts_score": 297}}


def test_many_warnings_of_one_kind_hide_no_other() -> None:
    report = FileReport()
    for line in range(1, 200):
        report.warning(line, "extra_columns", "columns after the first 6 are ignored")
    for key in range(200):
        report.warning(1, "unknown_key", f"'{key}' is not known", kind=str(key))
    report.warning(0, "ties", "2 documents have the score of another one", 2)
    assert [entry.code for entry in report.warnings] == [
        "extra_columns",
        *["unknown_key"] * 49,
        "ties",
    ]
    assert (report.warnings[0].count, report.problem_counts, report.problem_count) == (199, {}, 0)


@pytest.mark.queries
def test_reports_of_earlier_releases_are_grouped_when_they_are_read(
    api: APIClient, collection: str
) -> None:
    upload(api, RUNS, GOOD)
    many = [
        {"line": line, "code": "rank_contradicts_score", "message": "contradicts"}
        for line in range(2, 52)
    ]
    old = {"warnings": many, "counts": {"rank_contradicts_score": 15_714}}
    Run.objects.update(warnings=old)
    (entry,) = api.get(f"/api/v1/{RUNS}").json()["results"][0]["warnings"]["warnings"]
    assert (entry["count"], entry["line"], entry["lines"]) == (15_714, 2, list(range(2, 12)))
    report = FileReport()
    report.warning(3, "extra_columns", "ignored")
    assert grouped(report_as_json(report)) == report_as_json(report)
    assert grouped({}) == {}


def test_more_problems_than_are_listed_are_counted(api: APIClient, collection: str) -> None:
    answer = upload(api, RUNS, GOOD + "4 Q0 a\n" * 300 + "4 Q0 a 1 x t\n" * 11)
    body = answer.json()
    assert answer.status_code == 422
    assert body["detail"].endswith("311 problems in total, the first 50 are listed")
    assert len(body["errors"]) == 51
    rest = "261 more problems are not listed; total: 300 too_few_columns, 11 bad_score"
    assert body["errors"][-1] == {"line": None, "code": "more_problems", "detail": rest}
    few = upload(api, RUNS, GOOD + "4 Q0 a\n").json()
    assert "in all" not in few["detail"]
    assert len(few["errors"]) == 1


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "application/gzip"])
def test_an_empty_run_is_named_as_one(api: APIClient, collection: str, kind: str) -> None:
    answer = api.post(f"/api/v1/{RUNS}", b"", content_type=kind, CONTENT_LENGTH="0")
    assert (answer.status_code, answer.json()["code"]) == (422, "empty_run")
    form = api.post(f"/api/v1/{RUNS}", {"file": SimpleUploadedFile("run", b"")}, format="multipart")
    assert (form.status_code, form.json()["code"]) == (422, "empty_run")


def test_a_chunked_body_is_told_apart_from_an_empty_one(api: APIClient, collection: str) -> None:
    answer = api.post(
        f"/api/v1/{RUNS}", b"", content_type="text/plain", HTTP_TRANSFER_ENCODING="chunked"
    )
    assert answer.status_code == 400
    assert "Content-Length" in answer.json()["detail"]


# Topics


def test_topics_without_a_document_count_nothing_unless_they_are_judged(
    api: APIClient, collection: str
) -> None:
    upload(
        api,
        "collections/small/topics/",
        "".join(f"{number}\tt\n" for number in range(1, 251)),
        "put",
    )
    message = warnings_of(upload(api, RUNS, GOOD))["topic_missing"]["message"]
    assert message.startswith("247 of the collection's 250 topics have no document (4, 5, 6, ")
    assert message.endswith("); those that are judged count 0")


def test_a_run_that_matches_no_listed_topic_says_so(api: APIClient, collection: str) -> None:
    upload(api, "collections/small/topics/", "QS2-1\tone\nQS2-2\ttwo\n", "put")
    warnings = warnings_of(upload(api, RUNS, "qs2-1 Q0 a 1 2 t\nqs2-2 Q0 a 1 2 t\n"))
    assert list(warnings) == ["no_topic_matches"]
    assert warnings["no_topic_matches"]["count"] == 2
    assert (
        "'qs2-1' differs from 'QS2-1' in case or leading zeros only"
        in warnings["no_topic_matches"]["message"]
    )


def test_one_topic_written_otherwise_is_pointed_to(api: APIClient, collection: str) -> None:
    upload(api, "collections/small/topics/", "1\tone\n2\ttwo\n", "put")
    message = warnings_of(upload(api, RUNS, "1 Q0 a 1 2 t\n02 Q0 a 1 2 t\n"))["topic_outside"][
        "message"
    ]
    assert message.endswith(": 02; '02' differs from '2' in case or leading zeros only")


def test_without_a_list_the_topics_that_are_judged_in_the_open_are_the_known_ones(
    api: APIClient, collection: str
) -> None:
    warnings = warnings_of(upload(api, RUNS, "01 Q0 a 1 2 t\n"))
    assert "'01' differs from '1'" in warnings["no_topic_matches"]["message"]
    assert warnings_of(upload(api, RUNS, GOOD)) == {}


def test_blind_judgements_tell_an_upload_nothing(api: APIClient) -> None:
    api.post("/api/v1/collections/", {"slug": "small", "name": "Small", "blind": True})
    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    assert Collection.objects.get().blind
    assert warnings_of(upload(api, RUNS, "01 Q0 a 1 2 t\n")) == {}
