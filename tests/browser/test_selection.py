"""Ticks of a leaderboard in a real browser: they outlive pages, orders, filters and loading again."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.site import Site
from tests.browser.test_board import BOARD, PATIENCE, header, tags
from tests.browser.visits import faults_of_access, watched


def tick(page: Page, place: int) -> str:
    """The tag of the run that was ticked."""
    tag = tags(page)[place]
    page.get_by_label(f"choose {tag}", exact=True).check()
    return tag


def check_ticked(page: Page, chosen: list[str]) -> None:
    chips = page.locator("#chosen .chip > span:first-child")
    expect(chips).to_have_count(len(chosen), timeout=PATIENCE)
    assert sorted(chips.all_text_contents()) == sorted(chosen)
    for tag in set(tags(page)) & set(chosen):
        expect(page.get_by_label(f"choose {tag}", exact=True)).to_be_checked()


def test_ticks_outlive_pages_orders_filters_and_loading_again(
    reader: BrowserContext, site: Site
) -> None:
    with watched(reader, site) as seen:
        page = seen.page
        page.set_default_timeout(PATIENCE)
        page.goto(f"{BOARD}?limit=2", wait_until="networkidle")
        compare = page.locator("#selection button[name=compare][value=selected]")
        expect(compare).to_be_hidden()
        expect(page.get_by_role("button", name="Compare all (4 runs)")).to_be_enabled()
        chosen = [tick(page, 0)]
        expect(compare).to_be_disabled()
        page.get_by_role("link", name="next").click()
        expect(page.locator(".paging")).to_contain_text("3–4 of 4")
        chosen.append(tick(page, 1))
        check_ticked(page, chosen)
        expect(page.locator("#chosen [role=status]").first).to_have_text("2 selected")
        header(page, "AP").get_by_role("link").click()
        expect(header(page, "AP")).to_have_attribute("aria-sort", "descending")
        check_ticked(page, chosen)
        page.get_by_label("Filter runs").fill("zzz")
        page.keyboard.press("Enter")
        expect(page.locator("#board")).to_contain_text("No runs match this filter")
        check_ticked(page, chosen)
        page.get_by_role("link", name="Show all runs", exact=True).click()
        expect(page.locator("table.board")).to_be_visible()
        check_ticked(page, chosen)
        assert faults_of_access(page) == []
        page.reload(wait_until="networkidle")
        check_ticked(page, chosen)
        compare.click()
        expect(page.locator("h1")).to_contain_text(" against ")
        query = parse_qs(urlsplit(page.url).query)
        assert set(query["runs"][0].split(",")) == {site.runs[tag] for tag in chosen}


def test_a_chip_unticks_a_run_of_another_page(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        page = seen.page
        page.set_default_timeout(PATIENCE)
        page.goto(f"{BOARD}?limit=2", wait_until="networkidle")
        gone, ticked = tick(page, 0), tick(page, 1)
        page.get_by_role("link", name="next").click()
        expect(page.locator(".paging")).to_contain_text("3–4 of 4")
        page.locator("#chosen-runs > summary").click()
        page.get_by_label(f"leave out {gone}").click()
        check_ticked(page, [ticked])
        page.get_by_role("link", name="previous").click()
        expect(page.locator(".paging")).to_contain_text("1–2 of 4")
        expect(page.get_by_label(f"choose {gone}", exact=True)).not_to_be_checked()
        check_ticked(page, [ticked])
        page.get_by_role("link", name="Clear", exact=True).click()
        expect(page.locator("#chosen")).to_be_hidden()
        expect(page.locator("#board :checked")).to_have_count(0)
        assert "select=" not in page.url


@pytest.mark.parametrize("width", [390, 1280])
def test_without_scripts_a_button_turns_the_page_and_keeps_the_ticks(
    chromium: Browser, site: Site, width: int
) -> None:
    viewport = {"width": width, "height": 800}
    context = chromium.new_context(base_url=site.url, java_script_enabled=False, viewport=viewport)  # type: ignore[arg-type]
    with watched(context, site) as seen:
        page = seen.page
        page.goto(f"{BOARD}?limit=2&sort=AP")
        chosen = [tick(page, 0)]
        page.get_by_role("button", name="Select checked runs").click()
        page.get_by_role("link", name="next").click()
        expect(page.locator(".paging")).to_contain_text("3–4 of 4")
        chosen.append(tick(page, 0))
        page.get_by_role("button", name="Select checked runs").click()
        expect(page.locator(".paging")).to_contain_text("3–4 of 4")
        check_ticked(page, chosen)
        if width > 640:
            header(page, "P@10").get_by_role("link").click()
        else:
            page.get_by_text("Filter and columns").click()
            page.locator("#columns-tool > summary").click()
            page.get_by_label("Sort by").select_option("P@10")
            page.get_by_role("button", name="Sort", exact=True).click()
        expect(page.locator("#caption")).to_contain_text("Ranked by P@10")
        check_ticked(page, chosen)
        page.get_by_role("button", name="Compare", exact=True).click()
        assert set(parse_qs(urlsplit(page.url).query)["runs"][0].split(",")) == {
            site.runs[tag] for tag in chosen
        }
        page.goto(f"{BOARD}?compare=selected")
        expect(page.get_by_role("alert")).to_contain_text("Choose at least two runs")
    context.close()


def test_a_baseline_stays_in_the_address_when_the_statistics_are_late(
    reader: BrowserContext, site: Site
) -> None:
    """The statistics that the board asks for by itself must not replace the link before its answer came."""
    page = reader.new_page()
    page.set_default_timeout(PATIENCE)
    page.route("**/board/**", lambda route: (page.wait_for_timeout(500), route.continue_()))
    page.goto(BOARD)
    page.locator("a.pin").first.click()
    expect(page.locator("#unpin")).to_be_visible()
    page.wait_for_load_state("networkidle")
    tick(page, 0)
    assert {"baseline", "select"} <= set(parse_qs(urlsplit(page.url).query))
    page.close()
