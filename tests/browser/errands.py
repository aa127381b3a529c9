"""Three errands of newcomers in a browser alone, with the time of each step: python -m tests.browser.errands

`lab`: from an empty server to a team of two with a private collection, 40 runs, a baseline, a
shared comparison and a table for a paper. `study`: a grid of 30 runs, in which the best one is
found, with what it changed. `campaign`: from an empty server to a blind phase, an entry of a team
that had no account, and released results in a snapshot.

A step's seconds are those of the machine. Of the person they have clicks and letters, which are
counted, as the keystroke-level model does: 2.5 s to find and click, 0.28 s for a letter. Reading
takes its own time.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, FilePayload, Locator, Page, expect, sync_playwright

from evalhub.operating.simulation import simulate_collection
from tests.browser.conftest import start_chromium
from tests.browser.site import PASSWORD
from tests.reliability.servers import Server, empty_server

CLICK_SECONDS, LETTER_SECONDS = 2.5, 0.28
PATIENCE = 120_000
_K1, _B = (0.6, 0.9, 1.2, 1.5, 2.0), (0.2, 0.3, 0.4, 0.5, 0.6, 0.75)
# What a page without scripts takes at once.
_AT_ONCE = 20
# How long the phase of the campaign is open.
_OPEN_MINUTES = 4


@dataclass
class Step:
    """What somebody did: the machine's seconds, clicks and letters."""

    title: str
    seconds: float = 0.0
    clicks: int = 0
    letters: int = 0

    @property
    def line(self) -> str:
        return f"{self.title:58s} {self.seconds:6.1f} s {self.clicks:3d} clicks {self.letters:4d} letters"

    @property
    def by_hand(self) -> float:
        return self.seconds + CLICK_SECONDS * self.clicks + LETTER_SECONDS * self.letters


