"""Wherever a verdict could be spoken, none is without a test, and none against the way that the test points."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import cycle
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.engine.significance import TESTS
from metrics.models import Comparison
from metrics.services.answer_store import forget_all
from metrics.services.comparisons import workload
from metrics.services.comparisons.stored import compare
from runs.models import Run
from tests.conftest import evaluate_all, upload
from tests.shared_data import alice, api, module_data
from tests.web.test_pages import text_of

__all__ = ["alice", "api", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]

API = "/api/v1/"
# Legends and room that is kept for marks are no verdict.
_SAID = re.compile(
    r"is better than|(?<!not )(?<!differences are )significant at"
    r"|[1-9][\d,]* of [\d,]+ differences? (is|are) significant"
    r"|significantly better|where they differ significantly|[1-9][\d,]* of [\d,]+ pairs differ significantly"
    r"|▲ better|▼ worse|[↑↓]|(?<!\\phantom\{)\$\^\{\\(up|down)arrow\}\$|p < 0\.0001|close to the level"
)
Ranks = Mapping[str, Sequence[int]]
# Of files. A file of a kind is made alike for every test.
KINDS = ("csv", "md", "tex")


def make_collection(api: APIClient, slug: str, ranks: Ranks) -> dict[str, str]:
    """Runs that find each topic's one relevant document at these ranks, after others that are judged as well; their ids
    by tag, in the order given."""
    assert (
        api.post(f"{API}collections/", {"slug": slug, "name": slug, "measures": ["RR"]}).status_code
        == 201
    )
    topics = range(1, 1 + len(next(iter(ranks.values()))))
    others = range(1, max(max(places) for places in ranks.values()))
    judged = "".join(
        f"{topic} 0 d 1\n" + "".join(f"{topic} 0 x{place} 0\n" for place in others)
        for topic in topics
    )
    assert upload(api, f"collections/{slug}/qrels/", judged).status_code == 201
    for tag, places in ranks.items():
        lines = [
            f"{topic} Q0 {'d' if place == rank else f'x{place}'} {place} {100 - place} {tag}\n"
            for topic, rank in zip(topics, places, strict=True)
            for place in range(1, rank + 1)
        ]
        assert upload(api, f"collections/{slug}/runs/", "".join(lines)).status_code == 202
    evaluate_all()
    return {tag: str(Run.objects.get(collection__slug=slug, tag=tag).pk) for tag in ranks}


@pytest.fixture(scope="module")
def few(api: APIClient) -> dict[str, str]:
    """Three runs on four topics."""
    ranks = {"high": [1, 1, 1, 2], "middle": [4, 4, 5, 8], "low": [9, 9, 9, 10]}
    return make_collection(api, "few", ranks)


@pytest.fixture(scope="module")
def flat(api: APIClient) -> dict[str, str]:
    """Three runs with the same difference on each topic."""
    return make_collection(api, "flat", {"high": [1] * 5, "middle": [2] * 5, "low": [4] * 5})


@pytest.fixture
def walk(anonymous: APIClient, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every answer, page and file of some kinds of a collection that can speak a verdict by one
    test, with its address."""

    def answers(
        slug: str, runs: dict[str, str], test: str, kinds: Sequence[str] = KINDS
    ) -> Iterator[tuple[str, Any]]:
        first = next(iter(runs.values()))
        common = {"resamples": "2000"}
        for extra in ({}, {"baseline": first}):
            board = {**common, **extra, "test": test, "statistics": "all", "measures": "RR"}
            compared = {**common, **extra, "tests": test, "measures": "RR"}
            where = f"{API}collections/{slug}/"
            yield from read_addresses(
                anonymous, [(f"{where}comparison/", compared), (f"{where}leaderboard/", board)]
            )
            for kind in kinds:
                yield from read_addresses(
                    anonymous, [(f"{where}comparison/export/{kind}/", compared)]
                )
                yield from read_addresses(
                    anonymous, [(f"{where}leaderboard/export/{kind}/", board)]
                )
            pages = [
                (f"/collections/{slug}/comparison/", compared),
                (f"/collections/{slug}/", board),
            ]
            yield from read_addresses(Client(), [*pages, (f"/collections/{slug}/board/", board)])
        pair = {**common, "tests": test, "measures": "RR", "runs": list(runs.values())[:2]}
        yield from read_addresses(Client(), [(f"/collections/{slug}/comparison/", pair)])
        yield from read_addresses(
            anonymous, [(f"{API}collections/{slug}/charts/significance.json", compared_of(test))]
        )
        yield from stored(slug, test, kinds)

    def stored(slug: str, test: str, kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
        monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
        forget_all()
        question = {"tests": test, "measures": "RR", "resamples": "2000"}
        assert anonymous.get(f"{API}collections/{slug}/comparison/", question).status_code == 202
        pk = Comparison.objects.latest("created_at").pk
        assert compare(comparison_id=str(pk))
        files = [(f"{API}comparisons/{pk}/export/{kind}/", {}) for kind in kinds]
        yield from read_addresses(anonymous, [(f"{API}comparisons/{pk}/", {}), *files])
        yield from read_addresses(
            anonymous, [(f"{API}comparisons/{pk}/charts/significance.json", {})]
        )
        yield from read_addresses(Client(), [(f"/comparisons/{pk}/", {})])
        monkeypatch.undo()

    return answers


def compared_of(test: str) -> dict[str, str]:
    return {"tests": test, "measures": "RR", "resamples": "2000"}


def read_addresses(
    client: Any, addresses: list[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[str, Any]]:
    for path, query in addresses:
        answer = client.get(path, query)
        assert answer.status_code == 200, (path, query, answer.content[:500])
        kind = answer["Content-Type"].split(";")[0]
        content = answer.getvalue().decode()
        if kind == "application/json":
            yield path, answer.json()
        elif kind == "text/csv":
            yield path, list(csv.DictReader(io.StringIO(content)))
        else:
            yield path, unescape(text_of(content)) if kind == "text/html" else content


def spoken(item: Any, name: str = "") -> Iterator[str]:
    """Every verdict in an answer."""
    if isinstance(item, dict):
        for key, value in item.items():
            yield from spoken(value, key)
    elif isinstance(item, list):
        for value in item:
            yield from spoken(value, name)
    elif name in ("significant", "mark", "verdict", "tier", "baseline_mark", "letters"):
        if item not in (None, False, 0, "", "false"):
            yield f"{name}: {item}"
    elif name == "kind":  # Of a chart's cell.
        if item.startswith(("better", "worse")):
            yield f"kind: {item}"
    elif name in ("p_value", "p_adjusted", "baseline_p_value", "baseline_p_adjusted"):
        if item not in (None, "") and float(item) == 0:
            yield f"{name}: {item}"
    elif isinstance(item, str):
        yield from (match[0] for match in _SAID.finditer(item))


TINY_QRELS = "1 0 d1 2\n1 0 d2 0\n1 0 d3 1\n2 0 d4 1\n"
TINY_RUNS = (
    "1 Q0 d1 1 9.5 bm25\n1 Q0 d2 2 8.1 bm25\n2 Q0 d9 1 7.7 bm25\n2 Q0 d4 2 7.2 bm25\n",
    "1 Q0 d3 1 0.9 dense\n1 Q0 d1 2 0.8 dense\n2 Q0 d4 1 0.9 dense\n",
)


def test_the_two_topics_of_the_readme_end_in_no_verdict(
    api: APIClient, anonymous: APIClient
) -> None:
    api.post(f"{API}collections/", {"slug": "tiny", "name": "tiny"})
    assert upload(api, "collections/tiny/qrels/", TINY_QRELS).status_code == 201
    for content in TINY_RUNS:
        assert upload(api, "collections/tiny/runs/", content).status_code == 202
    evaluate_all()
    text = text_of(
        Client().get("/collections/tiny/comparison/", {"measure": "AP"}).content.decode()
    )
    assert (
        "dense is ahead of bm25 by 0.5000 AP; 2 topics are too few to tell this from chance."
        in text
    )
    assert re.search(
        r"[Nn]o p by the paired t test, p = 0.5000 by [^;]+ test \(exact\); better on 2 topics",
        unescape(text),
    )
    assert (
        "no confidence interval, no p; Hedges&#x27;s g = none. No verdict: too few topics." in text
    )
    assert not list(spoken(unescape(text)))
    (measure,) = anonymous.get(f"{API}collections/tiny/comparison/", {"measures": "AP"}).json()[
        "measures"
    ]
    assert measure["pairs"][0]["tests"]["paired_t"] == {
        "low": None, "high": None, "statistic": None, "p_value": None, "p_adjusted": None, "exact": False,
        "significant": False, "verdict": None, "withheld": "too_few_topics",
    }  # fmt: skip
    assert measure["tests"]["paired_t"]["groups"] is None


@pytest.mark.slow
@pytest.mark.parametrize(("test", "kind"), [*zip(TESTS, cycle(KINDS), strict=False)])
def test_four_topics_have_no_verdict_anywhere(
    few: dict[str, str], walk: Any, test: str, kind: str
) -> None:
    verdicts = [
        (path, verdict)
        for path, answer in walk("few", few, test, [kind])
        for verdict in spoken(answer)
    ]
    assert verdicts == []


@pytest.mark.slow
@pytest.mark.parametrize("test", ["paired_t", "bootstrap", "tukey_hsd", "conover"])
def test_differences_without_spread_have_no_verdict_anywhere(
    flat: dict[str, str], walk: Any, test: str
) -> None:
    # Five topics are enough for a verdict, and too few for one by an exact test.
    answers = list(walk("flat", flat, test))
    assert [(path, verdict) for path, answer in answers for verdict in spoken(answer)] == []
    paths = {
        path
        for path, answer in answers
        if isinstance(answer, str)
        and re.search("cannot be (tested|made)|could not be tested", answer)
    }
    assert len(paths) > 6


@pytest.mark.slow
def test_a_rank_test_against_the_mean_speaks_no_verdict_anywhere(api: APIClient, walk: Any) -> None:
    """Worse by a little on 42 topics, better by much on 8: the mean is higher, and the ranks speak for the other."""
    runs = make_collection(api, "against", {"peaks": [10] * 42 + [5] * 8, "steady": [9] * 50})
    for test in ("sign", "wilcoxon", "nemenyi", "conover"):
        for path, answer in walk("against", runs, test):
            verdicts = [
                verdict
                for verdict in spoken(answer)
                if verdict not in ("tier: 1", "letters: a", "p < 0.0001")
            ]
            assert not verdicts, (path, verdicts)
    text = text_of(
        Client()
        .get("/collections/against/comparison/", {"measures": "RR", "tests": "sign"})
        .content.decode()
    )
    assert re.search(
        r"peaks is ahead of steady by 0.00\d+ RR, but the sign test, which does not test means, ",
        text,
    )
    assert "favours steady. no verdict: points the other way" in text
    assert "better on 8 topics, worse on 42" in text
    assert "found the opposite direction" in text


@pytest.mark.slow
def test_a_clear_difference_still_has_its_verdict_everywhere(api: APIClient, walk: Any) -> None:
    runs = make_collection(
        api,
        "clear",
        {"good": [1, 2, 1, 1, 2, 1, 1, 1, 2, 1], "poor": [9, 8, 9, 7, 9, 8, 9, 9, 9, 8]},
    )
    spoken_by_path: dict[str, list[str]] = {}
    for path, answer in walk("clear", runs, "paired_t"):
        spoken_by_path.setdefault(path, []).extend(spoken(answer))
    # Two runs without a baseline have no marks in a stored table, but letters.
    assert [
        path
        for path, verdicts in spoken_by_path.items()
        if not verdicts and "comparisons/" not in path
    ] == []
