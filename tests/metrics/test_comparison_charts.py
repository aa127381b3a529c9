"""Charts of compared runs: that they say what the comparison says, and are drawn in every look."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.comparisons.charts import ANSWER_CHARTS
from metrics.charts.comparisons.ranks import ranks_figure
from metrics.charts.comparisons.significance import MAX_DRAWN
from metrics.charts.look import PALETTES, SIZES, Look
from metrics.charts.rendering import specification
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.exports.comparisons.words import CORRECTION_NAMES, TEST_NAMES
from metrics.pages.comparisons.words import ASKS, agreement
from metrics.services.comparisons import workload
from metrics.services.comparisons.comparison import ComparisonQuery, read_rank_intervals
from metrics.services.comparisons.shown_pairs import Bounded, Fragile, ShownPair, Verdict
from metrics.services.comparisons.stored import (
    Answer,
    compare,
    look_up_comparison,
    queue_comparison,
)
from runs.models import Collection, Run, Team, User
from tests.conftest import GOOD, POOR
from tests.metrics.drawings import words
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]

COMPARED = ("significance", "ranks", "curves", "precision-recall", "rankings", "topic-scatter")
Submit = Callable[..., Run]


@pytest.fixture(scope="module")
def pair(submit: Submit) -> tuple[Run, Run]:
    return submit(GOOD), submit(POOR)


@pytest.fixture(scope="module")
def board(alice: User) -> list[str]:
    """Twelve runs on thirty topics; their ids."""
    return make_scored("scored", Team.objects.get(personal_of=alice), simulated(12, 30))


def chart(
    api: APIClient, name: str, status: int = 200, collection: str = "small", **query: Any
) -> Any:
    answer = api.get(f"/api/v1/collections/{collection}/charts/{name}", query)
    assert answer.status_code == status, answer.content
    return answer


def query_of(pair: tuple[Run, Run], name: str) -> dict[str, str]:
    named = {"rankings": {"topic": "1"}, "groups": {"by": "relevant"}}
    return {"runs": ",".join(str(run.pk) for run in pair), **named.get(name, {})}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_every_chart_comes_in_every_format_and_keeps_to_its_size(
    anonymous: APIClient, pair: tuple[Run, Run], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrics.services.comparisons.comparison.MIN_TOPICS", 3)
    for form, beginning in {
        "svg": b"<svg",
        "png": b"\x89PNG",
        "pdf": b"%PDF",
        "json": b"{",
    }.items():
        assert chart(anonymous, f"{name}.{form}", **query_of(pair, name)).content.startswith(
            beginning
        ), form
    figure = COLLECTION_CHARTS[name](
        Collection.objects.get(slug="small"), query_of(pair, name), None
    )
    assert len(figure.caption) > 40
    for theme in PALETTES:
        for size, sides in SIZES.items():
            drawn = figure.draw(Look(theme, size)).to_dict(validate=True)
            assert (drawn["width"], drawn["height"]) == sides
    assert figure.draw(Look(linked=True)).to_dict(validate=True)


@pytest.mark.parametrize("name", COMPARED)
def test_a_picture_is_sent_once(
    anonymous: APIClient,
    pair: tuple[Run, Run],
    name: str,
    api: APIClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metrics.services.comparisons.comparison.MIN_TOPICS", 3)
    first = chart(anonymous, f"{name}.json", **query_of(pair, name))
    path = f"/api/v1/collections/small/charts/{name}.json"
    again = anonymous.get(path, query_of(pair, name), headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert api.delete(f"/api/v1/runs/{pair[1].pk}/").status_code == 204
    gone = anonymous.get(path, query_of(pair, name), headers={"If-None-Match": first["ETag"]})
    assert (gone.status_code, gone.json()["code"]) == (400, "unknown_run")


def test_the_heat_map_says_what_the_comparison_says(anonymous: APIClient, board: list[str]) -> None:
    query = {"alpha": "0.1"}
    figure = COLLECTION_CHARTS["significance"](Collection.objects.get(slug="scored"), query, None)
    drawn = specification(figure, Look(linked=True))
    assert "address" not in json.dumps(specification(figure, Look()))
    cells = {(row["run"], row["against"]): row for row in drawn["layer"][0]["data"]["values"]}
    answer = anonymous.get("/api/v1/collections/scored/comparison/", {"alpha": "0.1"}).json()
    tags = {run["id"]: run["tag"] for run in answer["runs"]}
    assert len(cells) == 12 * 11
    (address,) = drawn["layer"][0]["transform"]
    assert address["as"] == "address"
    assert "&family=all&" in address["calculate"]
    assert address["calculate"].endswith('&runs=" + datum.pair')
    for pair in answer["measures"][0]["pairs"]:
        a, b, p = tags[pair["a"]], tags[pair["b"]], pair["tests"]["t_and_tukey"]["p_adjusted"]
        bound = next((bound for bound in (0.002, 0.02, 0.1) if p < bound), None)
        for row, column, better in (
            (a, b, pair["difference"] > 0),
            (b, a, pair["difference"] < 0),
        ):
            word = "better" if better else "worse"
            assert cells[row, column]["kind"] == (
                f"{word}, p < {bound:g}" if bound else "not significant"
            )
        assert cells[a, b]["difference"] == pytest.approx(pair["difference"])
        assert cells[a, b]["pair"] == f"{pair['a']},{pair['b']}"
    labels = drawn["layer"][0]["encoding"]["y"]["axis"]["labelExpr"].removesuffix("[datum.value]")
    assert json.loads(labels) == [tags[run["id"]] for run in answer["runs"]]
    assert all(json.loads(labels)[cell["row"]] == cell["run"] for cell in cells.values())


def test_lower_is_better_where_it_is(alice: User, anonymous: APIClient) -> None:
    values = simulated(3, 30) + np.array([[0.0], [0.4], [0.8]])
    make_scored("short", Team.objects.get(personal_of=alice), values, ["SearchLength"])
    drawn = chart(anonymous, "significance.json", collection="short").json()
    means = {f"r{number}": mean for number, mean in enumerate(values.mean(axis=1))}
    rows = [row for row in drawn["layer"][0]["data"]["values"] if row["kind"] != "not significant"]
    assert rows
    for row in rows:
        assert row["kind"].startswith("better") == (means[row["run"]] < means[row["against"]])


@pytest.mark.parametrize(("runs", "query"), [(MAX_DRAWN + 1, {}), (3, {"baseline": "{0}"})])
def test_a_matrix_that_cannot_be_drawn_says_why(
    alice: User, anonymous: APIClient, runs: int, query: dict[str, str]
) -> None:
    ids = make_scored("wide", Team.objects.get(personal_of=alice), simulated(runs, 5))
    query = {name: text.format(*ids) for name, text in query.items()}
    refused = chart(anonymous, "significance.svg", 400, "wide", **query)
    assert refused.json()["code"] == "nothing_to_draw"


@pytest.mark.slow
def test_fifty_runs_have_a_name_each(alice: User, anonymous: APIClient) -> None:
    make_scored("wide", Team.objects.get(personal_of=alice), simulated(MAX_DRAWN, 20))
    for name in ("significance", "ranks"):
        labels = words(chart(anonymous, f"{name}.svg", collection="wide", size="tall").content)
        assert {f"r{number}" for number in range(MAX_DRAWN)} <= set(labels), name


def test_ranks_are_those_of_the_leaderboard(anonymous: APIClient, board: list[str]) -> None:
    """The same resamples of the same values from the same seed."""
    query = {"statistics": "ranks", "measures": "AP"}
    rows = anonymous.get("/api/v1/collections/scored/leaderboard/", query).json()["results"]
    drawn = chart(anonymous, "ranks.json", collection="scored").json()["data"]["values"]
    assert [(row["run"], row["low"], row["high"]) for row in drawn] == [
        (row["run"]["tag"], row["statistics"]["rank"]["low"], row["statistics"]["rank"]["high"])
        for row in rows
    ]


def test_curves_are_those_of_the_runs(anonymous: APIClient, pair: tuple[Run, Run]) -> None:
    lines = chart(
        anonymous, "curves.json", **query_of(pair, "curves"), measure="DCG", depth="4"
    ).json()["layer"][0]["data"]["values"]
    for run in pair:
        curve = anonymous.get(
            f"/api/v1/runs/{run.pk}/curve/", {"measures": "DCG", "depth": "4"}
        ).json()["curves"][0]
        assert [point["value"] for point in lines if point["line"] == run.tag] == pytest.approx(
            curve["mean"]
        )


@pytest.mark.parametrize(
    "query",
    [
        {"rounding": "exact"},
        {"interp": "interval", "rel": "2"},
        {"rel": "1", "level": "2", "points": "3"},
        {"gains": "0-1-10-100"},
        {"rel": "1", "gains": "exp"},
    ],
)
def test_precision_over_recall_is_that_of_the_runs(
    anonymous: APIClient, pair: tuple[Run, Run], query: dict[str, str]
) -> None:
    points = chart(
        anonymous, "precision-recall.json", **query_of(pair, "precision-recall"), **query
    ).json()
    lines: dict[str, list[float]] = {}
    for point in points["data"]["values"]:
        lines.setdefault(point["line"], []).append(point["precision"])
    several = len(lines) > 2
    for run in pair:
        for curve in anonymous.get(f"/api/v1/runs/{run.pk}/precision-recall/", query).json()[
            "curves"
        ]:
            name = (
                f"level {curve['rel']} and above"
                if "rel" in curve
                else f"level {curve['level']} alone"
                if "level" in curve
                else f"gains {curve['gains']}"
            )
            assert lines.pop(f"{run.tag}, {name}" if several else run.tag) == pytest.approx(
                curve["mean"]
            )
    assert not lines


def test_a_filter_chooses_whose_curves_are_drawn(
    anonymous: APIClient, pair: tuple[Run, Run]
) -> None:
    for name in ("curves", "precision-recall"):
        drawn = chart(anonymous, f"{name}.json", filter="-tag:good").json()
        data = (drawn["layer"][0] if name == "curves" else drawn)["data"]
        assert {point["line"] for point in data["values"]} - {"ideal"} == {"poor"}


def test_a_line_joins_what_both_runs_found(anonymous: APIClient, pair: tuple[Run, Run]) -> None:
    drawn = chart(anonymous, "rankings.json", **query_of(pair, "rankings")).json()
    lines = drawn["layer"][0]["data"]["values"]
    assert sorted((line["document"], line["side"], line["rank"]) for line in lines) == [
        ("b", "left", 3), ("b", "right", 1), ("c", "left", 2), ("c", "right", 3),
    ]  # fmt: skip


def test_a_point_is_on_the_side_of_the_better_run(
    alice: User, anonymous: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outermost topics are named, and remain where there is no room for all."""
    values = np.array([[0.9, 0.5, 0.3, 0.2, 0.1], [0.1, 0.5, 0.4, 0.0, 0.35]])
    ids = make_scored("sides", Team.objects.get(personal_of=alice), values)
    query = {"runs": ",".join(ids), "measures": "AP"}
    svg = chart(anonymous, "topic-scatter.svg", collection="sides", **query).content.decode()
    assert "2 below the diagonal, where r0 is better, 2 above it, 1 on it" in svg
    lines = chart(anonymous, "topic-scatter.csv", collection="sides", **query).content.decode()
    first = lines.splitlines()[1].split(",")
    assert [float(number) for number in first[1:4]] == [0.9, 0.1, 0.8]
    monkeypatch.setattr("metrics.charts.comparisons.topic_scatter._MOST_POINTS", 3)
    layers = chart(anonymous, "topic-scatter.json", collection="sides", **query).json()["layer"]
    assert [point["difference"] for point in layers[1]["data"]["values"]] == pytest.approx(
        [0.8, 0.2, 0.0]
    )
    named = {point["topic"] for layer in layers[2:] for point in layer["data"]["values"]}
    assert first[0] in named


