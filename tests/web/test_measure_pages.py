"""The pages of measures: found, defined, tried, and explained while they are typed."""

from __future__ import annotations

import math

import pytest
from django.test import Client

from metrics.engine.measures import MEASURES
from metrics.engine.measures.finding import find_measures, names_of
from metrics.services.values.examples import example_values
from tests.web.test_pages import page, text_of


@pytest.fixture
def browser() -> Client:
    return Client()


def test_every_measure_is_listed_and_has_a_page(browser: Client, db: None) -> None:
    html = page(browser, "/measures/")
    for name, definition in MEASURES.items():
        assert f'id="{name}"' in html
        own = page(browser, f"/measures/{name}/")
        for parameter in definition.parameters:
            assert f"<code>{parameter.name}</code>" in own, name
        for other in names_of(definition)[1:]:
            assert f"<code>{other}</code>" in own, name


@pytest.mark.parametrize("name", ["ndcg_cut_10", "map", "P(rel=2)@5", "MRR", "nDCG@10"])
def test_a_measure_is_found_by_any_of_its_names(browser: Client, db: None, name: str) -> None:
    assert "On a small ranking" in page(browser, f"/measures/{name}/")


def test_no_measure_is_a_page_that_says_so(browser: Client, db: None) -> None:
    assert "Unknown measure" in page(browser, "/measures/foo/", 404)
    assert "No measure is called that" in page(browser, "/measures/", search="zzz")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ndcg", "nDCG"),
        ("map", "AP"),
        ("reciprocal", "RR"),
        ("recip_rank", "RR"),
        ("rank-biased", "RBP"),
        ("P", "P"),
    ],
)
def test_a_search_puts_names_before_words(text: str, first: str) -> None:
    assert find_measures(text)[0].name == first


def test_the_api_searches_as_the_page_does(browser: Client, db: None) -> None:
    names = [one["name"] for one in browser.get("/api/v1/measures/", {"search": "session"}).json()]
    assert names == [one.name for one in find_measures("session")]
    assert 0 < len(names) < len(MEASURES)
    assert len(browser.get("/api/v1/measures/").json()) == len(MEASURES)


@pytest.mark.parametrize("name", list(MEASURES))
def test_every_measure_has_examples(name: str) -> None:
    values = example_values(MEASURES[name])
    assert values
    assert all(one.value is None or math.isfinite(one.value) for one in values)


def test_examples_by_hand() -> None:
    """Levels 3, 0, 2, unjudged, 0, 1, 0, 2, and 3 and 1 not retrieved."""
    values = {one.measure.name: one.value for name in ("P", "AP", "RR", "CG") for one in example_values(MEASURES[name])}
    assert values["P@3"] == pytest.approx(2 / 3)
    assert values["AP"] == pytest.approx((1 / 1 + 2 / 3 + 3 / 6 + 4 / 8) / 6)
    assert values["RR"] == 1
    assert values["CG@8"] == 8


def test_a_name_is_explained_while_it_is_typed(browser: Client, db: None) -> None:
    def told(text: str) -> str:
        return text_of(page(browser, "/measures/suggestions/", measures=text))

    assert told("").startswith("separated by commas")
    assert told("AP, nDCG@10").startswith("nDCG@10 Normalised discounted cumulated gain")
    assert told("AP, recipr").startswith("RR Reciprocal rank")
    assert told("AP, nDCG(gains=").startswith("nDCG Normalised")
    assert "unknown measure" in told("zzzz")
    assert "<html" not in page(browser, "/measures/suggestions/", measures="AP")
