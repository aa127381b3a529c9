"""What pages cost, beside a collection of 1,000 runs: figures like Lighthouse's, in Chromium, and the processor time
that the server takes.

python -m tests.benchmarks pages
python -m tests.benchmarks server-pages, without a browser
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.core.cache import cache
from django.test import Client
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.browser.conftest import start_chromium
from tests.browser.site import Site, filled_site

RUNS, ROUNDS, LOADS = 1000, 9, 5
SHOWN = (
    "home",
    "leaderboard",
    "comparison",
    "what-if",
    "run",
    "session-set",
    "session",
    "measures",
    "measure",
)
COMPARED = 10
# About all runs of the collection.
WHOLE = {
    "comparison-of-all": "/collections/open/comparison/",
    "board-piece": "/collections/open/board/",
    "parameters": "/collections/open/parameters/",
    "importance": "/collections/open/parameters/importance/",
    "frontier": "/collections/open/frontier/?x=latency_ms",
    "what-if-as-stored": "/collections/open/what-if/",
}
PATIENCE = 300_000
# As Lighthouse takes for a phone: a processor a quarter as fast, and a slow mobile network.
SLOWER, LATENCY, BYTES_A_SECOND = 4, 150, 1_600_000 / 8
_OBSERVER = """
window.figures = { shift: 0, largest: 0, blocked: 0 };
const observe = (type, note) =>
  new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type, buffered: true });
observe("layout-shift", (entry) => { if (!entry.hadRecentInput) figures.shift += entry.value; });
observe("largest-contentful-paint", (entry) => { figures.largest = entry.startTime; });
observe("longtask", (entry) => { figures.blocked += Math.max(0, entry.duration - 50); });
"""
_READ = """() => ({ ...figures, first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0 })"""


@dataclass(frozen=True)
class Load:
    """One load of a page by a browser that has nothing yet: bytes as sent, without charts; milliseconds."""

    size: float
    requests: float
    first: float
    largest: float
    blocked: float
    shift: float


class Traffic:
    """What a page asks for and gets, by what Chromium says of its network."""

    def __init__(self, network: CDPSession) -> None:
        self.requests = self.size = 0
        self._charts: set[str] = set()
        network.on("Network.requestWillBeSent", self._on_request)
        network.on("Network.loadingFinished", self._on_end)

    def _on_request(self, event: dict[str, Any]) -> None:
        self.requests += 1
        if "/charts/" in event["request"]["url"]:
            self._charts.add(event["requestId"])

    def _on_end(self, event: dict[str, Any]) -> None:
        if event["requestId"] not in self._charts:
            self.size += int(event["encodedDataLength"])


def measure_pages() -> None:
    """Each page: on the server, then in a browser on a desk and on a phone."""
    with (
        tempfile.TemporaryDirectory() as data,
        filled_site(Path(data)) as site,
        sync_playwright() as playwright,
    ):
        browser = start_chromium(playwright)
        if browser is None:
            print("pages: no Chromium found")
            return
        addresses = _prepare(site)
        _print_on_server(site, addresses)
        for name, address in addresses.items():
            for phone in (False, True):
                print(
                    f"{name} on a {'phone' if phone else 'desk'}: {_told(_loads(browser, site.url + address, phone))}"
                )


def measure_server_pages() -> None:
    """Each page on the server alone."""
    with tempfile.TemporaryDirectory() as data, filled_site(Path(data)) as site:
        _print_on_server(site, _prepare(site))


def _prepare(site: Site) -> dict[str, str]:
    """Make the runs, and return the addresses of pages by name."""
    site.server.manage(
        "shell", "-v", "0", "-c", f"from tests.benchmarks.pages import multiply; multiply({RUNS})"
    )
    addresses = {name: address for name, address in site.pages().items() if name in SHOWN}
    return {**addresses, "comparison": f"{addresses['comparison']}?runs={','.join(_ids(site))}"}


def _print_on_server(site: Site, addresses: dict[str, str]) -> None:
    for name, (first, ahead, again, size, queries) in _on_server(
        site, {**addresses, **WHOLE}
    ).items():
        print(
            f"{name}: server {first:.0f} ms of processor time, {ahead:.0f} ms where another process keeps it, "
            f"{again:.0f} ms again, {size / 1000:.0f} kB, {queries} queries",
            flush=True,
        )


def multiply(number: int, slug: str = "open") -> None:
    """So many evaluated runs, copies of those in a collection but for their tags, parameters, costs and some noise."""
    from django.db import transaction

    from metrics.models import Evaluation, JudgedView, MetricVector
    from runs.models import Run
    from runs.services.tracking.parameters import store_parameters

    rng = np.random.default_rng(1)
    known = list(
        Evaluation.objects.filter(run__collection__slug=slug).select_related("run", "view")
    )
    vectors = {row.pk: list(row.vectors.all()) for row in known}
    runs = []
    with transaction.atomic():
        for index in range(number - len(known)):
            model = known[index % len(known)]
            # A version of a system is one run.
            own = {"tag": f"{model.run.tag}-{index}", "system_id": None, "version": None}
            made_so = {
                "bm25": {"k1": 0.4 + index % 8 / 5, "b": 0.3 + index % 6 / 10},
                "model": f"m{index % 5}",
            }
            costs = {"latency_ms": float(rng.lognormal(3, 1))}
            run = Run.objects.create(
                **{
                    **_fields(model.run, "id"),
                    **own,
                    "metadata": {**made_so, "seed": index},
                    "costs": costs,
                }
            )
            runs.append(run)
            evaluation = Evaluation.objects.create(**{**_fields(model, "id"), "run_id": run.pk})
            JudgedView.objects.create(evaluation=evaluation, content=model.view.content)
            noisy = (_noisy(vector, evaluation.pk, rng) for vector in vectors[model.pk])
            MetricVector.objects.bulk_create(vector.seal(evaluation.qrels_id) for vector in noisy)
        store_parameters(known[0].run.collection, runs)


def _fields(row: Any, without: str) -> dict[str, Any]:
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name != without
    }


def _noisy(vector: Any, evaluation: int, rng: np.random.Generator) -> Any:
    values = np.clip(vector.values + rng.normal(0, 0.05, vector.values.shape), 0, 1)
    fields = {
        **_fields(vector, "id"),
        "evaluation_id": evaluation,
        "mean": float(np.nanmean(values)),
    }
    return type(vector)(**{**fields, "content": values.astype("<f8").tobytes()})


def _ids(site: Site) -> list[str]:
    with site.server.client() as api:
        rows = (
            api.get("collections/open/leaderboard/", params={"limit": COMPARED})
            .raise_for_status()
            .json()["results"]
        )
    return [row["run"]["id"] for row in rows]


def _on_server(
    site: Site, addresses: dict[str, str]
) -> dict[str, tuple[float, float, float, int, int]]:
    code = f"from tests.benchmarks.pages import time_pages; time_pages({json.dumps(addresses)!r})"
    figures: dict[str, tuple[float, float, float, int, int]] = json.loads(
        site.server.manage("shell", "-v", "0", "-c", code)
    )
    return figures


def time_pages(addresses: str) -> None:
    """Print of each address the medians of its processor time in milliseconds, when nothing is kept, when another
    process keeps it and when this one does, its bytes and its queries; in a process of its own on
    the server's database."""
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    print(json.dumps({name: _timed(address) for name, address in json.loads(addresses).items()}))


