"""Statistics of a leaderboard as they are asked for: what is refused, what is shown, what it costs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Matrix
from metrics.questions import answer_cache
from metrics.services.answer_store import forget_all
from metrics.services.boards import standings
from metrics.services.boards.standing_parts import BOARD_RESAMPLES, StandingsQuery
from metrics.services.values.effort import seconds_of_ranks, seconds_of_test
from runs.models import Collection, User
from tests.metrics.boards import make_board
from tests.metrics.standings import (
    BOARD,
    NOBODY,
    RUNS,
    board,
    id_of,
    rows_of,
    values,
)
from tests.shared_data import alice, module_data

pytestmark = pytest.mark.words
__all__ = ["alice", "board", "module_data", "values"]


@pytest.mark.parametrize("test", TESTS)
def test_no_test_of_200_runs_on_250_topics_is_refused(test: str) -> None:
    resamples = BOARD_RESAMPLES.get(test, StandingsQuery.resamples)
    pairs = [200 * 199 // 2, 199]
    seconds = sum(seconds_of_test(test, 200, 250, number, resamples) for number in pairs)
    assert (
        seconds + seconds_of_ranks(200, 250, StandingsQuery.rank_resamples)
        < settings.EVALHUB_WORK_SECONDS
    )


def test_the_largest_t_of_200_runs_on_250_topics_takes_no_longer_than_a_page() -> None:
    assert seconds_of_test("max_t", 200, 250, 19_900, BOARD_RESAMPLES["max_t"]) < 0.4


def test_the_largest_t_of_1000_runs_on_50_topics_is_not_refused_beside_all_other_parts() -> None:
    resamples = BOARD_RESAMPLES["max_t"]
    seconds = sum(
        seconds_of_test("max_t", 1000, 50, pairs, resamples) for pairs in (1000 * 999 // 2, 999)
    )
    assert (
        seconds + seconds_of_ranks(1000, 50, StandingsQuery.rank_resamples)
        < settings.EVALHUB_WORK_SECONDS
    )


def test_queries_do_not_grow_with_the_board(anonymous: APIClient, board: Collection) -> None:
    # Two of them are for these runs alone: their evaluations have not stored Judged@10.
    for query, most in (({}, 13), ({"statistics": "all", "baseline": id_of("r0")}, 17)):
        with CaptureQueriesContext(connection) as queries:
            anonymous.get(BOARD, query)
        assert len(queries) <= most, "\n".join(entry["sql"][:200] for entry in queries)


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"statistics": "everything"}, "bad_parameter", "statistics"),
        ({"statistics": "baseline"}, "invalid", "baseline"),
        ({"baseline": "17"}, "invalid", "baseline"),
        ({"baseline": NOBODY}, "unknown_run", "baseline"),
        ({"statistics": "all", "test": "wishful"}, "unknown_test", "test"),
        ({"statistics": "all", "correction": "wishful"}, "unknown_correction", "correction"),
        ({"statistics": "all", "alpha": "2"}, "invalid", "alpha"),
        ({"statistics": "all", "confidence": "nan"}, "invalid", "confidence"),
        ({"statistics": "all", "resamples": "7"}, "invalid", "resamples"),
        ({"statistics": "all", "rank_resamples": "99999"}, "invalid", "rank_resamples"),
        ({"statistics": "all", "seed": "-1"}, "invalid", "seed"),
    ],
)
def test_statistics_without_a_meaning_are_refused(
    anonymous: APIClient, board: Collection, query: dict[str, str], code: str, pointer: str
) -> None:
    answer = anonymous.get(BOARD, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.usefixtures("answers_kept")
def test_what_would_take_too_long_is_refused_and_says_what_to_narrow(
    anonymous: APIClient, board: Collection, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts of statistics that are kept take no time; whole answers are made anew.
    monkeypatch.setattr(answer_cache, "keep", lambda *_, **__: None)
    assert (
        anonymous.get(BOARD, {"statistics": "tiers,ranks", "test": "sign", "seed": "1"}).status_code
        == 200
    )
    settings.EVALHUB_WORK_SECONDS = 1e-6
    assert (
        anonymous.get(
            BOARD, {"statistics": "tiers", "test": "sign", "confidence": "0.95"}
        ).status_code
        == 200
    )
    for parts, pointer, words in (
        ("tiers", "test", "another test"),
        ("ranks", "rank_resamples", "rank_resamples"),
    ):
        answer = anonymous.get(BOARD, {"statistics": parts})
        assert (answer.status_code, answer.json()["code"]) == (400, "too_much_work")
        assert words in answer.json()["detail"]
        assert answer.json()["errors"][0]["pointer"] == pointer
    settings.EVALHUB_WORK_SECONDS = 2
    assert anonymous.get(BOARD, {"statistics": "intervals"}).status_code == 200
    monkeypatch.setattr(standings, "MAX_RUNS", RUNS - 1)
    answer = anonymous.get(BOARD, {"statistics": "intervals"})
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_runs")
    assert anonymous.get(BOARD).status_code == 200


def test_a_long_board_has_tiers_without_letters(
    anonymous: APIClient, board: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    lettered = rows_of(anonymous, statistics="tiers")
    monkeypatch.setattr(standings, "MAX_GROUPED_RUNS", RUNS - 1)
    forget_all()
    body = anonymous.get(BOARD, {"statistics": "tiers"}).json()
    assert [caution["code"] for caution in body["statistics"]["tiers"]["cautions"]] == [
        "groups_left_out"
    ]
    for row in body["results"]:
        assert row["statistics"]["groups"] is None
        assert row["statistics"]["tier"] == lettered[row["run"]["tag"]]["statistics"]["tier"]


def test_the_page_says_what_the_api_says(client: Client, board: Collection, values: Matrix) -> None:
    html = client.get(
        "/collections/board/", {"statistics": "all", "baseline": id_of("r0")}
    ).content.decode()
    row = rows_of(Client(), statistics="all", baseline=id_of("r0"))["r1"]  # type: ignore[arg-type]
    low, high = (row["values"]["AP"][end] for end in ("low", "high"))
    assert f"{low:.4f} to {high:.4f}" in html
    assert "36 pairs differ" in html
    refused = client.get("/collections/board/", {"statistics": "all", "baseline": NOBODY})
    assert refused.status_code == 400
    assert "is not a ranked run" in refused.content.decode()


@pytest.mark.real_data
def test_the_board_of_a_real_track(anonymous: APIClient, alice: User, real_data: Path) -> None:
    """TREC-6 ad hoc by average precision, as docs/statistics.md tells it."""
    with (real_data / "score-matrices-urbano2019" / "adhoc6_ap.csv").open() as file:
        _, *lines = csv.reader(file)
    make_board(alice.personal_team, {"AP": np.array(lines, np.float64).T})
    best = anonymous.get(BOARD).json()["results"][0]["run"]["id"]
    body = anonymous.get(BOARD, {"statistics": "all", "baseline": best, "limit": 200}).json()
    tiers = [row["statistics"]["tier"] for row in body["results"]]
    assert (tiers.count(1), max(tiers), tiers) == (3, 4, sorted(tiers))
    assert body["results"][9]["statistics"]["rank"]["low"] == 5
    assert body["results"][9]["statistics"]["rank"]["high"] == 26
    summary = body["statistics"]
    families = [
        (summary[part]["family"], summary[part]["significant"]) for part in ("tiers", "baseline")
    ]
    assert families == [(2701, 753), (73, 73)]
    (design,) = anonymous.get("/api/v1/collections/board/design/", {"sizes": "25"}).json()[
        "measures"
    ]
    power, sizes, swaps = (
        design[name] for name in ("discriminative_power", "topic_set_size", "swap_rates")
    )
    assert [round(power[name], 3) for name in ("share", "typical", "needed")] == [
        0.641,
        0.057,
        0.094,
    ]
    assert (round(sizes["variance"], 4), round(sizes["detectable"], 3)) == (0.0201, 0.081)
    assert sizes["detections"][0]["topics_t"] == 129
    assert (round(swaps["sizes"][0]["rate"], 2), swaps["sizes"][0]["needed"]) == (
        0.14,
        pytest.approx(0.1),
    )
