"""What a notebook shows: tables whose texts are escaped, and charts as the server draws them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.client import BadSource, Blind, Board, Comparison, Hub, Run
from evalhub.client.display import table_html
from tests.client.conftest import URL, problem, raw_run

BOARD = {
    "collection": "c", "qrels": 2, "scores": "float64", "topics": 50, "ranked": 2,
    "statistics": {"test": "paired_t", "measure": "AP", "correction": "holm"},
    "results": [
        {"rank": rank, "state": "ranked", "code": "", "run": {"id": str(rank), "team": "lab", "tag": tag},
         "coverage": {"answered": 50, "judged": 50}, "judged_at_10": 0.9, "values": {"AP": {"mean": 1 / 3}},
         "statistics": {"tier": tier, "baseline": None}}
        for rank, tag, tier in ((1, "dense", 1), (2, "<b>bm25</b>", 2))
    ],
}  # fmt: skip
COMPARED: dict[str, Any] = {
    "comparison": None, "collection": "c", "qrels": 2, "tests": ["paired_t"], "correction": "holm", "alpha": 0.05,
    "runs": [], "measures": [{"measure": "AP", "topics": {"used": 50}, "means": [], "pairs": []}],
}  # fmt: skip


def test_a_board_shows_its_tiers_and_where_its_numbers_come_from() -> None:
    html = Board(BOARD, f"{URL}/collections/c/")._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;bm25" in html
    assert "0.3333" in html
    assert "0.33333" not in html
    first, second = re.findall("<tr>(.*?)</tr>", html.partition("<tbody>")[2])
    assert "border-top" not in first
    assert "border-top" in second
    assert "collection c, qrels 2" in html
    assert "50, 2 ranked runs, paired_t test of AP, holm correction" in html
    assert f'<a href="{URL}/collections/c/">' in html


def test_a_table_shows_fifty_rows_and_counts_the_others() -> None:
    html = table_html([{"n": number} for number in range(60)], "of a test", "javascript:alert(1)")
    assert html.count("<tr>") == 51
    assert "(10 more rows)" in html
    assert "href" not in html


def drawing(requests: list[str]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        path = str(request.url).removeprefix(f"{URL}/api/v1/")
        requests.append(path)
        if "/charts/" in path:
            return httpx.Response(200, content=b"<svg>")
        if path.startswith("collections/c/leaderboard/"):
            return httpx.Response(200, json={**BOARD, "next": None})
        return httpx.Response(200, json=COMPARED)

    return answer


def test_a_chart_is_written_in_its_own_format(hub_of: Callable[..., Hub], tmp_path: Path) -> None:
    requests: list[str] = []
    hub = hub_of(drawing(requests))
    run = Run(hub, raw_run("bm25"))
    chart = run.chart("curve", measure="DCG", depth=50)
    assert (chart._repr_svg_(), chart._repr_png_()) == ("<svg>", None)
    assert requests == [
        "runs/00000000-0000-4000-8000-000000000001/charts/curve.svg?measure=DCG&depth=50"
    ]
    assert run.chart("curve", "pdf").save(tmp_path / "curve.pdf").read_bytes() == b"<svg>"
    assert "curve.pdf" in requests[-1]
    with pytest.raises(BadSource, match="this chart is svg"):
        chart.save(tmp_path / "curve.pdf")
    with pytest.raises(BadSource, match="svg, png, pdf, json"):
        run.chart("curve", "gif")


def test_charts_of_boards_and_comparisons_are_of_the_same_question(
    hub_of: Callable[..., Hub],
) -> None:
    requests: list[str] = []
    hub = hub_of(drawing(requests))
    board = hub.collection("c").leaderboard("AP", filter="dense", statistics="tiers")
    board.chart()
    assert requests[-1] == "collections/c/charts/means.svg?measures=AP&filter=dense"
    compared = hub.collection("c").compare(measures=["AP", "RR"], tests=["sign"], limit=5)
    compared.chart()
    assert requests[-1] == "collections/c/charts/significance.svg?measures=AP%2CRR&tests=sign"
    assert f"{URL}/collections/c/comparison/?measures=AP%2CRR" in compared._repr_html_()
    stored = Comparison({**COMPARED, "comparison": {"id": "7", "state": "compared"}})
    with pytest.raises(AttributeError, match="charts"):
        stored.chart()


def test_a_chart_of_a_stored_comparison_is_its_own(hub_of: Callable[..., Hub]) -> None:
    requests: list[str] = []
    stored = {**COMPARED, "comparison": {"id": "7", "state": "compared"}}

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(str(request.url).removeprefix(f"{URL}/api/v1/"))
        return httpx.Response(200, json=stored)

    hub_of(answer).collection("c").compare().chart("ranks", "png", tests="sign")
    assert requests[-1] == "comparisons/7/charts/ranks.png?tests=sign"


def test_a_blind_collection_shows_nothing(hub_of: Callable[..., Hub]) -> None:
    run = Run(hub_of(lambda request: problem(403, "blind")), raw_run("bm25", "received"))
    with pytest.raises(Blind):
        run.chart()
