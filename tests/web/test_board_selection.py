"""Runs that are ticked on a leaderboard, as a browser without scripts has them."""

from __future__ import annotations

import re
import uuid
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from evalhub.serving.requests import MAX_ADDRESS
from metrics.models import Evaluation
from metrics.pages.boards.selection import MOST_CHOSEN, short_ids
from runs.models import Collection, Run, User
from tests.metrics.boards import make_board, simulated
from tests.shared_data import alice, module_data
from tests.web.board_parts import BOARD, board, browser, links_of, rows_of
from tests.web.test_pages import page, text_of

__all__ = ["alice", "board", "browser", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


def form_of(html: str) -> list[tuple[str, str]]:
    """What the form sends: its own fields, and the ticked boxes that belong to it."""
    form = html.split('<form id="selection"')[1].split("</form>", maxsplit=1)[0]
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    boxes = re.findall(
        r'<input type="checkbox" form="selection" name="(select)" value="([^"]*)"[^>]* checked>',
        html,
    )
    return [(name, unescape(value)) for name, value in [*hidden, *boxes]]


def boxes_of(html: str) -> list[str]:
    return re.findall(
        r'<input type="checkbox" form="selection" name="select" value="([^"]*)"', html
    )


def send(browser: Client, fields: list[tuple[str, str]], **more: str) -> str:
    data: dict[str, list[str]] = {}
    for name, value in [*fields, *more.items()]:
        data.setdefault(name, []).append(value)
    return page(browser, BOARD, **data)  # type: ignore[arg-type]


def test_ticks_go_along_from_page_to_page(browser: Client, board: Collection) -> None:
    """Two runs of the first page and one of the last; each page by the buttons that send the form."""
    first = page(browser, BOARD, limit="5", sort="P@5")
    chosen = boxes_of(first)[:2]
    second = send(browser, [*form_of(first), *(("select", run) for run in chosen)], offset="5")
    assert {run for name, run in form_of(second) if name == "select"} == set(chosen)
    assert not set(chosen) & set(boxes_of(second))
    third = send(browser, [*form_of(second), ("select", boxes_of(second)[3])], offset="10")
    chosen.append(boxes_of(second)[3])
    sent = form_of(third)
    assert {run for name, run in sent if name == "select"} == set(chosen)
    assert ("sort", "P@5") in sent
    back = send(browser, sent, offset="0")
    assert sorted(run for name, run in form_of(back) if name == "select") == sorted(chosen)
    assert re.findall(r"<b>(\d+)</b> selected", back) == ["3"]
    answer = browser.get(BOARD, {"select": [run for name, run in form_of(back) if name == "select"],
                                 "sort": "P@5", "compare": "selected"})  # fmt: skip
    assert answer.status_code == 302
    address = urlsplit(answer["Location"])
    query = parse_qs(address.query)
    assert (address.path, query["measure"]) == (f"{BOARD}comparison/", ["P@5"])
    assert {uuid.UUID(run).hex[:8] for run in query["runs"][0].split(",")} == set(chosen)


def test_links_of_the_board_keep_the_ticks(browser: Client, board: Collection) -> None:
    ids = [run.pk.hex[:8] for run in Run.objects.order_by("tag")[:2]]
    html = page(browser, BOARD, select=",".join(ids), limit="5", measures="AP,P@5", chart="means")
    columns = re.findall(r'<a id="sort-\d" href="(\?[^"]*)"', html)
    assert len(columns) == 2
    for link in [*(links_of(html, text)[0] for text in ("next", "remove P@5", "make")), *columns]:
        assert parse_qs(urlsplit(unescape(link)).query)["select"] == [",".join(ids)], link
    filtering = next(form for form in html.split("<form")[1:] if 'role="search"' in form)
    assert f'name="select" value="{",".join(ids)}"' in filtering
    # Files and charts of the board have nothing to do with it.
    assert ids[0] not in html.split('class="page-actions"')[1].split("<h1")[0]
    assert all("select=" not in address for address in re.findall(r'src="([^"]*)"', html))


def test_a_filter_that_shows_nothing_keeps_the_ticks(browser: Client, board: Collection) -> None:
    ids = [run.pk.hex[:8] for run in Run.objects.order_by("tag")[:2]]
    html = page(browser, BOARD, select=",".join(ids), filter="zzz")
    assert "No runs match this filter" in html
    assert [run for name, run in form_of(html) if name == "select"] == ids
    assert parse_qs(urlsplit(links_of(html, "Show all runs")[0]).query)["select"] == [",".join(ids)]


def test_one_tick_is_taken_away_and_all_of_them(browser: Client, board: Collection) -> None:
    runs = list(Run.objects.order_by("tag")[:3])
    ids = [run.pk.hex[:8] for run in runs]
    html = page(browser, BOARD, select=",".join(ids))
    without = links_of(html, f"leave out {runs[1].tag}")[0]
    assert parse_qs(urlsplit(without).query)["select"] == [f"{ids[0]},{ids[2]}"]
    assert links_of(html, "Clear") == ["?#leaderboard"]
    assert '<div id="chosen" class="chosen" hidden>' in page(browser, BOARD)


@pytest.mark.parametrize("ticked", [0, 1])
def test_nothing_ticked_is_not_all(browser: Client, board: Collection, ticked: int) -> None:
    ids = [run.pk.hex[:8] for run in Run.objects.order_by("tag")[:ticked]]
    html = page(browser, BOARD, select=",".join(ids), compare="selected", limit="5")
    assert "Choose at least two runs to compare" in text_of(html)
    assert len(rows_of(html)) == 5
    assert "compare=" not in "".join(re.findall(r'href="([^"]*)"', html))
    assert "Choose at least two runs" not in page(browser, BOARD, select=",".join(ids))


def test_all_are_compared_when_that_is_asked_for(browser: Client, board: Collection) -> None:
    assert "Compare all (12 runs)" in text_of(page(browser, BOARD, limit="5"))
    run = str(Run.objects.first().pk)  # type: ignore[union-attr]
    answer = browser.get(BOARD, {"compare": "all", "select": run, "sort": "AP"})
    assert (answer.status_code, answer["Location"]) == (302, f"{BOARD}comparison/?measure=AP")


def test_the_runs_of_a_filter_are_compared(browser: Client, board: Collection) -> None:
    first, second, failed = Run.objects.filter(tag__in=("r2", "r3", "r4"))
    Evaluation.objects.filter(run=failed).update(state="failed")
    names = {"filter": f"tag:{first.tag},{second.tag},{failed.tag}"}
    assert "Compare these 3" in text_of(page(browser, BOARD, **names))
    answer = browser.get(BOARD, {"compare": "filtered", **names})
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert set(query["runs"][0].split(",")) == {str(first.pk), str(second.pk)}
    assert query["family"] == ["all"]
    for wrong in (f"tag:{first.tag}", "zz>1"):
        assert browser.get(BOARD, {"compare": "filtered", "filter": wrong}).status_code != 302


def test_the_baseline_goes_with_the_chosen_runs(browser: Client, board: Collection) -> None:
    first, second, third = (run.pk for run in Run.objects.order_by("tag")[:3])
    answer = browser.get(
        BOARD, {"compare": "selected", "select": f"{first},{second}", "baseline": str(third)}
    )
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert (query["baseline"], query["family"]) == ([str(third)], ["all"])


def test_what_is_gone_is_not_ticked(browser: Client, board: Collection) -> None:
    remaining, gone, failed = Run.objects.order_by("tag")[:3]
    Run.objects.filter(pk=gone.pk).update(deleted_at=gone.created_at)
    Evaluation.objects.filter(run=failed).update(state="failed")
    html = page(browser, BOARD, select=f"{remaining.pk},{gone.pk},{failed.pk},{uuid.uuid4()}")
    assert [run for name, run in form_of(html) if name == "select"] == [remaining.pk.hex[:8]]
    ticked = re.compile(r'name="select"[^>]* checked>')
    assert not ticked.search(page(browser, BOARD, select="nonsense"))


def test_a_blind_board_compares_nothing(browser: Client, board: Collection) -> None:
    Collection.objects.update(blind=True)
    answer = browser.get(BOARD, {"compare": "all"})
    assert answer.status_code == 200
    assert "until the organisers release them" in answer.content.decode()


def test_runs_whose_ids_begin_alike_have_longer_names() -> None:
    alike = [uuid.UUID(int=(7 << 96) + number) for number in (1, 2)]
    other = uuid.UUID(int=8 << 96)
    assert short_ids([*alike, other]) == {**{run: run.hex for run in alike}, other: "00000008"}


def test_no_more_than_sixty_are_chosen(browser: Client, alice: User) -> None:
    board = make_board(alice.personal_team, {"AP": simulated(MOST_CHOSEN + 3, 5)}, "long")
    every = ",".join(run.pk.hex[:8] for run in board.runs.order_by("tag"))
    html = page(browser, "/collections/long/", select=every)
    assert re.findall(r"<b>(\d+)</b> selected", html) == [str(MOST_CHOSEN)]
    assert "The first 60 of them" in text_of(html)
    answer = browser.get("/collections/long/", {"select": every, "compare": "selected"})
    assert len(parse_qs(urlsplit(answer["Location"]).query)["runs"][0].split(",")) == MOST_CHOSEN
    assert len(answer["Location"]) < MAX_ADDRESS


def test_a_board_of_one_run_offers_no_comparison(browser: Client, board: Collection) -> None:
    Run.objects.exclude(pk=Run.objects.first().pk).delete()  # type: ignore[union-attr]
    html = page(browser, BOARD)
    assert len(rows_of(html)) == 1
    assert "Compare all" not in html
