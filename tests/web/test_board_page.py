"""The leaderboard's page, as a browser without scripts asks for it."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from django.test import Client

from metrics.models import Evaluation
from metrics.pages.boards import statistics as board_statistics
from metrics.services.queue.lifecycle import claim
from runs.models import Collection, Qrels, Run, User
from tests.conftest import GOOD, POOR
from tests.metrics.boards import make_board, simulated
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.board_parts import (
    BOARD,
    PIECE,
    SMALL,
    Submit,
    board,
    browser,
    links_of,
    rows_of,
    statistics_of,
)
from tests.web.test_board_selection import form_of
from tests.web.test_pages import SCRIPT_OR_STYLE, new_qrels, page, text_of

__all__ = ["alice", "api", "board", "browser", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


def test_each_row_says_how_sure_its_place_is(browser: Client, board: Collection) -> None:
    statistics, html = statistics_of(browser), page(browser, BOARD, statistics="all")
    for row, cells in zip(statistics["results"], rows_of(html), strict=True):
        ranks, value = row["statistics"]["rank"], row["values"]["AP"]
        spread = (
            f"{ranks['low']}–{ranks['high']}"
            if ranks["low"] != ranks["high"]
            else str(ranks["low"])
        )
        best = " ●" if row["statistics"]["in_best_set"] else ""
        assert cells[0] == f"{row['rank']}{best}"
        assert cells[3].startswith(f"{value['mean']:.4f}")
        assert f"95% interval {value['low']:.4f} to {value['high']:.4f}" in cells[3]
        assert cells[5:7] == [str(row["statistics"]["tier"]), spread]
    assert "2,000 bootstrap samples of 20 topics" in text_of(html)


def test_the_page_marks_the_set_of_the_best_and_shows_no_other_answer(
    browser: Client, board: Collection
) -> None:
    answer, html = statistics_of(browser), page(browser, BOARD)
    marked = [row["statistics"]["in_best_set"] for row in answer["results"]]
    assert 1 < sum(marked) < len(marked)
    text = text_of(html)
    sentence = f"With 95% confidence the best of 12 runs is one of these {sum(marked)}, marked ●."
    assert text.index(sentence) < text.index("Ranked by")
    assert ["●" in cells[0] for cells in rows_of(html)] == marked
    assert html.count('aria-label="can be the best"') == sum(marked)
    head = html.split("<thead>")[1].split("</thead>")[0]
    assert "Tier" not in head
    assert "rank interval" not in head
    # Both are one link away, and back.
    (detailed,) = links_of(html, "Show tiers and rank intervals")
    (back,) = links_of(
        page(browser, BOARD + detailed.partition("#")[0]), "Hide tiers and rank intervals"
    )
    assert "statistics" not in back


def test_where_all_can_be_the_best_none_is_marked(browser: Client, alice: User) -> None:
    make_board(alice.personal_team, {"AP": np.random.default_rng(3).random((4, 20))}, "close")
    html = page(browser, "/collections/close/")
    assert "Any of the 4 runs can be the best: no difference is significant." in text_of(html)
    assert "●" not in html.split('aria-label="Leaderboard"')[1].split("</table>")[0]


def test_bars_share_one_scale(browser: Client, board: Collection) -> None:
    html = page(browser, BOARD)
    spans = [
        tuple(map(float, span))
        for span in re.findall(r'class="span" d="M([\d.]+) 6H([\d.]+)"', html)
    ]
    values = [row["values"]["AP"] for row in statistics_of(browser)["results"]]
    low, high = min(value["low"] for value in values), max(value["high"] for value in values)
    drawn = [
        [(value[end] - low) / (high - low) * 90 for end in ("low", "high")] for value in values
    ]
    np.testing.assert_allclose(spans, drawn, atol=0.06)
    assert f"<span>{low:.2f}</span><span>{high:.2f}</span>" in html


def test_a_tier_begins_with_a_line(browser: Client, board: Collection) -> None:
    tiers = [row["statistics"]["tier"] for row in statistics_of(browser)["results"]]
    opened = [
        "opens" in classes
        for classes in re.findall(
            r'<tr class="(ranked[^"]*)"', page(browser, BOARD, statistics="tiers")
        )
    ]
    assert opened == [False, *(tier != above for above, tier in pairwise(tiers))]
    assert any(opened)
    assert 'class="ranked opens"' not in page(browser, BOARD)


def test_a_board_without_statistics(browser: Client, board: Collection) -> None:
    html = page(browser, BOARD, statistics="none")
    assert "interval" not in html.split('aria-label="Leaderboard"')[1].split("</table>")[0]
    (back,) = links_of(html, "Show statistics")
    assert (
        "interval"
        in page(browser, BOARD + back.partition("#")[0]).split('aria-label="Leaderboard"')[1]
    )
    assert rows_of(html)[0][0] == "1"


def test_any_row_may_be_the_baseline(browser: Client, board: Collection) -> None:
    html = page(browser, BOARD, measures="AP", offset="0")
    pin = links_of(html, "make r3 the baseline")[0]
    pinned = page(browser, BOARD + pin)
    run = Run.objects.get(tag="r3")
    assert f"baseline={run.pk}" in pin
    assert "measures=AP" in pin
    statistics = statistics_of(browser, baseline=str(run.pk), measures="AP")
    assert 'class="ranked pinned' in pinned
    for row, cells in zip(statistics["results"], rows_of(pinned), strict=True):
        against = row["statistics"]["baseline"]
        if against is None:
            assert (cells[3], "baseline" in cells[1]) == ("baseline", True)
            continue
        mark = {"better": "▲ better", "worse": "▼ worse", None: ""}[against["mark"]]
        difference = f"{against['difference']:+.4f}".replace("-", "\N{MINUS SIGN}")
        assert cells[3] == f"{difference} {mark}".strip()
        p = against["p_adjusted"]
        assert cells[4] == ("< 0.0001" if p < 0.0001 else f"{p:.4f}")
    assert "Δ vs r3" in pinned
    assert "corrected p" in pinned
    assert links_of(pinned, "remove the baseline") == ["?measures=AP&offset=0#leaderboard"]
    # It stays in sight in the header, too, without a box.
    (pinned_row,) = re.findall(
        r'<tr class="[^"]*held">.*?</tr>', pinned.split("</thead>")[0], re.DOTALL
    )
    assert "r3" in text_of(pinned_row)
    assert "checkbox" not in pinned_row


@pytest.mark.queries
def test_the_baseline_of_another_page_has_its_name(browser: Client, board: Collection) -> None:
    last = statistics_of(browser)["results"][-1]["run"]
    html = page(browser, BOARD, baseline=last["id"], limit="3")
    assert f"Δ vs {last['tag']}" in html
    assert len(rows_of(html)) == 3
    pinned = html.split("</thead>")[0].split('held">')[1]
    assert text_of(pinned).split()[0] == "12"
    assert "95% interval" in pinned
    assert 'held">' in page(browser, BOARD, baseline=last["id"], filter="r1 OR r2")
    # Its run has no other row here: it is chosen in this one, and no hidden field names it, too.
    (short,) = re.findall(r'name="select" value="(\w+)"', pinned)
    chosen = form_of(page(browser, BOARD, baseline=last["id"], limit="3", select=short))
    assert [field for field in chosen if field[0] == "select"] == [("select", short)]


def test_several_baselines_have_columns_of_their_own(browser: Client, board: Collection) -> None:
    results = statistics_of(browser)["results"]
    last, first = results[-1]["run"], results[0]["run"]
    both = f"{last['id']},{first['id']}"
    html = page(browser, BOARD, baseline=both, limit="3")
    assert f"Δ vs {last['tag']}" in html
    assert f"Δ vs {first['tag']}" in html
    assert f"<dt>Δ vs {last['tag']}, {first['tag']}</dt>" in html
    top = rows_of(html)[0]
    assert top[5] == "baseline"
    assert top[3].endswith("better")
    # The first one stays in sight, and each is removed alone.
    assert last["tag"] in text_of(html.split("</thead>")[0].split('held">')[1])
    assert links_of(html, "remove the baseline") == [
        f"?baseline={other['id']}&limit=3#leaderboard" for other in (first, last)
    ]

    # Of baselines on other pages there is the name, too.
    html = page(browser, BOARD, baseline=f"{first['id']},{last['id']}", limit="3")
    assert f"Δ vs {last['tag']}" in html


def test_chosen_runs_become_the_baselines(browser: Client, board: Collection) -> None:
    runs = [row["run"]["id"] for row in statistics_of(browser)["results"][:2]]
    chosen = ",".join(run.replace("-", "")[:8] for run in runs)
    answer = browser.get(BOARD, {"select": chosen, "against": "selected", "measures": "AP"})
    assert answer.status_code == 302
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert query == {"baseline": [",".join(runs)], "measures": ["AP"]}


def test_a_baseline_that_is_none_leaves_the_board(browser: Client, board: Collection) -> None:
    html = page(browser, BOARD, 400, baseline="00000000-0000-4000-8000-000000000000")
    assert "is not a ranked run of this leaderboard" in html
    assert len(rows_of(html)) == 12
    assert links_of(html, "Remove the baseline") == ["?#leaderboard"]


def test_the_notes_tell_how_the_order_was_tested(browser: Client, board: Collection) -> None:
    baseline = (
        links_of(page(browser, BOARD), "make r0 the baseline")[0]
        .partition("baseline=")[2]
        .partition("#")[0]
    )
    for test, sentence, families, head in (
        ("paired_t", "paired t test, Holm's correction over {}, alpha = 0.05", ("66 pairs", "11 pairs"), "p (Holm)"),
        ("t_and_tukey", "alpha = 0.05", ("66 pairs", "11 pairs"), "corrected p"),
        ("randomised_tukey_hsd", "randomised Tukey HSD test, accounting for all {} at once, alpha = 0.05",
         ("66 pairs",), "corrected p"),
    ):  # fmt: skip
        text = unescape(
            text_of(page(browser, BOARD, statistics="all", test=test, baseline=baseline))
        )
        assert head in text
        notes = text.split("How reliable")[1]
        assert notes.count("alpha = 0.05") == 2
        assert {
            family for family in ("66 pairs", "11 pairs") if sentence.format(family) in notes
        } == set(families)


def test_what_takes_long_comes_after_the_page(
    browser: Client, board: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_statistics, "_MOST_SECONDS", 0.0)
    html = page(browser, BOARD, measures="AP", limit="5")
    assert re.search(
        rf'hx-get="{re.escape(PIECE)}\?measures=AP&amp;limit=5"\s+hx-trigger="load"', html
    )
    assert rows_of(html)[0][0] == "1"
    assert "95% interval" in rows_of(html)[0][3]
    assert "confidence the best of" not in text_of(html)
    piece = page(browser, PIECE, measures="AP", limit="5")
    assert "<html" not in piece
    assert "hx-trigger" not in piece
    assert rows_of(piece)[0][0] == "1 ●"
    assert "confidence the best of" in text_of(piece)
    # Without scripts a link asks for the same.
    assert any(
        "statistics=all" in part
        for part in re.findall(r"<noscript>(.*?)</noscript>", html, re.DOTALL)
    )
    assert rows_of(page(browser, BOARD, statistics="all"))[0][0] == "1 ●"


def test_a_board_of_too_many_runs_keeps_its_intervals(
    browser: Client, board: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("metrics.services.boards.standings", "metrics.pages.boards.statistics"):
        monkeypatch.setattr(f"{module}.MAX_RUNS", 11)
    html = page(browser, BOARD)
    assert "at most 11 runs" in text_of(html)
    assert "95% interval" in rows_of(html)[0][3]
    text = page(browser, BOARD, statistics="tiers")
    assert "at most 11 runs" in text_of(text)
    assert len(rows_of(text)) == 12


def test_own_runs_are_named(browser: Client, board: Collection, alice: User, bob: User) -> None:
    Run.objects.filter(tag="r1").update(team=bob.personal_team)
    assert ">yours<" not in page(browser, BOARD)
    assert "own:yes" not in page(browser, BOARD).split('class="quick"')[-1].split("</p>")[0]
    browser.force_login(bob)
    html = page(browser, BOARD)
    assert [cells[1].split()[:2] for cells in rows_of(html) if "yours" in cells[1]] == [
        ["r1", "yours"]
    ]
    assert [cells[1].split()[0] for cells in rows_of(page(browser, BOARD, filter="own:yes"))] == [
        "r1"
    ]
    browser.force_login(alice)
    assert page(browser, BOARD).count(">yours<") == 11


def test_rows_below_the_ranked_ones_say_why(browser: Client, submit: Submit) -> None:
    runs = [
        submit(GOOD, tag=f"run-{state}") for state in ("ranked", "queued", "evaluating", "failed")
    ]
    Evaluation.objects.filter(run__in=runs[1:]).update(state="queued", topics_answered=None)
    assert claim(Evaluation.objects.get(run=runs[2]).pk)
    Evaluation.objects.filter(run=runs[3]).update(state="failed")
    html = page(browser, SMALL, measures="AP")
    named = [(cells[0], cells[1].split()[:2]) for cells in rows_of(html)]
    assert named[0][0].startswith("1")
    assert named[1:] == [("–", [run.tag, run.tag.removeprefix("run-")]) for run in runs[1:]]
    assert html.count('name="select"') == 1
    assert html.count('class="pin"') == 1
    assert "1 run being evaluated, 1 run in the queue." in text_of(html)
    assert f'hx-get="{SMALL}board/?measures=AP" hx-trigger="every 3s"' in html
    assert len(rows_of(page(browser, SMALL, filter="status:failed"))) == 1


def test_a_board_that_is_done_asks_for_nothing(browser: Client, submit: Submit) -> None:
    run = submit(GOOD)
    Evaluation.objects.update(state="failed")
    assert 'hx-trigger="every' not in page(browser, f"{SMALL}board/")
    assert "is being evaluated" not in page(browser, SMALL)
    assert run.tag in page(browser, SMALL)


def test_the_piece_is_not_sent_twice(browser: Client, board: Collection) -> None:
    first = browser.get(PIECE)
    again = browser.get(PIECE, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Evaluation.objects.filter(run__tag="r1").update(state="failed")
    Evaluation.objects.filter(run__tag="r1").update(since="2030-01-01T00:00:00Z")
    assert browser.get(PIECE, headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_few_judged_documents_are_named(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    submit("1 Q0 a 1 9 far\n" + "".join(f"1 Q0 u{n} {n} {-n} far\n" for n in range(2, 11)))
    html = page(browser, SMALL, measures="AP")
    assert [cells[-1] for cells in rows_of(html)] == ["100%", "3% ⚠"]
    assert "97% of the top ten documents are unjudged and count as not relevant" in html
    # Where Judged@10 is one of the measures, the share stands there.
    text = page(browser, SMALL, measures="AP,Judged@10")
    assert [cells[4].split()[-1] for cells in rows_of(text)] == ["1.0000", "⚠"]


def test_one_run_has_nothing_to_be_compared_with(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    html = page(browser, SMALL, measures="AP")
    assert rows_of(html)[0][0] == "1"
    assert "a comparison needs at least two ranked runs" in text_of(html).lower()


def test_a_new_collection_says_how_to_begin(browser: Client, collection: str, alice: User) -> None:
    html = page(browser, SMALL)
    assert "No run has been submitted" in text_of(html)
    assert "How sure" not in html
    Qrels.objects.update(active=False)
    assert "No judgements yet" in page(browser, SMALL)
    assert "Filter runs" not in page(browser, SMALL)
    assert links_of(page(browser, SMALL), "upload judgements") == []
    browser.force_login(alice)
    assert links_of(page(browser, SMALL), "upload judgements") == [f"{SMALL}manage/judgements/"]


def test_a_blind_board_tells_nothing(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    Collection.objects.update(blind=True)
    for path in (SMALL, f"{SMALL}board/"):
        plain = page(browser, path)
        assert "until the organisers release them" in plain
        for query in ({"filter": "("}, {"baseline": "x"}, {"statistics": "x"}, {"sort": "foo"}):
            answer = browser.get(path, query)
            assert answer.status_code == 200
            assert "until the organisers release them" in answer.content.decode()
        assert "ETag" not in browser.get(path)


def test_stale_rows_are_marked(browser: Client, api: Any, submit: Submit) -> None:
    submit(GOOD)
    submit(POOR)
    new_qrels(api)
    html = page(browser, SMALL, measures="AP")
    assert [(cells[0], cells[1].split()[1:4]) for cells in rows_of(html)] == [
        ("–", ["stale,", "qrels", "v1"])
    ] * 2
    assert "2 runs in the queue." in text_of(html)
    assert links_of(html, "status:stale") == ["?measures=AP&filter=status%3Astale#leaderboard"]


def test_the_chart_shows_the_runs_of_the_view(browser: Client, board: Collection) -> None:
    assert "<figure" not in page(browser, BOARD, sort="P@5")
    html = page(browser, BOARD, sort="P@5", filter="r1", limit="5", chart="means")
    figure = html.split("<figure")[1]
    assert "charts/means.svg?sort=P%405&amp;filter=r1&amp;limit=5" in figure
    for link in set(re.findall(r'href="([^"]+)" download', figure)):
        answer = browser.get(link.replace("&amp;", "&"))
        assert answer.status_code == 200, link
    svg = browser.get(
        "/api/v1/collections/board/charts/means.svg?filter=tag:r1&sort=P@5"
    ).content.decode()
    assert re.findall(r">\d+\. (r\d+)<", svg) == ["r10", "r11", "r1"]


@pytest.mark.parametrize("statistics", ["", "none", "intervals"])
def test_every_form_of_the_board_has_its_whole_view(
    browser: Client, board: Collection, statistics: str
) -> None:
    run = str(Run.objects.get(tag="r3").pk)
    view = {
        "measures": "AP,P@5",
        "sort": "P@5",
        "filter": "r1 OR r3",
        "baseline": run,
        "statistics": statistics,
    }
    html = page(browser, BOARD, **view, limit="1")
    links = {
        name: links_of(html.split('class="page-actions"')[1], name)[0]
        for name in ("JSON", "CSV", "LaTeX", "Markdown", "trec_eval")
    }
    answers = {name: browser.get(link) for name, link in links.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
        links, 200
    )
    answer_board = answers["JSON"].json()
    assert (answer_board["sort"], answer_board["count"], len(answer_board["results"])) == (
        "P@5",
        4,
        1,
    )
    parts = {
        "": ["intervals", "tiers", "ranks", "expected", "baseline"],
        "none": ["baseline"],
        "intervals": ["intervals", "baseline"],
    }
    assert answer_board["statistics"]["parts"] == parts[statistics]
    assert len(answers["CSV"].content.decode().strip().splitlines()) >= 4
    assert all(
        "attachment" in answer["Content-Disposition"]
        for name, answer in answers.items()
        if name != "JSON"
    )


def test_a_wide_board_keeps_its_head_and_its_names(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    measures = [f"{name}@{k}" for name in ("nDCG", "P", "R", "AP") for k in range(1, 6)]
    html = page(browser, SMALL, measures=",".join(measures))
    assert len(re.findall(r'id="sort-\d+"', html)) == 20
    assert not SCRIPT_OR_STYLE.search(html.encode())


def test_more_runs_need_no_more_queries(
    browser: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    values = {"AP": simulated(60, 20), "P@5": simulated(60, 20)}
    board = make_board(alice.personal_team, values, "long")
    baseline = str(Run.objects.get(collection=board, tag="r5").pk)
    browser.force_login(alice)
    with django_assert_max_num_queries(32):
        page(browser, "/collections/long/")
    with django_assert_max_num_queries(37):
        page(browser, "/collections/long/", baseline=baseline, filter="r*", limit="3")
