"""Topics selected by their attributes, and two runs in groups of topics."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from rest_framework.test import APIClient
from scipy import stats

from metrics.services.boards import matrix
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.leaderboard import runs_shown
from metrics.services.boards.topic_selection import TopicFilter, select_topics
from metrics.services.comparisons.stored import compare
from metrics.services.snapshots import read_in_snapshot
from runs.errors import InvalidInput
from runs.models import Collection, Team, Topic, TopicAttributes, User
from tests.metrics.scored import make_scored, simulated
from tests.web.test_pages import text_of

TOPICS = 30
TYPES = ["navigational", "informational", "transactional"]
BASE = "/api/v1/collections/grouped/"


@pytest.fixture
def values() -> Any:
    return simulated(4, TOPICS)


@pytest.fixture
def runs(alice: User, values: Any) -> list[str]:
    """Four runs on 30 topics: of three types in turn, in two languages, the last one without."""
    runs = make_scored("grouped", Team.objects.get(personal_of=alice), values)
    collection = Collection.objects.get(slug="grouped")
    Collection.objects.filter(pk=collection.pk).update(attribute_keys=None)
    TopicAttributes.objects.bulk_create(
        TopicAttributes(
            collection=collection,
            topic_id=str(number),
            attributes={
                "type": TYPES[number % 3],
                "year": str(1990 + number),
                **({"language": "de"} if number <= 9 else {}),
            },
        )
        for number in range(1, TOPICS)
    )
    Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=str(number), position=number, title="word " * number)
        for number in range(1, 6)
    )
    return runs


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("type:navigational", {n for n in range(1, 30) if n % 3 == 0}),
        ("type:NAV*,*trans*", {n for n in range(1, 30) if n % 3 != 1}),
        ("-type:navigational", {n for n in range(1, 31) if n % 3 or n == 30}),
        ("type:* -language:de", set(range(10, 30))),
        ("language:de type:informational", {1, 4, 7}),
        ("language:de OR year:>=2018", {*range(1, 10), 28, 29}),
        ("year:1992..1994", {2, 3, 4}),
        ("year:<1993 -(type:informational OR topic:2)", set()),
        ("topic:3,17,nowhere", {3, 17}),
        ("words:<4", {1, 2, 3}),
        ("words:5", {5}),
    ],
)
def test_topics_are_selected(runs: list[str], text: str, expected: set[int]) -> None:
    qrels = Collection.objects.get(slug="grouped").active_qrels
    assert qrels is not None
    if not expected:
        with pytest.raises(Exception, match="none of the 30 topics is selected"):
            select_topics(qrels, TopicFilter(text), "float64")
        return
    selection = select_topics(qrels, TopicFilter(text), "float64")
    assert selection is not None
    assert {int(topic) for topic in selection.among(qrels.topic_ids)} == expected


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("navigational", "topics, character 1: write a key, a colon and a value"),
        ("type:", "type: needs a value"),
        ("year:<x", "character 7: < needs a number, not x"),
        ("year:<", "< needs a number"),
        ("(type:a", "this bracket is never closed"),
        ("words:=4", "character 7: write words:... without =;"),
        ("words:!=4", "write -words:... without !=;"),
        ("year:2004..1999", "character 6: a range goes from its lower end to its upper one"),
        ("year:1999..", "a range has two ends; write year:>=1999"),
        ("type:a AND year:1", "terms side by side are both meant: leave AND out"),
        ("type:a OR", "a term is missing: a key, a colon and a value"),
        ("kind:a", "no topic has the attribute kind; keys are language, type, year, words,"),
    ],
)
def test_a_bad_selection_names_its_place(
    runs: list[str], anonymous: APIClient, text: str, message: str
) -> None:
    answer = anonymous.get(f"{BASE}comparison/", {"topics": text})
    assert answer.status_code == 400
    error = answer.json()["errors"][0]
    assert (error["code"], error["pointer"]) == ("bad_filter", "topics")
    assert message in error["detail"]
    with pytest.raises(InvalidInput):
        _ = select_topics(
            Collection.objects.get(slug="grouped").active_qrels,  # type: ignore[arg-type]
            TopicFilter(text),
            "float64",
        )


@pytest.mark.parametrize(
    ("text", "values", "others"),
    [
        ("*b*d", ["abcd", "bd", "ABDD"], ["db", "abcde"]),
        ("a*c*", ["abc", "ac", "acab"], ["bac", "ab"]),
        ("a*ab*b", ["aabb", "a-ab-ab"], ["aab", "abb"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_a_star_stands_for_any_text(text: str, values: list[str], others: list[str]) -> None:
    matches = TopicFilter(f"type:{text}").term.matches
    assert all(matches(value) for value in values)
    assert not any(matches(value) for value in others)


def test_many_stars_are_matched_in_one_pass() -> None:
    # With backtracking this takes minutes.
    assert not TopicFilter("topic:*a*a*a*a*b").term.matches("a" * 1024)


@pytest.mark.django_db
def test_a_comparison_is_of_the_selected_topics(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    a, b, *_ = runs
    query = {"runs": f"{a},{b}", "tests": "paired_t", "topics": "language:de"}
    body = anonymous.get(f"{BASE}comparison/", query).json()
    (measure,) = body["measures"]
    (pair,) = measure["pairs"]
    rows = [a, b].index(pair["a"]), [a, b].index(pair["b"])
    chosen = values[:, :9]
    test = stats.ttest_rel(chosen[rows[0]], chosen[rows[1]])
    assert measure["topics"]["used"] == 9
    assert pair["difference"] == pytest.approx(chosen[rows[0]].mean() - chosen[rows[1]].mean())
    assert pair["tests"]["paired_t"]["p_value"] == pytest.approx(test.pvalue)
    assert body["topics_filter"] == "language:de"
    assert "few_topics" in {caution["code"] for caution in body["cautions"]}

    # Everything selected is the same as no selection.
    everything = anonymous.get(f"{BASE}comparison/", {**query, "topics": "topic:*"}).json()
    del everything["topics_filter"]
    assert everything == anonymous.get(f"{BASE}comparison/", {**query, "topics": ""}).json()

    csv, tex = (
        b"".join(anonymous.get(f"{BASE}comparison/export/{kind}/", query).streaming_content)
        for kind in ("csv", "tex")
    )
    assert b"topics_filter" in csv.splitlines()[0]
    assert b"on 9 topics, selected by language:de" in tex


@pytest.mark.django_db
def test_a_difference_is_of_the_selected_topics(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    query = {"runs": f"{runs[0]},{runs[1]}", "topics": "topic:2,5,7"}
    body = anonymous.get(f"{BASE}difference/", query).json()
    assert [topic["topic_id"] for topic in body["topics"]] == ["2", "5", "7"]
    assert body["a"]["mean"] == pytest.approx(values[0, [1, 4, 6]].mean())
    assert body["a"]["topics"] == 3


@pytest.mark.django_db
def test_values_of_all_runs_are_of_the_selected_topics(
    runs: list[str], anonymous: APIClient, values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Topics that are not selected do not count to the limit.
    monkeypatch.setattr(matrix, "MAX_VALUES", 4 * 3)
    body = anonymous.get(f"{BASE}values/", {"topics": "topic:2,5,7"}).json()
    assert body["topics"] == ["2", "5", "7"]
    places = [runs.index(run["id"]) for run in body["runs"]]
    assert body["values"]["AP"] == values[:, [1, 4, 6]][places].tolist()
    assert [caution["code"] for caution in body["cautions"]] == ["few_topics"]

    refused = anonymous.get(f"{BASE}values/", {"topics": "topic:2,5,7,9"})
    assert "16 values requested (runs: 4, measures: 1, topics: 4)" in refused.json()["detail"]


@pytest.mark.django_db
def test_values_of_a_run_are_of_the_selected_topics(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    run, chosen = runs[0], values[0, :9]
    query = {"topics": "language:de"}
    body = anonymous.get(f"/api/v1/runs/{run}/values/", query).json()
    assert body["means"]["AP"]["mean"] == pytest.approx(chosen.mean())
    assert body["means"]["AP"]["topics"] == body["topics_selected"] == 9
    assert [topic["values"]["AP"] for topic in body["topics"]] == chosen.tolist()
    assert body["topics_filter"] == "language:de"
    assert [caution["code"] for caution in body["cautions"]] == ["few_topics"]

    everything = anonymous.get(f"/api/v1/runs/{run}/values/", {"topics": "topic:*"}).json()
    assert everything["means"] == anonymous.get(f"/api/v1/runs/{run}/values/").json()["means"]

    csv, lines = (
        anonymous.get(f"/api/v1/runs/{run}/values/export/{kind}/", query).content.decode()
        for kind in ("csv", "trec_eval")
    )
    assert [line.split(",")[0] for line in csv.splitlines()[1:]] == [str(n) for n in range(1, 10)]
    assert lines.splitlines()[-1].split() == ["AP", "all", f"{chosen.mean():.4f}"]

    # Attributes may be replaced: a kept answer depends on them.
    TopicAttributes.objects.filter(topic_id="3").delete()
    body = anonymous.get(f"/api/v1/runs/{run}/values/", query).json()
    assert body["topics_selected"] == 8

    refused = anonymous.get(f"/api/v1/runs/{run}/values/", {"topics": "kind:a"})
    assert refused.json()["errors"][0]["code"] == "bad_filter"
    refused = anonymous.get(f"/api/v1/runs/{run}/values/", {"topics": "topic:99"})
    assert refused.json()["errors"][0]["code"] == "too_few_topics"


@pytest.mark.django_db
def test_orders_are_of_the_selected_topics(alice: User, anonymous: APIClient, values: Any) -> None:
    both = np.stack([values, simulated(4, TOPICS, seed=8)])
    make_scored("ordered", Team.objects.get(personal_of=alice), both, ["AP", "P@10"])
    base = "/api/v1/collections/ordered/orders/"
    chosen = [2, 5, 7, 8, 11, 12]
    query = {"topics": "topic:" + ",".join(map(str, chosen)), "resamples": "100"}
    body = anonymous.get(base, query).json()
    assert (body["topics"], body["topics_selected"]) == (6, 6)
    means = both[:, :, np.array(chosen) - 1].mean(axis=2)
    assert [order["means"] for order in body["orders"]] == pytest.approx(means)
    tau = stats.kendalltau(*means).statistic
    assert body["pairs"][0]["tau"]["value"] == pytest.approx(tau)
    assert "few_topics" in {caution["code"] for caution in body["cautions"]}
    # The other topics are not left out for lack of a value.
    assert "topics_left_out" not in {caution["code"] for caution in body["cautions"]}

    everything = anonymous.get(base, {"topics": "topic:*", "resamples": "100"}).json()
    del everything["topics_filter"], everything["topics_selected"]
    assert everything == anonymous.get(base, {"resamples": "100"}).json()

    page = anonymous.get("/collections/ordered/orders/", query).content.decode()
    assert text_of(page).count(f"On 6 of 30 topics: {query['topics']}.") == 2


@pytest.mark.django_db
def test_a_design_is_of_the_selected_topics(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    query = {"topics": "-language:de", "trials": "2"}
    body = anonymous.get(f"{BASE}design/", query).json()
    (measure,) = body["measures"]
    chosen = values[:, 9:]
    p_values = [
        stats.ttest_rel(chosen[a], chosen[b]).pvalue for a in range(4) for b in range(a + 1, 4)
    ]
    assert (measure["topics"], body["topics_selected"]) == (21, 21)
    share = np.mean(np.array(p_values) < 0.05)
    assert measure["discriminative_power"]["share"] == pytest.approx(share)
    assert sorted(measure["discriminative_power"]["curve"]["p_value"]) == pytest.approx(
        sorted(p_values)
    )
    page = anonymous.get("/collections/grouped/design/", query).content.decode()
    assert text_of(page).count("On 21 of 30 topics: -language:de.") == 2
    assert 'name="topics"' in page


@pytest.mark.django_db
def test_topics_by_difficulty_are_the_selected_ones(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    query = {"topics": "language:de", "limit": "4", "offset": "4"}
    body = anonymous.get(f"{BASE}difficulty/", query).json()
    assert (body["count"], body["topics_selected"], body["topics_filter"]) == (9, 9, "language:de")
    means = values[:, :9].mean(axis=0)
    order = [str(place + 1) for place in np.argsort(means, kind="stable")]
    assert [topic["topic_id"] for topic in body["results"]] == order[4:8]
    whole = anonymous.get(f"{BASE}difficulty/").json()["results"]
    assert all(topic in whole for topic in body["results"])
    backwards = anonymous.get(f"{BASE}difficulty/", {**query, "sort": "topic", "order": "desc"})
    assert [topic["topic_id"] for topic in backwards.json()["results"]] == ["5", "4", "3", "2"]

    csv_lines = anonymous.get(f"{BASE}heat-map/export/csv/", {"topics": "language:de"})
    lines = csv_lines.content.decode().splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == order

    for path in ("topics/", "heat-map/"):
        page = anonymous.get(f"/collections/grouped/{path}", {"topics": "language:de"})
        assert text_of(page.content.decode()).count("On 9 of 30 topics: language:de.") == 1
        assert 'name="topics"' in page.content.decode()
        broken = anonymous.get(f"/collections/grouped/{path}", {"topics": "type"})
        assert broken.status_code == 400
        assert "write a key, a colon and a value" in text_of(broken.content.decode())


@pytest.mark.django_db
def test_a_chart_of_topics_has_the_selected_ones(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    address = f"/api/v1/runs/{runs[0]}/charts/topics.csv"
    chosen = {"topics": "topic:2,5,7"}
    lines = anonymous.get(address, chosen).content.decode().splitlines()
    numbers = {line.split(",")[0]: float(line.split(",")[1]) for line in lines[1:]}
    assert numbers == {str(n): pytest.approx(values[0, n - 1], abs=1e-4) for n in (2, 5, 7)}

    lines = anonymous.get(address, {**chosen, "other": runs[1]}).content.decode().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"2", "5", "7"}

    # Attributes may be replaced: a chart that depends on them is drawn anew.
    of_types = {"topics": "type:navigational"}
    before = anonymous.get(address, of_types).content
    TopicAttributes.objects.filter(topic_id="3").delete()
    assert anonymous.get(address, of_types).content != before


@pytest.mark.django_db
def test_rows_of_two_boards_of_one_moment_are_those_of_their_topics(
    alice: User, values: Any
) -> None:
    values[3, :5] = np.nan
    make_scored("gaps", Team.objects.get(personal_of=alice), values)
    collection = Collection.objects.get(slug="gaps")

    def ranked(topics: str) -> int:
        query = BoardQuery.read(
            {"filter": "status:ranked", "topics": topics}, collection, AnonymousUser()
        )
        return len(runs_shown(collection=collection, query=query))

    assert read_in_snapshot(lambda: [ranked(""), ranked("-topic:1,2,3,4,5")]) == [3, 4]


@pytest.mark.django_db
def test_two_runs_in_groups_of_topics(runs: list[str], anonymous: APIClient, values: Any) -> None:
    a, b, *_ = runs
    query = {"runs": f"{a},{b}", "by": "Type"}
    body = anonymous.get(f"{BASE}comparison/", query).json()
    (measure,) = body["measures"]
    groups, pair = measure["topic_groups"], measure["pairs"][0]
    sign = 1 if pair["a"] == a else -1
    samples = {
        name: np.array(
            [sign * (values[0] - values[1])[n - 1] for n in range(1, 30) if TYPES[n % 3] == name]
        )
        for name in sorted(TYPES)
    }
    assert [group["group"] for group in groups["groups"]] == sorted(TYPES)
    for group in groups["groups"]:
        sample = samples[group["group"]]
        assert group["topics"] == len(sample)
        assert group["difference"] == pytest.approx(sample.mean())
        interval = stats.ttest_1samp(sample, 0).confidence_interval(0.95)
        assert (group["low"], group["high"]) == pytest.approx((interval.low, interval.high))
    test = stats.f_oneway(*samples.values())
    assert groups["interaction"]["p_value"] == pytest.approx(test.pvalue)
    assert groups["interaction"]["freedom"] == [2, 26]
    assert groups["topics_without"] == 1
    assert groups["sentence"] == "The groups do not differ more than chance would."

    for more, code in (
        ({"runs": ",".join(runs)}, "too_many_runs"),
        ({"by": "topic"}, "bad_filter"),
        ({"by": "nothing"}, "bad_filter"),
    ):
        refused = anonymous.get(f"{BASE}comparison/", {**query, **more})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, code)


def exported(anonymous: APIClient, kind: str, **query: str) -> str:
    answer = anonymous.get(f"{BASE}comparison/export/{kind}/", query)
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_files_of_two_runs_have_their_groups(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    query = {"runs": f"{runs[0]},{runs[1]}", "by": "type", "tests": "paired_t"}
    body = anonymous.get(f"{BASE}comparison/", query).json()
    groups = body["measures"][0]["topic_groups"]
    (row,) = csv.DictReader(io.StringIO(exported(anonymous, "csv", **query)))
    by_id = dict(zip(runs, values, strict=True))
    for group in groups["groups"]:
        places = [n - 1 for n in range(1, 30) if TYPES[n % 3] == group["group"]]
        prefix = f"type:{group['group']}"
        assert row[f"{prefix} topics"] == str(group["topics"])
        for side in ("a", "b"):
            mean = by_id[row[f"run_{side}"]][places].mean()
            assert float(row[f"{prefix} mean_{side}"]) == pytest.approx(mean)
        for name in ("difference", "low", "high", "p_value", "p_adjusted"):
            assert float(row[f"{prefix} {name}"]) == pytest.approx(group[name])
        assert row[f"{prefix} verdict"] == (group["verdict"] or "")
        assert row[f"{prefix} withheld"] == (group["withheld"] or "")
    p_value = float(row["type interaction p_value"])
    assert p_value == pytest.approx(groups["interaction"]["p_value"])

    table = exported(anonymous, "md", **query)
    head, *rest = [line for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in head.split("|")[3:-1]] == [f"type:{n}" for n in sorted(TYPES)]
    of_two = next(line for line in rest if "\N{MINUS SIGN}" in line.split("|")[1])
    figures = [cell.split("↑")[0].split("↓")[0].strip() for cell in of_two.split("|")[2:-1]]
    sign = 1 if of_two.split("|")[1].strip().startswith(row["tag_a"]) else -1
    pair = body["measures"][0]["pairs"][0]
    expected = [pair["difference"], *(group["difference"] for group in groups["groups"])]
    assert [float(figure) for figure in figures] == pytest.approx(
        [sign * difference for difference in expected], abs=5e-5
    )
    assert "informational (10), navigational (9), transactional (10)." in table
    assert groups["sentence"] in table
    tex = exported(anonymous, "tex", **query)
    assert tex.count("type:navigational") == 1
    assert groups["sentence"] in tex


@pytest.mark.django_db
def test_files_of_many_runs_have_their_means_in_groups(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    by_id = dict(zip(runs, values, strict=True))
    german = np.arange(9)
    rows = list(csv.DictReader(io.StringIO(exported(anonymous, "csv", by="language"))))
    assert len(rows) == 6
    for row in rows:
        a, b = (by_id[row[f"run_{side}"]][german].mean() for side in ("a", "b"))
        assert float(row["language:de difference"]) == pytest.approx(a - b)
        assert "language:de p_value" not in row

    query = {"runs": ",".join(runs[:3]), "by": "type"}
    for tests in ("paired_t", "paired_t,wilcoxon"):
        table = exported(anonymous, "md", **query, tests=tests)
        lines = [line.split("|") for line in table.splitlines() if line.startswith("|")]
        cells = {line[1].strip(): line[3:-1] for line in lines}
        for number, run in enumerate(runs[:3]):
            means = [
                by_id[run][[n - 1 for n in range(1, 30) if TYPES[n % 3] == name]].mean()
                for name in sorted(TYPES)
            ]
            assert [float(cell) for cell in cells[f"r{number}"]] == pytest.approx(means, abs=5e-5)
        assert "The groups" not in table

    refused = anonymous.get(f"{BASE}comparison/export/md/", {**query, "by": "year"})
    assert refused.json()["errors"][0]["code"] == "too_many_values"
    refused = anonymous.get(f"{BASE}comparison/export/csv/", {**query, "by": "nothing"})
    assert refused.json()["errors"][0]["code"] == "bad_filter"
    # The page compares two runs in groups.
    page = anonymous.get("/collections/grouped/comparison/", {"by": "type"})
    assert "by=type needs two runs; found 4" in text_of(page.content.decode())


@pytest.mark.django_db
def test_files_of_two_measures_have_the_groups_of_both(
    alice: User, anonymous: APIClient, values: Any
) -> None:
    other = 1 - values
    other[:, :3] = np.nan
    make_scored(
        "twofold", Team.objects.get(personal_of=alice), np.stack([values, other]), ["AP", "P@10"]
    )
    collection = Collection.objects.get(slug="twofold")
    Collection.objects.filter(pk=collection.pk).update(attribute_keys=["half"])
    TopicAttributes.objects.bulk_create(
        TopicAttributes(
            collection=collection,
            topic_id=str(n),
            attributes={"half": "start" if n <= 3 else "first" if n < 15 else "second"},
        )
        for n in range(1, TOPICS + 1)
    )
    base = "/api/v1/collections/twofold/comparison/"
    runs = [str(run) for run in collection.runs.order_by("pk").values_list("pk", flat=True)[:2]]
    query = {"runs": ",".join(runs), "by": "half", "measures": "AP,P@10", "tests": "paired_t"}
    answer = anonymous.get(f"{base}export/csv/", query)
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[attr-defined]
    assert [row["half:start topics"] for row in rows] == ["3", "0"]
    assert rows[1]["half:start difference"] == rows[1]["half:start p_value"] == ""
    table = b"".join(anonymous.get(f"{base}export/md/", query).streaming_content).decode()  # type: ignore[attr-defined]
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in lines[0][3:]] == [
        f"{measure} half:{name}"
        for measure in ("AP", "P@10")
        for name in ("first", "second", "start")
    ]
    # The second measure has the runs in the other order, and the same difference as the row says.
    row = next(line for line in lines if "\N{MINUS SIGN}" in line[0])
    figures = [cell.split("↑")[0].split("↓")[0].strip() for cell in row[1:]]
    assert figures[-1] == "–"
    sign = 1 if row[0].strip().startswith("r0") else -1
    for place, part in ((3, values[:, 14:]), (6, other[:, 14:])):
        expected = sign * (part[0] - part[1]).mean()
        assert float(figures[place].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            expected, abs=5e-5
        )


@pytest.mark.django_db
def test_the_page_of_two_runs_shows_groups_where_topics_have_attributes(
    runs: list[str], anonymous: APIClient
) -> None:
    page = "/collections/grouped/comparison/"
    query = {"runs": f"{runs[0]},{runs[1]}", "topics": "-language:de", "by": "type"}
    html = anonymous.get(page, query).content.decode()
    text = text_of(html)
    assert "By group of topics The groups do not differ more than chance would. F(2, " in text
    assert (
        "Paired t test in each group, p corrected by Holm over the groups. 1 topic has no type."
        in text
    )
    assert "Selected -language:de" in text
    assert 'name="by"' in html

    # The form keeps a computed key, and a section without a group says so.
    query = {"runs": query["runs"], "topics": "topic:30,29,28", "by": "words"}
    html = anonymous.get(page, query).content.decode()
    assert "<option selected>words</option>" in html
    assert "No compared topic has a value of words, so there are no groups." in text_of(html)
    year = anonymous.get(page, {**query, "topics": "topic:27,28,29", "by": "year"}).content.decode()
    assert "cannot be tested: each has one topic." in text_of(year)

    TopicAttributes.objects.all().delete()
    calm = anonymous.get(page, {"runs": query["runs"]}).content.decode()
    assert 'name="by"' not in calm
    assert 'name="topics"' not in calm


@pytest.mark.django_db
def test_a_leaderboard_is_of_the_selected_topics(
    runs: list[str], anonymous: APIClient, values: Any
) -> None:
    query = {"topics": "language:de", "statistics": "all", "by": "type", "baseline": runs[0]}
    body = anonymous.get(f"{BASE}leaderboard/", query).json()
    chosen = values[:, :9]
    means = {run: chosen[row].mean() for row, run in enumerate(runs)}
    order = sorted(runs, key=lambda run: -means[run])
    assert [row["run"]["id"] for row in body["results"]] == order
    assert body["topics_filter"] == "language:de"
    assert body["topics"] == 9
    assert body["groups"] == [{"group": name, "topics": 3} for name in sorted(TYPES)]
    for row in body["results"]:
        place = runs.index(row["run"]["id"])
        mean = row["values"]["AP"]
        assert (mean["mean"], mean["topics"]) == (pytest.approx(means[runs[place]]), 9)
        assert mean["low"] < mean["mean"] < mean["high"]
        for name, group in row["groups"].items():
            numbers = [n - 1 for n in range(1, 10) if TYPES[n % 3] == name]
            assert group == {"mean": pytest.approx(values[place, numbers].mean()), "topics": 3}

        against = row["statistics"]["baseline"]
        if place:
            test = stats.ttest_rel(chosen[place], chosen[0])
            assert against["statistic"] == pytest.approx(test.statistic)
            assert against["difference"] == pytest.approx(means[runs[place]] - means[runs[0]])

    # All topics selected: the same figures as without a selection.
    everything = anonymous.get(f"{BASE}leaderboard/", {**query, "topics": "topic:*"}).json()
    del everything["topics_filter"]
    plain = anonymous.get(f"{BASE}leaderboard/", {**query, "topics": ""}).json()
    for row, expected in zip(everything["results"], plain["results"], strict=True):
        assert row["values"]["AP"] == pytest.approx(expected["values"]["AP"], rel=1e-12)
        assert row["groups"] == expected["groups"]
        assert row["statistics"]["tier"] == expected["statistics"]["tier"]
        assert row["statistics"]["rank"] == expected["statistics"]["rank"]

    order_of_all = np.argsort(-values.mean(axis=1))
    csv = anonymous.get(f"{BASE}leaderboard/export/csv/", query).content.decode()
    assert "AP type:navigational" in csv.splitlines()[0]
    tex = anonymous.get(f"{BASE}leaderboard/export/tex/", {"topics": "language:de"})
    assert "on 9 topics, selected by language:de" in tex.content.decode()

    table = anonymous.get(f"{BASE}leaderboard/export/md/", {"by": "type"}).content.decode()
    assert table.count("type:navigational") == 1
    assert (
        "topics of each group: informational (10), navigational (9), transactional (10)." in table
    )
    group = values[order_of_all[0], [n - 1 for n in range(1, 30) if TYPES[n % 3] == TYPES[0]]]
    assert f" {group.mean():.4f} " in table.split("| 1 |")[1].split("\n")[0]

    refused = anonymous.get(f"{BASE}leaderboard/", {"by": "year"})
    assert refused.json()["errors"][0]["code"] == "too_many_values"


@pytest.mark.django_db
def test_the_page_of_a_leaderboard_offers_topics_where_they_have_attributes(
    runs: list[str], anonymous: APIClient
) -> None:
    page = "/collections/grouped/"
    query = {"topics": "-language:de", "by": "type", "chart": "means"}
    text = text_of(anonymous.get(page, query).content.decode())
    assert "over 21 topics selected by -language:de, qrels v1." in text
    assert "informational navigational transactional" in text
    assert "By type: means of AP." in text
    # The name of a group that is a number says of what.
    html = anonymous.get(page, {"by": "words", "topics": "words:2,3"}).content.decode()
    assert "words 2 words 3" in text_of(html)
    assert 'title="mean AP on 1 topic with this words"' in html
    words = anonymous.get(page, {"by": "words"}).content.decode()
    assert "<option selected>words</option>" in words
    broken = anonymous.get(page, {"topics": "type"})
    assert "write a key, a colon and a value" in text_of(broken.content.decode())

    TopicAttributes.objects.all().delete()
    calm = anonymous.get(page).content.decode()
    assert 'name="topics"' not in calm


@pytest.mark.django_db
def test_what_is_limited_to_topics_is_not_shared(runs: list[str], api: APIClient) -> None:
    for fields in (
        {"kind": "leaderboard", "query": "topics=type:navigational"},
        {"kind": "leaderboard", "query": "%74opics=language:de"},
        {"kind": "leaderboard", "query": "by=type"},
        {"kind": "run", "run": runs[0], "query": "topics=language:de"},
        {"kind": "comparison", "query": f"runs={runs[0]},{runs[1]}&by=type"},
        {"kind": "comparison", "query": f"runs={runs[0]},{runs[1]}&topics=language:de"},
    ):
        named = {} if "run" in fields else {"collection": "grouped"}
        answer = api.post("/api/v1/shares/", {**fields, **named}, format="json")
        assert answer.status_code == 400, answer.content
        assert "readers of a link do not see attributes" in answer.content.decode()

    fields = {"kind": "leaderboard", "query": "topics=&by=", "collection": "grouped"}
    assert api.post("/api/v1/shares/", fields, format="json").status_code == 201


@pytest.mark.django_db
def test_a_worker_compares_the_topics_that_were_selected(
    runs: list[str], api: APIClient, values: Any
) -> None:
    fields = {"runs": runs[:2], "tests": ["paired_t"], "topics": "language:de"}
    queued = api.post(f"{BASE}comparison/", fields, format="json").json()["comparison"]
    # Attributes may change meanwhile.
    TopicAttributes.objects.all().delete()
    assert compare(comparison_id=queued["id"])

    body = api.get(f"/api/v1/comparisons/{queued['id']}/").json()
    assert (body["topics_filter"], body["measures"][0]["topics"]["used"]) == ("language:de", 9)
    pair = body["measures"][0]["pairs"][0]
    differences = (values[0] - values[1])[:9]
    assert abs(pair["difference"]) == pytest.approx(abs(differences.mean()))
    page = api.get(f"/comparisons/{queued['id']}/").content.decode()
    assert "Selected language:de" in text_of(page)
    assert "a point for each of 9 topics" in page
    assert "On 9 of 30 topics: language:de." in page
    query = {"runs": ",".join(runs[:2]), "comparison": queued["id"]}
    points = api.get(f"{BASE}charts/topic-scatter.csv", query)
    assert len(points.content.decode().splitlines()) == 1 + 9

    shared = {"kind": "comparison", "comparison": queued["id"]}
    assert api.post("/api/v1/shares/", shared, format="json").status_code == 400


# Weights


@pytest.mark.django_db
def test_two_runs_with_weights(api: APIClient, runs: list[str], values: Any) -> None:
    pair = f"{runs[0]},{runs[1]}"
    query = {"runs": pair, "measures": "AP", "weights": "year", "topics": "year:>0"}
    answer = api.get(f"{BASE}comparison/", query)
    assert answer.status_code == 200, answer.content
    (measure,) = answer.json()["measures"]
    shown, weighted = measure["pairs"][0], measure["weighted"]
    by_run = dict(zip(runs, values[:, :-1], strict=True))
    a, b, weights = by_run[shown["a"]], by_run[shown["b"]], 1990 + np.arange(1.0, TOPICS)
    assert weighted["mean_a"] == pytest.approx(np.average(a, weights=weights))
    assert weighted["mean_b"] == pytest.approx(np.average(b, weights=weights))
    assert weighted["difference"] == pytest.approx(np.average(a - b, weights=weights))
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert (weighted["by"], weighted["topics"]) == ("year", TOPICS - 1)
    assert weighted["effective_topics"] == pytest.approx(effective)
    assert weighted["low"] < weighted["difference"] < weighted["high"]
    # Everything else is as without weights.
    plain = api.get(f"{BASE}comparison/", {**query, "weights": ""}).json()["measures"][0]
    assert {**measure, "weighted": None} == {**plain, "weighted": None}

    page = api.get("/collections/grouped/comparison/", query)
    assert weighted["sentence"] in text_of(page.content.decode())
    assert "Weights of topics: year" in text_of(page.content.decode())


@pytest.mark.django_db
def test_weights_are_refused_where_they_do_not_apply(api: APIClient, runs: list[str]) -> None:
    pair = f"{runs[0]},{runs[1]}"
    for parameters, message in (
        ({"runs": pair, "weights": "year"}, "topic 30 has none"),
        ({"runs": pair, "weights": "type"}, "topic 1 has 'informational'"),
        ({"runs": pair, "weights": "nothing"}, "no topic has the attribute nothing"),
        ({"weights": "year"}, "weights=year needs two runs"),
        ({"runs": ",".join(runs[:3]), "weights": "year"}, "weights=year needs two runs"),
    ):
        refused = api.get(f"{BASE}comparison/", parameters)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "weights")
        assert message in refused.content.decode()

    query = {"runs": pair, "weights": "year", "topics": "year:>0"}
    for address in ("comparison/export/csv/", "charts/topic-scatter.svg", "leaderboard/"):
        assert api.get(f"{BASE}{address}", query).status_code == 400
    assert api.post(f"{BASE}comparison/", {"runs": runs[:2], "weights": "year"}).status_code == 400
    shared = {"kind": "comparison", "query": f"runs={pair}&weights=year", "collection": "grouped"}
    assert api.post("/api/v1/shares/", shared).status_code == 400
