"""The pages of measures: found, defined, tried, and explained while they are typed."""

from __future__ import annotations

import math
import re

import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.engine.curve.curves import CURVES
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import MeasureDefinition
from metrics.engine.measures.finding import find_measures, names_of
from metrics.engine.sessions.grammar import VECTORS, parse_session_measure, setting_of
from metrics.engine.sessions.measures import SESSION_MEASURES
from metrics.services.values.examples import example_values
from metrics.services.values.known_measures import OF, search_measures
from tests.conftest import SESSIONS, evaluate_all_sessions, upload
from tests.shared_data import alice, api, collection, module_data
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words


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


def test_what_has_a_curve_says_so(anonymous: APIClient) -> None:
    """Measures of runs over ranks, those of sessions over the places of the session's vector."""
    listed = anonymous.get("/api/v1/measures/").json()
    assert {measure["name"] for measure in listed if measure["curve"]} == {*CURVES, *VECTORS}
    html = page(anonymous, "/measures/sDCG/")
    assert '<span class="label">curve</span>' in html
    for name in VECTORS:
        assert setting_of(parse_session_measure(name))


@pytest.mark.parametrize("name", ["ndcg_cut_10", "map", "P(rel=2)@5", "MRR", "nDCG@10"])
def test_a_measure_is_found_by_any_of_its_names(browser: Client, db: None, name: str) -> None:
    assert "Eight documents of one topic" in page(browser, f"/measures/{name}/")


def test_no_measure_is_a_page_that_says_so(browser: Client, db: None) -> None:
    assert "Unknown measure" in page(browser, "/measures/foo/", 404)
    assert "No measures found" in page(browser, "/measures/", search="zzz")


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
    names = [
        measure["name"]
        for measure in browser.get("/api/v1/measures/", {"search": "session"}).json()
    ]
    assert names == [measure.name for measure in search_measures("session")]
    assert 0 < len(names) < len(MEASURES)
    every = browser.get("/api/v1/measures/").json()
    assert [(measure["name"], measure["of"]) for measure in every] == [
        *((name, "runs") for name in MEASURES), *((name, "sessions") for name in SESSION_MEASURES)
    ]  # fmt: skip
    for of, known in (("runs", MEASURES), ("sessions", SESSION_MEASURES)):
        assert [
            measure["name"] for measure in browser.get("/api/v1/measures/", {"of": of}).json()
        ] == list(known)
        html = page(browser, "/measures/", of=of)
        assert re.findall(r'<li id="([^"]+)"', html) == list(known)
    assert browser.get("/api/v1/measures/", {"of": "x"}).status_code == 400
    assert browser.get("/measures/", {"of": "x"}).status_code == 400


def test_a_name_means_one_measure() -> None:
    runs, sessions = (
        {name for definition in kind.values() for name in names_of(definition)}
        for kind in OF.values()
    )
    assert not runs & sessions


def test_measures_of_sessions_are_explained_as_those_of_runs_are(browser: Client, db: None) -> None:
    for name, definition in SESSION_MEASURES.items():
        own = browser.get(f"/api/v1/measures/{name}/").json()
        assert (own["name"], own["of"], own["formula"]) == (
            name,
            "sessions",
            definition.sections()["formula"],
        )
        html = page(browser, f"/measures/{name}/")
        assert "two queries of one session" in html
        for parameter in definition.parameters:
            assert f"<code>{parameter.name}</code>" in html, name
        assert f"default {definition.default_cutoff}" in html
        assert own["default_cutoff"] == definition.default_cutoff
    assert browser.get("/api/v1/measures/nsDCG(figure='best')@20/").json()["name"] == "nsDCG"
    assert browser.get("/api/v1/measures/session-dcg/").json()["name"] == "sDCG"
    names = [
        measure["name"] for measure in browser.get("/api/v1/measures/", {"search": "sdcg"}).json()
    ]
    assert {"sDCG", "nsDCG", "ScaledDCG"} <= set(names)
    assert 'id="sDCG"' in page(browser, "/measures/", search="sdcg")
    assert "SDCG is ambiguous" in page(browser, "/measures/SDCG/", 404)


