"""Charts in a real browser: the pointer, the keys, links to topics."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.site import Site
from tests.browser.visits import address, faults_of_access, watched


def test_charts_answer_the_pointer_and_a_bar_leads_to_its_topic(
    reader: BrowserContext, site: Site
) -> None:
    """Vega under the content security policy: no evaluation of code, no style of its own, no other host."""
    with watched(reader, site) as seen:
        seen.page.goto(address(site, "run"))
        for chart in seen.page.locator("figure.chart").all():
            chart.hover()
            expect(chart.locator(".live svg")).to_be_visible(timeout=60_000)
            expect(chart.locator("picture")).to_be_hidden()
        bars = seen.page.locator("figure.chart .live svg .mark-rect path")
        bars.first.hover(force=True)
        expect(seen.page.locator("#vg-tooltip-element")).to_be_visible()
        chart = seen.page.locator("figure.chart").first
        chart.locator(".live .mark-rect path").first.click()
        expect(seen.page.get_by_role("heading", name="Ranking")).to_be_visible()


def test_the_keys_go_through_a_chart(reader: BrowserContext, site: Site) -> None:
    """Its points with the words of the tooltip, shown and said; to the topic of a bar, and out again."""
    with watched(reader, site) as seen:
        page = seen.page
        page.goto(address(site, "run-curves"))
        change_line(page)
        page.goto(address(site, "run"))
        chart = page.locator("figure.chart").first
        drawing, said = chart.locator(".drawing"), chart.locator(".said")
        drawing.focus()
        expect(chart.locator(".live svg")).to_be_visible(timeout=60_000)
        expect(drawing).to_be_focused()
        expect(drawing).to_have_attribute(
            "aria-label", re.compile("Arrow keys go through its points")
        )
        page.keyboard.press("ArrowRight")
        expect(said).to_have_text(re.compile(r"^topic \d+, value \d\.\d{4}; 1 of 50$"))
        expect(said).to_have_attribute("aria-live", "polite")
        expect(page.locator("#vg-tooltip-element")).to_be_visible()
        expect(page.locator("#vg-tooltip-element")).to_contain_text(
            said.inner_text().split()[1].strip(",")
        )
        expect(chart.locator(".live .at")).to_have_count(1)
        for key, place in (
            ("ArrowRight", 2),
            ("End", 50),
            ("ArrowRight", 50),
            ("ArrowLeft", 49),
            ("Home", 1),
        ):
            page.keyboard.press(key)
            expect(said).to_have_text(re.compile(f"; {place} of 50$"))
        page.keyboard.press("Escape")
        expect(said).to_have_text("")
        expect(page.locator("#vg-tooltip-element")).to_be_hidden()
        expect(chart.locator(".live .at")).to_have_count(0)
        expect(drawing).not_to_be_focused()
        # From where the chart was, the next in order.
        page.keyboard.press("Tab")
        expect(chart.locator("figcaption a").first).to_be_focused()
        drawing.focus()
        page.keyboard.press("ArrowRight")
        expect(said).to_have_text(re.compile("; 1 of 50$"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Ranking")).to_be_visible()


def change_line(page: Page) -> None:
    """Go to another line of a chart by the keys, and back."""
    chart = page.locator("figure.chart").filter(has=page.locator("img[src*='/curve.svg']")).first
    drawing, said = chart.locator(".drawing"), chart.locator(".said")
    drawing.focus()
    expect(chart.locator(".live svg")).to_be_visible(timeout=60_000)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile(r"rank 2, "))
    line = said.inner_text().split(",")[0]
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text(re.compile(r"^line ideal, rank 2, "))
    page.keyboard.press("ArrowUp")
    expect(said).to_have_text(re.compile(f"^{re.escape(line)}, rank 2, "))
    assert faults_of_access(page) == []
