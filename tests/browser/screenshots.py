"""Pictures of every page, in light and dark, at three widths: python -m tests.browser.screenshots FOLDER"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import start_chromium
from tests.browser.site import ADMIN, PASSWORD, Site, filled_site

WIDTHS = (1440, 768, 390)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of pages")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, filled_site(Path(data)) as site, sync_playwright() as playwright:
        browser = start_chromium(playwright)
        if browser is None:
            parser.error("there is no Chromium")
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                take(browser, site, options.folder, scheme, width, options.only)


def take(browser: Browser, site: Site, folder: Path, scheme: str, width: int, only: list[str] | None) -> None:
    """Every page in full, charts included."""
    context = browser.new_context(
        base_url=site.url,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.goto("/login/")
    page.fill("#id_username", ADMIN)
    page.fill("#id_password", PASSWORD)
    page.click("main button")
    for name, address in {**site.pages(), **site.own_pages()}.items():
        if only and name not in only:
            continue
        page.goto(address, wait_until="networkidle")
        for image in page.locator("img[loading=lazy]").all():
            image.scroll_into_view_if_needed()
            image.evaluate("image => image.decode()")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True)
    context.close()


if __name__ == "__main__":
    main()
