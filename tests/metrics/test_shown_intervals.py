"""Intervals of means as people read them: within the measure's range, which Student's t knows nothing of."""

from __future__ import annotations

import math
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.engine.curve.intervals import within
from metrics.engine.measures import MEASURES
from metrics.engine.measures.grammar import parse_measure
from metrics.tables import with_minus
from runs.models import Run, User
from tests.conftest import GOOD
from tests.metrics.boards import make_board
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words

ENDLESS = (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [("AP", (0, 1)), ("Success", (0, 1)), ("DCG", (0, math.inf)), ("ASL", (1, math.inf)), ("RHL", (0.5, math.inf)),
     ("RelRelevance", (-1, 1)), ("utility", ENDLESS), ("yaap", ENDLESS), ("alpha_nDCG", (0, math.inf)),
     ("AvgPos", (0, math.inf))],
)  # fmt: skip
def test_bounds_are_those_of_the_range(name: str, bounds: tuple[float, float]) -> None:
    assert MEASURES[name].bounds == bounds


@pytest.mark.parametrize("name", MEASURES)
def test_every_range_can_be_read(name: str) -> None:
    low, high = MEASURES[name].bounds
    assert low < high
    assert math.isfinite(low) or MEASURES[name].sections()["range"] in (
        "any number",
        "that of the measure",
    )


def test_an_interval_is_cut_at_both_ends() -> None:
    band = (np.array([-0.2, 0.1, np.nan]), np.array([0.4, 1.3, np.nan]))
    low, high = within(band, parse_measure("P@5").definition.bounds)
    assert np.array_equal(low, [0.0, 0.1, np.nan], equal_nan=True)
    assert np.array_equal(high, [0.4, 1.0, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-0.00", "0.00"),
        ("-0.13", "\N{MINUS SIGN}0.13"),
        ("0.13", "0.13"),
        ("-0.0001", "\N{MINUS SIGN}0.0001"),
    ],
)
def test_a_number_has_a_minus_and_no_signed_zero(text: str, expected: str) -> None:
    assert with_minus(text) == expected


def read_board(client: Client, **query: str) -> str:
    return unescape(client.get("/collections/board/", query).content.decode())


def ends_of(html: str) -> list[str]:
    ends = re.search(r'class="ends"[^>]*><span>([^<]*)</span><span>([^<]*)</span>', html)
    assert ends
    return list(ends.groups())


def test_a_board_shows_no_value_that_the_measure_cannot_have(
    alice: User, anonymous: APIClient
) -> None:
    """Between two bounds an interval ends inside; at a single one it is cut."""
    values = np.array([[0.0, 0.9, 1.0], [0.0, 0.0, 0.4]])
    measures = {"AP": values, "DCG": values, "utility": values - 0.6}
    make_board(alice.personal_team, measures)
    between = read_board(Client(), sort="AP")
    assert re.findall(r"<title>\s*95% interval ([^<]*)<", between) == [
        "0.0047 to 0.9984",
        "0.0011 to 0.9566",
    ]
    assert "cut where" not in between
    html = read_board(Client(), sort="DCG")
    assert ends_of(html)[0] == "0.00"
    assert "cut where DCG ends: at 0" in html
    places = [float(x) for x in re.findall(r'class="span" d="M([\d.-]+) 6H', html)]
    assert min(places) == 0.0
    # What may be any number is not cut, and its minus is one.
    free = read_board(Client(), sort="utility")
    assert "cut where" not in free
    assert ends_of(free)[0].startswith("\N{MINUS SIGN}")
    # The answer for programs has Student's own ends.
    query = {"sort": "DCG", "statistics": "intervals"}
    rows = anonymous.get("/api/v1/collections/board/leaderboard/", query).json()["results"]
    assert rows[0]["values"]["DCG"]["low"] < 0.0


def test_the_chart_of_a_board_says_that_it_is_cut(alice: User, anonymous: APIClient) -> None:
    make_board(alice.personal_team, {"DCG": np.array([[0.0, 0.9, 1.0], [0.0, 0.0, 0.4]])})
    drawn = anonymous.get("/api/v1/collections/board/charts/means.json", {"sort": "DCG"}).json()
    rows = drawn["layer"][0]["data"]["values"]
    assert [row["low"] for row in rows] == [0.0, 0.0]
    assert (
        "cut where DCG ends: at 0"
        in read_board(Client(), sort="DCG", chart="means").split("<figcaption>")[1]
    )


@pytest.mark.parametrize("measure", ["P", "DCG"])
def test_the_band_of_a_curve_is_cut(submit: Any, anonymous: APIClient, measure: str) -> None:
    run: Run = submit(GOOD)
    path, query = f"/api/v1/runs/{run.pk}", {"measure": measure, "depth": "5"}
    drawn = anonymous.get(f"{path}/charts/curve.json", query).json()
    points = [row for layer in drawn["layer"] for row in layer["data"]["values"] if "low" in row]
    whole = anonymous.get(f"{path}/curve/", {"measures": measure, "depth": "5"}).json()["curves"][0]
    low, high = MEASURES[measure].bounds
    ends = {(point["rank"], point["low"], point["high"]) for point in points}
    assert ends == {
        (rank, max(low, a), min(high, b))
        for rank, (a, b) in enumerate(zip(whole["low"], whole["high"], strict=True), 1)
    }
    assert min(whole["low"]) < low