@pytest.mark.parametrize(
    ("name", "query", "status", "code"),
    [
        ("topic-scatter.svg", {"runs": "{0}"}, 400, "too_few_runs"),
        ("topic-scatter.svg", {"runs": "{0},{1}", "other": "x"}, 400, "unknown_parameter"),
        ("rankings.svg", {"runs": "{0}", "topic": "1"}, 400, "too_few_runs"),
        ("rankings.svg", {"runs": "{0},{1}"}, 400, "required"),
        ("rankings.svg", {"runs": "{0},{1}", "topic": "77"}, 404, "unknown_topic"),
        ("curves.svg", {"measure": "AP"}, 400, "no_curve"),
        ("curves.svg", {"measures": "DCG,CG"}, 400, "too_many_measures"),
        ("curves.svg", {"filter": "tag:none"}, 400, "nothing_to_draw"),
        ("precision-recall.svg", {"rel": "all", "level": "1,2,3"}, 400, "too_many_levels"),
        ("precision-recall.svg", {"interp": "x"}, 400, "bad_parameter"),
        ("significance.svg", {"tests": "x"}, 400, "unknown_test"),
        ("significance.svg", {"runs": "{0}"}, 400, "too_few_runs"),
        ("ranks.svg", {"measures": "x"}, 400, "unknown_measure"),
    ],
)
def test_what_cannot_be_drawn_says_why(
    anonymous: APIClient,
    pair: tuple[Run, Run],
    name: str,
    query: dict[str, str],
    status: int,
    code: str,
) -> None:
    ids = [str(run.pk) for run in pair]
    answer = chart(
        anonymous, name, status, **{key: text.format(*ids) for key, text in query.items()}
    )
    assert (answer["Content-Type"], answer.json()["code"]) == ("application/problem+json", code)


