"""What explains values and what runs cost, through the API: who takes part, what is refused, files and charts."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from rest_framework.test import APIClient

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.look import Look
from metrics.models import MetricVector
from runs.models import Collection, ParameterKey, Run, User
from tests.engine.studies import grid_study
from tests.metrics.boards import describe, make_board

pytestmark = pytest.mark.words

GRID, TOPICS = 24, 50
BASE = "/api/v1/collections/board/"
IMPORTANCE, FRONTIER = f"{BASE}importance/", f"{BASE}frontier/"
EPYC = {"hardware": {"cpu": {"model": "EPYC"}}}


@pytest.fixture
def study(alice: User) -> Collection:
    """24 runs of a grid in which k1 = 1.2 is better, one that says nothing, and one without parameters but its CPU."""
    values, (k1, b) = grid_study(np.random.default_rng(4), 0.05)
    values = np.vstack([values, values[:2]])
    collection = make_board(alice.personal_team, {"AP": values, "P@10": np.round(values, 1)})
    parameters: list[dict[str, Any]] = [
        {"bm25": {"k1": k1.values[i][0], "b": b.values[j][0]}, "seed": place, "platform": EPYC}
        for place, (i, j) in enumerate(zip(k1.codes, b.codes, strict=True))
    ]
    costs: list[dict[str, Any]] = [
        {"ms": {"value": 10 + place, "low": 9.9 + place, "high": 10.1 + place, "n": 7}}
        for place in range(GRID)
    ]
    describe(collection, [*parameters, {}, {"platform": EPYC}], [*costs, {"ms": 5}, {"kg": 2}])
    return collection


def ask(client: APIClient, address: str, status: int = 200, **query: Any) -> Any:
    answer = client.get(address, query)
    assert answer.status_code == status, answer.content
    return answer.json()


def codes(answer: dict[str, Any]) -> list[str]:
    return [caution["code"] for caution in answer["cautions"]]


def test_both_answers_name_what_was_planted(anonymous: APIClient, study: Collection) -> None:
    answer = ask(anonymous, IMPORTANCE)
    assert (answer["measure"], answer["runs"], answer["topics"], answer["parameters"]) == (
        "AP",
        GRID,
        TOPICS,
        2,
    )
    assert answer["left_out"] == ["platform.hardware.cpu.model", "seed"]
    assert codes(answer) == [
        "chosen_runs",
        "different_in_every_run",
        "runs_without_parameters",
        "ignored",
    ]
    assert [(row["name"], row["from"], row["to"], row["pairs"]) for row in answer["matched"][:3]] == [
        ("bm25.b", 0.1, 0.2, 4), ("bm25.b", 0.2, 0.3, 4), ("bm25.b", 0.3, 0.4, 4)
    ]  # fmt: skip
    sure = {(row["from"], row["to"]): row for row in answer["matched"] if row["p_adjusted"] < 0.05}
    assert set(sure) == {(0.9, 1.2), (1.2, 1.5)}
    # d +- 2.2 sqrt(2 * .0082^2): the noise of single values is among the runs and among the topics.
    assert (
        0.02 < sure[0.9, 1.2]["low"] < sure[0.9, 1.2]["difference"] < sure[0.9, 1.2]["high"] < 0.09
    )
    strongest, other = answer["associated"]
    assert (strongest["name"], other["name"], answer["reason"]) == ("bm25.k1", "bm25.b", None)
    assert strongest["p"] < 0.01 < other["p"]
    means = {level["value"]: (level["runs"], level["mean"]) for level in strongest["levels"]}
    stored = dict(
        MetricVector.objects.filter(measure="AP").values_list("evaluation__run__tag", "mean")
    )
    assert means[1.2] == (
        6,
        pytest.approx(np.mean([stored[f"r{place}"] for place in range(12, 18)])),
    )
    assert ask(anonymous, IMPORTANCE, seed="0")["associated"] == answer["associated"]


@pytest.mark.queries
def test_runs_and_filter_choose_who_takes_part(anonymous: APIClient, study: Collection) -> None:
    low = ask(anonymous, IMPORTANCE, filter="param:bm25.k1<1")
    assert (low["runs"], low["reason"], low["parameters"]) == (12, "no_association", 1)
    assert low["message"] == "12 runs, 1 parameter: it does not go with AP more than chance would."
    few = ask(anonymous, IMPORTANCE, filter="param:bm25.k1=0.9")
    assert (few["runs"], few["matched"], few["reason"]) == (6, [], "too_few_runs")
    chosen = [str(Run.objects.get(tag=f"r{place}").pk) for place in range(10, 26)]
    assert ask(anonymous, IMPORTANCE, runs=",".join(chosen))["runs"] == 14
    assert ask(anonymous, IMPORTANCE, 400, filter="param:bm25.k>1")["code"] == "bad_filter"
    assert ask(anonymous, IMPORTANCE, 400, measure="foo")["code"] == "unknown_measure"
    assert ask(anonymous, IMPORTANCE, 400, seed="-1")["errors"][0]["pointer"] == "seed"
    twice = ask(anonymous, IMPORTANCE, 400, filter="r1", runs=str(Run.objects.latest("pk").pk))
    assert twice["code"] == "repeated_parameter"
    none = ask(anonymous, IMPORTANCE, filter="no-such-run")
    assert (none["runs"], none["reason"]) == (0, "too_few_runs")


def test_a_single_pair_has_no_p(anonymous: APIClient, study: Collection) -> None:
    """Two of the runs differ in k1 alone."""
    names = ["same", "same", *(f"name {place}" for place in range(GRID))]
    parameters = [{"k1": place % 2, "name": name} for place, name in enumerate(names)]
    describe(study, parameters, [{}] * (GRID + 2))
    answer = ask(anonymous, IMPORTANCE)
    (row,) = answer["matched"]
    assert (row["pairs"], row["low"], row["p"], row["p_adjusted"]) == (1, None, None, None)
    assert "single_pair" in codes(answer)


def test_a_role_changes_the_answer_and_its_tag(anonymous: APIClient, study: Collection) -> None:
    first = anonymous.get(IMPORTANCE)
    assert anonymous.get(IMPORTANCE, headers={"If-None-Match": first["ETag"]}).status_code == 304
    ParameterKey.objects.filter(name="bm25.b").update(role="ignored")
    again = anonymous.get(IMPORTANCE, headers={"If-None-Match": first["ETag"]})
    answer = again.json()
    assert (again.status_code, answer["parameters"]) == (200, 1)
    assert answer["left_out"] == ["bm25.b", "platform.hardware.cpu.model", "seed"]
    # Six runs of each k1 now: every one of them with every other.
    assert [row["pairs"] for row in answer["matched"]] == [36, 36, 36]


@pytest.mark.queries
def test_long_texts_that_begin_alike_are_different(anonymous: APIClient, study: Collection) -> None:
    prompts = [{"prompt": "x" * 300 + str(place % 2)} for place in range(GRID + 2)]
    describe(study, prompts, [{}] * (GRID + 2))
    answer = ask(anonymous, IMPORTANCE)
    assert [(row["name"], row["pairs"]) for row in answer["matched"]] == [("prompt", 169)]


def test_statuses_are_of_one_hardware_unless_asked_across(
    anonymous: APIClient, study: Collection
) -> None:
    answer = ask(anonymous, FRONTIER, x="cost:ms")
    assert (answer["y"], answer["x"], answer["runs"], len(answer["results"])) == (
        "AP",
        "ms",
        GRID + 2,
        GRID + 1,
    )
    assert answer["hardware"] == ["EPYC", "hardware not given"]
    assert codes(answer) == ["runs_without_cost", "unknown_hardware"]
    first, second = answer["results"][:2]
    assert (first["run"]["tag"], first["cost"]) == (
        "r24",
        {"value": 5.0, "low": None, "high": None, "n": None},
    )
    # The cheapest of each hardware is on its frontier.
    assert (first["status"], second["status"], second["cost"]["n"]) == ("frontier", "frontier", 7)
    sure = [row for row in answer["results"] if row["status"] == "dominated"]
    assert sure
    assert all(row["by"] and row["p_adjusted"] < 0.05 for row in sure)
    across = ask(anonymous, FRONTIER, x="ms", across="true")
    assert (across["hardware"], codes(across)) == ([], ["runs_without_cost", "different_hardware"])
    assert across["pairs"] == answer["pairs"] + GRID
    # r24 has the values of r0 and costs less.
    assert {row["run"]["tag"]: row["status"] for row in across["results"]}["r0"] == "perhaps"


def test_the_cost_is_the_one_that_most_runs_have(anonymous: APIClient, study: Collection) -> None:
    assert ask(anonymous, FRONTIER)["x"] == "ms"
    kilograms = ask(anonymous, FRONTIER, x="kg")
    assert [row["status"] for row in kilograms["results"]] == ["frontier"]
    refused = ask(anonymous, FRONTIER, 400, x="mss")
    assert (refused["code"], refused["detail"]) == (
        "bad_columns",
        "x: no run here has a cost mss; there is ms",
    )
    describe(study, [{}] * (GRID + 2), [{}] * (GRID + 2))
    empty = ask(anonymous, FRONTIER)
    assert (empty["x"], empty["results"]) == ("", [])
    drawn = ask(anonymous, f"{BASE}charts/frontier.svg", 400)
    assert (drawn["code"], drawn["detail"]) == (
        "nothing_to_draw",
        "no run has a cost, so there is nothing to draw",
    )


def test_files_have_what_the_answers_have(anonymous: APIClient, study: Collection) -> None:
    def rows(path: str, **query: Any) -> list[dict[str, str]]:
        answer = anonymous.get(f"{BASE}{path}/export/csv/", query)
        assert answer.status_code == 200, answer.content
        return list(csv.DictReader(io.StringIO(answer.content.decode())))

    response = ask(anonymous, IMPORTANCE)
    matched = rows("importance")
    assert [float(row["difference"]) for row in matched] == [
        row["difference"] for row in response["matched"]
    ]
    assert (matched[0]["parameter"], matched[0]["from"], matched[0]["runs_examined"]) == (
        "bm25.b",
        "0.1",
        str(GRID),
    )
    associated = rows("importance", table="associated")
    assert [row["level"] for row in associated] == [
        "0.6",
        "0.9",
        "1.2",
        "1.5",
        "0.1",
        "0.2",
        "0.3",
        "0.4",
        "0.5",
        "0.6",
    ]
    assert rows("importance", filter="param:bm25.k1=0.9") == []
    priced = rows("frontier")
    assert [(row["tag"], row["status"]) for row in priced] == [
        (row["run"]["tag"], row["status"]) for row in ask(anonymous, FRONTIER)["results"]
    ]
    table = anonymous.get(f"{BASE}importance/export/md/").content.decode()
    assert "| bm25.k1 | 0.9 | 1.2 | 6 | +0.0" in table
    assert "AP of 24 runs of board (qrels version 1) on 50 topics." in table
    assert (
        "chosen, not drawn"
        in anonymous.get(f"{BASE}importance/export/tex/?table=associated").content.decode()
    )
    assert (
        "dominated (significant)" in anonymous.get(f"{BASE}frontier/export/tex/").content.decode()
    )


def test_charts_say_how_many_runs_they_are_of(anonymous: APIClient, study: Collection) -> None:
    figure = COLLECTION_CHARTS["importance"](study, {}, None)
    assert "2 of 2 parameters, 24 runs on 50 topics" in figure.caption
    assert "board, qrels v1, 24 of 26 runs, " in figure.full_caption
    assert [row[0] for row in figure.rows] == ["bm25.k1", "bm25.b"]
    # A share of 2,000 permutations is never 0.
    assert figure.rows[0][-1] == "0.0005"
    frontier = COLLECTION_CHARTS["frontier"](study, {"x": "ms"}, AnonymousUser())
    assert "25 of 26 runs on 50 topics" in frontier.full_caption
    for chart in (figure, frontier):
        for size in ("column", "narrow"):
            assert chart.draw(Look(size=size)).to_dict(validate=True)
    silent = ask(anonymous, f"{BASE}charts/importance.svg", 400, filter="param:bm25.k1<1")
    assert (silent["code"], silent["detail"][:30]) == (
        "nothing_to_draw",
        "12 runs, 1 parameter: it does ",
    )


def test_too_much_is_refused_before_it_is_computed(
    anonymous: APIClient, study: Collection, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrics.services.values.effort._VECTOR", 0.0)
    settings.EVALHUB_WORK_SECONDS = 1e-6
    refused = ask(anonymous, IMPORTANCE, 400)
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("too_much_work", "filter")
    assert "give parameters that do not matter the role ignored" in refused["detail"]
    assert ask(anonymous, FRONTIER, 400)["code"] == "too_much_work"
