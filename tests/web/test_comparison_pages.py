"""The pages of comparisons: two runs closely, many at once, and what a worker makes."""

from __future__ import annotations

import html as markup
import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from django.test import Client

from runs.models import Collection, Run
from tests.conftest import GOOD
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.comparing import SMALL, Submit, answer_of, browser, ids, many, pair
from tests.web.test_pages import HOSTILE, SCRIPT_OR_STYLE, new_qrels, page, text_of
from tests.web.worlds import body_of

__all__ = ["alice", "api", "browser", "collection", "many", "module_data", "pair", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
API = "/api/v1/collections/small/comparison/"
MANY = "/collections/many/comparison/"
PAIRED = ("Paired t test", "Wilcoxon", "Sign test", "Randomisation test", "Bootstrap test")


def test_two_runs_begin_with_who_is_better_and_by_how_much(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair))
    assert "<title>good against poor · Small" in html
    assert "<h1>good against poor" in html
    for other in ("orders", "design"):
        (these,) = re.findall(rf'href="/collections/small/{other}/\?runs=([^"]*)"', html)
        assert unquote(these) == ",".join(ids(*pair))
    text = text_of(html)
    (measure,) = answer_of(browser, API, measures="AP", runs=",".join(ids(*pair)))["measures"]
    (only_pair,) = measure["pairs"]
    test = only_pair["tests"]["paired_t"]
    ahead = f"good is ahead of poor by {only_pair['difference']:.4f} AP; 3 topics are too few to tell this from chance."
    assert f"{ahead} no verdict: too few topics" in text
    assert (
        f"95% interval {test['low']:+.4f} to {test['high']:+.4f}; p = {test['p_value']:.4f}" in text
    )
    assert "better on 3 topics, worse on 0" in text
    assert "Paired t test: only 3 topics: where values are skewed, intervals are too short" in text


def test_every_test_of_a_pair_stands_side_by_side(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair), tests="sign")
    table = re.search(
        r'<table class="stacked" aria-describedby="tests-caption".*?</table>', html, re.DOTALL
    )
    assert table
    rows = [text_of(row) for row in re.findall(r"<tr>.*?</tr>", table[0], re.DOTALL)[1:]]
    assert len(rows) == len(PAIRED)
    assert rows[0].startswith("Sign test selected Does one run win on more topics")
    for name in PAIRED:
        assert any(row.startswith(name) for row in rows), name
    # The interval of one test says nothing of the p of another: the page has that of the selected
    # test, above.
    assert "CI" not in table[0]
    tests = answer_of(
        browser, API, measures="AP", runs=",".join(ids(*pair)), tests="sign,wilcoxon"
    )["measures"][0]["pairs"][0]
    for name, row in (
        ("sign", rows[0]),
        ("wilcoxon", next(row for row in rows if row.startswith("Wilcoxon"))),
    ):
        assert f"{tests['tests'][name]['p_value']:.4f}" in row
    assert "too few topics" in rows[0]
    assert "do not agree" not in text_of(html)


def test_the_direction_is_that_of_the_better_run_whatever_the_order_or_measure(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    for measure in ("AP", "SearchLength"):
        for order in (ids(*pair), ids(*reversed(pair))):
            text = text_of(page(browser, SMALL, measures=measure, runs=order))
            assert re.search(rf"good is ahead of poor by [\d.]+ {measure}", text), text[:600]
    against = text_of(
        page(browser, SMALL, measures="AP", runs=ids(*pair), baseline=str(pair[0].pk))
    )
    assert "good is ahead of poor by" in against
    assert "poor minus good" in against
    assert "good is better on 3 topics, worse on 0" in against


def test_two_runs_are_told_apart_in_sizes_and_topics(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair))
    text = text_of(html)
    for name in ("Relative", "Cohen&#x27;s d", "Hedges&#x27;s g", "Wins, ties, losses 3, 0, 0"):
        assert name in text, name
    topics = re.findall(r'topic=(\d+)#rankings">\d+</a>', html)
    values = answer_of(
        browser, "/api/v1/collections/small/difference/", runs=",".join(ids(*pair)), measure="AP"
    )["topics"]
    expected = sorted(values, key=lambda topic: -abs(topic["difference"]))
    assert topics[: len(expected)] == [topic["topic_id"] for topic in expected]
    # Without a topic the means differ as those of the others do.
    for topic in expected:
        others = [row["difference"] for row in expected if row is not topic]
        without = f"{sum(others) / len(others):+.4f}"
        assert (
            f"{topic['difference']:+.4f}</td>"
            f'<td class="number" data-head="Without it">{without}</td></tr>'
        ) in html
        mean = sum(row["difference"] for row in expected) / len(expected)
        assert topic["influence"] == pytest.approx(sum(others) / len(others) - mean)
    for run in pair:
        assert f'href="/runs/{run.pk}/ranking/?topic=1&amp;qrels=1"' in html
    # The values by topic, the differences, and both rankings of one topic.
    assert html.count("<figure") == 3


