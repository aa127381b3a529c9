"""The board of session sets: of one moment, and ranks that means over few sessions do not take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from metrics.services.sessions.board import SessionBoardQuery, read_session_board
from metrics.services.sessions.judged_sets import default_measures
from runs.models import Collection
from tests.conftest import SESSIONS, evaluate_all, upload
from tests.metrics.snapshots import Write, in_a_file

pytestmark = pytest.mark.words

LOG, BOARD = "collections/small/sessions/", "/api/v1/collections/small/session-leaderboard/"
TAKE_BACK = """UPDATE metrics_sessionevaluation SET state = 'queued' WHERE session_set_id IN
(SELECT id FROM runs_sessionset WHERE tag = 'two')"""


def write_after(table: str, write: Write, sql: str) -> Callable[..., Any]:
    """Let somebody else write once, right after the first query of a table."""
    waiting = [sql]

    def execute(ask: Callable[..., Any], sql: str, *others: Any) -> Any:
        result = ask(sql, *others)
        if waiting and f'FROM "{table}"' in sql:
            write(waiting.pop())
        return result

    return execute


@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite("writes beside in SQLite's way")
def test_rows_and_states_are_of_one_moment(api: APIClient, collection: str, tmp_path: Path) -> None:
    for tag in ("one", "two"):
        assert upload(api, LOG, SESSIONS, tag=tag).status_code == 202
    evaluate_all()
    small, measures = Collection.objects.get(slug="small"), default_measures()
    query = SessionBoardQuery(measures, measures[0])
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        with connection.execute_wrapper(write_after("metrics_sessionevaluation", write, TAKE_BACK)):
            during = read_session_board(collection=small, query=query)
        after = read_session_board(collection=small, query=query)
    assert (len(during.rows), during.total, during.states) == (4, 4, {"evaluated": 2})
    assert (len(after.rows), after.states) == (2, {"evaluated": 1, "queued": 1})


def test_lower_is_better_of_a_measure_made_of_one_where_it_is(
    api: APIClient, collection: str
) -> None:
    """A puts the relevant document second, B third: the search lengths are 2 and 3."""
    lines = (
        f'{{"session_id": "s{system}{topic}", "topic_id": "{topic}", "system": "{system}", '
        f'"queries": [{{"documents": {documents}}}]}}\n'
        for topic, relevant in (("1", "a"), ("2", "x"))
        for system, documents in (("B", f'["v", "w", "{relevant}"]'), ("A", f'["v", "{relevant}"]'))
    )
    assert upload(api, LOG, "".join(lines), tag="log").status_code == 202
    evaluate_all()
    for measure in ("Query(of='SearchLength')", "Session(of='SearchLength')"):
        board = api.get(BOARD, {"sort": measure}).json()
        assert board["order"] == "asc"
        means = [(row["rank"], row["system"]) for row in board["results"]]
        assert means == [(1, "A"), (2, "B")]
        compared = api.get(BOARD.replace("leaderboard", "comparison"), {"measure": measure}).json()
        assert [(system["system"], system["mean"]) for system in compared["systems"]] == [
            ("A", 2.0),
            ("B", 3.0),
        ]
        assert (
            "lowest first"
            in api.get("/collections/small/sessions/", {"measure": measure}).content.decode()
        )


def ten_sessions(fields: dict[str, Callable[[int], str]]) -> str:
    """Ten sessions of each system, on topics t0 to t9: the documents of the only query as JSON."""
    return "".join(
        f'{{"session_id": "{system}{number}", "topic_id": "t{number}", "system": "{system}", '
        f'"queries": [{{"documents": {documents(number)}}}]}}\n'
        for system, documents in fields.items()
        for number in range(10)
    )


def test_a_system_that_has_values_of_few_sessions_has_no_rank(
    api: APIClient, collection: str
) -> None:
    qrels = "".join(f"t{number} 0 d 1\nt{number} 0 n 0\n" for number in range(11))
    assert upload(api, "collections/small/qrels/", qrels).status_code == 201
    log = ten_sessions({
        "Good": lambda number: '["n", "d"]',
        "Empty": lambda number: '["d"]' if number == 0 else "[]",
        "Nothing": lambda number: "[]",
    })  # fmt: skip
    assert upload(api, LOG, log, tag="log").status_code == 202
    evaluate_all()
    measure = "nsDCG(short='asis')"
    rows = api.get(BOARD, {"sort": measure}).json()["results"]
    assert [(row["rank"], row["system"], row["code"], row["reason"]) for row in rows] == [
        (1, "Good", "", ""),
        (None, "Empty", "fewer_sessions", "mean of 1 of 10 sessions"),
        (None, "Nothing", "no_value", "no session has a value"),
    ]
    assert {row["sessions"] for row in rows} == {10}
    html = api.get("/collections/small/sessions/", {"measure": measure}).content.decode()
    assert '<span class="label warn">mean of 1 of 10 sessions</span>' in html
    padded = api.get(BOARD, {"sort": "nsDCG"}).json()["results"]
    assert [(row["rank"], row["system"]) for row in padded] == [
        (1, "Good"),
        (2, "Empty"),
        (3, "Nothing"),
    ]


def test_sessions_that_nobody_can_gain_from_cost_no_rank(api: APIClient, collection: str) -> None:
    """Nine topics of ten are judged, and eight have something relevant; A searched all, B those with a value only."""
    qrels = "".join(f"t{number} 0 d {int(number < 8)}\n" for number in range(9))
    assert upload(api, "collections/small/qrels/", qrels).status_code == 201
    log = ten_sessions({"A": lambda number: '["n", "d"]', "B": lambda number: '["d"]'}).splitlines(
        keepends=True
    )
    assert upload(api, LOG, "".join(log[:18]), tag="log").status_code == 202
    evaluate_all()
    for measure in ("nsDCG", "sDCG", "Session(of='RR')", "Query(of='AP')"):
        rows = api.get(BOARD, {"sort": measure}).json()["results"]
        assert [(row["rank"], row["system"], row["sessions"]) for row in rows] == [
            (1, "B", 8),
            (2, "A", 8),
        ], measure


def test_means_that_differ_by_rounding_share_a_rank(api: APIClient, collection: str) -> None:
    """The same ten values in another order: their sums differ in the last digit."""
    qrels = "".join(f"t{number} 0 d{rank} 1\n" for number in range(10) for rank in range(7))
    assert upload(api, "collections/small/qrels/", qrels).status_code == 201

    def of_some(number: int) -> str:
        return str([f"d{rank}" for rank in range(number % 7)]).replace("'", '"')

    other = (6, 0, 9, 8, 7, 4, 5, 3, 1, 2)
    log = ten_sessions(
        {"A": of_some, "B": lambda number: of_some(other[number]), "C": lambda number: of_some(3)}
    )
    assert upload(api, LOG, log, tag="log").status_code == 202
    evaluate_all()
    means = {row["system"]: row for row in api.get(BOARD, {"sort": "nsDCG"}).json()["results"]}
    name = "nsDCG(b=2,bq=4)@10"
    values = {system: row["values"][name]["mean"] for system, row in means.items()}
    assert values["A"] != values["B"]
    assert values["A"] == pytest.approx(values["B"], rel=1e-14)
    assert means["A"]["rank"] == means["B"]["rank"]
    assert means["C"]["rank"] != means["A"]["rank"]


@pytest.mark.queries
def test_a_measure_of_runs_within_one_of_sessions_takes_the_number_of_documents(
    api: APIClient, collection: str
) -> None:
    answer = upload(api, LOG, SESSIONS)
    evaluate_all()
    values, page = (
        f"/api/v1/session-sets/{answer.json()['id']}/values/",
        f"/session-sets/{answer.json()['id']}/",
    )
    measure = "Query(of='SearchLength(missing=random)')"
    compared = BOARD.replace("leaderboard", "comparison")
    refused = [api.get(values, {"measures": measure}), api.get(BOARD, {"measures": measure})]
    refused += [api.get(compared, {"measure": measure})]
    assert [answer.status_code for answer in refused] == [400] * 3
    assert (
        api.patch("/api/v1/collections/small/", {"documents": 50}, format="json").status_code == 200
    )
    named = "Query(of='SearchLength(missing=random,documents=50)')"
    taken, written = (api.get(values, {"measures": name}).json() for name in (measure, named))
    assert taken["means"] == written["means"]
    assert next(iter(taken["means"].values()))["mean"] is not None
    ranked = api.get(BOARD, {"measures": measure, "sort": measure})
    assert ranked.status_code == api.get(compared, {"measure": measure}).status_code == 200
    assert "documents=50" in ranked.json()["sort"]
    assert "documents=50" in api.get(page, {"measures": measure}).content.decode()
    assert (
        "documents=50"
        in api.get("/collections/small/sessions/", {"measure": measure}).content.decode()
    )
