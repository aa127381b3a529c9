"""Runs of passages where documents are judged."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from runs.models import Run
from tests.conftest import QRELS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.django_db
PASSAGES = """\
1 Q0 a#1 1 9.5 segments
1 Q0 b#3 2 9.0 segments
1 Q0 a#2 3 8.0 segments
1 Q0 b#1 4 9.25 segments
1 Q0 c 5 7.0 segments
2 Q0 x#part#2 1 3.0 segments
"""
DOCUMENTS = """\
1 Q0 a 1 9.5 segments
1 Q0 b 2 9.25 segments
1 Q0 c 3 7.0 segments
2 Q0 x#part 1 3.0 segments
"""
RUNS = "collections/small/runs/"


def stored_text(api: APIClient, run: str) -> str:
    answer = api.get(f"/api/v1/runs/{run}/file/")
    return (
        b"".join(answer.streaming_content).decode() if answer.streaming else answer.content.decode()
    )


def test_a_document_has_the_score_of_its_best_passage(api: APIClient, collection: str) -> None:
    answer = upload(api, RUNS, PASSAGES, passages="#", metadata='{"model": "splade"}')
    assert answer.status_code == 202, answer.content

    run = Run.objects.get()
    assert stored_text(api, str(run.pk)) == DOCUMENTS
    assert (run.documents, run.topics, run.tag) == (4, 2, "segments")
    assert run.metadata == {"model": "splade", "passages": {"separator": "#", "number": 6}}

    evaluate_all()
    values = api.get(f"/api/v1/runs/{run.pk}/values/", {"measures": "P@1"}).json()
    assert values["means"]["P@1"]["mean"] == pytest.approx(1 / 3), QRELS


def test_the_same_passages_are_the_same_run(api: APIClient, collection: str) -> None:
    """Sent again, and as the run of documents which they are."""
    assert upload(api, RUNS, PASSAGES, passages="#").status_code == 202
    again = upload(api, RUNS, PASSAGES, passages="#")
    assert again.status_code == 200
    assert upload(api, RUNS, DOCUMENTS).json()["id"] == again.json()["id"]


def test_a_dry_run_says_what_would_be_stored(api: APIClient, collection: str) -> None:
    answer = upload(api, RUNS, PASSAGES, passages="#", dry_run="true")
    assert (answer.status_code, answer.json()["documents"]) == (200, 4)
    assert not Run.objects.exists()


def test_a_header_stays(api: APIClient, collection: str) -> None:
    header = "# ir_metadata.start\n# method:\n#   k: 3\n# ir_metadata.end\n"
    answer = upload(api, RUNS, header + PASSAGES, passages="#")
    assert answer.status_code == 202, answer.content
    assert stored_text(api, answer.json()["id"]) == header + DOCUMENTS


@pytest.mark.parametrize(
    ("text", "passages", "status", "code", "place"),
    [
        ("1 Q0 a#1 1 x run\n", "#", 422, "bad_score", {"line": 1}),
        ("1 Q0 a#1 1 2 r\n1 Q0 a#1 2 1 r\n", "#", 422, "duplicate_document", {"line": 2}),
        ("1 Q0 #1 1 2 r\n", "#", 400, "bad_passage", {"pointer": "/passages"}),
        (
            "1 Q0 a#1 1 2 r\n2 Q0 x 1 2 r\n1 Q0 b#1 2 1 r\n",
            "#",
            400,
            "topics_interleaved",
            {"pointer": "/passages"},
        ),
        (PASSAGES, "a b", 400, "invalid", {"pointer": "/passages"}),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_is_wrong(
    api: APIClient,
    collection: str,
    text: str,
    passages: str,
    status: int,
    code: str,
    place: dict[str, Any],
) -> None:
    answer = upload(api, RUNS, text, passages=passages)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.content
    assert place.items() <= answer.json()["errors"][0].items()
    assert not Run.objects.exists()