def _timed(address: str) -> tuple[float, float, float, int, int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from metrics.services.answer_store import forget_all

    client = Client()
    forget_all()
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(address)
        assert answer.status_code == 200, address
        queries = len(captured)
    medians = []
    for forget in (True, False):
        client.get(address)
        seconds = []
        for _ in range(ROUNDS):
            if forget:
                forget_all()
                cache.clear()
            start = time.process_time()
            client.get(address)
            seconds.append(time.process_time() - start)
        medians.append(1000 * statistics.median(seconds))
    first, ahead, again = medians
    return first, ahead, again, len(answer.content), queries


def _loads(browser: Browser, address: str, phone: bool) -> list[Load]:
    return [_load(browser, address, phone) for _ in range(LOADS)]


def _load(browser: Browser, address: str, phone: bool) -> Load:
    viewport: Any = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
    context = browser.new_context(viewport=viewport)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    if phone:
        _slow_down(network)
    traffic = Traffic(network)
    figures = _figures(page, address)
    context.close()
    return Load(traffic.size, traffic.requests, **figures)


def _slow_down(network: CDPSession) -> None:
    network.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    speed = {
        "latency": LATENCY,
        "downloadThroughput": BYTES_A_SECOND,
        "uploadThroughput": BYTES_A_SECOND,
    }
    network.send("Network.emulateNetworkConditions", {"offline": False, **speed})


def _figures(page: Page, address: str) -> dict[str, float]:
    page.add_init_script(_OBSERVER)
    page.goto(address, wait_until="networkidle")
    figures: dict[str, float] = page.evaluate(_READ)
    return figures


def _told(loads: Iterable[Load]) -> str:
    rows = [asdict(load) for load in loads]
    middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    return (
        f"{middle['size'] / 1000:.0f} KB without charts, {middle['requests']:.0f} requests, first paint "
        f"{middle['first']:.0f} ms, largest {middle['largest']:.0f} ms, blocked {middle['blocked']:.0f} ms, "
        f"shift {middle['shift']:.3f}"
    )
