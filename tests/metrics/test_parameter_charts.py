"""Charts of parameters: where runs stand, what is never guessed, what of many is drawn, and texts in the picture."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from rest_framework.test import APIClient

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.figure import Figure
from metrics.charts.look import PALETTES, Look
from metrics.charts.rendering import render, specification
from metrics.charts.tracking.parameter_axes import LENGTH, apart, number_ticks, parameter_axis
from metrics.services.boards.columns import ShownColumn
from metrics.services.tracking.measured import MeasuredRun
from runs.models import Collection, ParameterKey, Run, User
from runs.services.tracking.parameters import store_parameters
from tests.metrics.boards import make_board, make_run, simulated
from tests.metrics.drawings import lines, sides, words
from tests.web.test_parameter_pages import text_of

pytestmark = pytest.mark.words

CHARTS = "/api/v1/collections/board/charts/"


def make(alice: User, metadata: list[dict[str, Any]], topics: int = 12) -> Collection:
    """A ranked run for each, and one that waits."""
    collection = make_board(alice.personal_team, {"AP": simulated(len(metadata), topics)})
    runs = sorted(Run.objects.filter(collection=collection), key=lambda run: int(run.tag[1:]))
    for run, parameters in zip(
        [*runs, make_run(collection, "late")], [*metadata, {"late": 1}], strict=True
    ):
        run.metadata = parameters
        run.save()
    store_parameters(collection, Run.objects.filter(collection=collection))
    return collection


@pytest.fixture
def grid(alice: User) -> Collection:
    """24 runs of four values of k1 and six of b, one run without them and one with a text."""
    runs = [
        {"k1": k1, "b": b, "model": f"m{int(10 * b) % 3}"}
        for k1 in (0.6, 0.9, 1.2, 2)
        for b in np.arange(1, 7) / 10
    ]
    return make(alice, [*runs, {"model": "m0"}, {"k1": "0.9", "b": 0.1}])


def drawn(collection: Collection, name: str, **query: str) -> Figure:
    return COLLECTION_CHARTS[name](collection, query, AnonymousUser())


def points(figure: Figure, mark: str = "point") -> list[dict[str, Any]]:
    drawn = specification(figure, Look())
    (drawn_layer,) = [
        layer.get("data", drawn.get("data"))
        for layer in drawn["layer"]
        if layer["mark"]["type"] == mark
    ]
    return list(drawn_layer["values"])


def test_every_run_stands_at_its_value(grid: Collection) -> None:
    figure = drawn(grid, "parameter", x="param:k1", by="param:b")
    by_run = {point["run"]: point for point in points(figure)}
    assert len(by_run) == 26
    by_value: dict[str, list[float]] = {}
    for point in by_run.values():
        by_value.setdefault(point["value"], []).append(point["at"])
    means = {
        value: sum(places) / len(places) for value, places in by_value.items() if len(places) == 6
    }
    step = (means["2"] - means["0.6"]) / 1.4
    assert means["0.9"] == pytest.approx(means["0.6"] + 0.3 * step, abs=3)
    # The text "0.9" is not taken for the number, and what is not set has a place at the end.
    assert means["2"] < by_run["r25"]["at"] < by_run["r24"]["at"] < LENGTH
    assert {point["line"] for point in by_run.values()} == {
        "0.1",
        "0.2",
        "0.3",
        "0.4",
        "0.5",
        "0.6",
        "not set",
    }
    assert all(point["low"] <= point["mean"] <= point["high"] for point in by_run.values())
    assert "of 26 of 26 ranked runs by k1, each with its 95% confidence" in figure.caption
    assert "Coloured by b. 1 run has no k1." in figure.caption
    assert figure.columns == ["k1", "b", "Runs", "Mean AP", "Lowest", "Highest"]
    assert [row[:3] for row in figure.rows[-2:]] == [
        ['"0.9"', "0.1", "1"],
        ["not set", "not set", "1"],
    ]
    few = drawn(grid, "parameter", x="param:k1", filter="param:b<0.3")
    assert len(points(few)) == 9
    assert "Mean AP of 9 of 26 ranked runs by k1" in few.caption
    assert [row[:2] for row in few.rows] == [
        ["0.6", "2"],
        ["0.9", "2"],
        ["1.2", "2"],
        ["2", "2"],
        ['"0.9"', "1"],
    ]


def test_texts_are_rows_by_their_mean(grid: Collection) -> None:
    figure = drawn(grid, "parameter", x="param:model")
    means: dict[str, list[float]] = {}
    for point in points(figure):
        means.setdefault(point["value"], []).append(point["mean"])
    best = sorted(
        (name for name in means if name != "not set"), key=lambda name: -np.mean(means[name])
    )
    rows = {point["value"]: round(point["at"]) for point in points(figure)}
    assert sorted(rows, key=rows.__getitem__) == [*best, "not set"]
    assert {row[0]: row[1] for row in figure.rows} == {
        name: str(len(runs)) for name, runs in means.items()
    }
    with pytest.raises(Exception, match="x: name one parameter or cost"):
        drawn(grid, "parameter", x="param:k1,param:b")


def test_many_values_have_a_scale_of_colours_and_ranges(alice: User) -> None:
    collection = make(alice, [{"n": 10 ** (number / 4 - 6), "m": number} for number in range(60)])
    figure = drawn(collection, "parameter", x="param:n", by="param:m")
    colour = next(
        layer["encoding"]["color"]
        for layer in specification(figure, Look())["layer"]
        if layer["mark"]["type"] == "point"
    )
    assert (colour["field"], colour["scale"]) == ("ramp", {"scheme": "viridis"})
    assert "The axis of n is logarithmic." in figure.caption
    places = [point["at"] for point in sorted(points(figure), key=lambda point: point["ramp"])]
    assert np.ptp(np.diff(places)) <= 2
    grouped = drawn(collection, "parameter", x="param:n")
    assert [row[1] for row in grouped.rows] == ["6"] * 10
    assert grouped.rows[0][0] == "1e-06 to 1.77827941004e-05"


def column(*values: Any) -> Any:
    column = ShownColumn("param", "k")
    runs: Any = [
        MeasuredRun(None, 1 - place / 10, None, {"param:k": value})
        for place, value in enumerate(values)
    ]  # type: ignore[arg-type]
    return parameter_axis(column, runs, lower_is_better=False, start=1_600, most=3)


def test_axes_and_their_ticks() -> None:
    assert column(1, 3, None).ticks == [(0, "not set"), (1_600, "1"), (LENGTH, "3")]
    mixed = column(1, "1", True)
    assert [mixed.place(value) for value in (1, "1", True)] == [5_800, 800, 800]
    assert mixed.ticks == [(800, "text"), (5_800, "1")]
    texts = column("a", "a", "b", True, "c")
    # The two least frequent ones share a place; the best stands at the top.
    assert [texts.place(value) for value in ("a", "b", True, "c")] == [LENGTH, 5_800, 1_600, 1_600]
    assert not column(0, 100, 50).logarithmic
    assert column(0.01, 1).logarithmic
    assert column(0.01, 1, 0.1).place(0.1) == 5_800
    assert [text for _, text in number_ticks([number / 7 for number in range(15)])] == [
        "0",
        "0.5",
        "1",
        "1.5",
        "2",
    ]
    assert [text for _, text in number_ticks([2.0**number for number in range(12)], True)] == [
        "1", "10", "100", "1000",
    ]  # fmt: skip
    assert apart([(0, "a"), (5, "b"), (10, "c")], lambda a, b: 8) == [(0, "a"), (10, "c")]


@pytest.mark.queries
def test_parallel_coordinates_have_an_axis_for_each_setting(grid: Collection) -> None:
    ParameterKey.objects.filter(name="model").update(role="ignored")
    figure = drawn(grid, "parallel")
    assert figure.columns == ["Run", "b", "k1", "AP"]
    assert len(figure.rows) == 26
    assert figure.rows[0][-1] == max(row[-1] for row in figure.rows)
    assert {row[2] for row in figure.rows if row[0] == "r24"} == {"not set"}
    assert (
        "b, k1 and mean AP of 26 of 26 ranked runs, a line each. Coloured: the best 3 by AP."
        in figure.caption
    )
    both = [
        layer for layer in specification(figure, Look())["layer"] if layer["mark"]["type"] == "line"
    ]
    # Every line ends where the path breaks.
    breaks = [sum(point["at"] is None for point in layer["data"]["values"]) for layer in both]
    assert breaks == [23, 3]
    assert drawn(grid, "parallel", columns="param:model").columns == ["Run", "model", "AP"]
    with pytest.raises(Exception, match="columns: name at most 8 parameters or costs"):
        drawn(grid, "parallel", columns="submitted")


@pytest.mark.slow
def test_of_many_runs_the_best_and_a_sample_are_drawn(alice: User) -> None:
    collection = make(
        alice, [{"k": number % 7, "b": number % 5} for number in range(320)], topics=3
    )
    figure, again = drawn(collection, "parallel"), drawn(collection, "parallel")
    other = drawn(collection, "parallel", seed="1")
    assert len(figure.rows) == 300
    assert figure.rows == again.rows != other.rows
    assert figure.rows[:150] == other.rows[:150]
    assert "Drawn are the best 150 and 150 of the others, chosen with seed 0." in figure.caption
    assert "300 of 320 runs" in figure.full_caption
    # Every run is a point; so many intervals would hide each other.
    scatter = drawn(collection, "parameter", x="param:k")
    assert len(points(scatter)) == 320
    assert "interval" not in scatter.caption


@pytest.mark.words
@pytest.mark.parametrize("size", ["column", "narrow"])
@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("parameter", {"x": "param:k1", "by": "param:b"}),
        ("parameter", {"x": "param:a\\.very\\.long", "by": "param:k1"}),
        ("parallel", {}),
    ],
)
def test_texts_are_inside_of_the_picture(
    alice: User, name: str, query: dict[str, str], size: str
) -> None:
    long = "method.retrieval.reranker.of_a_long_name"
    metadata = [
        {"k1": number % 4 / 4, "b": f"a text of quite some length, number {number % 7}", long: 10.0 ** (number % 5),
         "a\\.very\\.long": f"{'x' * 60}{number % 9}", "w": number % 2 == 0, **({"n": number} if number % 3 else {})}
        for number in range(40)
    ]  # fmt: skip
    figure = drawn(make(alice, metadata), name, **query)
    picture = render(figure, Look(size=size), "svg")
    assert sides(picture) == (Look(size=size).width, figure.height(Look(size=size)))
    assert [line for line in lines(picture) if not line.within(*sides(picture))] == []
    assert {"AP", "not", "set"} <= {
        word for line in words(picture) for word in line.split()
    } or name == "parameter"


@pytest.mark.slow
def test_charts_are_files_and_change_with_parameters(
    api: APIClient, anonymous: APIClient, grid: Collection
) -> None:
    for chart in ("parameter", "parallel"):
        for form in ("svg", "png", "pdf", "json"):
            answer = anonymous.get(f"{CHARTS}{chart}.{form}", {"theme": list(PALETTES)[-1]})
            assert (answer.status_code, len(answer.content) > 5_000) == (200, True), (chart, form)
    table = list(
        csv.DictReader(io.StringIO(anonymous.get(f"{CHARTS}parallel.csv").content.decode()))
    )
    assert len(table) == 26
    assert {row["measure"] for row in table} == {"AP"}
    first = anonymous.get(f"{CHARTS}parallel.json")
    assert (
        anonymous.get(
            f"{CHARTS}parallel.json", headers={"If-None-Match": first["ETag"]}
        ).status_code
        == 304
    )
    run = Run.objects.get(tag="r0")
    assert (
        api.patch(f"/api/v1/runs/{run.pk}/", {"metadata": {"k1": 9}}, format="json").status_code
        == 200
    )
    changed = anonymous.get(f"{CHARTS}parallel.json", headers={"If-None-Match": first["ETag"]})
    assert (changed.status_code, changed.content == first.content) == (200, False)
    for query, code in (
        ({"x": "param:none"}, "bad_columns"),
        ({"x": "submitted"}, "bad_columns"),
        ({"x": "param:late"}, "nothing_to_draw"),
        ({"x": "param:k1", "filter": "zzz"}, "nothing_to_draw"),
        ({"columns": "param:k1"}, "unknown_parameter"),
    ):
        refused = anonymous.get(f"{CHARTS}parameter.svg", query)
        assert (refused.status_code, refused.json()["code"]) == (400, code), query
    Collection.objects.update(blind=True)
    assert anonymous.get(f"{CHARTS}parallel.json").json()["code"] == "blind"


def test_the_page_of_parameters_has_both_charts(client: Client, grid: Collection) -> None:
    address = "/collections/board/parameters/"
    page = client.get(address).content.decode()
    assert 'href="/api/v1/collections/board/charts/parameter.svg?x=param%3Ab&amp;measure=AP' in page
    assert "charts/parallel.svg?columns=param%3Ab%2Cparam%3Ak1%2Cparam%3Amodel" in page
    chosen = client.get(
        address, {"x": "param:model", "by": "param:k1", "filter": "param:b"}
    ).content.decode()
    assert (
        "charts/parameter.svg?x=param%3Amodel&amp;by=param%3Ak1&amp;measure=AP&amp;filter=param%3Ab"
        in chosen
    )
    wrong = client.get(address, {"x": "param:none"})
    assert wrong.status_code == 400
    assert "x: no run here has a parameter none" in text_of(wrong)
    assert "Texts are shown without regard to case" in text_of(wrong)
    Collection.objects.update(blind=True)
    assert "charts/" not in client.get(address).content.decode()
