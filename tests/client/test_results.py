"""What the answers are: values, comparisons that take their time, tables and pictures of a notebook."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from evalhub.client import Board, Curves, EvalHubError, Hub, Run, TimedOut, Values
from tests.client.conftest import URL, Clock, raw_run

ID = "00000000-0000-4000-8000-0000000000c0"
WAITING = {"comparison": {"id": ID, "state": "queued", "url": f"{URL}/api/v1/comparisons/{ID}/"}}
FAILED = {
    "comparison": {
        **WAITING["comparison"],
        "state": "failed",
        "error_code": "lost",
        "error_message": "a file",
    }
}
MADE = {
    "comparison": {**WAITING["comparison"], "state": "compared"},
    "measures": [],
    "runs": [],
    "cautions": [],
}


def test_a_comparison_that_is_made_by_a_worker_is_waited_for(
    hub_of: Callable[..., Hub], clock: Clock
) -> None:
    answers = iter(
        [
            httpx.Response(202, json=WAITING),
            *[httpx.Response(200, json=body) for body in (WAITING, MADE)],
        ]
    )
    seen: list[str] = []
    hub = hub_of(
        lambda request: (
            seen.append(str(request.url).removeprefix(f"{URL}/api/v1/")) or next(answers)
        )
    )
    assert hub.collection("c").compare(measures=["AP", "P@5"], tests="sign").rows() == []
    assert seen == [
        "collections/c/comparison/?measures=AP%2CP%405&tests=sign",
        *2 * [f"comparisons/{ID}/"],
    ]
    assert clock.slept == [1.0, 1.0]


def test_a_comparison_that_fails_or_is_not_made(hub_of: Callable[..., Hub]) -> None:
    with pytest.raises(EvalHubError, match="the comparison failed: lost: a file"):
        hub_of(lambda request: httpx.Response(200, json=FAILED)).collection("c").compare()
    with pytest.raises(TimedOut, match=f"{URL}/api/v1/comparisons/{ID}/ has it later"):
        hub_of(lambda request: httpx.Response(202, json=WAITING)).collection("c").compare(timeout=3)


def test_many_runs_are_compared_by_a_body(hub_of: Callable[..., Hub]) -> None:
    """More ids than fit an address: the parameters are sent as JSON, and the worker's comparison is read."""
    seen: list[httpx.Request] = []
    hub = hub_of(lambda request: seen.append(request) or httpx.Response(200, json=MADE))
    runs = [Run(hub, raw_run("x", number=number)) for number in range(300)]
    hub.collection("c").compare(*runs, measures="AP,P@5", baseline=runs[0], resamples=1000)
    assert seen[0].method == "POST"
    body = httpx.Response(200, content=seen[0].content).json()
    assert (len(body["runs"]), body["measures"], body["baseline"]) == (
        300,
        ["AP", "P@5"],
        runs[0].id,
    )
    assert body["resamples"] == 1000


def test_several_baselines_are_named_as_runs_are(hub_of: Callable[..., Hub]) -> None:
    seen: list[httpx.Request] = []
    hub = hub_of(lambda request: seen.append(request) or httpx.Response(200, json=MADE))
    first, second = (Run(hub, raw_run("x", number=number)) for number in range(2))
    for baseline in ([first, second], f"{first.id}, {second.id}"):
        hub.collection("c").compare(baseline=baseline)
        assert seen[-1].url.params["baseline"] == f"{first.id},{second.id}"

    hub.collection("c").compare(*[first] * 300, baseline=[first, second])
    assert json.loads(seen[-1].content)["baseline"] == [first.id, second.id]


ROW: dict[str, Any] = {
    "rank": 1, "state": "ranked", "code": "", "run": {"id": "1", "team": "lab", "tag": "<b>"}, "judged_at_10": 1.0,
    "values": {"AP": {"mean": 1 / 3}}, "coverage": {"answered": 2, "judged": 3},
}  # fmt: skip


def test_a_notebook_shows_a_table_with_its_source() -> None:
    rows = [{**ROW, "statistics": {"tier": tier, "baseline": None}} for tier in (1, 1, 2)]
    statistics = {"test": "paired_t", "measure": "AP", "correction": "holm"}
    raw = {"collection": "c", "qrels": 2, "topics": 50, "ranked": 63, "statistics": statistics}
    raw["results"] = [*rows, *[ROW] * 60]
    html = Board(raw, f"{URL}/collections/c/")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<script" not in html
    assert "0.3333" in html
    assert html.count("<tr>") == 51
    # A line above the second tier.
    assert html.count("border-top") == len(Board(raw).rows()[0])
    assert "topics 50, 63 ranked runs, paired_t test of AP, holm correction (13 more rows)" in html
    assert f'<a href="{URL}/collections/c/">' in html
    assert "<a" not in Board({**raw}, "javascript:alert(1)")._repr_html_()


def test_rows_have_the_differences_from_each_of_several_baselines() -> None:
    names = ("difference", "low", "high", "p_adjusted", "mark")
    against = dict(zip(names, (0.1, 0.0, 0.2, 0.03, "better"), strict=True))
    statistics = {"tier": None, "baseline": None, "baselines": [against, None]}
    (row,) = Board({"results": [{**ROW, "statistics": statistics}]}).rows()
    assert [row[f"{name}_1"] for name in names] == [*against.values()]
    assert {row[f"{name}_2"] for name in names} == {None}


def test_values_are_a_mapping_and_a_table() -> None:
    values = Values(
        {
            "means": {"AP": {}, "RR": {}},
            "topics": [{"topic_id": "7", "values": {"AP": None, "RR": 0.5}}],
        }
    )
    assert (dict(values), values.of("RR")) == ({"7": None}, {"7": 0.5})
    frame = pytest.importorskip("pandas") and values.to_frame()
    assert frame.columns.tolist() == ["topic", "AP", "RR"]
    with pytest.raises(AttributeError, match="it has means, topics"):
        _ = values.measure


def test_curves_have_a_row_for_each_rank() -> None:
    curves = Curves(
        {
            "ranks": [1, 5],
            "curves": [{"measure": "P", "mean": [1.0, 0.4], "low": None, "ideal": [1.0, 1.0]}],
        }
    )
    assert curves.rows() == [
        {"measure": "P", "rank": 1, "mean": 1.0, "ideal": 1.0},
        {"measure": "P", "rank": 5, "mean": 0.4, "ideal": 1.0},
    ]


def test_a_chart_is_a_picture_in_a_notebook(hub_of: Callable[..., Hub]) -> None:
    seen: list[str] = []
    hub = hub_of(
        lambda request: seen.append(str(request.url)) or httpx.Response(200, content=b"<svg/>")
    )
    run = Run(hub, raw_run("bm25"))
    chart = run.chart("curve", measure="P")
    assert (chart._repr_svg_(), chart._repr_png_(), chart.content) == ("<svg/>", None, b"<svg/>")
    assert hub.collection("c").chart("means", "png")._repr_png_() == b"<svg/>"
    assert seen == [
        f"{URL}/api/v1/runs/{run.id}/charts/curve.svg?measure=P", f"{URL}/api/v1/collections/c/charts/means.png",
    ]  # fmt: skip
