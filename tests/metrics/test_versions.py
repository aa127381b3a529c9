"""Leaderboards of systems, each by its latest or best version, and the progress of one system."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.models import Evaluation
from runs.models import Collection, Qrels, Run, System, Team, User
from tests.conftest import client_of
from tests.metrics.boards import make_run
from tests.metrics.scored import make_scored, simulated

pytestmark = pytest.mark.words
BOARD = "/api/v1/collections/board/leaderboard/"
SYSTEM = "/api/v1/systems/alice/a/"
# Means in the order of submission: r0 .40, r1 .60, r2 .50 (system a); r3 .55, r4 .55 (b); r5 .30;
# r6 .60.
SHIFTS = (0.4, 0.6, 0.5, 0.55, 0.55, 0.3, 0.6)


def values() -> np.ndarray:
    """Every run has the mean of its shift."""
    noise = np.random.default_rng(3).normal(0, 0.05, (7, 30))
    noise -= noise.mean(axis=1, keepdims=True)
    return noise + np.array(SHIFTS)[:, None]


@pytest.fixture
def board(alice: User) -> list[str]:
    """Two systems and two runs that are versions of none."""
    runs = make_scored("board", alice.personal_team, values().round(12))
    for slug, members in (("a", runs[:3]), ("b", runs[3:5])):
        system = System.objects.create(team=alice.personal_team, slug=slug)
        for version, run in enumerate(members, 1):
            Run.objects.filter(pk=run).update(system=system, version=version)
    return runs


def rows(client: APIClient, **query: Any) -> list[tuple[Any, ...]]:
    answer = client.get(BOARD, {name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.content
    return [
        (
            row["run"]["tag"],
            row["rank"],
            (row["versions"] or {}).get("of"),
            (row["versions"] or {}).get("newer"),
        )
        for row in answer.json()["results"]
    ]


def test_all_versions_are_the_default(anonymous: APIClient, board: list[str]) -> None:
    answer = anonymous.get(BOARD).json()
    assert ("versions" in answer, answer["ranked"], "versions" in answer["results"][0]) == (
        False,
        7,
        False,
    )
    assert {row["run"]["tag"]: (row["system"], row["version"]) for row in answer["results"]}[
        "r1"
    ] == ("a", 2)
    assert anonymous.get(f"{BOARD}?versions=all").json()["results"] == answer["results"]
    wrong = anonymous.get(f"{BOARD}?versions=newest").json()
    assert (wrong["code"], wrong["errors"][0]["pointer"]) == ("invalid", "versions")


def test_the_latest_version_of_each_system(anonymous: APIClient, board: list[str]) -> None:
    assert rows(anonymous, versions="latest") == [
        ("r6", 1, None, None), ("r4", 2, 2, None), ("r2", 3, 3, None), ("r5", 4, None, None),
    ]  # fmt: skip
    # A newer version without values: the latest evaluated one stays, with a mark.
    collection, system = Collection.objects.get(), System.objects.get(slug="a")
    new = make_run(collection, "new")
    Run.objects.filter(pk=new.pk).update(system=system, version=4)
    assert rows(anonymous, versions="latest")[2] == ("r2", 3, 4, 4)
    # A system of which nothing is evaluated has a row without a rank.
    other = make_run(collection, "other")
    third = System.objects.create(team=collection.team, slug="c")
    Run.objects.filter(pk=other.pk).update(system=third, version=1)
    assert rows(anonymous, versions="latest")[4:] == [("other", None, 1, None)]
    assert rows(anonymous, versions="best")[4:] == [("other", None, 0, None)]
    answer = anonymous.get(BOARD, {"versions": "latest"}).json()
    assert (answer["count"], answer["ranked"], answer["caption"]) == (
        5, 4, "Each system by its latest evaluated version.",
    )  # fmt: skip


def test_the_latest_versions_are_an_ordinary_board(anonymous: APIClient, board: list[str]) -> None:
    """Its statistics are those of a collection that has these runs alone."""
    query = {"versions": "latest", "statistics": "all", "baseline": board[6]}
    newest = anonymous.get(BOARD, query).json()
    Run.objects.filter(tag__in=("r0", "r1", "r3")).update(deleted_at="2026-01-01T00:00Z")
    alone = anonymous.get(BOARD, {**query, "versions": "all"}).json()
    # All that ever came, whichever are shown.
    assert [answer["statistics"].pop("received")["withdrawn"] for answer in (newest, alone)] == [
        0,
        3,
    ]
    assert newest["statistics"] == alone["statistics"]
    assert [row["statistics"] for row in newest["results"]] == [
        row["statistics"] for row in alone["results"]
    ]
    assert newest["results"][1]["values"]["AP"]["low"] is not None


def test_the_best_version_of_each_system(anonymous: APIClient, board: list[str]) -> None:
    # Of equal ones the earlier; ranks are anew, and ties share one.
    assert rows(anonymous, versions="best") == [
        ("r1", 1, 3, None), ("r6", 1, None, None), ("r3", 3, 2, None), ("r5", 4, None, None),
    ]  # fmt: skip
    assert [row[0] for row in rows(anonymous, versions="best", order="asc")] == [
        "r5",
        "r0",
        "r3",
        "r6",
    ]
    # A filter hides rows, and never lets another version stand for the system.
    assert rows(anonymous, versions="best", filter="version:3") == []
    assert rows(anonymous, versions="best", filter="system:a") == [("r1", 1, 3, None)]
    assert rows(anonymous, versions="best", limit=2, offset=2)[0] == ("r3", 3, 2, None)


def test_best_versions_have_the_p_of_all_pairs_and_no_intervals(
    anonymous: APIClient, board: list[str]
) -> None:
    query = {"statistics": "all", "baseline": board[5]}
    whole, best = (
        anonymous.get(BOARD, {**query, "versions": which}).json() for which in ("all", "best")
    )
    # Neither expected means nor rank sets: the runs were chosen by the means from which these would
    # come.
    assert best["statistics"]["parts"] == ["tiers", "baseline"]
    assert best["statistics"]["tiers"] == {**whole["statistics"]["tiers"], "best": None}
    assert best["statistics"]["tiers"]["family"] == 21
    assert [caution["code"] for caution in best["statistics"]["cautions"]] == ["best_of_versions"]
    of = {row["run"]["tag"]: row for row in whole["results"]}
    for row in best["results"]:
        mine, theirs = row["statistics"], of[row["run"]["tag"]]["statistics"]
        assert (mine["tier"], mine["groups"], mine["rank"]) == (
            theirs["tier"],
            theirs["groups"],
            None,
        )
        assert "low" not in row["values"]["AP"]
        if mine["baseline"]:
            assert mine["baseline"]["p_adjusted"] == theirs["baseline"]["p_adjusted"]
            assert (mine["baseline"]["low"], theirs["baseline"]["low"] is None) == (None, False)
    expected = {
        row["run"]["tag"]: (row["versions"] or {}).get("expected_best") for row in best["results"]
    }
    assert expected["r1"] == pytest.approx(0.6, abs=0.02)
    assert (expected["r5"], expected["r6"]) == (None, None)


def test_what_is_remembered_follows_the_versions(anonymous: APIClient, board: list[str]) -> None:
    path = f"{BOARD}?versions=latest"
    before = anonymous.get(path)
    assert anonymous.get(path, headers={"If-None-Match": before["ETag"]}).status_code == 304
    api = client_of(User.objects.get(username="alice"))
    assert api.patch(SYSTEM, {"remove": [board[2]]}, format="json").status_code == 200
    after = anonymous.get(path, headers={"If-None-Match": before["ETag"]})
    assert [row["run"]["tag"] for row in after.json()["results"]] == ["r1", "r6", "r4", "r2", "r5"]
    # Two versions change places: their sums and numbers stay.
    api.patch(SYSTEM, {"remove": board[:2]}, format="json")
    first = anonymous.get(BOARD)
    api.patch(SYSTEM, {"add": board[1:2]}, format="json")
    api.patch(SYSTEM, {"add": board[:1]}, format="json")
    second = anonymous.get(BOARD)
    api.patch(SYSTEM, {"remove": board[:2]}, format="json")
    api.patch(SYSTEM, {"add": board[:2]}, format="json")
    assert len({answer["ETag"] for answer in (first, second, anonymous.get(BOARD))}) == 3


def test_files_say_which_versions_they_hold(anonymous: APIClient, board: list[str]) -> None:
    def export(kind: str, which: str) -> str:
        return anonymous.get(
            f"{BOARD}export/{kind}/", {"versions": which, "statistics": "tiers"}
        ).content.decode()

    best = list(csv.DictReader(io.StringIO(export("csv", "best"))))
    assert [(row["tag"], row["system"], row["version"], row["of"]) for row in best] == [
        ("r1", "a", "2", "3"), ("r6", "", "", ""), ("r3", "b", "1", "2"), ("r5", "", "", ""),
    ]  # fmt: skip
    assert float(best[0]["expected_best"]) == pytest.approx(0.6, abs=0.02)
    assert "expected_best" not in export("csv", "latest").splitlines()[0]
    assert "system" not in export("csv", "all").splitlines()[0]
    for kind in ("md", "tex"):
        assert "Each system by its best of k versions: means are too high" in export(kind, "best")
        assert "of 3" in export(kind, "best")
        assert "Each system by its latest evaluated version." in export(kind, "latest")
        assert "version" not in export(kind, "all").replace("qrels version", "")


def test_a_participant_sees_no_board_of_best_versions_while_it_is_blind(
    api: APIClient, board: list[str]
) -> None:
    other = client_of(User.objects.create_user("guest"))
    Collection.objects.update(blind=True)
    refused = other.get(BOARD, {"versions": "best"})
    assert (refused.status_code, refused.json()["code"]) == (403, "blind")
    # The organiser sees it, as all of it.
    assert rows(api, versions="best")[0][0] == "r1"


def test_the_progress_of_a_system(anonymous: APIClient, api: APIClient, board: list[str]) -> None:
    progress = anonymous.get(SYSTEM).json()["progress"]
    steps = progress["versions"]
    assert [(step["version"], round(step["mean"], 6), round(step["best_so_far"], 6)) for step in steps] == [
        (1, 0.4, 0.4), (2, 0.6, 0.6), (3, 0.5, 0.6),
    ]  # fmt: skip
    assert (progress["measure"], progress["topics"], progress["beyond_chance"]) == ("AP", 30, True)
    assert steps[0]["low"] < 0.4 < steps[0]["high"]
    assert steps[0]["equal_versions_reach"] == pytest.approx(0.4)
    assert 0.4 < steps[1]["equal_versions_reach"] <= steps[2]["equal_versions_reach"] < 0.6
    assert progress["best_so_far"] == pytest.approx(0.6)
    assert progress["expected_best"] == pytest.approx(0.6, abs=0.02)
    assert (
        anonymous.get(SYSTEM, {"measure": "nDCG(norm='average')"}).json()["code"]
        == "pooled_measure"
    )
    System.objects.create(team=Team.objects.get(slug="alice"), slug="none")
    assert api.get("/api/v1/systems/alice/none/").json()["progress"] is None


def test_no_means_of_a_system_while_it_is_blind(board: list[str]) -> None:
    team = Team.objects.get(slug="alice")
    member = User.objects.create_user("member")
    team.memberships.create(user=member)
    # Somebody else organises.
    lab = Team.objects.create(slug="lab", name="Lab")
    Collection.objects.update(blind=True, team=lab)
    client = client_of(member)
    seen = client.get(SYSTEM).json()
    assert (len(seen["results"]), seen["progress"]) == (3, None)
    refused = client.get(SYSTEM, {"measure": "AP"})
    assert (refused.status_code, refused.json()["code"]) == (403, "blind")
    browser = Client()
    browser.force_login(member)
    page = browser.get("/systems/alice/a/")
    assert (page.status_code, "Blind" in page.content.decode(), "0.6" in page.content.decode()) == (
        200,
        True,
        False,
    )
    assert client_of(None).get("/systems/alice/a/").status_code == 404
    drawn = client.get("/api/v1/collections/board/charts/best-so-far.svg?system=alice/a")
    assert drawn.status_code == 403


def test_the_page_of_a_system(anonymous: APIClient, board: list[str]) -> None:
    Run.objects.filter(pk=board[0]).update(metadata={"k1": 0.9, "old": "<b>"})
    Run.objects.filter(pk=board[1]).update(metadata={"k1": 1.2})
    page = anonymous.get("/systems/alice/a/").content.decode()
    assert "3 versions" in page
    assert "<code>k1</code>" in page
    assert "0.9 →" in " ".join(page.split())
    assert "&lt;b&gt;" in page
    assert "not set" in page
    assert "/charts/best-so-far.svg?system=alice%2Fa" in page
    assert "is beyond the grey band" in page
    page = page[page.index('id="versions"') :]
    assert page.index(">r2<") < page.index(">r1<") < page.index(">r0<")
    chart = anonymous.get(
        "/api/v1/collections/board/charts/best-so-far.svg?system=alice/a&measure=AP"
    )
    assert (chart.status_code, b"AP of the versions of a" in chart.content) == (200, True)
    live = anonymous.get(
        "/api/v1/collections/board/charts/best-so-far.json?system=alice/a&measure=AP"
    )
    assert f'"{Run.objects.get(pk=board[0]).created_at:%Y-%m-%d}"' in live.content.decode()
    Run.objects.filter(pk__in=board[1:3]).update(deleted_at="2026-01-01T00:00Z")
    assert "One version: nothing to compare" in anonymous.get("/systems/alice/a/").content.decode()
    assert anonymous.get("/systems/alice/a/?measure=foo").status_code == 400
    assert anonymous.get("/systems/alice/a/?collection=nothing").status_code == 404
    unknown = anonymous.get(
        "/api/v1/collections/board/charts/best-so-far.svg?system=alice/nothing"
    ).json()
    assert unknown["code"] == "unknown_system"


def test_the_page_of_the_board_has_one_control(anonymous: APIClient, board: list[str]) -> None:
    page = anonymous.get("/collections/board/").content.decode()
    assert 'href="?versions=best#leaderboard"' in page
    best = anonymous.get("/collections/board/?versions=best").content.decode()
    assert "Each system by its best of k versions" in best
    assert "best of 3" in best
    assert 'class="interval"' not in best
    assert "expected" in best
    assert "/systems/alice/a/?collection=board" in best
    latest = anonymous.get("/collections/board/?versions=latest").content.decode()
    assert "v3 of 3" in latest
    assert 'class="interval"' in latest
    Run.objects.update(system=None, version=None)
    assert "Versions of systems" not in anonymous.get("/collections/board/").content.decode()


def test_forms_describe_a_system_and_choose_its_versions(
    api: APIClient, board: list[str], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Client()
    browser.force_login(alice)
    path = "/systems/alice/a/change/"
    assert (
        browser.post(path, {"action": "describe", "name": "A & B", "description": "x"}).status_code
        == 303
    )
    assert "A &amp; B" in browser.get("/systems/alice/a/").content.decode()
    assert browser.post(path, {"action": "add", "runs": [board[6], board[5]]}).status_code == 303
    assert list(Run.objects.filter(system__slug="a").order_by("version").values_list("tag", flat=True)) == [
        "r0", "r1", "r2", "r5", "r6",
    ]  # fmt: skip
    assert browser.post(path, {"action": "remove", "runs": board[6]}).status_code == 303
    for form, message in (
        ({"action": "add"}, "Select the runs first"), ({"action": "x"}, "Press one of the buttons"),
        ({"action": "add", "runs": "x"}, "Must be a valid UUID"),
        ({"action": "add", "others": "board/r3 elsewhere/r4"}, "ne of these runs is called &#x27;elsewhere/r4&#x27;"),
        ({"action": "describe", "name": "a\nb"}, "invisible character"),
    ):  # fmt: skip
        answer = browser.post(path, form)
        assert (answer.status_code, message in answer.content.decode()) == (400, True), (
            answer.content.decode()
        )
    assert Run.objects.get(tag="r6").version is None
    assert "Other runs" not in browser.get(path).content.decode()
    monkeypatch.setattr("runs.pages.tracking.systems._MAX_CHOICES", 1)
    assert "Other runs" in browser.get(path).content.decode()
    assert browser.post(path, {"action": "add", "others": "board/r6"}).status_code == 303
    assert Run.objects.filter(system__slug="a", tag="r6").exists()


def test_many_versions_stay_cheap(
    anonymous: APIClient, alice: User, django_assert_max_num_queries: Any
) -> None:
    runs = make_scored("board", alice.personal_team, simulated(60, 20))
    system = System.objects.create(team=alice.personal_team, slug="a")
    for version, run in enumerate(runs, 1):
        Run.objects.filter(pk=run).update(system=system, version=version)
    assert Evaluation.objects.count() == Qrels.objects.get().evaluations.count() == 60
    with django_assert_max_num_queries(17):
        assert rows(anonymous, versions="best")[0][1:3] == (1, 60)
