"""What processes remember of the evaluations of a leaderboard, and how they read the means of many."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import connection
from django.db.models import TextField
from django.db.models.functions import Cast
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from metrics.engine.measures.grammar import parse_measure
from metrics.models import Evaluation, MetricVector
from metrics.services.boards import ranked_evaluations as roster
from metrics.services.boards.board_question import BoardQuery, BoardQuestion, active_qrels
from metrics.services.boards.columns import ShownColumn, arranged, places_of
from metrics.services.boards.ranked_evaluations import Recent
from metrics.services.snapshots import once_in_snapshot, one_snapshot
from metrics.services.values.judged_views import stored_means
from runs.models import Collection, ParameterKey, Run, User
from runs.services.audit.revisions import raise_revision
from runs.services.tracking.parameters import PARAM, store_parameters
from tests.metrics.boards import add_runs, add_version, make_board, make_run, simulated
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]


def test_what_was_asked_for_last_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "is_isolated", lambda: True)
    recent, read = Recent[str](10), list[str]()

    def ask(key: str) -> str:
        return recent.of(key, lambda: read.append(key) or key.upper(), lambda _: 4)

    assert [ask(key) for key in "abacab"] == list("ABACAB")
    # c took the place of b, which nobody had asked for since.
    assert read == ["a", "b", "c", "b"]


def test_what_an_open_transaction_sees_is_not_remembered(db: None) -> None:
    recent, read = Recent[int](10), list[int]()
    for _ in range(2):
        with one_snapshot():
            recent.of("key", lambda: read.append(1) or 1, lambda _: 1)
    assert len(read) == 2


def test_a_snapshot_reads_once_and_none_reads_each_time(db: None) -> None:
    read: list[int] = []
    for snapshot in (True, False):
        read.clear()
        if snapshot:
            with one_snapshot():
                reads = [
                    once_in_snapshot("key", lambda: read.append(1) or len(read)) for _ in range(3)
                ]
            assert reads == [1, 1, 1]
        else:
            assert [
                once_in_snapshot("key", lambda: read.append(1) or len(read)) for _ in range(3)
            ] == [1, 2, 3]


@pytest.mark.parametrize("between", [0, 1, 5])
def test_evaluations_of_others_in_between_change_no_order(alice: User, between: int) -> None:
    """Many are read as one piece of an index, with what others have in it; few among many of others by their keys."""
    team, values = alice.personal_team, simulated(6, 10)
    boards = [
        Collection.objects.create(slug=f"b{n}", name="B", team=team, measures=["AP"])
        for n in range(2)
    ]
    own, other = (add_version(board, 1, [str(topic) for topic in range(10)]) for board in boards)
    for index in range(6):
        add_runs(own, [make_run(boards[0], f"r{index}")], {"AP": values[[index]]})
        for number in range(between):
            add_runs(
                other, [make_run(boards[1], f"o{index}-{number}")], {"AP": values[[index]] / 2}
            )
    measure = parse_measure("AP")
    order = BoardQuestion(boards[0], active_qrels(boards[0]), BoardQuery([measure], measure)).order
    tags = dict(Evaluation.objects.filter(qrels=own).values_list("pk", "run__tag"))
    assert [tags[pk] for pk, _ in order.ranked] == [
        f"r{n}" for n in np.argsort(-values.mean(axis=1)).tolist()
    ]


def test_a_damaged_mean_is_left_out_of_the_means_that_order(alice: User) -> None:
    board = make_board(alice.personal_team, {"AP": simulated(3, 10)})
    qrels, measure = active_qrels(board), parse_measure("AP")
    rows = list(MetricVector.objects.filter(measure="AP"))
    MetricVector.objects.bulk_update(
        [row.seal(qrels.pk) for row in rows], ["digest", "mean_digest"]
    )
    MetricVector.objects.filter(pk=rows[1].pk).update(mean=9.0)
    question = BoardQuestion(board, qrels, BoardQuery([measure], measure))
    keys, means, _ = stored_means(MetricVector.objects.filter(measure="AP"), "AP", qrels.pk)
    assert rows[1].evaluation_id not in keys.tolist()
    assert 9.0 not in means.tolist()
    assert len(question.roster.keys) == 3


def test_another_name_of_a_team_and_each_withdrawal_are_noticed(
    alice: User, anonymous: APIClient
) -> None:
    board = make_board(alice.personal_team, {"AP": simulated(3, 10)})
    seen, address = [], "/api/v1/collections/board/leaderboard/"

    def look() -> None:
        seen.append(anonymous.get(address)["ETag"])

    look()
    team = alice.personal_team
    team.slug = "another-name"
    team.save()
    raise_revision(board.pk)
    look()
    first, second = Run.objects.order_by("tag")[:2]
    for run in (first, second):
        Run.objects.filter(pk=run.pk).update(
            deleted_at="2026-01-01T00:00:00Z" if run == first else "2026-01-02T00:00Z"
        )
        raise_revision(board.pk)
        look()
    Run.objects.filter(pk=first.pk).update(deleted_at=None)
    raise_revision(board.pk)
    look()
    assert len(set(seen)) == len(seen)


def test_remembered_places_of_parameters_follow_every_change(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "is_isolated", lambda: True)
    board = make_board(alice.personal_team, {"AP": simulated(4, 10)})
    runs = list(Run.objects.order_by("tag"))

    def order_with(*args: object) -> list[int]:
        for run, k in zip(runs, args, strict=True):
            run.metadata = {} if k is None else {"k": k}
        store_parameters(board, runs)
        raise_revision(board.pk)
        key = ParameterKey.objects.get(collection=board, name="k")
        column = ShownColumn(PARAM, "k", key_id=key.pk)
        names = list(named.order_by("tag").values_list("name", flat=True))
        orders = [arranged(names, places_of(column, board), descending=False) for _ in range(2)]
        assert orders[0] == orders[1]
        return orders[0]

    named = Run.objects.annotate(name=Cast("pk", TextField()))
    assert order_with(3, 1, 2, 1) == [1, 3, 2, 0]
    assert order_with(3, 4, 2, 1) == [3, 2, 0, 1]
    assert order_with("b", True, None, 7) == [3, 0, 1, 2]
    with CaptureQueriesContext(connection) as question:
        places_of(ShownColumn(PARAM, "k", key_id=ParameterKey.objects.get(name="k").pk), board)
    assert not any('"runs_parameter"' in query["sql"] for query in question)
