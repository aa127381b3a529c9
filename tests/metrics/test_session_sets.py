"""Session sets over REST: uploaded, evaluated, read back as values, curves, lengths and single sessions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.models import SessionEvaluation, SessionView
from metrics.services.queue.queueing import queue_missing
from metrics.services.sessions.evaluate import evaluate_sessions
from metrics.services.upkeep.integrity import find_faults
from runs.models import AuditEvent, SessionSet
from runs.services.storage.stores.folder import stored_path
from tests.conftest import QRELS, SESSIONS, client_of, evaluate_all, upload
from tests.engine.session_build import judged_sessions
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words

LOG = "collections/small/sessions/"
COLUMNS = """\
s1 1 b 1 2.0 A 1 u1
s1 1 a 2 1.0 A 1 u1
s2 1 u 1 1.0 B 1 u1
s2 2 c 1 2.0 B 1 u1
s2 2 b 2 1.0 B 1 u1
s4 1 x 1 1.0 A 2 u1
s5 1 y 1 1.0 B 2 u1
"""
OWN = '{"session_id": "o", "queries": [{"documents": ["a", "b"], "judged": {"b": 2}}, {"documents": ["a"]}]}\n'
LEVELS = {"1": {"a": 2, "b": 0, "c": 1}, "2": {"x": 1, "y": 0}, "3": {"z": 3}}


@pytest.fixture(scope="module")
def send(api: APIClient, collection: str) -> Callable[..., str]:
    """Submit a log of Alice's and evaluate it; returns the path of the set below /api/v1/."""

    def submit(content: str | bytes = SESSIONS, **query: Any) -> str:
        answer = upload(api, LOG, content, **query)
        assert answer.status_code == 202, answer.content
        evaluate_all()
        return f"session-sets/{answer.json()['id']}/"

    return submit


def get(api: APIClient, path: str, code: int = 200, **query: Any) -> Any:
    answer = api.get(f"/api/v1/{path}", query)
    assert answer.status_code == code, answer.content
    return answer.json()


def expected(name: str) -> list[float | None]:
    """The same by the engine alone, from the same log."""
    view = judged_sessions([json.loads(line) for line in SESSIONS.splitlines()], LEVELS)
    return [
        None if np.isnan(value) else value
        for value in session_values(view, parse_session_measure(name)).tolist()
    ]


@pytest.mark.parametrize(
    "content",
    [SESSIONS, COLUMNS, gzip.compress(SESSIONS.encode())],
    ids=["jsonl", "columns", "gzip"],
)
def test_a_log_is_stored_evaluated_and_read_back(
    api: APIClient, send: Callable[..., str], content: Any
) -> None:
    path = send(content, tag="log")
    answer = get(api, path)
    assert (answer["sessions"], answer["queries"], answer["documents"]) == (4, 5, 7)
    assert (answer["topics"], answer["searchers"], answer["systems"]) == (2, 1, ["A", "B"])
    assert (answer["status"]["state"], answer["status"]["qrels"]) == ("evaluated", 1)
    names = [
        "sDCG(b=2,bq=4)@10",
        "nsDCG(b=2,bq=4)@10",
        "nsDCG(b=2,bq=4,figure='best')@10",
        "Query(of='nDCG@10')@10",
    ]
    values = get(api, f"{path}values/", measures=",".join(names))
    for name in names:
        assert [row["values"][name] for row in values["sessions"]] == expected(name)
        assert values["means"][name]["sessions"] == 4
    assert values["coverage"] == {"judged": 4, "sessions": 4}
    assert [system["system"] for system in values["systems"]] == ["A", "B"]
    assert b"".join(api.get(f"/api/v1/{path}file/").streaming_content)[:2] in (b'{"', b"s1")


@pytest.mark.queries
def test_the_same_log_again_is_the_same_set(api: APIClient, send: Callable[..., str]) -> None:
    path = send(tag="log")
    again = upload(api, LOG, SESSIONS, tag="log")
    assert (again.status_code, f"session-sets/{again.json()['id']}/") == (200, path)
    assert "Location" in again
    for query, pointer in (({"judged_by": "session"}, "/judged_by"), ({}, "/tag")):
        taken = upload(api, LOG, SESSIONS if query else COLUMNS, tag="log", **query)
        assert (taken.status_code, taken.json()["code"]) == (409, "tag_taken")
        assert taken.json()["errors"][0]["pointer"] == pointer