@dataclass
class Walk:
    """Somebody in a browser, who is counted; `page` is the one in front of them."""

    page: Page
    scripts: bool
    pictures: Path | None = None
    steps: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.steps.append(Step(title))
        start = time.perf_counter()
        try:
            yield
        finally:
            self.steps[-1].seconds = time.perf_counter() - start
        self.picture(title)

    def picture(self, title: str) -> None:
        if self.pictures:
            name = re.sub(r"\W+", "-", f"{len(self.steps):02d}-{title}").lower()
            self.page.wait_for_load_state("networkidle")
            self.page.screenshot(path=self.pictures / f"{name}.png", full_page=True)

    def click(self, target: Locator) -> None:
        self.steps[-1].clicks += 1
        target.click()

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("main").get_by_role("button", name=name, exact=True).first)

    def follow(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=True).first)

    def type(self, label: str, text: str) -> None:
        self.steps[-1].clicks += 1
        self.steps[-1].letters += len(text)
        self.page.get_by_label(label, exact=True).first.fill(text)

    def pick(self, label: str, option: str) -> None:
        self.steps[-1].clicks += 2
        self.page.get_by_label(label, exact=True).first.select_option(label=option)

    def drop(self, *files: FilePayload) -> None:
        self.steps[-1].clicks += 2
        self.page.locator("#file").set_input_files(files=list(files), timeout=PATIENCE)

    def wait(self, target: Locator) -> None:
        """Wait for what comes by itself, or without scripts when the page is loaded again."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.scripts and not target.is_visible() and time.monotonic() < deadline:
            self.page.wait_for_timeout(500)
            self.page.reload()
        expect(target).to_be_visible(timeout=PATIENCE)

    def download(self, name: str) -> bytes:
        with self.page.expect_download() as started:
            self.follow(name)
        return started.value.path().read_bytes()

    def show(self, title: str) -> None:
        lines = [f"{title}:", *(step.line for step in self.steps)]
        whole = Step("in all")
        for step in self.steps:
            whole.seconds += step.seconds
            whole.clicks += step.clicks
            whole.letters += step.letters
        lines.append(
            f"{whole.line}: about {whole.by_hand / 60:.1f} minutes by hand, without reading\n"
        )
        sys.stdout.write("\n".join(lines))


def payload(name: str, content: str | bytes) -> FilePayload:
    data = content if isinstance(content, bytes) else content.encode()
    return {"name": name, "mimeType": "text/plain", "buffer": data}


def noisy_run(run: str, tag: str, spread: float, rng: np.random.Generator) -> bytes:
    """The run with noise in its scores: the more, the worse it is."""
    lines = [line.split() for line in run.splitlines()]
    noise = rng.normal(0, spread, len(lines))
    for fields, shift in zip(lines, noise.tolist(), strict=True):
        fields[4:] = [f"{float(fields[4]) + shift:.4f}", tag]
    return ("\n".join(map(" ".join, lines)) + "\n").encode()


def submit(walk: Walk, files: list[FilePayload], **choices: str) -> None:
    """Submit run files, and settings beside them, on the page for that."""
    whole = (
        [files]
        if walk.scripts
        else [files[at : at + _AT_ONCE] for at in range(0, len(files), _AT_ONCE)]
    )
    for number, some in enumerate(whole):
        if number:
            walk.page.goto(walk.page.url)
        walk.drop(*some)
        if choices:
            walk.click(walk.page.get_by_text("Options:"))
        for label, option in choices.items():
            walk.pick(label, option)
        walk.press("Submit")
        runs = sum(entry["name"].endswith(".run") for entry in some)
        if walk.scripts:
            expect(walk.page.locator("#outcome")).to_contain_text(
                f"{runs} runs in.", timeout=PATIENCE
            )
        else:
            expect(walk.page.get_by_role("heading", name=f"{runs} runs in")).to_be_visible(
                timeout=PATIENCE
            )
    walk.follow("Open the leaderboard")


def lab(walk: Walk, browser: Browser, server: Server, code: str, options: dict[str, Any]) -> None:
    with ExitStack() as contexts:

        def somebody() -> Walk:
            """Another person at another machine, with the same clock."""
            page = contexts.enter_context(
                browser.new_context(base_url=server.url, **options)
            ).new_page()
            return Walk(page, walk.scripts, walk.pictures, walk.steps)

        _make_team(walk, somebody(), code)
        _make_collection(walk)
        shared = _compare_runs(walk)
        reader = somebody()
        with reader.step("a reader without an account opens the link"):
            reader.page.goto(shared)
            expect(reader.page.locator("main")).to_contain_text("hybrid-0")


def _make_team(walk: Walk, colleague: Walk, code: str) -> None:
    with walk.step("open the empty server, create the first account"):
        walk.page.goto("/")
        walk.type("Code", code)
        walk.type("User name", "ada")
        walk.type("Password", PASSWORD)
        walk.type("Password again", PASSWORD)
        walk.press("Create the administrator")
    with walk.step("create a team"):
        walk.follow("Create a team")
        walk.type("Name", "Retrieval lab")
        walk.press("Create team")
    with walk.step("create an invitation link"):
        walk.press("Create an invitation link")
        link = walk.page.locator("#link").inner_text().strip()
    with colleague.step("the colleague opens it and creates an account"):
        colleague.page.goto(link)
        colleague.type("User name", "ben")
        colleague.type("Password", PASSWORD)
        colleague.type("Password again", PASSWORD)
        colleague.press("Create an account and join")


def _make_collection(walk: Walk) -> None:
    simulated, rng = simulate_collection(), np.random.default_rng(7)
    submissions = [(tag, turn) for turn in range(4) for tag in simulated.runs][:40]
    files = [
        payload(
            f"{tag}-{turn}.run", noisy_run(simulated.runs[tag], f"{tag}-{turn}", 0.3 * turn, rng)
        )
        for tag, turn in submissions
    ]
    page = walk.page
    with walk.step("create a collection that the team sees"):
        walk.follow("New collection")
        walk.type("Name", "Our questions")
        walk.press("Create collection")
        expect(page.locator("h1")).to_contain_text("team retrieval-lab only")
    with walk.step("upload topics"):
        walk.drop(payload("topics.jsonl", simulated.topics))
        walk.press("Upload")
        expect(page.get_by_role("heading", name="50 topics")).to_be_visible()
    with walk.step("upload judgements"):
        walk.follow("Go on to the judgements")
        walk.drop(payload("qrels.txt", simulated.qrels))
        walk.press("Upload")
        expect(page.get_by_role("link", name="v1", exact=True)).to_be_visible()
    with walk.step("submit 40 runs"):
        walk.follow("submit runs")
        submit(walk, files)
    with walk.step("wait until all are ranked"):
        walk.wait(page.get_by_role("button", name="Compare all (40 runs)"))


def _compare_runs(walk: Walk) -> str:
    """Return the address of the shared comparison."""
    page = walk.page
    with walk.step("pin a baseline"):
        walk.click(page.get_by_role("link", name="make bm25-0 the baseline"))
        expect(page.locator("tr.held")).to_contain_text("bm25-0", timeout=PATIENCE)
    with walk.step("choose three runs and compare them"):
        for tag in ("hybrid-0", "reranked-0", "dense-large-0"):
            walk.click(page.get_by_label(f"choose {tag}", exact=True))
        if not walk.scripts:
            walk.press("Select checked runs")
        walk.click(page.locator("#selection button[name=compare][value=selected]"))
        expect(page.get_by_role("heading", name="How to report this")).to_be_visible(
            timeout=PATIENCE
        )
    with walk.step("export a LaTeX table"):
        walk.click(page.get_by_text("Export", exact=True))
        assert b"tabular" in walk.download("LaTeX")
    with walk.step("share the comparison"):
        walk.click(page.get_by_text("Share", exact=True))
        walk.follow("Address and share link")
        walk.press("Create a link")
        return page.locator("#link").inner_text().strip()


def study(walk: Walk, browser: Browser, server: Server, code: str, options: dict[str, Any]) -> None:
    files = _prepare_study(server)
    page = walk.page
    page.goto("/login/?next=/experiments/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    with walk.step("create an experiment"):
        walk.type("Name", "BM25 grid")
        walk.press("Create experiment")
    with walk.step("submit 30 runs with their settings into it"):
        walk.follow("Leaderboards")
        walk.follow("Study")
        walk.follow("Submit runs")
        submit(
            walk,
            files,
            **{"Tag of each file": "the name of the file", "Experiment": "BM25 grid (ada)"},
        )
    with walk.step("wait until all are ranked"):
        walk.wait(page.get_by_role("button", name="Compare all (30 runs)"))
    with walk.step("filter: a large k1 only"):
        walk.type("Filter runs", "param:bm25.k1>1")
        walk.press("Filter")
        expect(page.locator("#caption")).to_contain_text("18 rows match")
    with walk.step("chart: k1 against the measure, coloured by b"):
        walk.follow("Parameters")
        walk.pick("Parameter", "bm25.k1")
        walk.pick("coloured by", "bm25.b")
        walk.press("Draw")
        expect(page.locator("figure.chart figcaption").first).to_contain_text("Coloured by bm25.b")
    with walk.step("save the chart as a PDF"):
        walk.click(page.get_by_text("Table and files").first)
        assert walk.download("PDF")[:4] == b"%PDF"
    with walk.step("what explains the difference"):
        walk.follow("Importance")
        expect(page.get_by_role("region", name="Nothing else changed")).to_contain_text("bm25.k1")
    with walk.step("find the best run, and what it changed since the first"):
        walk.follow("Leaderboard")
        walk.click(page.get_by_role("link", name=f"make bm25-k{_K1[0]}-b{_B[0]} the baseline"))
        expect(page.locator("tr.held")).to_be_visible(timeout=PATIENCE)
        best = page.locator("table.board tbody th a:first-child").first
        tag = best.inner_text()
        walk.click(best)
        expect(page.locator("h1")).to_contain_text(tag)
        walk.follow("Parameters")
        expect(page.get_by_role("region", name="Changes from the baseline")).to_be_in_viewport()
    _mark(walk, tag)


def _mark(walk: Walk, tag: str) -> None:
    """Label the run, and write a note about it."""
    page = walk.page
    with walk.step("label it"):
        walk.follow("Edit")
        walk.type("New label", "main")
        walk.press(f"Label {tag}")
        expect(page.get_by_role("status").first).to_contain_text("main")
        walk.follow(tag)
        expect(page.locator(".facts")).to_contain_text("main")
    with walk.step("write a note about it"):
        walk.follow("Files and notes")
        walk.follow("Write a note")
        walk.type("Note", "The best of the grid")
        walk.press("Add note")
        expect(page.locator(".notes")).to_contain_text("The best of the grid")


def _prepare_study(server: Server) -> list[FilePayload]:
    """Make an account and a collection with judgements; return the files of a grid of runs, and of their settings."""
    simulated, rng = simulate_collection(), np.random.default_rng(8)
    code = (
        f"from runs.models import User; User.objects.create_superuser('ada', password={PASSWORD!r})"
    )
    server.manage("shell", "-v", "0", "-c", code)
    with server.client() as api:
        fields = {"slug": "study", "name": "Study", "measures": ["nDCG@10", "AP", "RR", "P@10"]}
        api.post("collections/", json=fields).raise_for_status()
        api.put(
            "collections/study/topics/", files={"file": ("file", simulated.topics)}
        ).raise_for_status()
        api.post(
            "collections/study/qrels/", files={"file": ("file", simulated.qrels)}
        ).raise_for_status()
    files = []
    for k1, b in product(_K1, _B):
        name = f"bm25-k{k1}-b{b}"
        spread = 0.3 + 0.9 * abs(k1 - 1.2) + 1.2 * abs(b - 0.4)
        files.append(
            payload(f"{name}.run", noisy_run(simulated.runs["bm25-tuned"], name, spread, rng))
        )
        files.append(
            payload(f"{name}.json", json.dumps({"bm25": {"k1": k1, "b": b}, "stemmer": "porter"}))
        )
    return files


def campaign(
    walk: Walk, browser: Browser, server: Server, code: str, options: dict[str, Any]
) -> None:
    """Organise a campaign with one phase of a few minutes and one team, which opens a link."""
    simulated = simulate_collection()
    tag, run = next(iter(simulated.runs.items()))

    def visitor() -> Walk:
        page = browser.new_context(base_url=server.url, **options).new_page()
        return Walk(page, walk.scripts, walk.pictures, walk.steps)

    _announce(walk, code, simulated.topics)
    closes = datetime.now(UTC) + timedelta(minutes=_OPEN_MINUTES)
    link = _open_phase(walk, closes)
    _take_part(visitor(), link, noisy_run(run, tag, 0, np.random.default_rng(9)))
    _release(walk, closes, simulated.qrels)

    reader = visitor()
    with reader.step("a reader without an account opens the campaign"):
        reader.page.goto("/campaigns/sea-cup/")
        expect(reader.page.locator("main")).to_contain_text(tag)


def _announce(walk: Walk, code: str, topics: str) -> None:
    page = walk.page
    with walk.step("open the empty server, create the first account"):
        page.goto("/")
        walk.type("Code", code)
        walk.type("User name", "olga")
        walk.type("Password", PASSWORD)
        walk.type("Password again", PASSWORD)
        walk.press("Create the administrator")
    with walk.step("create a blind collection"):
        walk.click(page.locator("summary", has_text="New"))
        walk.click(page.get_by_role("banner").get_by_role("link", name="Collection", exact=True))
        walk.type("Name", "Sea questions")
        walk.click(page.get_by_label(re.compile("Blind")).first)
        walk.press("Create collection")
    with walk.step("upload topics"):
        walk.drop(payload("topics.jsonl", topics))
        walk.press("Upload")
        expect(page.get_by_role("heading", name="50 topics")).to_be_visible()
    with walk.step("create the campaign"):
        walk.click(page.locator("summary", has_text="New"))
        walk.click(page.get_by_role("banner").get_by_role("link", name="Campaign", exact=True))
        walk.type("Name", "Sea cup")
        walk.press("Create campaign")


def _open_phase(walk: Walk, closes: datetime) -> str:
    """Publish a phase until a time; return an invitation link."""
    with walk.step("add a phase"):
        walk.follow("Add a phase")
        walk.type("Name", "Task 1")
        walk.type("Opens: day", "2026-01-01")
        walk.type("Closes: day", f"{closes:%Y-%m-%d}")
        walk.type("Closes: time of day", f"{closes:%H:%M}")
        walk.type("Zone of these times", "UTC")
        walk.press("Add phase")
    with walk.step("publish"):
        walk.follow("Publish")
        walk.press("Publish")
    with walk.step("create an invitation link"):
        walk.follow("Invitations")
        walk.press("Create an invitation link")
        return walk.page.locator("#link").inner_text().strip()


def _take_part(team: Walk, link: str, run: bytes) -> None:
    with team.step("somebody without an account opens it"):
        team.page.goto(link)
        team.type("User name", "ann")
        team.type("Password", PASSWORD)
        team.type("Password again", PASSWORD)
        team.type("Name of the team", "Apples")
        team.press("Create the account and take part")
    with team.step("enter a run"):
        team.follow("Enter a run into Task 1")
        team.drop(payload("run", run))
        team.press("Enter the run")
        expect(team.page.get_by_text("received").first).to_be_visible(timeout=PATIENCE)


def _release(walk: Walk, closes: datetime, qrels: str) -> None:
    page = walk.page
    with walk.step("upload the judgements"):
        page.goto("/campaigns/sea-cup/desk/")
        walk.follow("Upload judgements for Task 1")
        walk.drop(payload("qrels.txt", qrels))
        walk.press("Upload")
        expect(page.get_by_role("link", name="v1", exact=True)).to_be_visible(timeout=PATIENCE)
    # The results can be released once the phase is over.
    page.wait_for_timeout(max(0.0, (closes - datetime.now(UTC)).total_seconds() + 2) * 1000)
    with walk.step("release the results to everybody"):
        page.goto("/campaigns/sea-cup/desk/")
        walk.click(page.get_by_role("link", name=re.compile("^Release to")).last)
        walk.press("Release")
    with walk.step("make a snapshot"):
        page.goto("/campaigns/sea-cup/desk/")
        walk.follow("Make a snapshot")
        walk.press("Make the snapshot")


ERRANDS = {"lab": lab, "study": study, "campaign": campaign}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "errands", nargs="*", choices=[*ERRANDS, []], help="all where none is named"
    )
    parser.add_argument("--pictures", type=Path, help="a folder for the page after each step")
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--no-scripts", action="store_true")
    arguments = parser.parse_args()
    # The settings of single files are read by the page's script.
    names = arguments.errands or (["lab"] if arguments.no_scripts else list(ERRANDS))
    options = {
        "viewport": {"width": arguments.width, "height": 900},
        "java_script_enabled": not arguments.no_scripts,
    }
    for name in names:
        pictures = arguments.pictures and arguments.pictures / name
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server, code = stack.enter_context(empty_server(folder / "data"))
            browser = start_chromium(stack.enter_context(sync_playwright()))
            if browser is None:
                parser.error("there is no Chromium")
            page = browser.new_context(base_url=server.url, **options).new_page()
            walk = Walk(page, not arguments.no_scripts, pictures)
            try:
                ERRANDS[name](walk, browser, server, code, options)
            finally:
                walk.picture("the end")
                walk.show(name)


if __name__ == "__main__":
    main()