def test_pages_of_sessions_lead_to_their_measures(
    browser: Client, api: APIClient, collection: str
) -> None:
    session_set = upload(api, "collections/small/sessions/", SESSIONS)
    evaluate_all_sessions()
    own = f"/session-sets/{session_set.json()['id']}/"
    for address in ("/collections/small/sessions/", own):
        assert 'href="/measures/?of=sessions"' in page(browser, address)
    for address in ("/collections/small/sessions/", f"{own}sessions/s1/"):
        assert 'href="/measures/nsDCG/"' in page(browser, address)


@pytest.mark.parametrize(
    "definition",
    [*MEASURES.values(), *SESSION_MEASURES.values()],
    ids=lambda definition: definition.name,
)
def test_every_measure_has_examples(definition: MeasureDefinition) -> None:
    values = example_values(definition)
    assert values
    assert all(example.value is None or math.isfinite(example.value) for example in values)


def test_examples_by_hand() -> None:
    """Levels 3, 0, 2, unjudged, 0, 1, 0, 2, and 3 and 1 not retrieved."""
    values = {
        example.measure.name: example.value
        for name in ("P", "AP", "RR", "CG")
        for example in example_values(MEASURES[name])
    }
    assert values["P@3"] == pytest.approx(2 / 3)
    assert values["AP"] == pytest.approx((1 / 1 + 2 / 3 + 3 / 6 + 4 / 8) / 6)
    assert values["RR"] == 1
    assert values["CG@8"] == 8


def test_examples_of_a_session_by_hand() -> None:
    """Levels 0, 2, unjudged, 1 of the first query and 3, 0, 1, 0, 2 of the second; 3 and 1 not retrieved."""
    values = {
        example.measure.name: example.value for example in example_values(SESSION_MEASURES["sDCG"])
    }
    log2 = math.log2
    first = 2 / (1 + log2(2)) + 1 / (1 + log2(4))
    second = 3 + 1 / (1 + log2(3)) + 2 / (1 + log2(5))
    assert values["sDCG(b=2,bq=4)@10"] == pytest.approx(first + second / 1.5)
    assert values["sDCG(b=2,bq=none)@10"] == pytest.approx(first + second)
    assert values["sDCG(b=2,bq=4,figure='last')@10"] == pytest.approx(second / 1.5)
    assert example_values(SESSION_MEASURES["InstanceRecall"])[0].value == pytest.approx(5 / 7)


def test_a_name_is_explained_while_it_is_typed(browser: Client, db: None) -> None:
    def suggestions(text: str) -> str:
        return text_of(page(browser, "/measures/suggestions/", measures=text))

    assert suggestions("").startswith("separated by commas")
    assert suggestions("AP, nDCG@10").startswith("nDCG@10 Normalised discounted cumulated gain")
    assert suggestions("AP, recipr").startswith("RR Reciprocal rank")
    assert suggestions("AP, nDCG(gains=").startswith("nDCG Normalised")
    assert "unknown measure" in suggestions("zzzz")
    assert "<html" not in page(browser, "/measures/suggestions/", measures="AP")


def test_a_session_measure_is_explained_where_sessions_are_asked_for(
    browser: Client, api: APIClient, collection: str
) -> None:
    def suggestions(text: str, **query: str) -> str:
        return text_of(page(browser, "/measures/suggestions/", measures=text, **query))

    assert suggestions("nsDCG(b=10)@20", of="sessions").startswith(
        "nsDCG(b=10,bq=4)@20 Normalised session"
    )
    assert suggestions("nsD", of="sessions").startswith("nsDCG ")
    assert suggestions("Query(of='NormRecall')", of="sessions").startswith(
        "Query(of=&#x27;NormRecall&#x27;) A measure"
    )
    assert suggestions("", of="sessions").startswith("session measures separated by commas")
    assert browser.get("/measures/suggestions/", {"measures": "AP", "of": "x"}).status_code == 400
    # The collection's number of documents is taken where the measure is computed.
    assert suggestions("NormRecall").startswith("NormRecall Normalised recall")
    session_set = upload(api, "collections/small/sessions/", SESSIONS)
    evaluate_all_sessions()
    assert "/measures/suggestions/?of=sessions" in page(
        browser, f"/session-sets/{session_set.json()['id']}/"
    )
