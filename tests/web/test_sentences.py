"""docs/sentences.md: every example makes its sentence, and the table has every sentence that the code can say."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, wraps
from html import unescape
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from metrics.engine.measures.grammar import parse_measure
from metrics.engine.sessions.designs import Factors
from metrics.engine.significance.pairs import Matrix
from metrics.exports.boards import words as board_words
from metrics.exports.comparisons import words as table_words
from metrics.models import MetricVector
from metrics.pages.comparisons import two_runs
from metrics.pages.comparisons import words as page_words
from metrics.pages.sessions import words as session_words
from metrics.services.sessions.comparison import compare_sample
from metrics.services.sessions.sample import Sample, SessionComparisonQuery
from runs.models import Qrels, Run, User
from tests.metrics.boards import make_board, simulated
from tests.shared_data import alice, module_data
from tests.web.described_runs import describe_runs
from tests.web.test_pages import text_of

__all__ = ["alice", "module_data"]

pytestmark = [pytest.mark.django_db, pytest.mark.words]
ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| `(?P<said>[^`]+)`(?: \(`(?P<code>\w+)`\))? \| [^|]+ \| `(?P<example>[^`]+)` \|$",
    re.MULTILINE,
)
RANDOM = re.compile(r"random\((\d+), (\d+)((?:, \w+=[\d.]+)*)\)")
LAYOUT = re.compile(r"(each|turns|one|studies)\((\d+), (\d+)((?:, \w+=[\d.]+)*)\)")
COMPARISON, BOARD, SESSIONS = (
    "/collections/board/comparison/",
    "/collections/board/",
    "/collections/board/sessions/",
)
PARAMETERS, COST = "/collections/board/parameters/", "/collections/board/frontier/"
DESIGN, ORDERS = "/collections/board/design/", "/collections/board/orders/"
IMPORTANCE = f"{PARAMETERS}importance/"
PAGES = (
    COMPARISON,
    COMPARISON,
    BOARD,
    COMPARISON,
    BOARD,
    PARAMETERS,
    IMPORTANCE,
    COST,
    DESIGN,
    ORDERS,
    SESSIONS,
)
# How a page is asked for its measure.
ASKED = {IMPORTANCE: "measure", PARAMETERS: "measure", COST: "y"}


def sources_of(*endings: str) -> list[Path]:
    """Return the files whose texts the table lists."""
    folders = (ROOT / "metrics", ROOT / "evalhub/campaigns")
    return [
        path for folder in folders for ending in endings for path in folder.rglob(f"*.{ending}")
    ]


def halves() -> tuple[str, str]:
    """What examples make, and what other tests do."""
    text, _, elsewhere = (ROOT / "docs/sentences.md").read_text().partition("## Elsewhere")
    return text, elsewhere


def tables() -> list[list[dict[str, str]]]:
    """The rows of each table."""
    text, _ = halves()
    parts = re.split(r"^\| sentence \| when \| example \|$", text, flags=re.MULTILINE)
    return [[row.groupdict() for row in ROW.finditer(part)] for part in parts[1:]]


def examples() -> dict[tuple[str, str], list[str]]:
    """What each example makes its page say."""
    by_example: dict[tuple[str, str], list[str]] = {}
    for page, rows in zip(PAGES, tables(), strict=True):
        for row in rows:
            by_example.setdefault((page, row["example"]), []).append(row["said"])
    return by_example


EXAMPLES = examples()
ELSEWHERE = [row.groupdict() for row in ROW.finditer(halves()[1])]
TRIED: set[tuple[str, str]] = set()
RUN: dict[str, set[int]] = {
    str(module.__file__): set() for module in (board_words, table_words, page_words, session_words)
}
DEFINES = re.compile(r"\s*(def|class|@)\b")


def values_in(text: str) -> Matrix:
    """Shape (runs, topics)."""
    rows: list[Matrix] = []
    for run in text.split(" / "):
        if drawn := RANDOM.fullmatch(run.strip()):
            options = {
                name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", drawn[3])
            }
            simulated_data = simulated(
                int(drawn[1]),
                int(drawn[2]),
                int(options.get("seed", 5)),
                options.get("spread", 0.08),
            )
            rows.extend(simulated_data + options.get("shift", 0.0))
            continue
        numbers: list[float] = []
        for word in run.split():
            value, _, many = word.partition("x")
            numbers += [np.nan if value == "-" else float(value)] * int(many or 1)
        rows.append(np.array(numbers))
    return np.array(rows)


def page_of(user: User, page: str, example: str) -> str:
    """Make the runs of an example and return what its page says."""
    values_text, _, query_string = example.partition(" ? ")
    values, *described = values_text.split(" ; ")
    query = dict(parse_qsl(query_string.strip(), keep_blank_values=True))
    measure = parse_measure(query.get("measures", "AP")).name
    matrix = values_in(values)
    squares = {"P@10": np.square(matrix)} if page == ORDERS else {}
    collection = make_board(user.personal_team, {measure: matrix, **squares})
    if measure == "gm_map":
        for row in MetricVector.objects.filter(measure=measure):
            MetricVector.objects.filter(pk=row.pk).update(
                mean=float(np.exp(np.log(np.frombuffer(row.content)).mean()))
            )
    Qrels.objects.filter(collection=collection).update(levels={"0": 9, "1": 5, "2": 3, "3": 1})
    describe_runs(collection, described)
    ids = {run.tag: str(run.pk) for run in Run.objects.filter(collection=collection)}
    gone = query.pop("withdrawn", "")
    Run.objects.filter(tag=gone).update(deleted_at=timezone.now())
    for name in ("runs", "baseline"):
        if name in query:
            query[name] = ",".join(ids[tag] for tag in query[name].split(","))
    if page == BOARD:
        query.setdefault("statistics", "all")
    answer = Client().get(
        page, {ASKED.get(page, "measures"): ",".join([measure, *squares]), **query}
    )
    assert answer.status_code == 200, text_of(answer.content.decode())[-800:]
    return unescape(text_of(answer.content.decode()))


def drawn_sessions(
    layout: str, searchers: int, topics: int, options: dict[str, float]
) -> list[Any]:
    """Topic, searcher, system and value of each session."""
    rng, systems = (
        np.random.default_rng(1),
        4 if layout == "studies" else int(options.get("systems", 2)),
    )
    searcher, topic, system = (part.ravel() for part in np.indices((searchers, topics, systems)))
    present = searcher < searchers - options.get("dropouts", 0)
    present |= system == 0
    if layout in ("turns", "one"):
        present &= system == (searcher + topic * (layout == "turns")) % systems
    searcher, topic, system = searcher[present], topic[present], system[present]
    values = 0.5 + options.get("gap", 0) * (system == 0)
    if noise := options.get("noise", 0.1):
        values += 0.1 * rng.random(searchers)[searcher] + 0.1 * rng.random(topics)[topic]
        values += rng.normal(0, noise, len(system))
    return [topic, searcher + searchers * (system // 2) * (layout == "studies"), system, values]


def sample_of(example: str) -> Sample:
    """The sessions of an example: drawn by layout, or of the values of each topic by system."""
    if drawn := LAYOUT.fullmatch(example):
        options = {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", drawn[4])}
        *factors, values = drawn_sessions(drawn[1], int(drawn[2]), int(drawn[3]), options)
    else:
        by_system = values_in(example)
        system, topic = np.nonzero(~np.isnan(by_system))
        factors, values = [topic, np.arange(len(system)), system], by_system[system, topic]
    # The systems stand in the order of their means.
    means = [-values[factors[2] == level].mean() for level in range(factors[2].max() + 1)]
    order = np.argsort(means, kind="stable")
    labels = [f"team/log:{'ABCD'[index]}" for index in order]
    topics, searchers = (
        [f"{mark}{n + 1}".encode() for n in range(part.max() + 1)]
        for mark, part in zip("tu", factors[:2], strict=True)
    )
    system = np.argsort(order)[factors[2]]
    encoded = Factors(
        topics, searchers, [label.encode() for label in labels], factors[0], factors[1], system
    )
    entrants: dict[str, Any] = {name: (None, name[-1]) for name in labels}
    return Sample(values, encoded, labels, entrants)


def comparison_of(example: str) -> str:
    """Compare the systems of an example, and return what the page of sessions says of it."""
    sessions, _, query_string = example.partition(" ? ")
    query = SessionComparisonQuery.read(dict(parse_qsl(query_string.strip())), None)
    compared = compare_sample(sample_of(sessions), "topic", query)
    sentences = [
        session_words.headline(compared),
        session_words.detail(compared),
        session_words.design_sentence(compared),
    ]
    sentences += [session_words.test_sentence(compared), *session_words.omnibus_sentences(compared)]
    return " ".join([*sentences, *(caution.message for caution in compared.result.cautions)])


def pattern_of(sentence: str) -> re.Pattern[str]:
    parts = (
        re.escape(part).replace(r"\ ", r"\s+")
        for part in sentence.strip().split("\N{HORIZONTAL ELLIPSIS}")
    )
    return re.compile(".+?".join(parts), re.IGNORECASE)


def lines_of(code: CodeType) -> set[int]:
    """The lines of all functions in a module's code."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    own = (
        {number for *_, number in code.co_lines() if number}
        if code.co_flags & CO_NEWLOCALS
        else set()
    )
    return own.union(*map(lines_of, inner))


