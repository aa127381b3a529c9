"""The texts of charts: all of them in the picture whatever the names and the font, none on top of another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.figure import Figure
from metrics.charts.look import SIZES, Look, whole_ticks
from metrics.charts.rendering import render
from metrics.charts.text import shortened, shortened_names, width_of, wrapped
from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.curves_together import curves_together_figure
from metrics.charts.values.distribution import distribution_figure
from metrics.engine.curve.curves import curve
from metrics.engine.measures.grammar import parse_measure
from metrics.services.boards.curves_together import CurvesTogether
from metrics.services.values.judged_views import load_view
from metrics.services.values.values import find_evaluation
from runs.models import Collection, Run, Team, User
from tests.conftest import GOOD, POOR
from tests.metrics.drawings import lines, sides, words
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]

Submit = Callable[..., Run]
RUNS = 40
# Each of the other sizes is as wide as one of these, or wider, and higher.
CLOSEST = ("column", "wide", "half", "narrow")


def long_name(number: int) -> str:
    return f"NTU_NMLAB_{number:03d}_BM25_Human-reranked_by_monoT5-3b_with_RM3_k10"


def svg(figure: Figure, size: str = "column") -> bytes:
    return render(figure, Look(size=size), "svg")


def check_texts(figure: Figure, size: str) -> bytes:
    """Every text lies in the view box, which is as large as the page is told; return the picture."""
    drawn = svg(figure, size)
    assert sides(drawn) == (Look(size=size).width, figure.height(Look(size=size)))
    outside = [line for line in lines(drawn) if not line.within(*sides(drawn))]
    assert outside == []
    return drawn


@pytest.fixture(scope="module")
def board(alice: User) -> Collection:
    """Forty runs of which three have the same values, every second one with a name of sixty characters."""
    values = np.stack([simulated(RUNS, 12), simulated(RUNS, 12, seed=3)])
    values[:, 3] = values[:, 4] = values[:, 5]
    make_scored("scored", Team.objects.get(personal_of=alice), values, ("AP", "RR"))
    runs = list(Run.objects.filter(collection__slug="scored").order_by("pk"))
    for number, run in enumerate(runs[1::2]):
        run.tag = long_name(number)
    Run.objects.bulk_update(runs, ["tag"])
    return Collection.objects.get(slug="scored")


@pytest.fixture(scope="module")
def two(submit: Submit) -> list[Run]:
    return [submit(POOR, tag=long_name(0)), submit(GOOD, tag=long_name(1))]


@pytest.fixture(scope="module")
def eight(two: list[Run], submit: Submit) -> list[Run]:
    return two + [
        submit(GOOD if number % 2 else POOR, tag=long_name(number)) for number in range(2, 8)
    ]


def drawn_of(collection: Collection, name: str, **query: str) -> Figure:
    return COLLECTION_CHARTS[name](collection, query, None)


def curves_of(runs: list[Run], measure: str = "nDCG") -> Figure:
    evaluations = [find_evaluation(run=run) for run in runs]
    parsed = parse_measure(measure)
    curves = [curve(load_view(evaluation), parsed, 20) for evaluation in evaluations]
    return curves_together_figure(CurvesTogether(parsed, evaluations, curves))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["means", "what-if", "ranks", "significance"])
def test_no_text_of_many_runs_is_cut_and_each_row_has_room_for_its_letters(
    board: Collection, name: str
) -> None:
    """Names below each other do not touch, however flat the picture was asked for."""
    figure = drawn_of(board, name, measures="RR" if name == "what-if" else "AP", limit="200")
    for size in ("narrow", "tall"):
        check_texts(figure, size)

    drawn = check_texts(figure, "column")
    width = sides(drawn)[0]
    level = [line for line in lines(drawn) if line.ends[0][1] == line.ends[1][1]]
    named = [line for line in level if re.search(r"\br\d+\b|NTU", line.text)]
    columns = [
        [line.ends[0][1] for line in named if (line.ends[0][0] > width / 2) == right]
        for right in (False, True)
    ]
    assert len(columns[0]) >= 30
    assert (len(columns[1]) >= 30) == (name == "what-if")
    assert all(np.diff(sorted(heights)).min() >= 11.0 for heights in columns if heights)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_CHARTS)
def test_no_text_of_a_run_is_cut(two: list[Run], name: str) -> None:
    run = two[0]
    figure = RUN_CHARTS[name](RunChartRequest(run, find_evaluation(run=run), {"topic": "1"}))
    for size in CLOSEST:
        check_texts(figure, size)


@pytest.mark.slow
def test_a_rank_stands_before_its_name(board: Collection) -> None:
    figure = drawn_of(board, "means", sort="AP", limit="200")
    for size in CLOSEST:
        labels = [text for text in words(svg(figure, size)) if re.match(r"\d+\. ", text)]
        assert [text.split()[0] for text in labels] == [row[0].split()[0] for row in figure.rows], (
            size
        )
    assert any("\N{HORIZONTAL ELLIPSIS}" in text for text in words(svg(figure)))
    # The table beside the picture has every name in full.
    assert {row[0].split()[1] for row in figure.rows} <= {run.tag for run in Run.objects.all()}


@pytest.mark.slow
@pytest.mark.parametrize("size", ["column", "narrow"])
def test_names_in_a_scatter_plot_begin_with_the_baseline(board: Collection, size: str) -> None:
    run = Run.objects.get(collection=board, tag="r38")
    figure = drawn_of(board, "scatter", x="RR", y="AP", baseline=str(run.pk))
    check_texts(figure, size)
    assert len(figure.rows) == RUNS
    named = [
        line.text for line in lines(svg(figure, size)) if re.fullmatch(r"r\d+|NTU.*", line.text)
    ]
    assert "r38" in named
    assert 3 <= len(named) <= 12


@pytest.mark.slow
def test_a_legend_is_whole(eight: list[Run]) -> None:
    figure = curves_of(eight)
    of_collection = drawn_of(
        Collection.objects.get(slug="small"), "precision-recall", interp="interval"
    )
    names = [long_name(number) for number in range(8)]
    for size in CLOSEST:
        check_texts(of_collection, size)
        labels = words(check_texts(figure, size))
        if SIZES[size][0] < 600:
            assert len({text for text in labels if text.startswith("NTU_NMLAB")}) == 8, size
        else:
            assert [text for text in labels if text in {*names, "ideal"}] == [*names, "ideal"], size


def test_the_ideal_is_dashed_in_the_legend_and_the_axis_has_a_title(two: list[Run]) -> None:
    figure = curves_of(two)
    drawn = svg(figure).decode()
    # Of the lines and of the legend.
    dashes = re.findall(r'stroke-dasharray="([^"]*)"', drawn)
    assert sorted(dashes) == ["1,0"] * 4 + ["6,4"] * 2
    assert "nDCG" in words(drawn.encode())
    for other, title in (("curve", "nDCG"), ("ranking", "cumulated gain")):
        request = RunChartRequest(two[0], find_evaluation(run=two[0]), {"topic": "1"})
        assert title in words(svg(RUN_CHARTS[other](request)))


def test_tied_runs_have_a_row_each(board: Collection) -> None:
    figure = drawn_of(board, "what-if", measures="RR")
    layers = [
        layer for layer in figure.draw(Look()).to_dict()["layer"] if layer["mark"]["type"] == "line"
    ]
    points = [point for layer in layers for point in layer["data"]["values"]]
    for side in ("official", "what if"):
        own = sorted((point["place"], point["rank"]) for point in points if point["side"] == side)
        assert [place for place, _ in own] == list(range(RUNS))
        ranks = [rank for _, rank in own]
        assert ranks == sorted(ranks)
        assert len(set(ranks)) == RUNS - 2


def test_runs_that_tie_for_the_first_rank_are_explained(alice: User) -> None:
    values = simulated(4, 12)
    team = Team.objects.get(personal_of=alice)
    make_scored("single", team, values)
    values[0] = values[1] = values[2] = values[3]
    make_scored("tied", team, values)
    notes = {
        slug: "add up to more than 100%"
        in drawn_of(Collection.objects.get(slug=slug), "ranks").caption
        for slug in ("single", "tied")
    }
    assert notes == {"single": False, "tied": True}


def test_a_ratio_of_averages_is_called_one(two: list[Run]) -> None:
    for measure, title in (
        ("nDCG", "the mean of 3 topics"),
        ("nDCG(norm='average')", "the ratio of the averaged vectors of 3 topics"),
    ):
        evaluation = find_evaluation(run=two[0])
        drawn = curve(load_view(evaluation), parse_measure(measure), 20)
        for figure in (
            curve_figure(drawn, measure=parse_measure(measure), run="r"),
            curves_of(two, measure),
        ):
            assert title in figure.caption
            assert title in " ".join(words(svg(figure)))


def test_a_histogram_counts_in_whole_topics() -> None:
    for count in (1, 2, 3, 7, 19, 40, 999):
        figure = distribution_figure(np.full(count, 0.5), measure="AP", run="r")
        axis = figure.draw(Look()).to_dict()["layer"][0]["encoding"]["y"]["axis"]
        assert axis["values"] == sorted(set(axis["values"]))
        assert all(isinstance(tick, int) for tick in axis["values"])
    assert "topic by topic" not in " ".join(words(svg(figure)))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(1, 1, [1]), (1, 3, [1, 2, 3]), (1, 12, [1, 2, 4, 6, 8, 10, 12]), (0, 7, [0, 1, 2, 3, 4, 5, 6, 7]),
     (1, 100, [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]), (0, 0, [0])],
)  # fmt: skip
def test_ticks_are_whole_numbers(low: int, high: int, ticks: list[int]) -> None:
    assert whole_ticks(low, high, Look()) == ticks
    assert len(whole_ticks(low, high, Look(size="narrow"))) <= 7


def test_a_level_that_counts_is_named(two: list[Run]) -> None:
    request = RunChartRequest(two[0], find_evaluation(run=two[0]), {"rel": "2"})
    assert (
        "documents of level 2 and above count as relevant"
        in RUN_CHARTS["precision-recall"](request).caption
    )


@pytest.mark.parametrize(
    "name",
    [
        "short",
        "16. " + "x" * 70,
        long_name(3),
        "W" * 60,
        "ü" * 60,
        "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 40,
    ],
)
@pytest.mark.parametrize("room", [20.0, 90.0, 300.0])
def test_a_shortened_name_has_room_and_its_beginning(name: str, room: float) -> None:
    text = shortened(name, room, 11)
    assert width_of(text, 11) <= room or name == text
    head, _, tail = text.partition("\N{HORIZONTAL ELLIPSIS}")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert (text == name) == (width_of(name, 11) <= room)


def test_shortened_names_stay_different_where_they_can() -> None:
    beginnings = [f"{number:02d}_{'x' * 60}" for number in range(20)]
    middles = [f"{'x' * 22}{number:02d}{'y' * 40}" for number in range(20)]
    ends = [f"{'x' * 60}_{number:02d}" for number in range(20)]
    for names in (beginnings, middles, ends):
        assert len(set(shortened_names(names, 200.0, 11))) == 20
    assert shortened_names(["a", "a"], 200.0, 11) == ["a", "a"]


def test_a_title_is_wrapped_and_nothing_of_it_is_lost() -> None:
    text = f"nDCG@10 of run {long_name(5)} minus {long_name(6)}"
    for room in (120.0, 300.0, 700.0):
        lines = wrapped(text, room, 15, bold=True)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert all(width_of(line, 15, bold=True) <= room for line in lines)
    assert wrapped("", 100.0, 12) == [""]


def test_labels_are_data_and_no_program(alice: User) -> None:
    """A tag may be anything that a line of a run can hold."""
    make_scored("odd", Team.objects.get(personal_of=alice), simulated(3, 8))
    odd = ["'];alert(1)//", '"}]\\u0022', "</script>"]
    runs = list(Run.objects.filter(collection__slug="odd").order_by("pk"))
    for run, tag in zip(runs, odd, strict=True):
        run.tag = tag
    Run.objects.bulk_update(runs, ["tag"])
    labels: Any = words(svg(drawn_of(Collection.objects.get(slug="odd"), "ranks")))
    assert set(odd) <= set(labels)
