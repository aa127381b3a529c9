"""Visitors of a site, and what may not go wrong while they look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, ViewportSize

from tests.browser.site import Site

# What a browser says when it shows the answer to a refused form or a page that is not there: no
# fault of the page.
_EXPECTED = "Failed to load resource: the server responded with a status of 4"
PHONE: ViewportSize = {"width": 390, "height": 800}
_AXE = Axe().axe_script
# Colours in transition to another scheme are waited for. No selectors are made of what passes, nor
# of what does not, and no style sheet is fetched once more.
_RUN = """async ([where, options]) => {
    await Promise.all(document.getAnimations().map(({finished}) => finished))
    const usual = {resultTypes: ["violations"], selectors: false, preload: false}
    return (await axe.run({include: [["html"]], ...where}, {...usual, ...options})).violations
}"""
# Texts and addresses are not what a neighbour looks like; every other one may have another
# background.
_MARK_ALIKE = r"""() => {
    const look = one => one.outerHTML.replace(/>[^<]+</g, "><").replace(/ (?!class=|style=|type=)[\w-]+="[^"]*"/g, "")
    for (const parent of document.querySelectorAll("body, body *")) {
        if (parent.closest("[data-alike]")) continue
        const seen = new Set()
        for (const [index, one] of [...parent.children].entries()) {
            const known = `${index % 2} ${look(one)}`
            if (seen.has(known)) one.dataset.alike = ""
            seen.add(known)
        }
    }
}"""


class Watched:
    """A page whose faults are written down: what the console says, and requests to other hosts."""

    def __init__(self, page: Page, host: str) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("request", lambda request: self._check(request.url, host))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not text.startswith(_EXPECTED):
            self.faults.append(f"console {kind}: {text}")

    def _check(self, url: str, host: str) -> None:
        if urlsplit(url).netloc not in (host, ""):
            self.faults.append(f"request to {url}")


@contextmanager
def watched(context: BrowserContext, site: Site) -> Iterator[Watched]:
    """A page in which nothing may go wrong. Pages that stay open take a browser's time."""
    seen = Watched(context.new_page(), urlsplit(site.url).netloc)
    yield seen
    seen.page.close()
    assert seen.faults == [], seen.faults


def address(site: Site, name: str) -> str:
    return {**site.pages(), **site.own_pages()}[name]


def faults_of_access(page: Page, *, contrast_alone: bool = False) -> list[str]:
    """What axe-core calls serious or critical, with the places.

    Contrast, which takes most of the time, is measured once among neighbours that look alike, such
    as the rows of a table.
    """
    page.evaluate(_AXE)
    violations = (
        []
        if contrast_alone
        else page.evaluate(_RUN, [{}, {"rules": {"color-contrast": {"enabled": False}}}])
    )
    page.evaluate(_MARK_ALIKE)
    violations += page.evaluate(
        _RUN, [{"exclude": [["[data-alike]"]]}, {"runOnly": ["color-contrast"]}]
    )
    grave = [
        violation for violation in violations if violation["impact"] in ("serious", "critical")
    ]
    return [
        f"{violation['id']}: {[node['html'][:150] for node in violation['nodes'][:3]]}"
        for violation in grave
    ]
