"""What stands on the first screen of the main pages, on a desk and on a phone.

python -m tests.browser.first_screen http://127.0.0.1:8000 trec-covid-round-1 [--campaign covid] [--shots FOLDER]

Prints, for each page and size: the pixels above the first result, the controls of the first screen
outside rows of tables and charts, the height of the page, and the kilobytes of a cold load.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, Response, sync_playwright

from tests.browser.conftest import start_chromium

SIZES = {"desk": (1440, 900), "phone": (390, 844)}
# What a page is asked for: the first of these that can be seen.
FIRST = {
    "board": "tbody tr",
    "two runs": ".verdict",
    "many runs": ".verdict, tbody tr",
    "run": ".answer, tbody tr",
    "campaign": ".countdown, tbody tr",
}
_TOP = """selector => {
    const seen = [...document.querySelectorAll(`main :is(${selector})`)].filter(one => one.checkVisibility())
    return seen.length ? Math.round(Math.min(...seen.map(one => one.getBoundingClientRect().top))) : null
}"""
_CONTROLS = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary, .fold + label")]
    .filter(one => one.checkVisibility({visibilityProperty: true, opacityProperty: true})
        && !one.closest("tr, svg") && one.type !== "hidden" && one.getBoundingClientRect().width > 1
        && one.getBoundingClientRect().top < innerHeight && one.getBoundingClientRect().bottom > 0).length"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("collection")
    parser.add_argument("--campaign")
    parser.add_argument("--page", action="append", help="an address beside the main ones")
    parser.add_argument("--login", help="NAME:PASSWORD")
    parser.add_argument("--shots", type=Path, help="folder of screenshots, whole pages")
    parser.add_argument("--scheme", default="light", choices=("light", "dark"))
    options = parser.parse_args()
    pages = main_pages(options.url, options.collection, options.campaign)
    pages |= {page: page for page in options.page or ()}

    with sync_playwright() as playwright:
        browser = start_chromium(playwright)
        if browser is None:
            parser.error("there is no Chromium")
        sys.stdout.write(
            f"{'page':24}{'size':8}{'first':>7}{'controls':>10}{'height':>8}{'kB':>6}\n"
        )
        for size in SIZES:
            for name, address in pages.items():
                row = look_at(browser, options, name, address, size)
                sys.stdout.write(row + "\n")


def main_pages(url: str, collection: str, campaign: str | None) -> dict[str, str]:
    """The addresses of the main pages: the best and the worst run are those of two runs."""
    api = f"{url}/api/v1/collections/{collection}/leaderboard/"
    rows = httpx.get(api).raise_for_status().json()["results"]
    best, worst = rows[0]["run"]["id"], rows[-1]["run"]["id"]
    pages = {
        "board": f"/collections/{collection}/",
        "two runs": f"/collections/{collection}/comparison/?runs={best}&runs={worst}",
        "many runs": f"/collections/{collection}/comparison/",
        "run": f"/runs/{best}/",
    }
    return pages | ({"campaign": f"/campaigns/{campaign}/"} if campaign else {})


def look_at(
    browser: Browser, options: argparse.Namespace, name: str, address: str, size: str
) -> str:
    width, height = SIZES[size]
    context = browser.new_context(
        base_url=options.url,
        viewport={"width": width, "height": height},
        color_scheme=options.scheme,
    )
    page = context.new_page()
    if options.login:
        _log_in(page, options.login)
    loaded: list[Response] = []
    page.on("response", lambda response: loaded.append(response))  # noqa: PLW0108 -- a builtin takes no attribute
    page.goto(address, wait_until="networkidle", timeout=120_000)

    first = page.evaluate(_TOP, FIRST.get(name, "tbody tr"))
    controls = page.evaluate(_CONTROLS)
    long = page.evaluate("document.documentElement.scrollHeight")
    sizes = [response.request.sizes() for response in loaded]
    kilobytes = sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes) / 1000

    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
        file = f"{name.strip('/').replace('/', '-').replace(' ', '-').replace('?', '-')}-{size}.png"
        page.screenshot(
            path=options.shots / file,
            full_page=True,
            clip={"x": 0, "y": 0, "width": width, "height": min(long, 6000)},
        )
    context.close()
    return f"{name:24}{size:8}{first!s:>7}{controls:>10}{long:>8}{kilobytes:>6.0f}"


def _log_in(page: Page, login: str) -> None:
    name, _, password = login.partition(":")
    page.goto("/login/")
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    page.click("main button")


if __name__ == "__main__":
    main()
