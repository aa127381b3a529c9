"""Charts: what is drawn, in which formats, and that the words beside it say the same."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from rest_framework.test import APIClient

from metrics.charts.boards.charts import COLLECTION_CHARTS
from metrics.charts.look import PAGE, PALETTES, SIZES, Look
from metrics.charts.rendering import render, render_inline
from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.distribution import distribution_figure
from metrics.charts.values.topics import paired_topics_figure, topics_figure
from metrics.engine.curve.curves import curve
from metrics.engine.measures.grammar import parse_measure
from metrics.services.values.judged_views import load_view
from metrics.services.values.values import find_evaluation
from runs.models import Run, User
from tests.conftest import GOOD, POOR
from tests.metrics.boards import make_board, simulated
from tests.metrics.drawings import words
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]

Submit = Callable[..., Run]
SVG = "{http://www.w3.org/2000/svg}"
SHEET = Path(__file__).parents[2] / "evalhub/static/evalhub/style.css"
QUERIES = {"ranking": {"topic": "1"}}


@pytest.fixture(scope="module")
def pair(submit: Submit) -> tuple[Run, Run]:
    return submit(GOOD), submit(POOR)


def chart(api: APIClient, run: Run, name: str, status: int = 200, **query: Any) -> Any:
    answer = api.get(
        f"/api/v1/runs/{run.pk}/charts/{name}", {**QUERIES.get(name.partition(".")[0], {}), **query}
    )
    assert answer.status_code == status, answer.content
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUN_CHARTS))
def test_every_chart_comes_in_every_format(
    anonymous: APIClient, pair: tuple[Run, Run], name: str
) -> None:
    beginnings = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}
    for form, beginning in beginnings.items():
        answer = chart(anonymous, pair[0], f"{name}.{form}")
        assert answer.content.startswith(beginning), form
        if form == "svg":
            # No picture names another host.
            assert not re.findall(r"https?://(?!www\.w3\.org/)", answer.content.decode())
        assert answer["Cache-Control"] == "private, max-age=600"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUN_CHARTS))
def test_a_chart_keeps_to_altairs_schema_in_every_look(pair: tuple[Run, Run], name: str) -> None:
    request = RunChartRequest(pair[0], find_evaluation(run=pair[0]), {"topic": "1"})
    figure = RUN_CHARTS[name](request)
    for theme in PALETTES:
        assert figure.draw(Look(theme)).to_dict(validate=True)
    for size in SIZES:
        assert figure.draw(Look(size=size)).to_dict(validate=True)
    assert figure.draw(Look(PAGE, linked=True)).to_dict(validate=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUN_CHARTS))
def test_every_picture_is_as_large_as_it_says(
    anonymous: APIClient, pair: tuple[Run, Run], name: str
) -> None:
    for size in SIZES if name == "curve" else ("narrow", "wide"):
        width, height = SIZES[size]
        svg = ET.fromstring(chart(anonymous, pair[0], f"{name}.svg", size=size).content)
        assert (svg.get("width"), svg.get("height")) == (str(width), str(height)), size


@pytest.mark.slow
def test_a_png_has_300_dots_to_the_inch(anonymous: APIClient, pair: tuple[Run, Run]) -> None:
    png = chart(anonymous, pair[0], "curve.png").content
    width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
    assert (width, height) == tuple(side * 300 // 96 for side in SIZES["column"])
    per_metre = int.from_bytes(png[png.index(b"pHYs") + 4 :][:4])
    assert per_metre * 0.0254 == pytest.approx(300, abs=1)


@pytest.mark.parametrize(
    "measure", ["nDCG", "DCG", "nCG", "CG", "P", "R", "nDCG(gains='exp')", "P(rel=2)", "nDCG@10"]
)
def test_a_curve_is_a_picture_with_a_title(
    anonymous: APIClient, pair: tuple[Run, Run], measure: str
) -> None:
    labels = words(chart(anonymous, pair[0], "curve.svg", measure=measure, depth=20).content)
    assert f"{measure.removesuffix('@10')} of run good" in labels
    assert "the mean of 3 topics at ranks 1 to 20; dashed: the ideal rankings" in labels
    assert {"good", "ideal"} <= set(labels)


@pytest.mark.parametrize(
    ("name", "query", "status"),
    [
        ("curve.svg", {"measure": "AP"}, 400),
        ("curve.svg", {"measure": "nDCG,P"}, 400),
        ("curve.svg", {"depth": 0}, 400),
        ("curve.svg", {"theme": "pink"}, 400),
        ("curve.svg", {"size": "huge"}, 400),
        ("curve.svg", {"qrels": 9}, 404),
        ("curve.gif", {}, 404),
        ("nothing.svg", {}, 404),
        ("topics.svg", {"other": "x"}, 400),
        ("topics.svg", {"other": "00000000-0000-4000-8000-000000000000"}, 400),
        ("ranking.svg", {"topic": ""}, 400),
        ("ranking.svg", {"topic": "77"}, 404),
        ("precision-recall.svg", {"rel": "x"}, 400),
    ],
)
def test_what_cannot_be_drawn_says_why(
    anonymous: APIClient, pair: tuple[Run, Run], name: str, query: dict[str, Any], status: int
) -> None:
    answer = chart(anonymous, pair[0], name, status, **query)
    assert answer["Content-Type"] == "application/problem+json"


def test_a_curves_table_has_the_values_of_the_api(
    anonymous: APIClient, pair: tuple[Run, Run]
) -> None:
    run = pair[1]
    drawn = curve(load_view(find_evaluation(run=run)), parse_measure("DCG"), 5)
    figure = curve_figure(drawn, measure=parse_measure("DCG"), run="poor")
    answer = anonymous.get(f"/api/v1/runs/{run.pk}/curve/", {"measures": "DCG", "depth": 5}).json()[
        "curves"
    ][0]
    for row in figure.rows:
        index = int(row[0]) - 1
        # No DCG is below 0, whatever Student's t says.
        expected = [max(0.0, answer[name][index]) for name in ("mean", "low", "high", "ideal")]
        assert [float(text) for text in row[1:]] == pytest.approx(expected, abs=5e-5)


def test_a_distribution_counts_every_topic_once() -> None:
    values = np.array([0.0, 0.04, 0.05, 0.5, 1.0, np.nan])
    figure = distribution_figure(values, measure="AP", run="r")
    assert sum(int(count) for _, count in figure.rows) == 5
    assert figure.rows[0] == ["0.00 to 0.05", "2"]
    assert figure.rows[-1] == ["0.95 to 1.00", "1"]
    assert "5 topics: mean 0.3180, median 0.0500" in figure.caption
    assert "1 is 0" in figure.caption


def test_a_value_on_an_edge_is_in_the_bin_that_it_begins() -> None:
    """Values of P@20, each k / 20 on k + 1 topics, and others that are off them by rounding."""
    exact = np.repeat(np.arange(21) / 20, np.arange(1, 22))
    # All of the last edge are in the last bin.
    expected = [*range(1, 20), 20 + 21]
    for values in (exact, np.nextafter(exact, 0), np.nextafter(exact, 1).clip(max=1)):
        figure = distribution_figure(values, measure="P@20", run="r")
        assert [int(count) for _, count in figure.rows] == expected

        bars = json.loads(render(figure, Look(), "json"))["layer"][0]["data"]["values"]
        assert [bar["topics"] for bar in bars] == expected
        assert [bar["from"] for bar in bars] == [k / 20 for k in range(20)]
        drawn = re.findall(r"· topics (\d+)", render(figure, Look(), "svg").decode())
        assert [int(count) for count in drawn] == expected
        table = render(figure, Look(), "csv").decode().splitlines()[1:]
        assert [line.rsplit(",", 1)[1] for line in table] == [str(count) for count in expected]


@pytest.mark.parametrize(("low", "high"), [(-3.0, -3.0), (-2.0, 0.5), (0.0, 40.0)])
def test_a_distribution_covers_values_beyond_0_and_1(low: float, high: float) -> None:
    figure = distribution_figure(np.array([low, high]), measure="Utility", run="r")
    assert sum(int(count) for _, count in figure.rows) == 2
    assert figure.rows[0][0].startswith(f"{min(0.0, low):.2f} to ")
    assert figure.rows[-1][0].endswith(f" to {max(0.0, high):.2f}")


def test_a_distribution_of_nothing_is_no_error() -> None:
    figure = distribution_figure(np.array([np.nan]), measure="AP", run="r")
    assert "0 topics" in figure.caption
    assert figure.draw(Look()).to_dict(validate=True)


def test_topics_are_sorted_and_differences_have_signs() -> None:
    figure = topics_figure(
        [("1", 0.2), ("2", 0.9), ("3", float("nan"))], measure="AP", run="r", ranking="/"
    )
    assert figure.rows == [["2", "0.9000"], ["1", "0.2000"]]
    paired = paired_topics_figure(
        [("1", -0.5), ("2", 0.25), ("3", 0.0)], measure="AP", run="a", other="b", ranking="/"
    )
    assert paired.rows == [["2", "+0.2500"], ["3", "+0.0000"], ["1", "-0.5000"]]
    assert "higher on 1, lower on 1, equal on 1" in paired.caption


def test_the_paired_chart_is_the_difference_of_the_api(
    anonymous: APIClient, pair: tuple[Run, Run]
) -> None:
    a, b = pair
    drawn = chart(anonymous, a, "topics.json", measure="AP", other=str(b.pk)).json()
    bars = {row["topic"]: row["value"] for row in next(iter(drawn["layer"]))["data"]["values"]}
    query = {"runs": f"{a.pk},{b.pk}", "measure": "AP"}
    topics = anonymous.get("/api/v1/collections/small/difference/", query).json()["topics"]
    assert bars == {topic["topic_id"]: topic["difference"] for topic in topics}


def test_tooltips_have_the_titles_of_topics_and_documents(
    anonymous: APIClient, pair: tuple[Run, Run]
) -> None:
    a, b = pair
    a.collection.topics.create(topic_id="1", position=0, title="Why is the sea salty?")
    a.collection.document_titles.create(doc_id="a", title="Salt of the rivers", snippet="")
    two = {"runs": f"{a.pk},{b.pk}"}

    def titles(path: str, **query: str) -> list[str]:
        answer = anonymous.get(f"/api/v1/{path}", query)
        assert answer.status_code == 200
        return [title.text or "" for title in ET.fromstring(answer.content).iter(f"{SVG}title")]

    charts = f"collections/{a.collection.slug}/charts"
    for path, query in (
        (f"runs/{a.pk}/charts/topics.svg", {"measure": "AP"}),
        (f"runs/{a.pk}/charts/topics.svg", {"measure": "AP", "other": str(b.pk)}),
        (f"{charts}/topic-scatter.svg", two),
        (f"{charts}/heat-map.svg", {}),
    ):
        named = [title for title in titles(path, **query) if "topic 1" in title]
        assert named
        assert all("topic 1: Why is the sea salty? · " in title for title in named)

    for path, query in (
        (f"runs/{a.pk}/charts/ranking.svg", {"topic": "1"}),
        (f"{charts}/rankings.svg", {**two, "topic": "1"}),
    ):
        named = titles(path, **query)
        assert any(title.startswith("document a: Salt of the rivers · rank") for title in named)


def test_a_bar_of_a_page_has_a_title_and_leads_to_its_ranking() -> None:
    """The file has the same titles, and no link that only works in a page."""
    figure = topics_figure(
        [("a/b&c", 0.5)], measure="AP", run="r", ranking="/runs/1/ranking/?topic="
    )
    page = ET.fromstring(render_inline(figure, "column", linked=True))
    (link,) = page.iter(f"{SVG}a")
    assert link.get("href") == "/runs/1/ranking/?topic=a%2Fb%26c"
    assert [child.tag for child in link] == [f"{SVG}title", f"{SVG}path"]
    assert link[0].text == "topic a/b&c · AP 0.5000"
    assert link[1].get("fill") == "var(--chart-run)"
    assert (page.get("role"), page.get("aria-label")) == ("group", figure.caption)

    unlinked = ET.fromstring(render_inline(figure, "column", linked=False))
    file = ET.fromstring(render(figure, Look(), "svg"))
    for drawing in (unlinked, file):
        assert [title.text for title in drawing.iter(f"{SVG}title")] == [link[0].text]
        assert list(drawing.iter(f"{SVG}a")) == []
    assert unlinked.get("role") == "img"
    assert not re.search(
        r"https?://(?!www\.w3\.org/)|var\(", render(figure, Look(), "svg").decode()
    )


def test_the_tab_key_stops_once_at_a_page_and_at_no_mark_of_very_many() -> None:
    def stops(topics: list[str]) -> int:
        pairs = [(topic, 0.5) for topic in topics]
        figure = topics_figure(pairs, measure="AP", run="r", ranking="/ranking/?topic=")
        links = list(ET.fromstring(render_inline(figure, "wide", linked=True)).iter(f"{SVG}a"))
        assert len(links) == len(topics)
        return sum(link.get("tabindex") is None for link in links)

    assert stops(["1", "2", "2"]) == 2
    assert stops([str(number) for number in range(60)]) == 60
    assert stops([str(number) for number in range(61)]) == 0


def test_names_are_text_in_a_page_and_links_lead_nowhere_else() -> None:
    hostile = """</title></svg><script>alert("1")</script><img src=x onerror='alert(2)'>&lt;]]>"""
    figure = topics_figure([(hostile, 0.5)], measure="AP", run=hostile, ranking="/r/?topic=")
    svg = render_inline(figure, "column", linked=True)
    assert not re.search(r"<(script|img|style)", svg)
    root = ET.fromstring(svg)
    attributes = {name for element in root.iter() for name, _ in element.items()}
    assert not [name for name in attributes if name == "style" or name.startswith("on")]
    assert [title.text for title in root.iter(f"{SVG}title")] == [f"topic {hostile} · AP 0.5000"]
    for address in ("javascript:alert(1)//", "//elsewhere.example/", "https://elsewhere.example/"):
        figure = topics_figure([("1", 0.5)], measure="AP", run="r", ranking=address)
        with pytest.raises(ValueError, match="leads elsewhere"):
            render_inline(figure, "column", linked=True)


def test_a_name_that_xml_cannot_have_is_drawn() -> None:
    """At such a character vl-convert ends the process."""
    odd = "a\ufffeb\uffff\x01\x1fc"
    figure = topics_figure(
        [(odd, 0.5), ("C:\\bin\\u", 0.4)], measure="AP", run=odd, ranking="/r/?t="
    )
    svg = ET.fromstring(render(figure, Look(), "svg"))
    titles = [title.text for title in svg.iter(f"{SVG}title")]
    assert "\ufffd" in (svg[0].text or "")
    assert titles == [
        "topic a\ufffdb\ufffd\ufffd\ufffdc · AP 0.5000",
        "topic C:\\bin\\u · AP 0.4000",
    ]


def test_no_two_charts_of_a_page_have_an_id_in_common(pair: tuple[Run, Run]) -> None:
    """The curve of a run is clipped, by a shape with an id."""
    every: list[str] = []
    for run in pair:
        request = RunChartRequest(run, find_evaluation(run=run), {})
        for size in ("wide", "narrow"):
            svg = render_inline(RUN_CHARTS["curve"](request), size, linked=True)
            # Points of a line are not seen, and their middle answers the pointer.
            assert svg.count('opacity="0"') == svg.count('pointer-events="all"') > 0
            own = re.findall(r'\bid="([^"]+)"', svg)
            assert own
            assert set(re.findall(r'"url\(#([^)]+)\)"', svg)) == set(own)
            every += own

    assert len(set(every)) == len(every)


def test_the_style_sheet_has_the_colours_of_the_palettes() -> None:
    sheet = SHEET.read_text()
    light, dark = sheet.split("@media screen and (prefers-color-scheme: dark)", 1)
    for rules, palette in ((light, PALETTES["light"]), (dark.split("\n}", 1)[0], PALETTES["dark"])):
        colours = dict(re.findall(r"--chart-([\w-]+): (#\w+);", rules))
        expected = {}
        for name, value in asdict(palette).items():
            if isinstance(value, str):
                expected[name] = value
            else:
                expected |= {f"{name}-{place}": colour for place, colour in enumerate(value, 1)}
        assert colours == expected


def test_thousands_of_topics_are_one_outline() -> None:
    topics = [(str(number), number / 5000) for number in range(5000)]
    drawn = (
        topics_figure(topics, measure="AP", run="r", ranking="/")
        .draw(Look())
        .to_dict(validate=True)
    )
    assert drawn["layer"][0]["mark"]["type"] == "area"


def test_a_picture_with_another_run_is_not_remembered(
    anonymous: APIClient, pair: tuple[Run, Run]
) -> None:
    query = {"measure": "AP", "other": str(pair[1].pk)}
    chart(anonymous, pair[0], "topics.svg", **query)
    Run.objects.filter(pk=pair[1].pk).update(deleted_at=pair[1].created_at)
    assert chart(anonymous, pair[0], "topics.svg", 400, **query).json()["code"] == "unknown_run"


def test_the_what_if_chart_shows_both_ranks(anonymous: APIClient, pair: tuple[Run, Run]) -> None:
    answer = anonymous.get("/api/v1/collections/small/charts/what-if.svg", {"measures": "RR"})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "private, no-cache"
    assert {"1  good", "2  poor", "official: nDCG@10", "what if: RR"} <= set(words(answer.content))


def test_the_means_of_a_board_with_their_intervals(
    anonymous: APIClient, alice: User, bob: User
) -> None:
    """A team is named where two runs have the same tag."""
    make_board(alice.personal_team, {"AP": simulated(40, 20), "P@5": simulated(40, 20, seed=6)})
    assert Run.objects.filter(tag="r14").update(tag="r13", team=bob.personal_team) == 1
    path, query = "/api/v1/collections/board", {"sort": "P@5", "limit": "200"}
    board = anonymous.get(f"{path}/leaderboard/", {**query, "statistics": "intervals"}).json()[
        "results"
    ]
    drawn = anonymous.get(f"{path}/charts/means.json", query).json()
    intervals, points = drawn["layer"]
    expected = []
    for place, row in enumerate(board):
        value = row["values"]["P@5"]
        tag, team = row["run"]["tag"], row["run"]["team"]
        name = f"{row['rank']}. {tag} ({team})" if tag == "r13" else f"{row['rank']}. {tag}"
        ends = {
            "mean": value["mean"],
            "low": max(0.0, value["low"]),
            "high": min(1.0, value["high"]),
        }
        expected.append({"row": place, "run": name, **ends})
    assert intervals["data"]["values"] == points["data"]["values"] == expected
    phone = anonymous.get(f"{path}/charts/means.json", {**query, "size": "narrow"}).json()
    assert phone["layer"][1]["data"]["values"] == expected
    assert "each with its 95% confidence interval" in " ".join(phone["title"]["subtitle"])
    assert anonymous.get(f"{path}/charts/means.svg", {"filter": "("}).status_code == 400
    nothing = anonymous.get(f"{path}/charts/means.svg", {"filter": "zzz"})
    assert (nothing.status_code, nothing.json()["code"]) == (400, "nothing_to_draw")


def test_two_measures_of_a_board(anonymous: APIClient, alice: User) -> None:
    """Every run has a point; up to 30 have intervals, and very many are drawn faint."""
    make_board(alice.personal_team, {"AP": simulated(40, 20), "P@5": simulated(40, 20, seed=6)})
    path = "/api/v1/collections/board"
    rows = anonymous.get(
        f"{path}/leaderboard/", {"limit": "200", "statistics": "intervals"}
    ).json()["results"]
    means = {
        row["run"]["tag"]: tuple(row["values"][name]["mean"] for name in ("AP", "P@5"))
        for row in rows
    }
    drawn = anonymous.get(f"{path}/charts/scatter.json", {"x": "AP", "y": "P@5"}).json()
    across, upwards, points, *_ = drawn["layer"]
    assert {point["run"]: (point["x"], point["y"]) for point in points["data"]["values"]} == means
    assert across["data"]["values"] == upwards["data"]["values"] == []
    few = anonymous.get(
        f"{path}/charts/scatter.json", {"x": "AP", "y": "P@5", "filter": "r1*"}
    ).json()["layer"]
    known = {row["run"]["tag"]: row["values"]["AP"] for row in rows}
    assert len(few[0]["data"]["values"]) == 11
    for point in few[0]["data"]["values"]:
        assert (point["xlow"], point["xhigh"]) == (
            max(0.0, known[point["run"]]["low"]),
            min(1.0, known[point["run"]]["high"]),
        )
    same = anonymous.get(f"{path}/charts/scatter.svg", {"x": "AP", "y": "AP"})
    assert (same.status_code, same.json()["code"]) == (400, "nothing_to_draw")
    assert (
        anonymous.get(f"{path}/charts/scatter.svg", {"sort": "AP"}).json()["code"]
        == "unknown_parameter"
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", PALETTES)
def test_means_are_drawn_in_every_look(
    anonymous: APIClient, alice: User, theme: str, size: str
) -> None:
    collection = make_board(alice.personal_team, {"AP": simulated(3, 20)})
    figure = COLLECTION_CHARTS["means"](collection, {}, AnonymousUser())
    assert [row[0].split(".")[0] for row in figure.rows] == ["1", "2", "3"]
    figure.draw(Look(theme, size, linked=True)).to_dict()