def test_a_point_of_each_topic_leads_to_its_rankings(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair), tests="sign")
    address = re.search(r'href="([^"]+/charts/topic-scatter)\.svg\?([^"]+)"', html)
    assert address
    chart, query = address[1], markup.unescape(address[2])
    points = browser.get(f"{chart}.json?{query}").json()["layer"][1]["data"]["values"]
    topics = answer_of(
        browser, "/api/v1/collections/small/difference/", runs=",".join(ids(*pair)), measure="AP"
    )["topics"]
    values = {topic["topic_id"]: (topic["a"], topic["b"]) for topic in topics}
    assert {point["topic"]: (point["x"], point["y"]) for point in points} == values
    links = {markup.unescape(link) for link in re.findall(r'href="(/[^"]+#rankings)"', html)}
    for point in points:
        # The page of the same question.
        of_topic = [
            link for link in links if f"topic={point['topic']}#" in link and "tests=sign" in link
        ]
        text = page(browser, of_topic[0])
        assert f"<strong>Topic {point['topic']}</strong>" in text
        assert 'value="sign" checked' in text
    lines = body_of(browser.get(f"{chart}.csv?{query}")).decode().splitlines()
    assert lines[0].startswith("Topic,good,poor,Difference")
    assert len(lines) == 1 + len(topics)


@pytest.mark.parametrize(
    "question",
    [
        {"tests": "sign", "correction": "bonferroni", "alpha": "0.01"},
        {"family": "all", "tests": "sign"},
    ],
)
def test_a_bar_leads_where_the_point_of_its_topic_leads(
    browser: Client, pair: tuple[Run, Run], question: dict[str, str]
) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair), **question)
    scatter, bars = re.findall(r'<div class="drawing wide">(.*?)</svg>', html, re.DOTALL)[:2]
    to_topics = [
        {markup.unescape(link) for link in re.findall(r'href="([^"]*topic=[^"]*)"', drawing)}
        for drawing in (scatter, bars)
    ]
    assert to_topics[0] == to_topics[1]
    assert len(to_topics[0]) == 3
    for link in to_topics[1]:
        address = urlsplit(link)
        expected = question | {"measures": "AP", "runs": ",".join(ids(*pair))}
        assert dict(parse_qsl(address.query)) | expected == dict(parse_qsl(address.query))
        assert page(browser, link)

    # The file of the bars takes the same parameters.
    file = re.search(r'href="([^"]+/charts/topics\.csv[^"]*)"', html)
    assert file
    assert browser.get(markup.unescape(file[1])).status_code == 200


def test_runs_are_swapped_unless_that_changes_what_is_tested(
    browser: Client, pair: tuple[Run, Run], submit: Submit
) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair))
    (swap,) = re.findall(r'<a class="swap" href="([^"]+)"', html)
    swapped = page(browser, markup.unescape(swap))
    assert "<h1>poor against good" in swapped
    (back,) = re.findall(r'<a class="swap" href="([^"]+)"', swapped)
    assert "<h1>good against poor" in page(browser, markup.unescape(back))
    p_values = [
        re.findall(r"p = [\d.]+ by the paired t test", text_of(it)) for it in (html, swapped)
    ]
    assert p_values[0] == p_values[1] != []
    submit(GOOD, tag="third")
    assert 'class="swap"' not in page(browser, SMALL, runs=ids(*pair), family="all")


def test_curves_are_drawn_when_they_are_opened(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, SMALL, runs=ids(*pair))
    assert "/charts/curves" not in html
    opening = re.search(r'id="drawn-curves" hx-get="([^"]+)"', html)
    assert opening
    opened = page(browser, f"{SMALL}{markup.unescape(opening[1])}")
    assert re.search(r'<details class="part" id="curves" open>', opened)
    for chart in ("curves", "precision-recall"):
        assert f"/charts/{chart}.svg" in opened


