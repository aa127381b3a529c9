"""What the iteration column of judgements is taken for: subtopics, rounds of judging, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from metrics.engine.measures import MEASURES
from metrics.engine.measures.subtopics import OF_SUBTOPICS
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.trec_qrels import ITERATIONS, QrelsSummary, read_qrels
from runs.models import AuditEvent
from tests.conftest import upload
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

PATH = "collections/web/qrels/"
# Two rounds of judging: no document is judged twice. Two subtopics: one is.
ROUNDS = "1 0.5 a 1\n1 1 b 2\n2 1 a 1\n3 0.5 a 1\n3 1 c 0\n"
SUBTOPICS = "1 one a 1\n1 two a 0\n1 two b 2\n2 one a 1\n3 one a 1\n"
PLAIN = "1 0 a 1\n1 0 b 2\n2 0 a 1\n3 0 a 1\n"


def read(content: str, **how: Any) -> QrelsSummary:
    return read_qrels(lambda: in_memory(content.encode(), DEFAULT_LIMITS), **how)


@pytest.mark.parametrize(
    ("content", "how", "iteration", "table", "codes"),
    [
        (PLAIN, {}, "ignore", False, set()),
        (PLAIN, {"iteration": "subtopic"}, "subtopic", False, set()),
        (PLAIN, {"had_subtopics": True}, "subtopic", False, set()),
        (ROUNDS, {}, "ignore", False, {"iteration_ignored"}),
        (ROUNDS, {"iteration": "ignore"}, "ignore", False, set()),
        (ROUNDS, {"iteration": "round"}, "round", False, {"rounds"}),
        (ROUNDS, {"iteration": "subtopic"}, "subtopic", True, {"subtopics"}),
        (ROUNDS, {"had_subtopics": True}, "subtopic", True, {"subtopics"}),
        (SUBTOPICS, {}, "subtopic", True, {"subtopics", "several_iterations"}),
        (SUBTOPICS, {"iteration": "round"}, "round", False, {"rounds", "several_iterations"}),
        (SUBTOPICS, {"iteration": "ignore"}, "ignore", False, {"several_iterations"}),
        (
            "1 0 a 1\n1 0 a 1\n1 1 b 0\n",
            {},
            "ignore",
            False,
            {"iteration_ignored", "duplicate_judgement"},
        ),
        ("1 0 a 1\n2 1 a 1\n", {}, "ignore", False, set()),
    ],
)
def test_the_column_is_taken_for_subtopics_only_where_it_looks_like_them(
    content: str, how: dict[str, Any], iteration: str, table: bool, codes: set[str]
) -> None:
    summary = read(content, **how)
    summary.report.check()
    assert (summary.iteration, summary.judgements.subtopics is not None) == (iteration, table)
    assert set(summary.report.counts) == codes


@pytest.mark.parametrize("iteration", [None, *ITERATIONS])
def test_the_highest_level_counts_whatever_the_iterations_are(iteration: str | None) -> None:
    levels = read("1 2 a 0\n1 1 a 2\n1 3 a 1\n", iteration=iteration).judgements.levels
    assert levels.tolist() == [2]


def test_what_was_found_is_said() -> None:
    (ignored,) = read(ROUNDS).report.warnings
    assert "2 values ('0.5' 2 times, '1' 3 times) and 2 topics have several" in ignored.message
    (rounds,) = read(ROUNDS, iteration="round").report.warnings
    assert (
        rounds.message == "2 rounds of judging, by the iteration column: '0.5' 2 times, '1' 3 times"
    )
    many = "".join(f"1 {number} d{number} 1\n" for number in range(5000))
    (ignored,) = read(many).report.warnings
    assert len(ignored.message) < 500


@pytest.mark.real_data
def test_rounds_of_trec_covid_are_no_subtopics(real_data: Path) -> None:
    content = (real_data / "trec-covid-round1" / "qrels" / "qrels-rnd1.txt").read_text()
    summary = read(content)
    assert (summary.iteration, summary.judgements.subtopics) == ("ignore", None)
    assert "'0.5' 2,627 times, '1' 6,064 times) and 30 topics" in summary.report.warnings[0].message


# Over REST


@pytest.fixture(scope="module")
def web(api: APIClient) -> str:
    answer = api.post(
        "/api/v1/collections/", {"slug": "web", "name": "Web", "measures": ["StRecall@10", "AP"]}
    )
    assert answer.status_code == 201
    return "web"


def taken(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["iteration"]


def test_the_answer_says_what_the_column_was_taken_for(api: APIClient, web: str) -> None:
    tried = upload(api, PATH, ROUNDS, dry_run=True)
    assert (taken(tried), list(tried.json()["counts"])) == ((200, "ignore"), ["iteration_ignored"])
    assert taken(upload(api, PATH, ROUNDS, iteration="round", dry_run=True)) == (200, "round")
    first = upload(api, PATH, ROUNDS, iteration="round")
    assert taken(first) == (201, "round")
    assert api.get(f"/api/v1/{PATH}1/").json() == {**first.json(), "prompt": ""}
    assert AuditEvent.objects.get(action="qrels.uploaded").after["iteration"] == "round"
    wrong = upload(api, PATH, ROUNDS, iteration="rounds")
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (400, "/iteration")


def test_a_collection_with_subtopics_keeps_them_until_another_word(
    api: APIClient, web: str
) -> None:
    assert taken(upload(api, PATH, SUBTOPICS)) == (201, "subtopic")
    # The second column of a sample is a stratum, which is no other word.
    sample = {"sampling": "strata", "ignore_sampling": True, "activate": False}
    assert taken(upload(api, PATH, ROUNDS, **sample)) == (201, "ignore")
    assert taken(upload(api, PATH, ROUNDS)) == (201, "subtopic")
    assert taken(upload(api, PATH, ROUNDS + "4 1 a 1\n", iteration="round")) == (201, "round")
    assert taken(upload(api, PATH, ROUNDS + "5 1 a 1\n")) == (201, "ignore")


def test_the_same_bytes_are_another_version_where_they_are_taken_for_something_else(
    api: APIClient, web: str
) -> None:
    assert taken(upload(api, PATH, ROUNDS)) == (201, "ignore")
    assert taken(upload(api, PATH, ROUNDS, iteration="subtopic")) == (201, "subtopic")
    assert taken(upload(api, PATH, ROUNDS, iteration="subtopic")) == (200, "subtopic")
    # Without a word they are the newest of these versions.
    again = upload(api, PATH, ROUNDS)
    assert (taken(again), again.json()["version"]) == ((200, "subtopic"), 2)


def test_the_number_of_a_query_is_no_iteration(api: APIClient, web: str) -> None:
    content = "s1 1 a 1\ns1 2 a 0\n"
    refused = upload(api, PATH, content, keyed_by="query", iteration="subtopic")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/iteration")
    assert taken(upload(api, PATH, content, keyed_by="query")) == (201, "ignore")


def test_every_measure_of_subtopics_is_known_as_one() -> None:
    module = "metrics.engine.measures.subtopics"
    assert {
        name for name, measure in MEASURES.items() if measure.compute.__module__ == module
    } == set(OF_SUBTOPICS)
