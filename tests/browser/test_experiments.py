"""An experiment in a real browser: made of runs that are selected on a leaderboard, with a note, read on a phone."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, expect

from tests.browser.site import Site
from tests.browser.test_board import BOARD, tags
from tests.browser.visits import PHONE, faults_of_access, watched


def test_selected_runs_become_an_experiment(session: BrowserContext, site: Site) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto(BOARD, wait_until="networkidle")
        chosen = sorted(tags(page)[:2])
        for tag in chosen:
            page.get_by_label(f"choose {tag}", exact=True).check()
        page.get_by_role("button", name="Group", exact=True).click()
        expect(page.get_by_role("heading", name="Group 2 runs")).to_be_visible()
        page.get_by_label("Name", exact=True).fill("Two of four")
        expect(page.get_by_label("Short name")).to_have_value("two-of-four")
        page.get_by_role("button", name="Create experiment").click()
        expect(page.locator("h1")).to_contain_text("Two of four")
        rows = page.get_by_role("region", name="Runs of the experiment").locator("tbody th a")
        assert sorted(rows.all_inner_texts()) == chosen
        page.get_by_label("The run that the others are compared with").select_option(
            label=chosen[0]
        )
        page.locator("form").filter(has_text="The run that the others").get_by_role(
            "button"
        ).click()
        expect(page.locator(".label.base")).to_have_text("baseline")
        page.get_by_label("New note").fill("b matters more")
        page.get_by_role("button", name="Add note").click()
        expect(page.locator(".notes")).to_contain_text("b matters more")
        assert faults_of_access(page) == []
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.get_by_text("Delete the experiment").click()
        page.get_by_role("button", name="Delete Two of four").click()
        expect(page.get_by_role("status")).to_contain_text("Its runs are unchanged")
