"""Charts fit to publish: every run is in the picture by its name, and every file says what it was drawn from."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from altair.utils import schemapi
from django.contrib.auth.models import AnonymousUser
from rest_framework.test import APIClient

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.figure import Figure
from metrics.charts.labels import MOST_NAMES, name_layers
from metrics.charts.look import PALETTES, Look, layered_chart, marks
from metrics.charts.rendering import render, specification
from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.topics import paired_topics_figure, topics_figure
from metrics.services.values.values import find_evaluation
from runs.models import Collection, Run, System, Team, User
from runs.services.tracking.parameters import store_parameters
from tests.conftest import GOOD, POOR
from tests.metrics.drawings import lines, sides, words
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]

Submit = Callable[..., Run]
# The charts with a row for each run, and what each is asked for.
ROWS = {
    "means": {"measures": "AP", "limit": "200"}, "what-if": {"measures": "RR"}, "ranks": {"measures": "AP"},
    "significance": {"measures": "AP"}, "heat-map": {"measure": "AP"},
}  # fmt: skip
# What other charts of a collection are asked for, where they are not drawn unasked.
OF_BOARDS = {**ROWS, "orders": {"measures": "AP,RR"}, "power": {"measures": "AP,RR"},
             "heat-map": {"measure": "AP", "baseline": "mean"}, "best-so-far": {"system": "alice/splade"}}  # fmt: skip
OF_RUNS = {
    "curves": {}, "precision-recall": {}, "topic-scatter": {}, "rankings": {"topic": "1"}, "groups": {"by": "relevant"},
}  # fmt: skip


def make(alice: User, runs: int) -> Collection:
    """Runs of which each third is better than those before it."""
    values = np.stack([simulated(runs, 12), simulated(runs, 12, seed=3)])
    values = np.clip(values + 0.2 * (np.arange(runs) % 3)[None, :, None], 0, 1)
    make_scored("many", Team.objects.get(personal_of=alice), values, ("AP", "RR"))
    return Collection.objects.get(slug="many")


def make_explained(alice: User, runs: int) -> Collection:
    """A collection whose runs say how they were made, and what they cost; all are versions of one system."""
    collection = make(alice, runs)
    system = System.objects.create(team=collection.team, slug="splade")
    for run in Run.objects.filter(collection=collection):
        number = int(run.tag[1:])
        run.metadata, run.costs = (
            {"k1": number % 3, "model": f"m{number % 2}"},
            {"latency_ms": 1.0 + number},
        )
        run.system, run.version = system, number + 1
        run.save()
    store_parameters(collection, Run.objects.filter(collection=collection))
    return collection


@pytest.fixture(scope="module")
def pair(submit: Submit) -> list[Run]:
    return [submit(GOOD), submit(POOR)]


def inside(drawn: bytes) -> Iterator[str]:
    """Every word in the picture that is wholly inside of its view box."""
    for line in lines(drawn):
        if line.within(*sides(drawn)):
            yield from line.text.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs"), [(name, 143 if name in ("what-if", "means") else 40) for name in ROWS]
)
def test_every_run_is_in_the_picture_by_its_name(alice: User, name: str, runs: int) -> None:
    collection = make(alice, runs)
    figure = COLLECTION_CHARTS[name](collection, ROWS[name], None)
    drawn = render(figure, Look(size="tall"), "svg")
    tags = [run.tag for run in Run.objects.all()]
    assert len(figure.rows) == len(tags)
    labels = list(inside(drawn))
    assert {
        tag: labels.count(tag) >= (2 if name == "what-if" else 1) for tag in tags
    } == dict.fromkeys(tags, True)
    assert all(line.within(*sides(drawn)) for line in lines(drawn))


@pytest.mark.parametrize("name", [*COLLECTION_CHARTS, *RUN_CHARTS])
def test_a_chart_says_what_it_was_drawn_from_and_builds_no_table_of_schemas(
    alice: User, pair: list[Run], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Altair makes such a table for every channel that it is not given as an object, and nothing else takes longer."""
    ids = {"runs": ",".join(str(run.pk) for run in pair)}
    if name in OF_RUNS:
        figure = COLLECTION_CHARTS[name](pair[0].collection, {**ids, **OF_RUNS[name]}, None)
    elif name in COLLECTION_CHARTS:
        figure = COLLECTION_CHARTS[name](
            make_explained(alice, 14), OF_BOARDS.get(name, {}), AnonymousUser()
        )
    else:
        figure = RUN_CHARTS[name](
            RunChartRequest(pair[0], find_evaluation(run=pair[0]), {"topic": "1"})
        )
    assert figure.source is not None
    assert [qrels.version for qrels in figure.source.qrels] == [1]
    slug = "many" if name in COLLECTION_CHARTS and name not in OF_RUNS else "small"
    pattern = rf"{slug}-{figure.name}-([A-Za-z0-9@.=-]+-)?v1-\d{{8}}\.pdf"
    assert re.fullmatch(pattern, figure.file_name("pdf"))
    assert re.search(r", qrels v1, (.* runs, )?\d{4}-\d\d-\d\d\.$", figure.full_caption)
    built: list[Any] = []
    monkeypatch.setattr(schemapi._FromDict, "__init__", lambda self, classes: built.append(self))
    for look in (Look(), Look(size="narrow", linked=True)):
        assert specification(figure, look)["layer"]
    assert built == []