def test_a_key_makes_a_request_happen_once(api: APIClient, collection: str) -> None:
    def ask() -> Any:
        return api.post(
            f"/api/v1/{LOG}", SESSIONS, content_type="text/plain", headers={"Idempotency-Key": "k"}
        )

    first, second = ask(), ask()
    assert (first.status_code, second.status_code, second["Idempotent-Replayed"]) == (
        202,
        202,
        "true",
    )
    assert first.json() == second.json()
    assert SessionSet.objects.count() == 1


def test_a_dry_run_stores_nothing(api: APIClient, collection: str) -> None:
    answer = upload(api, LOG, SESSIONS, dry_run=True).json()
    assert (answer["format"], answer["sessions"], answer["queries"], answer["tag"]) == (
        "jsonl",
        4,
        5,
        "sessions",
    )
    assert not SessionSet.objects.exists()


@pytest.mark.parametrize(
    ("content", "query", "status", "code"),
    [
        ('{"session_id": "s1", "queries": []}\n', {}, 422, "no_queries"),
        (SESSIONS, {"format": "csv"}, 400, "invalid"),
        (SESSIONS, {"judged_by": "own"}, 400, "no_own_judgements"),
        (SESSIONS, {"judged_by": "nobody"}, 400, "invalid"),
        (SESSIONS, {"tag": "no tag"}, 400, "invalid"),
        ("\n", {}, 422, "empty_sessions"),
    ],
)
def test_what_is_wrong_is_refused(
    api: APIClient, collection: str, content: str, query: dict[str, str], status: int, code: str
) -> None:
    answer = upload(api, LOG, content, **query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not SessionSet.objects.exists()


def test_problems_have_their_lines(api: APIClient, collection: str) -> None:
    answer = upload(api, LOG, SESSIONS + "{}\n").json()
    assert {problem["line"] for problem in answer["errors"]} == {5}


def test_topics_are_compared_with_the_list_of_the_collection(
    api: APIClient, collection: str
) -> None:
    assert upload(api, "collections/small/topics/", "1\tone\n", "put").status_code == 200
    assert upload(api, LOG, SESSIONS).json()["warnings"]["counts"] == {"topic_outside": 1}


def test_curves_are_those_of_the_engine(api: APIClient, send: Callable[..., str]) -> None:
    path = send()
    drawn = get(api, f"{path}curves/", measure="sDCG@2", per_session="true")
    assert drawn["length"] == 4
    a, b = drawn["curves"]
    # System A: s1 has b, a (0, 2 / 2), s4 has x (1): both held constant after their only query.
    assert a["values"] == pytest.approx([0.5, 1.0, 1.0, 1.0])
    assert a["ideal"] == pytest.approx([1.5, 1.75, 1.75, 1.75])
    # System B: s2 finds c with its second query, 1 / (1 + log_4 2); s5 nothing.
    assert b["values"] == pytest.approx([0, 0, 1 / 3, 1 / 3])
    assert (a["sessions"], b["sessions"]) == (2, 2)
    assert [len(row["values"]) for row in drawn["sessions"]] == [2, 4, 2, 2]
    normal = get(api, f"{path}curves/", measure="nsDCG@2", least=2)
    assert [curve["sessions"] for curve in normal["curves"]] == [1]
    assert normal["curves"][0]["ideal"] == [1, 1, 1, 1]
    curves = get(api, f"{path}curves/", measure="sDCG@2", system="A", topic="1", length=1)
    assert [curve["values"] for curve in curves["curves"]] == [[0.0]]


def test_queries_and_lengths(api: APIClient, send: Callable[..., str]) -> None:
    path = send()
    drawn = get(api, f"{path}queries/", measure="sDCG@2")
    assert [curve["queries"] for curve in drawn["curves"]["last"]] == [2, 2]
    assert [curve["queries"] for curve in drawn["curves"]["others"]] == [0, 1]
    assert drawn["curves"]["best"][1]["values"] == pytest.approx([1 / 3, 1 / 3])
    assert drawn["reformulations"][1] == {"system": "B", "gained": 1, "lost": 0, "same": 0}
    lengths = get(api, f"{path}lengths/")
    assert lengths["all"] == {"sessions": 4, "queries": 5, "mean": 1.25, "counts": [3, 1]}
    assert [row["counts"] for row in lengths["systems"]] == [[2, 0], [1, 1]]


def test_one_session_from_query_to_query(api: APIClient, send: Callable[..., str]) -> None:
    path = send()
    session = get(api, f"{path}sessions/s2/", measure="sDCG@2", documents=1)
    assert (session["number"], session["topic_id"], session["searcher"], session["system"]) == (
        2,
        "1",
        "u1",
        "B",
    )
    assert session["starts"] == [0, 2, 4]
    first, second = session["queries"]
    document = {"rank": 1, "doc_id": "u", "title": "", "score": None, "level": None}
    assert first["documents"] == [document]
    assert (second["text"], second["count"]) == ("again", 2)
    assert second["documents"] == [
        {"rank": 1, "doc_id": "c", "title": "", "score": None, "level": 1}
    ]
    weight = 1 / (1 + 0.5)
    assert second["contribution"] == pytest.approx(weight)
    assert second["ideal"] == pytest.approx(weight * 2.5)
    assert (first["reformulation"], second["reformulation"], second["change"]) == (
        None,
        "gained",
        1.0,
    )
    assert session["vector"] == pytest.approx([0, 0, weight, weight])
    assert session["value"] == pytest.approx(weight)
    assert session["normalised"][-1] == pytest.approx(weight / (2.5 + weight * 2.5))
    assert get(api, f"{path}sessions/2/", measure="sDCG@2", documents=1) == session
    assert get(api, f"{path}sessions/9/", 404)["code"] == "not_found"


INTERLEAVED = "\n".join(COLUMNS.splitlines()[::2] + COLUMNS.splitlines()[1::2]) + "\n"
XML = """<log><session num="s1"><topic num="1"/><interaction num="1"><query>one</query><results>
<result rank="1"><docno>a</docno></result></results></interaction></session>
<session num="s2"><topic num="1"/><interaction num="1"><query>two</query><results>
<result rank="1"><docno>b</docno></result><result rank="2"><docno>c</docno></result></results></interaction></session>
</log>"""


@pytest.mark.parametrize(
    "content",
    [COLUMNS, INTERLEAVED, XML, "\n" + SESSIONS],
    ids=["columns", "mixed", "xml", "jsonl"],
)
def test_every_session_is_found_in_its_log(
    api: APIClient, send: Callable[..., str], content: str
) -> None:
    path = send(content)
    for row in get(api, f"{path}values/")["sessions"]:
        session = get(api, f"{path}sessions/{row['session_id']}/")
        assert (session["number"], len(session["queries"])) == (row["number"], row["queries"])
        levels = LEVELS[row["topic_id"]]
        for query in session["queries"]:
            assert [document["level"] for document in query["documents"]] == [
                levels.get(document["doc_id"]) for document in query["documents"]
            ]


def test_a_log_that_is_gone_is_said_to_be(api: APIClient, send: Callable[..., str]) -> None:
    path = send()
    stored_path(SessionSet.objects.get().sha256).unlink()
    assert get(api, f"{path}sessions/s1/", 500)["code"] == "stored_file_missing"


@pytest.mark.parametrize(
    ("place", "query", "code", "pointer"),
    [
        ("values/", {"measures": "nDCG@10"}, "unknown_measure", "measures"),
        ("values/", {"system": "C"}, "invalid", "system"),
        ("values/", {"limit": "0"}, "invalid", "limit"),
        ("curves/", {"measure": "Session(of='AP')"}, "no_curve", None),
        ("curves/", {"least": "0"}, "invalid", "least"),
        ("queries/", {"measure": "InstanceRecall"}, "no_curve", None),
        ("sessions/s1/", {"documents": "x"}, "invalid", "documents"),
    ],
)
def test_what_cannot_be_asked_names_its_parameter(
    api: APIClient,
    send: Callable[..., str],
    place: str,
    query: dict[str, str],
    code: str,
    pointer: str | None,
) -> None:
    answer = get(api, send() + place, 400, **query)
    assert answer["code"] == code
    if pointer:
        assert answer["errors"][0]["pointer"] == pointer


def test_values_are_paged(api: APIClient, send: Callable[..., str]) -> None:
    path = send()
    page = get(api, f"{path}values/", limit=2, offset=1)
    assert ([row["number"] for row in page["sessions"]], page["count"]) == ([2, 3], 4)
    assert "offset=3" in page["next"]
    assert "offset=0" in page["previous"]
    assert page["means"] == get(api, f"{path}values/")["means"]


def test_judged_by_session_query_and_the_log_itself(
    api: APIClient, send: Callable[..., str]
) -> None:
    assert upload(api, "collections/small/qrels/", "s1 0 b 1\ns2 0 c 1\n").status_code == 201
    by_session = get(api, send(tag="session", judged_by="session") + "values/", measures="sDCG@2")
    assert [row["values"]["sDCG(b=2,bq=4)@2"] for row in by_session["sessions"]] == [
        1.0,
        pytest.approx(2 / 3),
        None,
        None,
    ]
    assert by_session["coverage"]["judged"] == 2
    keyed = upload(api, "collections/small/qrels/", "s1 1 b 1\ns2 2 c 3\n", keyed_by="query")
    assert (keyed.status_code, keyed.json()["keyed_by"], keyed.json()["topics"]) == (
        201,
        "query",
        2,
    )
    by_query = get(api, send(tag="query", judged_by="query") + "values/", measures="sDCG@2")
    assert [row["values"]["sDCG(b=2,bq=4)@2"] for row in by_query["sessions"]] == [
        1.0,
        pytest.approx(2.0),
        None,
        None,
    ]
    own = get(api, send(OWN, tag="own", judged_by="own") + "values/", measures="sDCG@2")
    assert (own["qrels"], own["judged_by"], own["stale"]) == (None, "own", False)
    assert [row["values"]["sDCG(b=2,bq=4)@2"] for row in own["sessions"]] == [1.0]
    assert not list(find_faults())


def test_the_same_file_keyed_otherwise_is_another_version(api: APIClient, collection: str) -> None:
    content = "1 1 a 1\n"
    assert upload(api, "collections/small/qrels/", content).json()["version"] == 2
    assert upload(api, "collections/small/qrels/", content, keyed_by="query").json()["version"] == 3
    bad = upload(api, "collections/small/qrels/", "1 x a 1\n", keyed_by="query")
    assert (bad.status_code, bad.json()["errors"][0]["code"]) == (422, "bad_query_number")


@pytest.mark.queries
def test_what_a_set_is_judged_by_can_be_changed(api: APIClient, send: Callable[..., str]) -> None:
    path = send()
    answer = api.patch(f"/api/v1/{path}", {"judged_by": "session", "description": "again"})
    assert (answer.status_code, answer.json()["status"]["state"]) == (200, "queued")
    evaluate_all()
    assert get(api, f"{path}values/")["coverage"]["judged"] == 0
    refused = api.patch(f"/api/v1/{path}", {"judged_by": "own"})
    assert (refused.status_code, refused.json()["code"]) == (400, "no_own_judgements")
    event = AuditEvent.objects.filter(action="session_set.changed").get()
    assert (event.before["judged_by"], event.after["judged_by"]) == ("topic", "session")


def test_new_judgements_evaluate_again_and_mark_the_old(
    api: APIClient, send: Callable[..., str]
) -> None:
    path = send()
    assert upload(api, "collections/small/qrels/", QRELS.replace("a 2", "a 1")).status_code == 201
    assert get(api, path)["status"]["state"] == "queued"
    old = get(api, f"{path}values/", measures="sDCG@2")
    assert (old["qrels"], old["stale"]) == (1, True)
    board = get(api, "collections/small/session-leaderboard/")
    assert (board["states"], [row["rank"] for row in board["results"]]) == (
        {"queued": 1},
        [None, None],
    )
    assert evaluate_all() == 1
    new = get(api, f"{path}values/", measures="sDCG@2")
    assert (new["qrels"], new["stale"]) == (2, False)
    assert get(api, f"{path}values/", measures="sDCG@2", qrels=1)["means"] == old["means"]
    assert [row["qrels"] for row in get(api, f"{path}evaluations/")] == [2, 1]


@pytest.mark.queries
def test_without_judgements_a_set_waits(api: APIClient) -> None:
    assert api.post("/api/v1/collections/", {"slug": "bare", "name": "Bare"}).status_code == 201
    answer = upload(api, "collections/bare/sessions/", SESSIONS)
    assert answer.json()["status"]["code"] == "no_active_qrels"
    path = f"session-sets/{answer.json()['id']}/"
    assert get(api, f"{path}values/", 404)["code"] == "not_evaluated"
    assert upload(api, "collections/bare/qrels/", QRELS).status_code == 201
    assert get(api, path)["status"]["queue"]["position"] == 1
    assert evaluate_all() == 1


@pytest.mark.queries
def test_a_deleted_set_is_gone_and_its_tag_is_free(
    api: APIClient, send: Callable[..., str]
) -> None:
    path = send(tag="log")
    assert api.delete(f"/api/v1/{path}").status_code == 204
    get(api, path, 404)
    assert get(api, LOG)["count"] == 0
    assert send(tag="log") != path
    assert [
        event.action for event in AuditEvent.objects.filter(object_type="sessionset").order_by("pk")
    ] == [
        "session_set.submitted",
        "session_set.deleted",
        "session_set.submitted",
    ]


@pytest.mark.queries
def test_a_set_deleted_while_it_waits_is_not_evaluated(api: APIClient, collection: str) -> None:
    pk = upload(api, LOG, SESSIONS).json()["id"]
    waiting = SessionEvaluation.objects.get()
    SessionSet.objects.filter(pk=pk).update(deleted_at=waiting.since)
    assert {finding.code for finding in find_faults()} == {"deleted_session_set_queued"}
    assert not evaluate_sessions(evaluation_id=waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.error_code) == ("cancelled", "session_set_deleted")


@pytest.mark.queries
def test_lists_are_filtered(api: APIClient, send: Callable[..., str]) -> None:
    send(tag="one")
    upload(api, LOG, SESSIONS, tag="two", judged_by="session")
    for query, tags in (
        ({"tag": "on"}, ["one"]),
        ({"judged_by": "session"}, ["two"]),
        ({"status": "evaluated"}, ["one"]),
        ({"status": "queued"}, ["two"]),
        ({"team": "nobody"}, []),
    ):
        assert [row["tag"] for row in get(api, LOG, **query)["results"]] == tags


def test_a_set_counts_against_the_quota_of_the_day(api: APIClient, collection: str) -> None:
    api.patch("/api/v1/collections/small/", {"daily_submissions": 1})
    assert upload(api, LOG, SESSIONS, tag="one").status_code == 202
    full = upload(api, LOG, SESSIONS, tag="two")
    assert (full.status_code, full.json()["code"]) == (429, "quota_exceeded")
    assert SessionSet.objects.count() == 1


@pytest.mark.queries
def test_an_evaluation_is_done_once(api: APIClient, collection: str) -> None:
    upload(api, LOG, SESSIONS)
    waiting = SessionEvaluation.objects.get()
    assert evaluate_sessions(evaluation_id=waiting.pk)
    assert not evaluate_sessions(evaluation_id=waiting.pk)
    assert SessionView.objects.count() == 1


@pytest.mark.queries
def test_a_corrupt_file_fails_with_its_reason(api: APIClient, collection: str) -> None:
    upload(api, LOG, SESSIONS)
    stored_path(SessionSet.objects.get().sha256).write_text("{}\n")
    evaluate_all()
    failed = SessionEvaluation.objects.get()
    assert (failed.state, failed.error_code) == ("failed", "stored_file_corrupt")


@pytest.mark.queries
def test_faults_are_found_and_repaired(api: APIClient, send: Callable[..., str]) -> None:
    send()
    evaluation = SessionEvaluation.objects.get()
    SessionView.objects.update(content=b"no view")
    assert [finding.code for finding in find_faults()] == ["session_view_unreadable"]
    SessionView.objects.all().delete()
    (finding,) = find_faults()
    assert (finding.code, bool(finding.repair)) == ("session_view_missing", True)
    assert finding.repair
    finding.repair()
    assert evaluate_all() == 1
    evaluation.delete()
    assert [finding.code for finding in find_faults()] == ["session_set_not_queued"]
    assert queue_missing() == 1
    stored_path(SessionSet.objects.get().sha256).unlink()
    assert "file_missing" in {finding.code for finding in find_faults()}


def test_others_may_look_and_not_change(api: APIClient, bob: Any, send: Callable[..., str]) -> None:
    path, other = send(), client_of(bob)
    assert get(other, f"{path}values/")["count"] == 4
    assert other.patch(f"/api/v1/{path}", {"description": "mine"}).status_code == 403
    assert other.delete(f"/api/v1/{path}").status_code == 403
