"""A real browser before a real server: Chromium, on the embedded service with a small demonstration in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Playwright,
    expect,
    sync_playwright,
)

from tests.browser.site import ADMIN, PASSWORD, Site, filled_site

# The first one has no window to draw, and takes half of the processor time.
_CHROMIUM = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


def start_chromium(playwright: Playwright) -> Browser | None:
    """Chromium as the system has it, or as Playwright brought it; None where there is none."""
    program = os.environ.get("EVALHUB_TEST_CHROMIUM") or next(
        filter(None, map(shutil.which, _CHROMIUM)), None
    )
    try:
        return playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
    except Error:
        return None


# For the tests of this folder: while Playwright runs, its event loop keeps Django from the database
# in this process.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = start_chromium(playwright)
        if browser is None and os.environ.get("EVALHUB_TEST_REQUIRED"):
            pytest.fail(
                "EVALHUB_TEST_REQUIRED is set, but there is no Chromium; EVALHUB_TEST_CHROMIUM may name one"
            )
        if browser is None:
            pytest.skip("no Chromium found; EVALHUB_TEST_CHROMIUM may name one")
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests; nothing is started where there is no browser."""
    folder: Path = tmp_path_factory.mktemp("site")
    with filled_site(folder) as site:
        yield site


@pytest.fixture(scope="package")
def session(chromium: Browser, site: Site) -> Iterator[BrowserContext]:
    """Somebody who is logged in."""
    context = chromium.new_context(base_url=site.url)
    page = context.new_page()
    page.goto("/login/?next=/tokens/")
    page.get_by_label("Name").fill(ADMIN)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Your tokens")).to_be_visible()
    yield context
    context.close()


@pytest.fixture(scope="package")
def reader(chromium: Browser, site: Site) -> Iterator[BrowserContext]:
    """Somebody who looks at one page after the other, and leaves nothing behind."""
    context = chromium.new_context(base_url=site.url)
    yield context
    context.close()


@pytest.fixture(scope="package")
def plain(chromium: Browser, site: Site) -> Iterator[BrowserContext]:
    """The same without scripts."""
    context = chromium.new_context(base_url=site.url, java_script_enabled=False)
    yield context
    context.close()
