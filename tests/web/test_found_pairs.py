"""The page of two runs keeps the family they were found in, whichever way a reader comes to it."""

from __future__ import annotations

import html as markup
import re
from typing import Any

import numpy as np
import pytest
from django.test import Client

from metrics.models import Comparison
from metrics.services.comparisons import workload
from metrics.services.comparisons.stored import compare
from runs.models import Run, User
from tests.conftest import evaluate_all, upload
from tests.shared_data import alice, api, module_data
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "module_data"]

pytestmark = pytest.mark.words

PATH = "/collections/alike/comparison/"
FAMILY = "Holm&#x27;s correction over the 66 pairs of 12 runs"


@pytest.fixture
def browser() -> Client:
    return Client()


@pytest.fixture(scope="module")
def alike(api: Any) -> list[str]:
    """The ids of twelve runs that order five documents of each topic by chance, one of which is relevant."""
    rng = np.random.default_rng(3)
    fields = {"slug": "alike", "name": "Alike", "measures": ["RR"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    topics = range(1, 51)
    assert (
        upload(
            api, "collections/alike/qrels/", "".join(f"{topic} 0 d0 1\n" for topic in topics)
        ).status_code
        == 201
    )
    for number in range(12):
        places = {topic: enumerate(rng.permutation(5).tolist()) for topic in topics}
        lines = (
            f"{t} Q0 d{doc} 0 {9 - place} r{number}\n"
            for t, documents in places.items()
            for place, doc in documents
        )
        assert upload(api, "collections/alike/runs/", "".join(lines)).status_code == 202
    evaluate_all()
    return [str(pk) for pk in Run.objects.order_by("created_at").values_list("pk", flat=True)]


def pair_links(html: str) -> list[str]:
    table = html[html.index('<table class="pairs') :]
    return [
        markup.unescape(link)
        for link in re.findall(r'<a href="([^"]+)" aria-label="[^"]+ in detail"', table)
    ]


def closely(browser: Client, link: str) -> str:
    """The text of a pair's page that has a p below 0.05 alone, with the verdict of its family."""
    html = page(browser, link)
    text = text_of(html)
    assert "not significant at 0.05" in text
    assert "is better than" not in text
    alone = re.search(r"p = (0\.\d{4}) uncorrected by the paired t test, (\d\.\d{4}) with", text)
    assert alone
    assert float(alone[1]) < 0.05 <= float(alone[2])
    assert f"{alone[2]} with {FAMILY}" in text
    assert "could have been chosen" not in text
    sentence = re.search(r'<p id="sentence">(.*?)</p>', html, re.DOTALL)
    assert sentence
    assert "selected from the 66 pairs of 12 runs" in sentence[1]
    assert "Holm&#x27;s correction over 66 pairs" in sentence[1]
    assert "no correction needed" not in sentence[1]
    return html


def test_the_smallest_p_of_a_comparison_keeps_its_correction(
    browser: Client, alike: list[str]
) -> None:
    html = closely(browser, pair_links(page(browser, PATH, sort="p_value", tests="paired_t"))[0])
    table = re.search(
        r'<table class="stacked" aria-describedby="tests-caption".*?</table>', html, re.DOTALL
    )
    assert table
    assert "Corrected p" in table[0]
    assert "yes" not in table[0]
    topic = re.search(r'href="(\?[^"]*topic=\d+)#rankings"', html)
    assert topic
    closely(browser, PATH + markup.unescape(topic[1]))


@pytest.mark.slow
def test_every_link_to_a_pair_carries_the_family(browser: Client, alike: list[str]) -> None:
    five = ",".join(alike[:5])
    html = page(
        browser, PATH, runs=five, tests=["paired_t", "sign"], correction="none", alpha="0.2"
    )
    links = pair_links(html)
    split = re.search(r"disagree on \d+ pairs?: (.*?)</p>", html, re.DOTALL)
    assert split
    links.append(markup.unescape(re.search(r'href="([^"]+)"', split[1])[1]))  # type: ignore[index]
    for link in links:
        text = text_of(page(browser, link))
        assert "over the 10 pairs of 5 runs" in text
        assert "significant at 0.2" in text


def test_a_pair_of_a_baseline_names_the_family_of_the_baseline(
    browser: Client, alike: list[str]
) -> None:
    link = pair_links(page(browser, PATH, baseline=alike[3]))[0]
    assert "adjusted for the 11 pairs of 12 runs with the baseline" in text_of(page(browser, link))


def test_runs_ticked_on_a_board_are_tested_among_all_of_it(
    browser: Client, alike: list[str]
) -> None:
    two, three = (
        browser.get(
            "/collections/alike/", {"select": ",".join(ticked), "compare": "selected"}
        ).headers["Location"]
        for ticked in (alike[:2], alike[:3])
    )
    assert "for the 66 pairs of 12 runs" in text_of(page(browser, two))
    several = text_of(page(browser, three))
    assert "0 of 3 differences are significant: " in several
    assert (
        "Test: paired t (Holm) and Tukey&#x27;s HSD, accounting for all 66 pairs at once" in several
    )


def test_a_pair_without_a_family_says_that_it_was_one_of_many(
    browser: Client, alike: list[str]
) -> None:
    html = page(browser, PATH, runs=",".join(alike[:2]))
    assert "One of 66 pairs of 12 runs that could have been chosen" in text_of(html)
    assert "paired t test, tested alone, 0.05" in text_of(html)
    form = html[html.index('<select id="family"') :]
    choices = re.findall(r'<option value="(\w*)"( selected)?>(.*?)</option>', form)[:2]
    assert choices == [
        ("", " selected", "tested alone"),
        ("all", "", "tested among all runs"),
    ]
    among_all = text_of(page(browser, PATH, runs=",".join(alike[:2]), family="all"))
    assert "for the 66 pairs of 12 runs" in among_all
    assert "tested among all runs, 0.05" in among_all


def test_a_pair_of_a_stored_comparison_stays_in_it(
    browser: Client, alice: User, alike: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.force_login(alice)
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    browser.post("/collections/alike/comparison/queue/", {"tests": "paired_t"})
    stored = Comparison.objects.get()
    assert compare(comparison_id=str(stored.pk))
    link = pair_links(page(browser, f"/comparisons/{stored.pk}/", sort="p_value"))[0]
    assert link.startswith(f"/comparisons/{stored.pk}/")
    html = closely(browser, link)
    for address in re.findall(r'<a href="(/api/v1/comparisons/[^"]+)"', html):
        assert "runs=" in address
    topic = re.search(r'href="(\?[^"]*topic=\d+)#rankings"', html)
    assert topic
    closely(browser, f"/comparisons/{stored.pk}/{markup.unescape(topic[1])}")
    assert "is not among the 12 compared runs" in page(
        browser, f"/comparisons/{stored.pk}/", 400, runs="0" * 32
    )


@pytest.mark.parametrize("measure", ["RR", "SearchLength"])
def test_sentence_and_table_have_one_sign(browser: Client, alike: list[str], measure: str) -> None:
    html = page(browser, PATH, runs=",".join(alike[:2]), measures=measure)
    interval = re.search(r"interval (\S+ to \S+);", text_of(html))
    table = re.search(
        r'<table class="stacked" aria-describedby="tests-caption".*?</table>', html, re.DOTALL
    )
    assert interval
    assert table
    low, high = (float(end.replace("−", "-")) for end in interval[1].split(" to "))
    # The first statistic is t: of the sign of the difference, which is in the middle of its
    # interval.
    statistic = re.search(r'data-head="Statistic">([^<]+)<', table[0])
    assert statistic
    assert (float(statistic[1].replace("−", "-")) > 0) == (low + high > 0)
    assert ("(lower is better)" in text_of(html)) == (measure == "SearchLength")


def test_every_option_that_a_caution_names_is_in_the_form(
    browser: Client, alike: list[str]
) -> None:
    html = page(
        browser, PATH, runs=",".join(alike[:3]), tests="wilcoxon", ties="rounded", zeros="pratt"
    )
    for name, chosen, others in (("ties", "rounded", {"exact"}), ("zeros", "pratt", {"drop"})):
        control = re.search(rf'<select id="{name}" name="{name}">(.*?)</select>', html)
        assert control
        options = dict(re.findall(r'<option value="(\w+)"( selected)?>', control[1]))
        assert {value for value, selected in options.items() if selected} == {chosen}
        assert set(options) == {chosen} | others
