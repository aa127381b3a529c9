"""Charts in a real browser: titles and links of marks, by pointer, by keys, by touch, without scripts."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.site import Site
from tests.browser.visits import address, faults_of_access, watched


def test_marks_have_titles_and_a_bar_leads_to_its_topic(reader: BrowserContext, site: Site) -> None:
    """Under the content security policy: no script, no style of its own, no other host."""
    with watched(reader, site) as seen:
        page = seen.page
        page.goto(address(site, "run"))
        for chart in page.locator("figure.chart").all():
            expect(chart.locator(".wide svg")).to_be_visible()
            expect(chart.locator(".narrow svg")).to_be_hidden()
            assert chart.locator(".wide title").count() > 0
        bars = page.locator("figure.chart .wide svg a")
        assert faults_of_access(page) == []
        bars.nth(1).hover()
        topic = bars.nth(1).locator("title").text_content() or ""
        bars.nth(1).click()
        expect(page.get_by_role("heading", name="Ranking")).to_be_visible()
        assert f"topic={topic.split()[1].rstrip(':')}" in page.url


def test_the_keys_reach_the_bars(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        page = seen.page
        page.goto(address(site, "run"))
        bars = page.locator("figure.chart .wide svg a")
        bars.first.focus()
        page.keyboard.press("Tab")
        expect(bars.nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Ranking")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chart_answers_a_finger_without_scripts(
    chromium: Browser, site: Site, scheme: Literal["light", "dark"]
) -> None:
    """In the colours of the page, with the same drawing for light and dark."""
    context = chromium.new_context(
        base_url=site.url,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        java_script_enabled=False,
        color_scheme=scheme,
    )
    page = context.new_page()
    page.goto(address(site, "run"))
    bar = page.locator("figure.chart .narrow svg a").first
    expect(bar.locator("path")).to_have_css(
        "fill", {"light": "rgb(31, 95, 191)", "dark": "rgb(127, 176, 255)"}[scheme]
    )
    bar.tap()
    expect(page.get_by_role("heading", name="Ranking")).to_be_visible()
    context.close()