def test_two_rankings_stand_beside_each_other(browser: Client, pair: tuple[Run, Run]) -> None:
    text = text_of(page(browser, SMALL, runs=ids(*pair), topic="1"))
    assert "Topic 1 2 of the first 3 are in the other's first 3. ▲" in text
    assert "1 a 2 only here 2 c 1 ▲ higher here, rank 3 3 b 0 ▼ lower here, rank 1" in text
    assert "1 b 0 ▲ higher here, rank 3 2 u unjudged only here 3 c 1 ▼ lower here, rank 2" in text
    empty = text_of(page(browser, SMALL, runs=ids(*pair), topic="3"))
    assert "The run has no document for this topic; it counts 0." in empty
    assert "has no judgements" in page(browser, SMALL, 404, runs=ids(*pair), topic="77")


def test_runs_are_read_against_the_ideal_and_the_best_of_them(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    html = page(browser, SMALL, runs=ids(*pair), curve="CG", ranks="1,2")
    table = html[html.index('aria-label="Readings"') :]
    rows = [
        text_of(row)
        for row in re.findall(r"<tr>.*?</tr>", table[: table.index("</table>")], re.DOTALL)
    ]
    # GOOD finds all that there is; POOR ends at 2/3.
    assert rows[1:] == [
        "1 good best 2.0000 2.0000 0.0000 0.0% 1 1 0.0000",
        "poor 0.0000 2.0000 2.0000 100.0% never never 2.0000",
        "2 good best 2.3333 2.3333 0.0000 0.0% 2 2 0.0000",
        "poor 0.3333 2.3333 2.0000 85.7% never never 2.0000",
    ]  # fmt: skip
    assert "What good has at rank 1 is never reached by poor." in text_of(html)
    address = re.search(r'href="(/api/v1/collections/small/curves/[^"]*)"', html)
    assert address
    body = answer_of(browser, markup.unescape(address[1]))
    assert [run["curves"][0]["readings"]["needed_for_best"][:2] for run in body["runs"]] == [
        [1, 2],
        [None, None],
    ]


def test_the_slowest_run_is_set_against_the_best(
    browser: Client, pair: tuple[Run, Run], submit: Submit
) -> None:
    rankings = {"1": "buac", "2": "yx", "3": "wz"}
    late = "".join(
        f"{topic} Q0 {d} 1 {-at} late\n"
        for topic, docs in rankings.items()
        for at, d in enumerate(docs)
    )
    runs = pair[0], submit(late, tag="late")
    text = text_of(page(browser, SMALL, runs=ids(*runs), curve="CG", ranks="1,2"))
    # LATE has 4/3 at rank 2, 2 at rank 3 and 7/3, all that there is, at rank 4.
    assert "What good has at rank 1, late has at rank 3." in text
    assert "late 1.3333 2.3333 1.0000 42.9% 4 4" in text
    assert "After rank 2 even the ideal gains nothing." in text


def test_precision_over_recall_of_both_is_chosen(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, SMALL, runs=ids(*pair), rel="2", interp="interval")
    text = text_of(html)
    assert (
        "the highest from each point of recall to the next. Documents of level 2 and above count as relevant"
        in text
    )
    address = re.search(r'href="(/api/v1/collections/small/precision-recall/[^"]*)"', html)
    assert address
    body = answer_of(browser, markup.unescape(address[1]))
    assert (body["interp"], [run["curves"][0]["rel"] for run in body["runs"]]) == (
        "interval",
        [2, 2],
    )
    assert "name one level with rel=" in page(
        browser, SMALL, 400, runs=ids(*pair), rel="all", level="all"
    )


def test_a_topic_is_chosen_by_its_difference(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, SMALL, measures="AP", runs=ids(*pair))
    largest = re.findall(r'<option value="(\d)"', html[html.index('id="topic"') :])
    assert re.search(rf"<strong>Topic {largest[0]}</strong>", html)
    assert "good leads most on" in text_of(html)


def test_long_rankings_are_read_when_a_topic_is_asked_for(
    browser: Client, pair: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrics.pages.comparisons.two_runs._READ_AT_ONCE", 10)
    assert "These runs are long" in page(browser, SMALL, runs=ids(*pair))
    assert "only here" in page(browser, SMALL, runs=ids(*pair), topic="1")


def test_identical_runs_have_nothing_to_tell(browser: Client, submit: Submit) -> None:
    twins = submit(GOOD, tag="one"), submit(GOOD, tag="two")
    text = text_of(page(browser, SMALL, measures="AP", runs=ids(*twins)))
    assert "have the same AP on every topic. no verdict: too few topics" in text
    assert "3 of the first 3 are in the other's first 3" in text_of(
        page(browser, SMALL, runs=ids(*twins), topic="1")
    )


def test_which_runs_have_a_curve_is_chosen(
    browser: Client, many: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrics.pages.comparisons.answers.MAX_TOGETHER", 2)
    html = page(browser, MANY, curve="nDCG")
    offered = re.findall(r'name="draw" value="([^"]+)"( *\s*checked)?>', html)
    assert {run for run, _ in offered} == set(ids(*many))
    assert len([run for run, checked in offered if checked]) == 2
    other, *_ = [run for run, checked in offered if not checked]
    html = page(browser, MANY, draw=[other])
    boxes = re.findall(r'name="draw" value="([^"]+)"(\s*checked)?>', html)
    assert [run for run, checked in boxes if checked] == [other]
    for chart in ("curves", "precision-recall"):
        assert re.search(rf'/charts/{chart}\.svg\?[^"]*runs={other}[&"]', html)
    assert "at most 2" in page(browser, MANY, 400, draw=[run for run, _ in offered][:3])
    assert "is not among the compared runs" in page(
        browser, MANY, 400, draw="00000000-0000-0000-0000-000000000000"
    )


def test_the_curve_of_both_is_chosen(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, SMALL, runs=ids(*pair), curve="DCG", depth="5")
    assert "DCG at ranks 1 to 5, the mean of 3 topics. At rank 5: good" in html
    assert "<option selected>DCG</option>" in html
    assert "has no curve" in page(browser, SMALL, 400, runs=ids(*pair), curve="AP")
    assert "This curve can fall" in page(
        browser, SMALL, runs=ids(*pair), curve="nDCG(norm='average')"
    )
    assert html.count("depth=5") > 3


def test_the_sentence_to_report_has_all_that_makes_it_again(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    html = page(
        browser,
        SMALL,
        measures="AP",
        runs=ids(*pair),
        tests="randomisation",
        resamples="4000",
        seed="7",
    )
    sentence = markup.unescape(re.search(r'<p id="sentence">(.*?)</p>', html, re.DOTALL)[1])  # type: ignore[index]
    for part in (
        "by AP on 3 topics of Small (qrels version 1, scores as float64)", "Test (two-sided): randomisation test",
        "a single pair, no correction needed", "alpha = 0.05", "B = 4,000, seed 7", "95% confidence interval",
        "engine version",
    ):  # fmt: skip
        assert part in sentence, part


def test_many_runs_have_tiers_ranks_a_heat_map_and_pairs(browser: Client, many: list[Run]) -> None:
    path = "/collections/many/comparison/"
    html = page(browser, path)
    text = text_of(html)
    answer = answer_of(browser, "/api/v1/collections/many/comparison/")
    family = answer["measures"][0]["tests"]["t_and_tukey"]
    assert f"{family['significant']} of 15 differences are significant: nDCG@10 of 6 runs" in text
    assert "Test: paired t (Holm) and Tukey" in text
    # Every pair, and the ranks.
    assert html.count("<figure") == 2
    for run, group in zip(answer["runs"], family["groups"], strict=True):
        row = re.search(
            rf'<tr><td class="number rank"[^>]*>\d+</td><th[^>]*><a href="/runs/{run["id"]}/">.*?</tr>',
            html,
        )
        assert row
        tier, letters = group["tier"], group["letters"]
        assert f'<td class="number">{tier}</td><td class="groups desk">{letters}</td>' in row[0]
        assert re.search(r"\d to \d</td>", row[0])
    pairs = re.search(r'<table class="pairs".*?</table>', html, re.DOTALL)
    assert pairs
    assert pairs[0].count("<tr") == 16
    # A phone has the file instead of the table.
    (file,) = set(re.findall(r'<a href="([^"]+)" download>CSV</a>, with p', html))
    written = body_of(browser.get(markup.unescape(file))).decode().splitlines()
    assert len(written) == 16
    assert "analysis of variance" in text.lower()


def test_pairs_are_ordered_as_asked(browser: Client, many: list[Run]) -> None:
    html = page(browser, "/collections/many/comparison/", sort="difference")
    table = html[html.index('<table class="pairs') :]
    texts = re.findall(r'</th><td>[^<]*</td><td class="number">([^<]+)</td>', table)
    sizes = [abs(float(text.replace("\N{MINUS SIGN}", "-"))) for text in texts]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 15
    assert "sort is one of" in page(browser, "/collections/many/comparison/", 400, sort="x")


def test_many_runs_against_a_baseline(browser: Client, many: list[Run]) -> None:
    html = page(browser, "/collections/many/comparison/", baseline=str(many[0].pk))
    assert f"Against {many[0].tag}" in html
    assert f'<option value="{many[0].pk}" selected>' in html
    assert '<span class="label">baseline</span>' in html
    assert "Tier" not in html
    # The heat map is of all pairs; the ranks stay.
    assert html.count("<figure") == 1
    table = html[html.index('<table class="pairs') :]
    assert table[: table.index("</table>")].count("<tr") == 6


def test_many_runs_against_several_baselines(browser: Client, many: list[Run]) -> None:
    first, second = many[1], many[0]
    html = page(browser, "/collections/many/comparison/", baseline=f"{first.tag},{second.pk}")
    assert f"Against {first.tag}, {second.tag}" in html
    assert f'<option value="{first.pk}" selected>' in html
    assert "Further baselines: 1 selected" in html
    assert "paired t test, tested alone" not in text_of(html)
    assert f'name="baseline" value="{second.pk}" checked>' in html
    assert html.count('<span class="label">baseline</span>') == 2
    # The form sends the list and the boxes, each as a value of its own.
    repeated = browser.get(
        "/collections/many/comparison/", {"baseline": [str(first.pk), str(second.pk)]}
    )
    assert f"Against {first.tag}, {second.tag}" in repeated.content.decode()


def test_several_measures_are_shown_one_by_one(browser: Client, many: list[Run]) -> None:
    path = "/collections/many/comparison/"
    first, second = (
        text_of(page(browser, path, measures="nDCG@10, AP", tab=tab)) for tab in ("", "AP")
    )
    assert "nDCG@10 of 6 runs" in first
    assert "AP of 6 runs" in second
    assert "unknown measure" in page(browser, path, 400, measures="nDCG@10, AP", tab="foo")


def test_several_tests_say_where_they_part(browser: Client, many: list[Run]) -> None:
    path, query = (
        "/api/v1/collections/many/comparison/",
        {"tests": "paired_t,sign", "correction": "none"},
    )
    (measure,) = answer_of(browser, path, **query)["measures"]
    # A level between the two p values of a pair: one of the tests finds it, the other one does not.
    tests = measure["pairs"][0]["tests"]
    level = sum(tests[name]["p_value"] for name in ("paired_t", "sign")) / 2
    (measure,) = answer_of(browser, path, **query, alpha=level)["measures"]
    fields = {**query, "tests": ["paired_t", "sign"], "alpha": level}
    text = text_of(page(browser, "/collections/many/comparison/", **fields))
    for name in ("paired_t", "sign"):
        assert f"{measure['tests'][name]['significant']} of 15" in text
    number = measure["disagreements"]["count"]
    assert number > 0
    assert f"disagree on {number} pair" in text


def test_the_form_has_what_the_address_says(browser: Client, many: list[Run]) -> None:
    chosen = ids(*many[:3])
    path = "/collections/many/comparison/"
    html = page(
        browser,
        path,
        runs=chosen,
        tests="wilcoxon",
        correction="bonferroni",
        alpha="0.01",
        seed="5",
    )
    for run in many:
        ticked = f'name="runs" value="{run.pk}" checked' in html
        assert ticked == (str(run.pk) in chosen)
    assert 'value="bonferroni" selected' in html
    assert 'value="wilcoxon" checked' in html
    assert 'name="alpha" type="text" inputmode="decimal" size="6" value="0.01"' in html
    assert '<input type="hidden" name="seed" value="5">' in html
    without = re.findall(r'<a href="([^"]+)" aria-label="remove', html)
    assert len(without) == 3
    text = page(browser, markup.unescape(without[0]))
    assert "2 runs selected" in text
    assert text.count('name="runs" value') - text.count('" checked> ') >= 4


@pytest.mark.parametrize("number", [2, 6])
def test_every_file_is_of_this_comparison(browser: Client, many: list[Run], number: int) -> None:
    query = {
        "runs": ids(*many[:number]),
        "measures": "AP",
        "tests": ["sign", "wilcoxon"],
        "alpha": "0.01",
    }
    html = page(browser, "/collections/many/comparison/", **query)
    block = html[html.index('class="page-actions"') :]
    links = [
        markup.unescape(link)
        for link in re.findall(r'<a href="([^"]+)"', block[: block.index("<h1")])
    ]
    assert len(links) == 4
    contents = []
    for link in links:
        answer = browser.get(link)
        assert answer.status_code == 200, link
        contents.append(b"".join(answer.streaming_content) if answer.streaming else answer.content)
    for content in contents[1:3]:
        assert b"0.01" in content
    body = browser.get(links[3]).json()
    assert (len(body["runs"]), body["alpha"], body["tests"][0]) == (number, 0.01, "sign")
    assert contents[0].count(b"\r\n") == 1 + len(body["tests"]) * number * (number - 1) // 2


def test_every_picture_of_the_page_can_be_drawn(browser: Client, many: list[Run]) -> None:
    for query in ({}, {"runs": ids(*many[:2])}, {"baseline": str(many[0].pk)}):
        html = page(browser, "/collections/many/comparison/", **query)
        for source in re.findall(r'<a href="([^"]+\.svg[^"]*)" download', html):
            answer = browser.get(markup.unescape(source))
            assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml"), source


def test_a_stale_run_is_not_compared_and_the_page_says_so(
    browser: Client, api: Any, pair: tuple[Run, Run]
) -> None:
    new_qrels(api)
    html = page(browser, SMALL, 400, runs=ids(*pair))
    assert "is not evaluated against the active judgements" in html
    assert "A run may be stale" in html


def test_a_blind_collection_compares_nothing_for_outsiders(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    Collection.objects.update(blind=True)
    html = page(browser, SMALL, runs=ids(*pair))
    assert "Blind" in html
    assert "good" not in html[html.index("<main") :]
    assert "ETag" not in browser.get(SMALL)


def test_hostile_names_are_text_in_every_part(
    browser: Client, alice: Any, pair: tuple[Run, Run]
) -> None:
    Collection.objects.update(name=HOSTILE, level_labels={"1": HOSTILE})
    for number, run in enumerate(pair):
        Run.objects.filter(pk=run.pk).update(tag=f"{HOSTILE}{number}")
    for query in ({}, {"runs": ids(*pair), "topic": "1"}, {"baseline": str(pair[0].pk)}):
        html = page(browser, SMALL, **query)
        assert not SCRIPT_OR_STYLE.search(html.encode())
        assert "<img src=x" not in html


def test_a_page_of_two_runs_asks_the_database_little(
    browser: Client, pair: tuple[Run, Run], django_assert_max_num_queries: Any
) -> None:
    # Two of them are for the titles of the topics on both charts.
    with django_assert_max_num_queries(33):
        page(browser, SMALL, runs=ids(*pair))


def test_more_compared_runs_need_no_more_queries(
    browser: Client, submit: Submit, django_assert_max_num_queries: Any
) -> None:
    for number in range(10):
        submit(GOOD, tag=f"run-{number}")
    with django_assert_max_num_queries(21):
        page(browser, SMALL)


def test_ranks_and_means_stand_side_by_side(browser: Client, many: list[Run]) -> None:
    usual = page(browser, "/collections/many/comparison/", measures="nDCG@10,AP")
    asking = re.search(r'<a href="([^"]+)#differences">Ranks and means side by side', usual)
    assert asking
    html = browser.get(markup.unescape(asking[1])).content.decode()
    table = re.search(r'<table aria-describedby="differences-caption".*?</table>', html, re.DOTALL)
    assert table
    rows = [text_of(row).split() for row in re.findall(r"<tr>.*?</tr>", table[0], re.DOTALL)]
    assert rows[0] == ["Run", "nDCG@10", "AP"]
    assert len(rows) == 1 + len(many) + len(many) * (len(many) - 1) // 2 + 2
    exported = re.search(r'href="([^"]+export/md/[^"]+)"', html)
    assert exported
    written = (
        body_of(browser.get(markup.unescape(exported[1]))).decode().replace("\\", "").casefold()
    )
    lines = [line.replace("|", " ").split() for line in written.splitlines()[2:-2]]
    assert [[markup.unescape(word).casefold() for word in row] for row in rows[1:]] == lines
