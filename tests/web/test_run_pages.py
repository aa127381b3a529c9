"""The page of a run and what belongs to it: charts, single rankings, its way through the queue."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.test import Client

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from metrics.models import Evaluation
from metrics.pages.values.standing import read_standing
from metrics.pages.values.summary import OFFICIAL
from runs.models import Collection, Run, User
from runs.services.tracking.labels import move_label
from tests.conftest import GOOD, POOR, evaluate_all, submit_run, upload
from tests.metrics.boards import make_board
from tests.shared_data import alice, api, collection, module_data
from tests.web.test_pages import page, submit, text_of

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]

Submit = Callable[..., Run]


@pytest.fixture
def browser() -> Client:
    return Client()


@pytest.fixture(scope="module")
def pair(api: Any, collection: str) -> tuple[Run, Run]:
    return submit_run(api, GOOD), submit_run(api, POOR)


def test_every_chart_has_a_picture_words_and_figures(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    paths = ("", "topics/", "curves/")
    html = "".join(page(browser, f"/runs/{pair[0].pk}/{path}") for path in paths)
    figures = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert len(figures) == 5
    for figure in figures:
        # One drawing for a screen, one for a phone.
        assert len(re.findall(r'<svg [^>]*aria-label="[^"]{20,}"', figure)) == 2
        assert "<figcaption>" in figure
        assert "<summary>Table and files</summary>" in figure
        assert figure.count(".pdf") == figure.count(".png") == 1


def test_a_run_beside_another_shows_their_differences(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    path = f"/runs/{pair[0].pk}/topics/"
    html = page(browser, path, measures="AP", other=str(pair[1].pk))
    assert "AP of good minus that of poor on each of 3 topics" in html
    assert f'<option value="{pair[1].pk}" selected>poor (alice)' in html
    assert f"other={pair[1].pk}" in html
    assert "is not the id of a run" in page(browser, path, 400, other="x")


@pytest.mark.parametrize(
    ("cap", "address", "field", "words"),
    [
        ("metrics.pages.values.runs._OTHERS_NAMED", "/runs/{run}/topics/", "other", "AP of good minus that of poor"),
        ("metrics.pages.comparisons.controls._LISTED", "/collections/small/comparison/", "baseline",
         "good is ahead of poor"),
        ("metrics.pages.values.heat_map._OFFERED", "/collections/small/heat-map/", "baseline", "nDCG@10 minus"),
    ],
)  # fmt: skip
def test_where_not_all_runs_are_listed_one_is_named(
    browser: Client, pair: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch, cap: str, address: str, field: str,
    words: str,
) -> None:  # fmt: skip
    good, poor = pair
    address = address.format(run=good.pk)
    query = {"measures": "AP"} if field == "other" else {}
    listed = page(browser, address, **query)
    assert f'<select id="{field}"' in listed
    by_id = page(browser, address, **query, **{field: str(poor.pk)})
    assert words in by_id
    monkeypatch.setattr(cap, 1)
    move_label(run=poor, name="main", user=None)
    for name in ("poor", "alice/poor", "label:main", str(poor.pk)):
        html = page(browser, address, **query, **{field: name})
        (typed,) = re.findall(rf'<input id="{field}"[^>]*>', html)
        assert 'value="alice/poor"' in typed, name
        assert words in html
    wrong = page(browser, address, 400, **query, **{field: "nobody/poor"})
    assert "is not the id of a run" in wrong
    assert 'value="nobody/poor"' in wrong


def test_edits_are_told_with_those_who_made_them_to_its_team(
    browser: Client, pair: tuple[Run, Run], alice: User, api: Any
) -> None:
    path = f"/runs/{pair[0].pk}/parameters/"
    assert "Edits of parameters" not in page(browser, path)
    for metadata in ({"k1": 0.9}, {"k1": 1.2, "model": "<b>"}):
        changed = api.patch(f"/api/v1/runs/{pair[0].pk}/", {"metadata": metadata}, format="json")
        assert changed.status_code == 200, changed.content
    for reader, named in ((browser, ""), (Client(), "alice ")):
        if named:
            reader.force_login(alice)
        text = text_of(
            page(reader, path)
            .partition("Edits of parameters and costs")[2]
            .partition("</table>")[0]
        )
        first, _, second = text.partition(f"{named}k1 not set 0.9 ")
        assert (first.count("By"), bool(second)) == (bool(named), True), text
        assert f"{named}k1 0.9 1.2 model not set &lt;b&gt;" in second


def test_a_bad_measure_leaves_the_other_parts_alone(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, f"/runs/{pair[0].pk}/", 400, measures="foo")
    assert html.count("unknown measure &#x27;foo&#x27;") == 1
    assert "Topics answered" in html
    assert "R-precision" in html


def test_a_baseline_stands_beside_the_run_until_another_is_chosen(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    run, baseline = pair
    address, selected = f"/runs/{run.pk}/topics/", f'<option value="{baseline.pk}" selected>'
    beside = page(browser, address, baseline=str(baseline.pk))
    assert (selected in beside, "minus that of" in beside) == (True, True)
    for query in ({"baseline": str(baseline.pk), "other": ""}, {"baseline": str(run.pk)}, {}):
        assert selected not in page(browser, address, **query)


def test_precision_over_recall_by_level(browser: Client, pair: tuple[Run, Run]) -> None:
    html = page(browser, f"/runs/{pair[0].pk}/curves/", rel="all")
    assert "level 1 and above" in html
    assert "level 3 and above" in html
    assert "rel=x" in page(browser, f"/runs/{pair[0].pk}/curves/", 400, rel="x")
    alone = text_of(page(browser, f"/runs/{pair[0].pk}/curves/", level="1"))
    assert "documents of level 1 alone count as relevant" in alone
    assert "level=x" in page(browser, f"/runs/{pair[0].pk}/curves/", 400, level="x")


def test_precision_is_interpolated_as_chosen(browser: Client, pair: tuple[Run, Run]) -> None:
    path = f"/runs/{pair[0].pk}/curves/"
    html = page(browser, path, interp="interval", level="2")
    assert (
        "the highest from each point of recall to the next; documents of level 2 alone"
        in text_of(html)
    )
    assert '<option value="interval" selected>' in html
    assert "the highest at that recall or more; documents" in text_of(
        page(browser, path, rounding="exact")
    )
    assert "rounding belongs to interp=" in page(
        browser, path, 400, interp="interval", rounding="9"
    )


def test_the_curve_is_read_against_the_ideal_at_chosen_ranks(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    path = f"/runs/{pair[1].pk}/curves/"
    text = text_of(page(browser, path, measures="CG", ranks="1,3", depth="5"))
    # POOR finds 1 of 2 in topic 1 at rank 3 and 1 of 1 in topic 2 at rank 2, and nothing of 3 in
    # topic 3.
    row = "Ideal's at rank 1 0.0000 2.0000 2.0000 100.0% never 3 0.6667 2.3333 1.6667 71.4% never"
    assert row in text.replace("&#x27;", "'")
    assert "After rank 2 even the ideal gains nothing." in text
    assert "This curve can fall and has no horizontal reading" in text_of(
        page(browser, path, measures="nDCG")
    )
    assert "rank 50 lies beyond depth=5" in page(browser, path, 400, ranks="50", depth="5")


def test_a_ratio_of_averages_is_called_one(browser: Client, pair: tuple[Run, Run]) -> None:
    ratio = "nDCG(norm='average')"
    path = f"/runs/{pair[1].pk}/"
    text = text_of(page(browser, path, measures=f"{ratio}@3"))
    assert "pooled ratio over topics, of averaged vectors" in text
    text = text_of(page(browser, f"{path}curves/", measures=f"{ratio}@3"))
    assert "the ratio of the averaged vectors of 3 topics" in text
    board = text_of(page(browser, "/collections/small/", measures=f"{ratio}@3"))
    assert "pooled ratios of averaged vectors over 3 topics" in board


def test_the_summary_table_has_what_trec_eval_prints(
    browser: Client, api: Any, collection: str, submit: Callable[..., Run]
) -> None:
    """The example of Modern Information Retrieval, chapter 4: P@5 and P@10 of its first query are 0.4 and 0.4, of its
    second one 0.2 and 0.2; R-precision 4/10 and 1/3."""
    upload(api, "collections/small/qrels/", TEXTBOOK_QRELS)
    run = submit(TEXTBOOK_RUN, tag="textbook")
    html = page(browser, f"/runs/{run.pk}/")
    table = html[html.index('id="summary"') : html.index("</details>", html.index('id="summary"'))]
    rows = {
        name: (text_of(words), text)
        for words, text, name in re.findall(
            r'<th scope="row">(.*?)</th>\s*<td class="number">(.*?)</td><td class="faint">(.*?)</td>',
            table,
        )
    }
    assert rows["num_q"] == ("Topics", "2")
    assert [rows[name][1] for name in ("num_ret", "num_rel", "num_rel_ret")] == ["30", "13", "8"]
    assert [rows[name][1] for name in ("P_5", "P_10", "P_15", "Rprec")] == [
        "0.3000",
        "0.3000",
        "0.2667",
        "0.3667",
    ]
    assert list(rows) == [*OFFICIAL]
    assert len(rows) == 29
    means = api.get(f"/api/v1/runs/{run.pk}/values/", {"measures": ",".join(OFFICIAL)}).json()[
        "means"
    ]
    for name, (_, text) in rows.items():
        mean = means[OFFICIAL[name].name]["mean"]
        assert text == (f"{mean:.0f}" if name.startswith("num") else f"{mean:.4f}"), name
    file = re.search(r'href="([^"]*export/trec_eval/[^"]*)"[^>]*>trec_eval file', table)
    assert file
    printed = browser.get(file[1].replace("&amp;", "&")).content.decode()
    for name, (_, text) in rows.items():
        assert re.search(
            rf"^{re.escape(OFFICIAL[name].name)}\s+all\t{re.escape(text)}$", printed, re.MULTILINE
        ), name


def test_a_queued_run_tells_its_place_and_asks_again(
    browser: Client, api: Any, collection: str
) -> None:
    first = upload(api, "collections/small/runs/", GOOD, tag="first").json()["id"]
    second = upload(api, "collections/small/runs/", POOR, tag="second").json()["id"]
    assert "Position 1 in the queue" in page(browser, f"/runs/{first}/")
    html = page(browser, f"/runs/{second}/status/")
    assert "Position 2 in the queue" in html
    assert f'hx-get="/runs/{second}/status/"' in html
    assert "<html" not in html
    evaluate_all()
    answer = browser.get(f"/runs/{second}/status/")
    assert answer["HX-Refresh"] == "true"
    assert "hx-get" not in answer.content.decode()
    assert "In the queue" not in page(browser, f"/runs/{second}/")


def test_a_failed_run_says_why_and_asks_no_more(browser: Client, pair: tuple[Run, Run]) -> None:
    Evaluation.objects.filter(run=pair[0]).update(state="failed", error_message="the file is gone")
    html = page(browser, f"/runs/{pair[0].pk}/")
    assert "The evaluation failed" in html
    assert 'hx-trigger="every' not in html


def test_a_run_of_a_blind_collection_is_received_and_nothing_else(
    browser: Client, pair: tuple[Run, Run], alice: Any
) -> None:
    Collection.objects.update(blind=True)
    browser.force_login(alice)
    Collection.objects.get().team.memberships.all().update(role="member")
    html = page(browser, f"/runs/{pair[0].pk}/")
    assert "Received" in html
    assert "<figure" not in html
    assert "blind" in page(browser, f"/runs/{pair[0].pk}/ranking/", 403)


def test_a_ranking_page_lists_documents_with_their_levels(
    browser: Client, pair: tuple[Run, Run]
) -> None:
    Collection.objects.update(level_labels={"2": "highly relevant"})
    text = text_of(page(browser, f"/runs/{pair[0].pk}/ranking/", topic="1"))
    assert "1 a 3 2 highly relevant 2 2" in text
    assert "← first topic topic 2 →" in text
    poor = text_of(page(browser, f"/runs/{pair[1].pk}/ranking/", topic="1"))
    assert "2 u 2.5 unjudged 0 0" in poor
    assert "No results" in page(browser, f"/runs/{pair[1].pk}/ranking/", topic="3")
    assert "has no judgements" in page(browser, f"/runs/{pair[1].pk}/ranking/", 404, topic="77")


def test_a_long_ranking_has_pages(browser: Client, submit: Submit) -> None:
    run = submit("".join(f"1 Q0 d{rank} {rank} {300 - rank} long\n" for rank in range(1, 251)))
    first = page(browser, f"/runs/{run.pk}/ranking/", topic="1")
    assert "1–100 of 250" in first
    last = page(browser, f"/runs/{run.pk}/ranking/", topic="1", offset=200)
    assert "<code>d250</code>" in last
    assert "<code>d200</code>" not in last


@pytest.mark.parametrize("path", ["", "topics/", "curves/", "ranking/"])
def test_a_page_is_light(browser: Client, submit: Submit, path: str) -> None:
    """Without its charts, compressed: under 300 KB."""
    topics = range(1, 300)
    run = submit(
        "".join(
            f"{topic} Q0 d{rank} {rank} {9 - rank} wide\n"
            for topic in topics
            for rank in range(1, 5)
        )
    )
    answer = browser.get(f"/runs/{run.pk}/{path}", headers={"Accept-Encoding": "gzip"})
    assert len(answer.content) < 300_000


def test_a_run_whose_ranks_contradict_its_scores_is_marked_at_the_top_and_on_the_board(
    browser: Client, submit: Submit
) -> None:
    message = "14 of 15 lines have a rank that contradicts their score; scores decide"
    content = "".join(f"1 Q0 d{rank} {rank} {rank}.5 up\n" for rank in range(1, 16))
    run, other = submit(content), submit(GOOD)
    text = text_of(page(browser, f"/runs/{run.pk}/"))
    assert text.index(message) < text.index("Topics answered")
    files = text_of(page(browser, f"/runs/{run.pk}/files/"))
    assert files.count("14 times, first in lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11") == 1
    assert "contradicts their score" not in page(browser, f"/runs/{other.pk}/")
    board = page(browser, "/collections/small/")
    assert board.count(f'title="{message}">ranks ≠ scores</span>') == 1


def answer_of(browser: Client, run: Run, **query: Any) -> str:
    html = page(browser, f"/runs/{run.pk}/", **query)
    answers = re.findall(r'<p class="answer">.*?</p>', html, re.DOTALL)
    return text_of("".join(answers)).strip()


def test_a_run_begins_with_its_place_on_the_leaderboard(browser: Client, submit: Submit) -> None:
    good, poor, tied = submit(GOOD), submit(POOR), submit(POOR.replace("poor", "tied"), tag="tied")
    board = browser.get("/api/v1/collections/small/leaderboard/?statistics=intervals").json()
    rows = {row["run"]["id"]: row for row in board["results"]}
    for run, place in ((good, "1st"), (poor, "2nd"), (tied, "2nd")):
        row = rows[str(run.pk)]
        assert row["rank"] == int(place[0])
        value = row["values"]["nDCG@10"]
        interval = f" [{value['low']:.4f}, {value['high']:.4f}]" if run != good else ""
        text = answer_of(browser, run)
        assert text.startswith(f"{place} of 3, nDCG@10 {value['mean']:.4f}{interval}")
    # Its own order, by the measure that comes first.
    assert "nDCG@10" not in answer_of(browser, good, measures="AP,nDCG@10")


def test_the_difference_from_a_baseline_is_that_of_the_leaderboard(
    browser: Client, api: Any, pair: tuple[Run, Run]
) -> None:
    good, poor = pair
    assert "baseline" not in answer_of(browser, good)
    query = {"statistics": "baseline", "baseline": str(poor.pk)}
    rows = browser.get("/api/v1/collections/small/leaderboard/", query).json()["results"]
    (difference,) = (
        row["statistics"]["baseline"]["difference"]
        for row in rows
        if row["run"]["id"] == str(good.pk)
    )
    text = answer_of(browser, good, baseline=str(poor.pk))
    assert f"{difference:+.4f} against the baseline poor" in text
    assert "baseline" not in answer_of(browser, poor, baseline=str(poor.pk))
    # A label of the team names one, too.
    move_label(run=poor, name="baseline", user=None)
    assert f"{difference:+.4f} against the baseline poor" in answer_of(browser, good)
    Evaluation.objects.filter(run=poor).update(engine_version="0")
    text = answer_of(browser, good, baseline=str(poor.pk))
    assert text.startswith("1st of 1")
    assert "No difference from the baseline poor: not a ranked run of this leaderboard" in text


def test_a_run_without_a_rank_says_why(alice: User) -> None:
    search = np.array([[2.0] * 10, [1.0] + [np.nan] * 9])
    ap = np.array([[0.5] * 10, [1.0] + [0.0] * 9])
    make_board(alice.personal_team, {"SearchLength": search, "AP": ap})
    run = Run.objects.get(tag="r1")
    unranked, ranked = (
        read_standing(run, alice, {"measures": name}) for name in ("SearchLength", "AP")
    )
    assert unranked
    assert ranked
    assert (unranked.rank, unranked.reason) == ("", "mean of 1 of 10 topics")
    assert (ranked.rank, ranked.mean, ranked.reason) == ("2nd", "0.1000", "")


@pytest.mark.parametrize("state", ["failed", "queued"])
def test_a_run_without_values_has_no_rank(
    browser: Client, pair: tuple[Run, Run], state: str
) -> None:
    assert answer_of(browser, pair[1]).startswith("2nd of 2")
    Evaluation.objects.filter(run=pair[1]).update(state=state)
    assert answer_of(browser, pair[1]) == ""
    assert f"/runs/{pair[1].pk}/topics/" not in page(browser, f"/runs/{pair[1].pk}/")


def test_a_run_names_the_runs_with_the_same_judged_ranking(
    browser: Client, api: Any, pair: tuple[Run, Run]
) -> None:
    # Another file: other scores in the same order.
    twin = submit_run(api, GOOD.replace("3.0 good", "9.0 twin").replace("good", "twin"))
    good, poor = pair
    html = page(browser, f"/runs/{twin.pk}/")
    assert f'<a href="/runs/{good.pk}/">alice/good</a>: every judged document' in html
    assert "alice/twin</a>: every judged document" in page(browser, f"/runs/{good.pk}/")
    assert "Same judged ranking" not in page(browser, f"/runs/{poor.pk}/")
    Run.objects.filter(pk=good.pk).update(deleted_at=good.created_at)
    assert "Same judged ranking" not in Client().get(f"/runs/{twin.pk}/").content.decode()
