"""What is read while runs are being evaluated is as of one moment, and its tag is that of this moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.db import connections
from django.test import Client

from metrics.models import Evaluation, MetricVector
from metrics.services.answer_store import forget_all
from runs.models import Collection, Run, User
from tests.conftest import GOOD
from tests.metrics.boards import add_version, make_board, simulated, vector
from tests.metrics.snapshots import Write, in_a_file

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("answers_kept"),
    pytest.mark.sqlite("writes beside in SQLite's way"),
]
API = "/api/v1/collections/board"
BOARD = f"{API}/leaderboard/"
ADDRESSES = (
    BOARD,
    f"{BOARD}?statistics=all",
    f"{BOARD}?filter=status:ranked",
    f"{BOARD}?filter=r*&limit=2&offset=2",
    f"{BOARD}export/csv/?statistics=tiers",
    f"{BOARD}export/md/",
    f"{BOARD}export/tex/",
    f"{BOARD}export/trec_eval/",
    f"{API}/evaluations/",
    f"{API}/what-if/?measures=P@5",
    f"{API}/orders/?measures=AP,P@5",
    f"{API}/charts/means.json",
    "/collections/board/",
    "/collections/board/board/?statistics=all",
)
EVALUATED = "UPDATE metrics_evaluation SET state='evaluated', topics_answered=10, since='2031-01-01' WHERE state='queued'"
QUEUED = (
    "UPDATE metrics_evaluation SET state='queued', topics_answered=NULL, since='2030-01-01'"
    " WHERE since='2031-01-01'"
)  # fmt: skip


@pytest.fixture
def beside(alice: User, tmp_path: Path) -> Iterator[Write]:
    """A board of six runs under a second version: three are evaluated, three are queued and stale."""
    values = {
        "AP": simulated(6, 10),
        "P@5": simulated(6, 10, seed=6),
        "Judged@10": np.ones((6, 10)),
    }
    board = make_board(alice.personal_team, values)
    Collection.objects.filter(pk=board.pk).update(measures=["AP", "P@5"])
    version = add_version(board, 2, [str(topic) for topic in range(10)])
    for place, run in enumerate(board.runs.order_by("created_at")):
        evaluation = Evaluation.objects.create(
            run=run, qrels=version, scores="float64", state="evaluated", topics_answered=10
        )
        for name, matrix in values.items():
            vector(evaluation, name, matrix[place]).save()
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        half = (
            Evaluation.objects.filter(qrels=version).order_by("pk").values_list("pk", flat=True)[3]
        )
        write(f"UPDATE metrics_evaluation SET since='2031-01-01' WHERE id >= {half}")
        write(QUEUED)
        yield write


def read(client: Client, address: str, **headers: Any) -> Any:
    """An answer that nothing remembered helped to make."""
    forget_all()
    cache.clear()
    return client.get(address, **headers)


@contextmanager
def meanwhile(write: Callable[[], None]) -> Iterator[None]:
    """Write once, as soon as the answer has looked at the evaluations for the first time."""
    pending = [write]

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if "metrics_evaluation" in sql and pending:
            pending.pop()()
        return result

    with connections["default"].execute_wrapper(look):
        yield
    assert not pending, "nobody looked at the evaluations"


@pytest.mark.slow
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_answer_is_of_one_moment_and_so_is_its_tag(
    client: Client, beside: Write, address: str
) -> None:
    before = read(client, address)
    assert before.status_code == 200
    with meanwhile(lambda: beside(EVALUATED)):
        during = read(client, address)
    assert during.content == before.content
    known = {"HTTP_IF_NONE_MATCH": during["ETag"]} if "ETag" in during else {}
    after = read(client, address, **known)
    assert after.status_code == 200
    assert after.content != before.content
    assert read(client, address).content == after.content


def test_every_run_is_there_once_whenever_one_is_evaluated(client: Client, beside: Write) -> None:
    first = EVALUATED.replace(
        "WHERE", "WHERE id = (SELECT min(id) FROM metrics_evaluation WHERE state='queued') AND"
    )

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if "metrics_evaluation" in sql:
            beside(first)
        return result

    with connections["default"].execute_wrapper(look):
        boards = [read(client, BOARD).json() for _ in range(3)]
    for board in boards:
        assert (
            len({row["run"]["id"] for row in board["results"]})
            == len(board["results"])
            == board["count"]
            == 6
        )
        assert (
            board["ranked"]
            == board["states"]["evaluated"]
            == sum(row["rank"] is not None for row in board["results"])
        )
        assert sum(board["states"].values()) == 6
        assert board["provisional"] == (board["ranked"] < 6)
    assert boards[-1]["ranked"] == 6


def test_no_other_body_comes_back_with_a_run_that_is_restored(
    client: Client, beside: Write
) -> None:
    """Withdrawn and restored, everything is as it was, and the tag of before is right again."""
    withdraw = "UPDATE runs_run SET deleted_at='2031-01-01' WHERE tag='r0'"
    with meanwhile(lambda: beside(withdraw)):
        first = read(client, BOARD)
    assert len(client.get(BOARD).json()["results"]) == 5
    beside("UPDATE runs_run SET deleted_at=NULL WHERE tag='r0'")
    again = client.get(BOARD)
    assert (again["ETag"], again.content) == (first["ETag"], first.content)
    assert len(again.json()["results"]) == 6


def test_what_a_board_repaired_is_stored_though_others_wrote_meanwhile(
    client: Client, submit: Callable[..., Run], tmp_path: Path
) -> None:
    submit(GOOD)
    sound = dict(MetricVector.objects.values_list("measure", "mean"))
    MetricVector.objects.update(mean=0.125)
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        with meanwhile(lambda: write("UPDATE runs_team SET name = 'other'")):
            assert read(client, "/api/v1/collections/small/leaderboard/").status_code == 200
        assert dict(MetricVector.objects.values_list("measure", "mean")) == sound
