"""The heat map: runs against topics, as a picture and as CSV."""

from __future__ import annotations

import csv
import io
import math
import zlib

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.charts.boards.heat_map import Shading, heat_map_figure, raster
from metrics.charts.look import Look
from metrics.charts.rendering import render, render_inline
from metrics.engine.measures.grammar import parse_measure
from metrics.services.boards.heat_map import HeatQuery, read_heat_map
from runs.models import Collection, Run, User
from tests.metrics.boards import make_board
from tests.metrics.drawings import lines, sides, words
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]

pytestmark = pytest.mark.words

API = "/api/v1/collections/"
N = math.nan
VALUES = np.array(
    [[0.9, 0.1, 0.6, 0.0], [0.8, 0.3, N, 0.0], [0.7, 0.5, 0.2, 0.0], [0.75, 0.7, 0.1, 0.0]]
)


@pytest.fixture(scope="module")
def board(alice: User) -> Collection:
    return make_board(alice.personal_team, {"AP": VALUES})


def test_the_heat_map_has_every_run_and_topic_in_order(
    anonymous: APIClient, board: Collection
) -> None:
    answer = anonymous.get(f"{API}board/heat-map/export/csv/")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert list(rows[0]) == [
        "topic",
        "runs",
        "mean",
        "spread",
        "disagreement",
        "r0",
        "r3",
        "r2",
        "r1",
    ]
    assert [row["topic"] for row in rows] == ["3", "2", "1", "0"]
    assert (rows[1]["r1"], rows[1]["r0"]) == ("", "0.6")
    base = Run.objects.get(tag="r0").pk
    against = anonymous.get(
        f"{API}board/heat-map/export/csv/", {"baseline": str(base)}
    ).content.decode()
    for row, plain in zip(csv.DictReader(io.StringIO(against)), rows, strict=True):
        assert float(row["r0"]) == 0.0
        assert float(row["r3"]) == pytest.approx(float(plain["r3"]) - float(plain["r0"]))


def test_cells_have_the_colours_of_their_values() -> None:
    shading = Shading(-1.0, 1.0, ("#ff0000", "#ffffff", "#0000ff"))
    drawn = raster(np.array([[-1.0, 0.0, 1.0], [N, 2.0, -0.5]]), shading)
    assert drawn.startswith(b"\x89PNG")
    palette = np.frombuffer(shading.palette, np.uint8).reshape(-1, 3)
    content = drawn[drawn.index(b"IDAT") + 4 : drawn.index(b"IEND") - 8]
    pixels = np.frombuffer(zlib.decompress(content), np.uint8).reshape(12, 19)[::6, 1::6]
    colours = [
        [tuple(palette[shade].tolist()) if shade else None for shade in row]
        for row in pixels.tolist()
    ]
    red, white, blue = (255, 0, 0), (255, 255, 255), (0, 0, 255)
    assert colours[0] == [red, white, blue]
    assert colours[1][:2] == [None, blue]
    assert colours[1][2][0] == 255
    assert 120 < colours[1][2][1] < 135


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "topics", "size"), [(1, 1, "column"), (40, 50, "narrow"), (143, 100, "wide")]
)
def test_every_name_of_the_heat_map_is_in_the_picture(
    alice: User, runs: int, topics: int, size: str
) -> None:
    make_scored("scored", alice.personal_team, simulated(runs, topics))
    board = Collection.objects.get(slug="scored")
    heat_map = read_heat_map(
        collection=board, query=HeatQuery(parse_measure("AP"), baseline="mean")
    )
    figure = heat_map_figure(heat_map)
    drawn = render(figure, Look(size=size), "svg")
    assert sides(drawn) == (Look(size=size).width, figure.height(Look(size=size)))
    assert [line for line in lines(drawn) if not line.within(*sides(drawn))] == []
    labels = words(drawn)
    assert {f"{run.rank}. {run.tag}" for run in heat_map.runs} <= set(labels)
    # Many cells are one image; fewer have a title each, and in a page a link.
    few = runs * topics <= (300 if size == "narrow" else 3_000)
    assert (b"data:image/png;base64," in drawn) != few
    assert drawn.count(b"<title>") == runs * topics * few
    page = render_inline(figure, size, linked=True)
    assert page.count("/ranking/?qrels=1&amp;topic=") == runs * topics * few


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("charts/heat-map.svg?offset=7", "nothing_to_draw"),
        ("charts/heat-map.svg?baseline=00000000-0000-4000-8000-000000000000", "unknown_run"),
        ("charts/heat-map.svg?limit=201", "invalid"),
        ("heat-map/export/csv/?baseline=best", "invalid"),
    ],
)
def test_what_cannot_be_drawn_says_why(
    anonymous: APIClient, board: Collection, path: str, code: str
) -> None:
    answer = anonymous.get(f"{API}board/{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_the_page_pages_both_ways(anonymous: APIClient, board: Collection) -> None:
    answer = anonymous.get(
        "/collections/board/heat-map/?limit=3&offset=0&topic_limit=2&topic_offset=2&baseline=mean"
    )
    html = " ".join(answer.content.decode().split())
    assert "Runs 1–3 of 4" in html
    assert "Topics 3–4 of 4" in html
    assert (
        'href="?limit=3&amp;offset=3&amp;topic_limit=2&amp;topic_offset=2&amp;baseline=mean"'
        in html
    )
    assert (
        'href="?limit=3&amp;offset=0&amp;topic_limit=2&amp;topic_offset=0&amp;baseline=mean"'
        in html
    )
    assert anonymous.get("/collections/board/heat-map/?offset=9").status_code == 200
    assert anonymous.get("/collections/board/heat-map/?baseline=x").status_code == 400