def test_a_stored_comparison_has_the_charts_of_one_made_at_once(
    anonymous: APIClient, api: APIClient, board: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection.objects.get(slug="scored")
    query = ComparisonQuery([parse_measure("AP")], tests=["sign", "paired_t"])
    at_once = {
        name: chart(anonymous, f"{name}.json", collection="scored", tests="sign").json()
        for name in ANSWER_CHARTS
    }
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    assert (
        chart(anonymous, "ranks.svg", 400, "scored", seed="9").json()["code"] == "nothing_to_draw"
    )
    stored = queue_comparison(collection=collection, query=query)
    base = f"/api/v1/comparisons/{stored.pk}/charts/"
    assert anonymous.get(f"{base}ranks.svg").status_code == 202
    assert compare(comparison_id=str(stored.pk))
    for name, expected in at_once.items():
        assert anonymous.get(f"{base}{name}.json").json() == expected
    other = anonymous.get(f"{base}significance.json", {"tests": "paired_t"}).json()
    assert other != at_once["significance"]
    for wrong, code in (
        ({"tests": "wilcoxon"}, "unknown_test"),
        ({"measures": "RR"}, "unknown_measure"),
    ):
        assert anonymous.get(f"{base}significance.svg", wrong).json()["code"] == code
    assert anonymous.get(f"{base}curves.svg").status_code == 404


def test_many_runs_have_no_rank_intervals(alice: User) -> None:
    make_scored("wide", Team.objects.get(personal_of=alice), simulated(201, 6))
    query = ComparisonQuery([parse_measure("AP")])
    answer = look_up_comparison(collection=Collection.objects.get(slug="wide"), query=query)
    assert isinstance(answer, Answer)
    assert read_rank_intervals(answer.results[0], answer.query.options) is None
    with pytest.raises(Exception, match="at most 200 runs"):
        ranks_figure(answer, answer.results[0], None)


def test_every_test_and_correction_has_a_name_and_a_question() -> None:
    # The analysis of a Latin square is for systems of sessions alone.
    assert set(TEST_NAMES) == {*TESTS, "latin_square", "min_f"}
    assert set(ASKS) == set(TESTS)
    assert set(CORRECTION_NAMES) == set(CORRECTIONS)


def verdicts(**significant: bool) -> ShownPair:
    nothing = Bounded(0.0, 0.0, 0.0)
    verdicts = [
        Verdict(name, 0, 0, 0, 0.5, 0.5, False, int(holds), "", 1)
        for name, holds in significant.items()
    ]
    run = Run(tag="a")
    sizes, counts = [nothing] * 5, [0] * 5
    return ShownPair(
        run,
        run,
        0,
        0,
        0,
        0,
        "none",
        *sizes,
        *counts,
        Fragile(None, None, []),
        verdicts,
        None,
        {},
        [],
        None,
    )


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (verdicts(paired_t=True), ""),
        (verdicts(paired_t=True, sign=True), "All 2 tests agree: the difference is significant at 0.05."),
        (verdicts(paired_t=False, sign=False), "All 2 tests agree: the difference is not significant at 0.05."),
        (verdicts(paired_t=True, bootstrap=True, sign=False),
         "by the paired t test and the bootstrap test (shift method), not by the sign test. The former test means"),
        (verdicts(paired_t=False, sign=True), "by the sign test, not by the paired t test. The former test ranks"),
        (verdicts(wilcoxon=True, paired_t=True, sign=False),
         "by Wilcoxon's signed rank test and the paired t test, not by the sign test. They test different hypotheses"),
    ],
)  # fmt: skip
def test_agreement_is_said_in_words(pair: ShownPair, text: str) -> None:
    sentence = agreement(pair, 0.05)
    assert sentence == text if not text or text.startswith("All") else text in sentence