@pytest.fixture(autouse=True)
def without_rankings(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are values alone."""
    monkeypatch.setattr(two_runs, "_rankings", lambda *_: None)


@pytest.fixture(scope="module")
def traced() -> Iterator[None]:
    """Note which lines of the modules run.

    Calls are heard of beneath the functions of these modules alone, wherever they have been
    imported: to hear of every call takes as long as the page itself.
    """

    def note(frame: FrameType, event: str, _: Any) -> Any:
        RUN[frame.f_code.co_filename].add(frame.f_lineno)
        return note

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return note(frame, event, argument) if frame.f_code.co_filename in RUN else None

    def tracing(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            before = sys.gettrace()
            sys.settrace(call)
            try:
                return function(*arguments, **named)
            finally:
                sys.settrace(before)

        return run

    # All pages are imported before.
    assert get_resolver().url_patterns
    with pytest.MonkeyPatch.context() as patch:
        for module in [
            module for name, module in sys.modules.items() if name.startswith(("metrics.", "runs."))
        ]:
            for name, function in list(vars(module).items()):
                if isinstance(function, FunctionType) and function.__code__.co_filename in RUN:
                    patch.setattr(module, name, tracing(function))
        yield


@pytest.mark.parametrize(("page", "example"), EXAMPLES, ids=str)
@pytest.mark.usefixtures("traced")
def test_an_example_makes_its_sentences(alice: User, page: str, example: str) -> None:
    text = comparison_of(example) if page == SESSIONS else page_of(alice, page, example)
    TRIED.add((page, example))
    for sentence in EXAMPLES[page, example]:
        assert pattern_of(sentence).search(text), f"{sentence}: {text[-3000:]}"


def test_the_examples_are_all_that_the_words_can_say() -> None:
    """Every line of the modules of words runs in one of them."""
    if len(TRIED) < len(EXAMPLES):
        pytest.skip("some examples were not tried")
    for file, seen in RUN.items():
        source = Path(file).read_text()
        lines = source.splitlines()
        missed = {
            number
            for number in lines_of(compile(source, file, "exec")) - seen
            if not DEFINES.match(lines[number - 1])
        }
        assert not [f"{number}: {lines[number - 1]}" for number in sorted(missed)]


def test_every_row_of_the_page_is_read() -> None:
    lines = [
        line
        for line in (ROOT / "docs/sentences.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    assert len(lines) == sum(map(len, tables())) + len(ELSEWHERE) > 80


def test_every_caution_is_listed() -> None:
    """Those that the code can make, by their codes."""
    sources = [path.read_text() for path in sources_of("py")]
    codes = {
        code for text in sources for code in re.findall(r"\bCaution\(\s*(?:code=)?\"(\w+)\"", text)
    }
    listed = {row["code"] for rows in tables() for row in rows if row["code"]}
    assert codes - listed == {row["code"] for row in ELSEWHERE if row["code"]}
    # Those that are named by a constant, or by what a test of sessions counts.
    assert listed - codes == {"other_direction", "few_cells", "few_sessions", "chosen_runs"}


@pytest.mark.parametrize("row", ELSEWHERE, ids=lambda row: row["example"].split("::")[1])
def test_what_is_said_elsewhere_is_in_the_code_and_in_the_test_that_is_named(
    row: dict[str, str],
) -> None:
    file, name = row["example"].split("::")
    (function,) = re.findall(
        rf"^def {name}\(.*?(?=^def |^@|\Z)", (ROOT / file).read_text(), re.MULTILINE | re.DOTALL
    )
    pieces = [piece.strip() for piece in row["said"].split("\N{HORIZONTAL ELLIPSIS}")]
    assert (row["code"] or max(pieces, key=len)[:30]) in function
    for piece in pieces:
        assert piece in text_of_sources(), piece


@cache
def text_of_sources() -> str:
    # A text goes on in the next line.
    lines = (re.sub(r"\"\s*\n\s*f?\"", "", path.read_text()) for path in sources_of("py", "html"))
    return re.sub(r"\s+", " ", " ".join(lines))
