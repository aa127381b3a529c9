"""The measures, filters and choices of a leaderboard's page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from runs.models import Collection, Run, User
from tests.conftest import GOOD
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.board_parts import (
    BOARD,
    SMALL,
    Submit,
    board,
    browser,
    links_of,
    rows_of,
    statistics_of,
)
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "board", "browser", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


def test_what_a_board_is_ranked_by_stands_on_it(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    html = page(browser, SMALL, measures="AP", sort="RR")
    assert re.findall(r'aria-sort="descending"><a id="sort-(\d)"', html) == ["2"]
    assert links_of(html, "remove RR") == ["?measures=AP#shown-columns"]
    assert links_of(html, "remove AP") == ["?measures=RR&sort=RR#shown-columns"]


def test_the_last_measure_stays(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    assert "remove AP" not in page(browser, SMALL, measures="AP")


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ({"add": "map"}, "?measures=nDCG%4010%2CAP#shown-columns"),
        ({"add": "P@3", "measures": "AP"}, "?measures=AP%2CP%403#shown-columns"),
        (
            {"add": "ndcg_cut_10, RR", "measures": "P@3", "sort": "AP"},
            "?measures=P%403%2CnDCG%4010%2CRR&sort=AP#shown-columns",
        ),
        ({"add": "", "measures": "AP", "filter": "x"}, "?measures=AP&filter=x#shown-columns"),
        ({"add": ""}, "?#shown-columns"),
    ],
)
def test_a_measure_is_added_to_the_address(
    browser: Client, submit: Submit, query: dict[str, str], address: str
) -> None:
    submit(GOOD)
    Collection.objects.update(measures=["nDCG@10", "AP"])
    answer = browser.get(SMALL, query)
    assert (answer.status_code, answer["Location"]) == (302, address)


def test_a_measure_that_cannot_be_added_stays_in_its_field(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    html = page(browser, SMALL, 400, add="nDCG@10,foo", measures="AP")
    assert "unknown measure &#x27;foo&#x27;" in html
    assert re.search(r'name="add"[^>]* value="nDCG@10,foo"[^>]* aria-invalid="true"', html)
    assert '<input type="hidden" name="measures" value="AP">' in html


def test_forms_keep_the_rest_of_the_view(browser: Client, submit: Submit) -> None:
    run = submit(GOOD)
    view = {
        "measures": "AP",
        "sort": "AP",
        "order": "asc",
        "baseline": str(run.pk),
        "filter": "good",
    }
    html = page(browser, SMALL, **view, offset="0")
    adding = next(form for form in html.split("<form")[1:] if 'action="#shown-columns"' in form)
    filtering = next(form for form in html.split("<form")[1:] if 'role="search"' in form)
    hidden = [dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form.split("</form>")[0]))
              for form in (adding, filtering)]  # fmt: skip
    assert hidden == [view, {name: value for name, value in view.items() if name != "filter"}]


@pytest.mark.queries
def test_a_filter_chooses_rows_and_keeps_ranks(browser: Client, board: Collection) -> None:
    ranks = {row["run"]["tag"]: row["rank"] for row in statistics_of(browser)["results"]}
    html = page(browser, BOARD, filter="r3 OR tag:r7")
    shown_ranks = {cells[1].split()[0]: int(cells[0].split()[0]) for cells in rows_of(html)}
    assert shown_ranks == {tag: ranks[tag] for tag in ("r3", "r7")}
    assert "2 rows match the filter r3 OR tag:r7 ; ranks are among all 12 runs" in text_of(html)
    assert 'value="r3 OR tag:r7"' in html


def test_a_filter_that_nothing_is_and_one_that_is_wrong(browser: Client, board: Collection) -> None:
    nothing = page(browser, BOARD, filter="zzz", measures="AP")
    assert "No runs match this filter" in nothing
    assert links_of(nothing, "Show all runs")[0] == "?measures=AP#leaderboard"
    wrong = page(browser, BOARD, 400, filter="team:", measures="AP")
    assert re.search(r'id="filter"[^>]* value="team:"[^>]* aria-invalid="true"', wrong)
    assert links_of(wrong, "Definition") == []
    assert 'role="alert"' in wrong


@pytest.mark.queries
def test_quick_choices_write_into_the_filter(
    browser: Client, board: Collection, bob: User, api: Any
) -> None:
    Run.objects.filter(tag__in=["r1", "r2"]).update(team=bob.personal_team)
    html = page(browser, BOARD, filter="r* team:alice", measures="AP")
    assert links_of(html, "team:alice") == ["?filter=r%2A&measures=AP#leaderboard"]
    assert 'aria-current="true">team:alice' in html
    assert links_of(html, "team:bob") == ["?filter=r%2A+team%3Abob&measures=AP#leaderboard"]
    either = page(browser, BOARD, filter="r1 OR r2")
    assert links_of(either, "team:bob") == ["?filter=%28r1+OR+r2%29+team%3Abob#leaderboard"]
    assert len(rows_of(page(browser, BOARD + links_of(either, "team:bob")[0].split("#")[0]))) == 2
