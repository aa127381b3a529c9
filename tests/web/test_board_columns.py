"""The columns of a leaderboard: chosen, ordered, added and removed by links, as a browser without scripts has them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from metrics.pages.boards.questions import SHOWN_MEASURES
from runs.models import Collection, Run, User
from runs.services.tracking.labels import move_label
from runs.services.tracking.parameters import store_parameters
from tests.conftest import GOOD, POOR
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.board_parts import BOARD, SMALL, Submit, board, browser, links_of, rows_of
from tests.web.test_pages import page, text_of
from tests.web.worlds import body_of

__all__ = ["alice", "api", "board", "browser", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


def header_of(html: str) -> list[str]:
    """The names of the measures and of the other columns in their order."""
    return re.findall(r'<a\s+id="(?:sort|arrange)-\d+"[^>]*>\s*(.*?)<span', html, re.DOTALL)


def names_of(html: str) -> list[str]:
    return [text_of(name).replace(" ", "") for name in header_of(html)]


def describe(run: Run, metadata: dict[str, float]) -> None:
    run.metadata = metadata
    run.save()
    store_parameters(run.collection, [run])


def asked_by(address: str) -> dict[str, list[str]]:
    assert address.endswith("#shown-columns")
    return parse_qs(urlsplit(address).query)


def test_five_measures_are_shown_and_files_have_the_same(browser: Client, submit: Submit) -> None:
    submit(GOOD)
    names = ["AP", "P@5", "RR", "nDCG@10", "R@100", "Rprec", "P@10"]
    Collection.objects.update(measures=names)
    html = page(browser, SMALL)
    assert names_of(html) == names[:SHOWN_MEASURES]
    export = links_of(html, "CSV")[0]
    assert "R@100" in browser.get(export).content.decode()
    assert "Rprec" not in browser.get(export).content.decode()
    every = links_of(html, "All measures of the collection")[0]
    assert names_of(page(browser, SMALL + every.partition("#")[0])) == names
    # One is added to those that are shown.
    assert "Rprec" not in unescape(browser.get(SMALL, {"add": "P@10"})["Location"])


def test_columns_move_and_the_ranking_stays(browser: Client, board: Collection) -> None:
    html = page(browser, BOARD, measures="AP,P@5")
    assert links_of(html, "move AP to the left") == []
    (address,) = links_of(html, "move AP to the right")
    assert asked_by(address) == {"measures": ["P@5,AP"], "sort": ["AP"]}
    moved = page(browser, BOARD + address.partition("#")[0])
    assert names_of(moved) == ["P@5", "AP"]
    assert [cells[1].split()[0] for cells in rows_of(moved)] == [
        cells[1].split()[0] for cells in rows_of(html)
    ]


def test_other_columns_are_added_moved_and_removed(
    browser: Client, submit: Submit, alice: User
) -> None:
    runs = [submit(GOOD, tag="good"), submit(POOR, tag="poor")]
    for run, k1 in zip(runs, (0.9, 1.2), strict=True):
        describe(run, {"k1": k1, "b": 0.4})
    move_label(run=runs[1], name="main", user=alice)
    query = {"add": "param:k1, label,b", "measures": "AP"}
    address = browser.get(SMALL, query)["Location"]
    assert asked_by(address) == {"measures": ["AP"], "columns": ["param:k1,label,param:b"]}
    html = page(browser, SMALL + address.partition("#")[0])
    assert names_of(html) == ["AP", "k1", "Label", "b"]
    assert "main" in text_of(html.split(">poor</a>")[1].split("</tr>")[0])
    later, earlier = (links_of(html, f"move Label to the {side}")[0] for side in ("right", "left"))
    assert asked_by(later)["columns"] == ["param:k1,param:b,label"]
    assert asked_by(earlier)["columns"] == ["label,param:k1,param:b"]
    assert asked_by(links_of(html, "remove k1")[0])["columns"] == ["label,param:b"]
    ordered = page(browser, SMALL, columns="label", arrange="label")
    assert [cells[1].split()[0] for cells in rows_of(ordered)] == ["poor", "good"]
    # Removing the column by which rows are ordered leads back to the ranks.
    assert "arrange" not in asked_by(links_of(ordered, "remove Label")[0])
    csv = browser.get(links_of(ordered, "CSV")[0]).content.decode().splitlines()
    assert "label" in csv[0].split(",")


@pytest.mark.parametrize(
    "added", ["param:zzz", "zzz", "label," + ",".join(f"param:k{n}" for n in range(13))]
)
def test_what_cannot_be_added_is_told_in_the_panel(
    browser: Client, submit: Submit, added: str
) -> None:
    run = submit(GOOD)
    describe(run, {f"k{n}": n for n in range(13)})
    html = page(browser, SMALL, 400, add=added)
    panel = html.split('id="columns-tool"')[1].split("</details>")[0]
    assert panel.startswith(" open>")
    assert 'role="alert"' in panel
    assert len(rows_of(html)) == 1


def test_suggestions_know_columns(browser: Client) -> None:
    html = page(browser, "/measures/suggestions/", add="AP, param:k1")
    assert "<code>param:k1</code> a column" in html


def test_an_empty_leaderboard_has_one_link_to_submit(
    browser: Client, collection: str, submit: Any
) -> None:
    assert len(links_of(page(browser, SMALL), "Check and submit a file")) == 1
    submit(GOOD)
    assert Run.objects.filter(collection__slug=collection).count() == 1
    assert len(links_of(page(browser, SMALL), "Check and submit a file")) == 1


def test_a_scatter_plot_shows_all_runs_that_the_filter_shows(
    browser: Client, board: Collection
) -> None:
    html = page(
        browser, BOARD, measures="AP,P@5", chart="scatter", limit="3", filter="tag:r2,r3,r4"
    )
    figure = html.split("<figure")[1]
    assert "Mean AP over mean P@5 of 3 of 12 ranked runs" in text_of(figure)
    assert "charts/scatter.svg?filter=tag%3Ar2%2Cr3%2Cr4&amp;x=P%405&amp;y=AP" in figure
    swapped = page(browser, BOARD, chart="scatter", x="AP", y="P@5")
    assert "Mean P@5 over mean AP of 12 of 12" in text_of(swapped)
    alone = page(browser, BOARD, chart="scatter", x="AP", y="AP")
    assert "name another measure" in alone
    assert len(rows_of(alone)) == 12
    wrong = page(browser, BOARD, 400, chart="pie")
    assert "chart is one of none, means, scatter, over-time. It is ignored." in text_of(wrong)


def test_the_best_mean_so_far_follows_the_times_of_submission(
    browser: Client, board: Collection
) -> None:
    """The runs came in the order of their numbers; one is left out by the filter."""
    html = page(browser, BOARD, chart="over-time", sort="AP", filter="-tag:r3")
    assert "Mean AP of 11 of 12 ranked runs" in text_of(html)
    csv = browser.get("/api/v1/collections/board/charts/over-time.csv?sort=AP&filter=-tag:r3")
    lines = [line.split(",") for line in body_of(csv).decode().splitlines()[1:]]
    values = browser.get("/api/v1/collections/board/leaderboard/?measures=AP&limit=100").json()
    means = {row["run"]["tag"]: row["values"]["AP"]["mean"] for row in values["results"]}
    times = dict(board.runs.values_list("tag", "created_at"))

    assert [line[0] for line in lines] == sorted(means.keys() - {"r3"}, key=times.__getitem__)
    best = 0.0
    for tag, _, mean, so_far, *_ in lines:
        best = max(best, means[tag])
        assert (float(mean), float(so_far)) == pytest.approx((means[tag], best), abs=5e-5)
