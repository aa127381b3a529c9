"""Pictures of pages, in light and dark, at three widths.

python -m tests.browser.screenshots FOLDER: every page of a small site;
... FOLDER --runs 1 40 143 1000 --topics 1000: those that grow with the runs and the topics of a
collection.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from evalhub.operating.simulation import SimulatedCollection, simulate_collection
from tests.browser.conftest import start_chromium
from tests.browser.site import ADMIN, PASSWORD, Site, filled_site
from tests.reliability.servers import wait_until_evaluated

WIDTHS = (1280, 768, 390)
# Of what is longer, the beginning.
MOST_PIXELS = 6000
_MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@100", "Rprec"]
# Runs that are uploaded; more are copies of them.
_UPLOADED = 12


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--only", nargs="*", help="names of pages, with `runs-40-` before those of 40 runs"
    )
    parser.add_argument("--runs", nargs="*", type=int, default=[], help="numbers of runs")
    parser.add_argument("--topics", nargs="*", type=int, default=[], help="numbers of topics")
    parser.add_argument("--widths", nargs="*", type=int, default=WIDTHS)
    parser.add_argument("--schemes", nargs="*", default=("light", "dark"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        filled_site(Path(data)) as site,
        sync_playwright() as playwright,
    ):
        browser = start_chromium(playwright)
        if browser is None:
            parser.error("there is no Chromium")
        pages: dict[str, str] = {}
        for number in options.runs:
            pages |= _many(site, f"runs-{number}", simulate_collection(), number)
        for number in options.topics:
            pages |= _many(
                site,
                f"topics-{number}",
                simulate_collection(topics=number, pool=80, judged=40, depth=60),
                _UPLOADED,
            )
        pages = pages or {**site.pages(), **site.own_pages()}
        chosen = {
            name: address
            for name, address in pages.items()
            if not options.only or name in options.only
        }
        for scheme in options.schemes:
            for width in options.widths:
                take(browser, site, chosen, options.folder, scheme, width)


def _many(site: Site, slug: str, simulated: SimulatedCollection, number: int) -> dict[str, str]:
    """Make a collection with so many runs, and return its pages by name."""
    with site.server.client() as api:

        def upload(method: str, path: str, content: str) -> str:
            sent = api.request(
                method, f"collections/{slug}/{path}", files={"file": ("file", content)}, timeout=300
            )
            return str(sent.raise_for_status().json().get("url", ""))

        fields = {
            "slug": slug,
            "name": f"The collection {slug}",
            "measures": _MEASURES,
            "documents": 100_000,
        }
        api.post("collections/", json=fields).raise_for_status()
        upload("put", "topics/", simulated.topics)
        upload("post", "qrels/", simulated.qrels)
        for run in list(simulated.runs.values())[: min(number, _UPLOADED)]:
            wait_until_evaluated(api, upload("post", "runs/", run))
        code = f"from tests.benchmarks.pages import multiply; multiply({number}, {slug!r})"
        site.server.manage("shell", "-v", "0", "-c", code)
        board = api.get(f"collections/{slug}/leaderboard/").raise_for_status().json()["results"]
    run, other = board[0]["run"]["id"], board[-1]["run"]["id"]
    topic = simulated.topics.partition('"_id": "')[2].partition('"')[0]
    of = f"/collections/{slug}/"
    addresses = {
        "leaderboard": of,
        "baseline": f"{of}?baseline={other}&statistics=all&columns=param:bm25.k1,param:model,cost:latency_ms",
        "means": f"{of}?chart=means",
        "scatter": f"{of}?chart=scatter",
        "comparison": f"{of}comparison/",
        "against-baseline": f"{of}comparison/?baseline={other}",
        "two-runs": f"{of}comparison/?runs={run}&runs={other}&topic={topic}",
        "what-if": f"{of}what-if/",
        "parameters": f"{of}parameters/?x=param:bm25.k1&by=param:model",
        "importance": f"{of}parameters/importance/",
        "configurations": f"{of}configurations/?baseline={other}",
        "frontier": f"{of}frontier/?x=latency_ms",
        "topics": f"{of}topics/",
        "topic": f"{of}topics/{topic}/",
        "heat-map": f"{of}heat-map/?baseline=mean",
        "orders": f"{of}orders/",
        "design": f"{of}design/",
        "judgements": f"{of}judgements/",
        "run": f"/runs/{run}/",
        "ranking": f"/runs/{run}/ranking/?topic={topic}",
        "my-runs": "/runs/",
        "manage-topics": f"{of}manage/topics/",
        "home": "/",
    }
    if number == 1:
        addresses = {name: address for name, address in addresses.items() if other not in address}
    return {f"{slug}-{name}": address for name, address in addresses.items()}


def take(
    browser: Browser, site: Site, pages: dict[str, str], folder: Path, scheme: str, width: int
) -> None:
    """Each page as long as it is, charts included."""
    context = browser.new_context(
        base_url=site.url,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto("/login/")
    page.fill("#id_username", ADMIN)
    page.fill("#id_password", PASSWORD)
    page.click("main button")
    for name, address in pages.items():
        page.goto(address, wait_until="networkidle")
        for image in page.locator("img[loading=lazy]").all():
            image.scroll_into_view_if_needed()
            image.evaluate("image => image.decode()")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_load_state("networkidle")
        high = page.evaluate("document.documentElement.scrollHeight")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            sys.stdout.write(f"{name}: {wide} pixels wide at {width}\n")
        clip = {"x": 0, "y": 0, "width": wide, "height": min(high, MOST_PIXELS)}
        page.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True, clip=clip)  # type: ignore[arg-type]
    context.close()


if __name__ == "__main__":
    main()