def test_a_file_has_the_name_and_the_caption_of_its_chart(
    anonymous: APIClient, pair: list[Run], django_assert_max_num_queries: Any
) -> None:
    path = f"/api/v1/runs/{pair[0].pk}/charts"
    first = anonymous.get(f"{path}/curve.svg", {"measure": "nDCG(gains='exp')"})
    again = anonymous.get(f"{path}/curve.svg", {"measure": "nDCG(gains='exp')"})
    assert first["Content-Disposition"] == again["Content-Disposition"]
    name = r'inline; filename="small-curve-nDCG-gains=-exp-v1-\d{8}\.svg"'
    assert re.fullmatch(name, first["Content-Disposition"])
    assert re.search(
        r"<desc>nDCG\(gains='exp'\) of good at ranks .* Small, qrels v1, ",
        first.content.decode(),
    )
    board = "/api/v1/collections/small/charts/means.csv"
    answers = [anonymous.get(board, {"sort": "AP"}) for _ in range(2)]
    for answer in answers:
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        assert re.fullmatch(
            r'attachment; filename="small-means-AP-v1-\d{8}\.csv"', answer["Content-Disposition"]
        )
    assert answers[0].content == answers[1].content


def test_the_table_of_a_chart_is_a_file_that_no_spreadsheet_runs() -> None:
    bars = [("=1+1", -0.25), ("b", 0.5)]
    figure = paired_topics_figure(bars, measure="AP", run="x", other="y", ranking="/")
    text = render(figure, Look(), "csv").decode()
    assert list(csv.reader(io.StringIO(text))) == [
        ["Topic", "Difference"],
        ["b", "0.5000"],
        ["'=1+1", "-0.2500"],
    ]


def test_topics_are_named_where_they_have_room() -> None:
    few = topics_figure([(f"t{n}", n / 50) for n in range(40)], measure="AP", run="r", ranking="/")
    assert {f"t{n}" for n in range(40)} <= set(inside(render(few, Look(), "svg")))
    many = topics_figure(
        [(f"t{n}", n / 200) for n in range(200)], measure="AP", run="r", ranking="/"
    )
    assert not {f"t{n}" for n in range(200)} & set(words(render(many, Look(), "svg")))


def test_an_outline_of_differences_keeps_its_two_colours_and_says_what_it_leaves_out() -> None:
    topics = [(str(n), n / 500 - 1) for n in range(1000)]
    figure = paired_topics_figure(topics, measure="AP", run="a", other="b", ranking="/")
    drawn = specification(figure, Look())
    colours = [
        layer["mark"]["color"] for layer in drawn["layer"] if layer["mark"]["type"] == "area"
    ]
    assert len(set(colours)) == 2
    assert "1000 topics, largest difference first; the outline has every 3rd" in " ".join(
        drawn["title"]["subtitle"]
    )


@pytest.mark.parametrize("size", ["column", "half", "narrow"])
def test_names_beside_points_never_overlap(size: str) -> None:
    rng = np.random.default_rng(5)
    rows = [
        {"run": f"system-{n}-with-a-long-name", "a": float(x), "b": float(y)}
        for n, (x, y) in enumerate(rng.random((143, 2)) ** 3)
    ]
    look = Look(size=size)
    places = [(row["a"], 1 - row["b"]) for row in rows]

    def draw(look: Look) -> Any:
        layers = name_layers(rows, places, look, x="a:Q", y="b:Q")
        dots = marks(rows).mark_point().encode(x="a:Q", y="b:Q")
        return layered_chart([dots, *layers], look, "Two measures", "143 runs")

    drawn = render(Figure("x", "c", [], [], draw), look, "svg")
    named = [line for line in lines(drawn) if line.text.startswith("system")]
    assert 4 <= len(named) <= MOST_NAMES
    assert all(line.within(*sides(drawn)) for line in lines(drawn))
    for label, other in combinations(named, 2):
        apart = abs(label.ends[0][1] - other.ends[0][1]) >= 11
        assert (
            apart or label.ends[1][0] <= other.ends[0][0] or other.ends[1][0] <= label.ends[0][0]
        ), (
            label,
            other,
        )


def test_a_long_table_breaks_over_pages(alice: User, anonymous: APIClient) -> None:
    make(alice, 41)
    path = "/api/v1/collections/many/leaderboard/export/tex/"
    long, short = (
        anonymous.get(path).content.decode(),
        anonymous.get(path, {"filter": "-tag:r40"}).content.decode(),
    )
    assert [r"\begin{longtable}" in text for text in (long, short)] == [True, False]
    assert "longtable" in long.splitlines()[0]
    assert (long.count("Rank & Run &"), short.count("Rank & Run &")) == (2, 1)
    assert len(re.findall(r" & r\d+ & ", long)) == 41
    body = long.partition(r"\endfoot")[2]
    assert body.count(r"\\") == 41
    assert json.dumps(long).count("begin{") == long.count(r"\end{")


# What readers without one kind of cones see of linear red, green and blue. Source: Machado et al.,
# 2009, table 1.
BLIND_TO = {
    "none": np.eye(3),
    "red": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "green": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ]
    ),
    "blue": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.3039],
        ]
    ),
}
LIGHT = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> Any:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(seen: Any) -> Any:
    x, y, z = np.cbrt(LIGHT @ np.clip(seen, 0, 1) / (0.95047, 1.0, 1.08883))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(("theme", "ground"), [("light", "#ffffff"), ("dark", "#12161c")])
def test_colours_of_systems_are_told_apart_by_all_readers(theme: str, ground: str) -> None:
    colours = PALETTES[theme].systems
    for seen in BLIND_TO.values():
        points = [lab(seen @ linear(colour)) for colour in colours]
        assert min(np.linalg.norm(a - b) for a, b in combinations(points, 2)) > 20
    shades = sorted([LIGHT[1] @ linear(colour) for colour in colours])
    bare = LIGHT[1] @ linear(ground)
    assert all((max(shade, bare) + 0.05) / (min(shade, bare) + 0.05) >= 3 for shade in shades)
