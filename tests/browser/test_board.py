"""The leaderboard in a real browser: by keyboard, by pointer, on a phone, without scripts, and while runs arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.site import Site
from tests.browser.visits import faults_of_access, watched
from tests.reliability.servers import wait_until_evaluated

BOARD = "/collections/open/"
# Servers of continuous integration are slow.
PATIENCE = 60_000


@pytest.fixture
def board(reader: BrowserContext, site: Site) -> Iterator[Page]:
    """The page of the open collection, in which nothing may go wrong."""
    with watched(reader, site) as seen:
        seen.page.set_default_timeout(PATIENCE)
        seen.page.goto(BOARD, wait_until="networkidle")
        yield seen.page


def header(page: Page, measure: str) -> Locator:
    return page.locator("table.board thead th").filter(has_text=measure)


def tags(page: Page) -> list[str]:
    return page.locator("table.board tbody th > a:first-child").all_inner_texts()


def test_a_measure_is_chosen_by_keyboard_and_taken_away(board: Page) -> None:
    board.locator("#columns-tool > summary").click()
    board.get_by_label("Add a column").focus()
    board.keyboard.type("nDC")
    choice = board.get_by_role("button", name="add nDCG@5", exact=True)
    expect(choice).to_be_visible(timeout=PATIENCE)
    for _ in range(3):
        board.keyboard.press("Tab")
    expect(choice).to_be_focused()
    board.keyboard.press("Enter")
    expect(header(board, "nDCG@5")).to_be_visible(timeout=PATIENCE)
    expect(board.get_by_label("Add a column")).to_have_value("")
    assert "measures=nDCG%4010%2CAP%2CRR%2CP%4010%2CnDCG%405" in board.url
    board.get_by_role("link", name="remove AP").click()
    expect(header(board, "AP")).to_have_count(0, timeout=PATIENCE)
    assert "AP" not in board.url


def test_typed_measures_come_by_enter(board: Page) -> None:
    board.locator("#columns-tool > summary").click()
    board.get_by_label("Add a column").fill("P(rel=2)@5, R@100")
    board.keyboard.press("Enter")
    expect(header(board, "R@100")).to_be_visible(timeout=PATIENCE)
    expect(header(board, "P(rel=2)@5")).to_be_visible()


def test_a_click_sorts_and_the_way_back_leads_back(board: Page) -> None:
    best_first = tags(board)
    sorter = header(board, "AP").get_by_role("link")
    sorter.focus()
    board.keyboard.press("Enter")
    expect(header(board, "AP")).to_have_attribute("aria-sort", "descending", timeout=PATIENCE)
    expect(header(board, "AP").get_by_role("link")).to_be_focused()
    header(board, "AP").get_by_role("link").click()
    expect(header(board, "AP")).to_have_attribute("aria-sort", "ascending", timeout=PATIENCE)
    assert "sort=AP" in board.url
    assert "order=asc" in board.url
    board.go_back()
    expect(header(board, "AP")).to_have_attribute("aria-sort", "descending", timeout=PATIENCE)
    board.go_back()
    expect(header(board, "nDCG@10")).to_have_attribute("aria-sort", "descending", timeout=PATIENCE)
    assert tags(board) == best_first


def test_a_pinned_run_stands_out_and_keeps_the_ticks(board: Page) -> None:
    second = tags(board)[1]
    board.get_by_label(f"choose {tags(board)[0]}").check()
    board.get_by_role("link", name=f"make {second} the baseline").click()
    expect(board.locator("tr.held")).to_contain_text(second, timeout=PATIENCE)
    expect(header(board, f"Δ vs {second}")).to_be_visible()
    expect(board.get_by_label(f"choose {tags(board)[0]}")).to_be_checked()
    assert "baseline=" in board.url
    board.get_by_role("link", name="remove the baseline").click()
    expect(board.locator("tr.pinned")).to_have_count(0, timeout=PATIENCE)


def test_a_filter_chooses_rows(board: Page) -> None:
    wanted = tags(board)[2]
    board.get_by_label("Filter runs").fill(f"tag:{wanted}")
    board.keyboard.press("Enter")
    expect(board.locator("table.board tbody tr")).to_have_count(1, timeout=PATIENCE)
    expect(board.locator("#board td.place")).to_contain_text("3")
    board.get_by_label("Filter runs").fill("team:")
    board.keyboard.press("Enter")
    expect(board.get_by_role("alert")).to_be_visible(timeout=PATIENCE)
    expect(board.get_by_label("Filter runs")).to_have_value("team:")


def test_a_chart_of_the_means(board: Page) -> None:
    board.locator("#chart-tool > summary").click()
    board.get_by_role("navigation", name="Chart").get_by_role("link", name="means").click()
    link = board.locator("figure.chart .wide svg a").last
    expect(link).to_be_visible(timeout=PATIENCE)
    expect(link).to_have_attribute("href", re.compile(r"^/runs/[0-9a-f-]+/$"))


@pytest.mark.parametrize("view", ["", "?baseline=RUN&statistics=all", "?filter=zzz", "?filter=(", "?measures=foo",
                                  "?statistics=none"])  # fmt: skip
def test_every_view_is_accessible(reader: BrowserContext, site: Site, view: str) -> None:
    run = next(iter(site.runs.values()))
    with watched(reader, site) as seen:
        seen.page.emulate_media(color_scheme="light")
        seen.page.goto(BOARD + view.replace("RUN", run), wait_until="networkidle")
        for summary in seen.page.locator("#board summary:visible").all():
            summary.click()
        assert faults_of_access(seen.page) == []
        seen.page.emulate_media(color_scheme="dark")
        assert faults_of_access(seen.page, contrast_alone=True) == []


def test_every_menu_is_accessible_and_closes_by_a_key(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto(BOARD, wait_until="networkidle")
        for summary in seen.page.locator("summary:visible").all():
            if summary.locator("..").get_attribute("name") != "menu":
                continue
            summary.click()
            expect(seen.page.locator("details.tool[open]")).to_have_count(1)
            assert faults_of_access(seen.page) == []
            seen.page.keyboard.press("Escape")
            expect(seen.page.locator("details.tool[open]")).to_have_count(0)
            expect(summary).to_be_focused()


def test_cards_on_a_phone_and_a_header_that_stays(chromium: Browser, site: Site) -> None:
    """On a phone nothing scrolls sideways, and each card has rank, name, value and difference; on a desk the
    page scrolls, not the table, and its header with the baseline stays in sight."""
    measures = ",".join(f"{name}@{k}" for name in ("nDCG", "P", "R", "AP") for k in range(1, 6))
    baseline = list(site.runs.values())[-1]
    context = chromium.new_context(base_url=site.url, viewport={"width": 390, "height": 600})
    with watched(context, site) as seen:
        page = seen.page
        page.set_default_timeout(PATIENCE)
        page.goto(f"{BOARD}?measures={measures}&baseline={baseline}", wait_until="networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        card = page.locator("table.board tbody tr:not(.pinned)").first
        cells = [cell.inner_text() for cell in card.locator("td, th").all() if cell.is_visible()]
        assert len(cells) == 5
        assert cells[3].startswith(("+", "\N{MINUS SIGN}", "0"))
        # No tag is broken while there is room beside it.
        assert card.locator("th a").first.evaluate("link => link.getClientRects().length") == 1
        page.get_by_text("Filter and columns").click()
        page.locator("#columns-tool > summary").click()
        page.get_by_label("Sort by").select_option("R@2")
        page.get_by_role("button", name="Sort", exact=True).click()
        expect(page.locator("#caption")).to_contain_text("Ranked by R@2")
        assert faults_of_access(page) == []
        page.set_viewport_size({"width": 1440, "height": 300})
        page.locator("table.board tbody tr").last.scroll_into_view_if_needed()
        box = page.locator("tr.held").bounding_box()
        assert box
        assert 0 <= box["y"] < 120
        assert page.locator(".whole").evaluate("box => getComputedStyle(box).overflow") == "visible"
    context.close()


def test_everything_works_without_scripts(plain: BrowserContext, site: Site) -> None:
    with watched(plain, site) as seen:
        page = seen.page
        page.goto(BOARD)
        page.locator("#columns-tool > summary").click()
        page.get_by_label("Add a column").fill("recall.100")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(header(page, "R@100")).to_be_visible()
        page.locator("#columns-tool > summary").click()
        header(page, "R@100").get_by_role("link").click()
        expect(header(page, "R@100")).to_have_attribute("aria-sort", "descending")
        page.locator("a.pin").nth(1).click()
        expect(page.locator("tr.held")).to_have_count(1)
        page.get_by_label("Filter runs").fill(tags(page)[0])
        page.get_by_role("button", name="Filter", exact=True).click()
        expect(page.locator("table.board tbody tr")).to_have_count(1)
        for parameter in ("baseline=", "sort=R%40100", "measures=", "filter="):
            assert parameter in page.url


def arriving(site: Site) -> str:
    """A collection with two evaluated runs, of which the second is in the queue again, for a time that never comes."""
    lines = [line.split() for line in site.sample.decode().splitlines()[:9]]
    judgements = "".join(f"{topic} 0 {document} 1\n" for topic, _, document, *_ in lines)
    with site.server.client() as api:
        fields = {"slug": "arriving", "name": "Arriving", "measures": ["AP"]}
        api.post("collections/", json=fields).raise_for_status()
        files = {"file": ("file", judgements)}
        api.post("collections/arriving/qrels/", files=files).raise_for_status()
        for tag in ("first", "second"):
            sent = api.post(
                "collections/arriving/runs/",
                files={"file": ("file", site.sample)},
                data={"tag": tag},
            )
            wait_until_evaluated(api, sent.raise_for_status().json()["url"])
    move(
        site,
        "state='queued', not_before=timezone.now() + timedelta(days=999), topics_answered=None",
    )
    return "/collections/arriving/"


def move(site: Site, fields: str) -> None:
    code = (
        "from datetime import timedelta; from django.utils import timezone; from metrics.models import Evaluation; "
        f"Evaluation.objects.filter(run__tag='second').update(since=timezone.now(), {fields})"
    )
    site.server.manage("shell", "-v", "0", "-c", code)


def test_a_run_that_arrives_comes_to_the_board_by_itself(
    reader: BrowserContext, site: Site
) -> None:
    """The board asks again while something is on its way, and stops; what the reader did to it stays."""
    address = arriving(site)
    with watched(reader, site) as seen:
        page = seen.page
        page.goto(address)
        expect(page.locator("#progress")).to_contain_text("1 run in the queue")
        expect(page.locator("#board tr.queued")).to_contain_text("second")
        page.get_by_label("choose first").check()
        page.get_by_label("Filter runs").fill("half a wor")
        with page.expect_response(lambda answer: "/board/" in answer.url, timeout=PATIENCE):
            pass
        expect(page.get_by_label("choose first")).to_be_checked()
        assert faults_of_access(page) == []
        move(site, "not_before=None")
        expect(page.locator("table.board tbody tr.ranked")).to_have_count(2, timeout=PATIENCE)
        expect(page.locator("#progress")).not_to_contain_text("queue", timeout=PATIENCE)
        expect(page.get_by_label("choose first")).to_be_checked()
        expect(page.get_by_label("Filter runs")).to_have_value("half a wor")
        expect(page.get_by_label("Filter runs")).to_be_focused()
        expect(page.locator("#board [hx-trigger]")).to_have_count(0, timeout=PATIENCE)


def test_a_board_fits_a_tablet(board: Page) -> None:
    board.set_viewport_size({"width": 768, "height": 900})
    board.goto(f"{BOARD}?statistics=all", wait_until="networkidle")
    expect(board.locator(".whole th", has_text="Tier")).to_be_visible()
    assert board.evaluate("document.documentElement.scrollWidth") <= 768


def test_a_board_of_six_measures_fits_a_screen(board: Page) -> None:
    board.set_viewport_size({"width": 1440, "height": 900})
    board.goto(f"{BOARD}?measures=nDCG@10,AP,RR,P@10,R@100,Rprec", wait_until="networkidle")
    box = board.locator(".whole")
    # Which runs can be the best comes after the page.
    expect(board.locator(".best-set")).to_contain_text("best of")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert board.evaluate("document.documentElement.scrollWidth <= innerWidth")
