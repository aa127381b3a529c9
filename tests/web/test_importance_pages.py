"""The pages of what explains values and of effectiveness against cost."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from django.test import Client

from metrics.engine.measures.grammar import parse_measure
from metrics.services.boards.curves_together import TogetherQuery
from metrics.services.tracking.frontier import FrontierQuery, read_frontier
from runs.models import Collection, User
from tests.engine.studies import grid_study
from tests.metrics.boards import describe, make_board
from tests.web.test_parameter_pages import text_of

PAGE, COST = "/collections/board/parameters/importance/", "/collections/board/frontier/"


@pytest.fixture
def study(alice: User) -> Collection:
    """24 runs of a grid in which k1 = 1.2 is better; the text b is markup."""
    values, (k1, b) = grid_study(np.random.default_rng(4), 0.05)
    collection = make_board(alice.personal_team, {"AP": values})
    parameters: list[dict[str, Any]] = [
        {"k1": k1.values[i][0], "b": f"<b>{b.values[j][0]}"}
        for i, j in zip(k1.codes, b.codes, strict=True)
    ]
    describe(collection, parameters, [{"ms": 10 + place} for place in range(len(parameters))])
    return collection


def test_the_page_shows_both_answers(client: Client, study: Collection) -> None:
    answer = client.get(PAGE)
    html = text_of(answer)
    page = answer.content.decode()
    assert "Nothing else changed Pairs of runs that are equal in every other parameter" in html
    assert re.search(r"k1 0\.9 1\.2 6 \+0\.0\d+ \+0\.0\d+ to \+0\.0\d+ [<0][\d. ]+ better", html)
    assert re.search(r"k1 1\.2 1\.5 6 −0\.0\d+ −0\.\d+ to −0\.0\d+ [<0][\d. ]+ worse", html)
    assert (
        "These runs were chosen, not drawn: a value tried with a better model gets the model's credit."
        in html
    )
    assert "&lt;b&gt;0.1" in page
    assert "<b>0.1" not in page
    assert 'href="/api/v1/collections/board/charts/importance.svg' in page
    assert "/importance/export/csv/?table=matched" in page
    assert 'href="/collections/board/parameters/importance/" aria-current="page"' in " ".join(
        page.split()
    )
    assert f'href="{PAGE}"' in client.get("/collections/board/parameters/").content.decode()


def test_the_page_says_why_it_says_nothing(client: Client, study: Collection) -> None:
    assert "6 runs with parameters: fewer than 12 say nothing." in text_of(
        client.get(PAGE, {"filter": "param:k1=0.9"})
    )
    low = client.get(PAGE, {"filter": "param:k1<1"})
    assert "12 runs, 1 parameter: it does not go with AP more than chance would." in text_of(low)
    assert "charts/importance" not in low.content.decode()
    wrong = client.get(PAGE, {"filter": "param:zzz"})
    assert wrong.status_code == 400
    assert "no run here has a parameter zzz; there are b and k1" in text_of(wrong)
    assert 'aria-invalid="true"' in wrong.content.decode()


def test_the_frontier_shows_statuses_and_links_what_beats_a_run(
    client: Client, study: Collection
) -> None:
    answer = client.get(COST)
    text, page = text_of(answer), answer.content.decode()
    assert "24 of 24 runs on 50 topics" in text
    assert "on the frontier" in text
    assert "dominated (significant)" in text
    assert re.search(
        r'href="/collections/board/comparison/\?runs=[0-9a-f-]{36},[0-9a-f-]{36}"', page
    )
    assert "the runs do not say on what hardware the cost was measured" in text.replace(
        "The runs", "the runs"
    )
    unknown = client.get(COST, {"x": "kg"})
    assert unknown.status_code == 400
    assert "x: no run here has a cost kg; there is ms" in text_of(unknown)
    describe(study, [{}] * 24, [{}] * 24)
    assert "No costs yet" in text_of(client.get(COST))


def test_means_of_few_runs_have_intervals(
    client: Client, study: Collection, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = "Vertical bars: 95% confidence intervals of the means."
    assert sentence in text_of(client.get(COST, {"x": "ms"}))
    board = client.get(
        "/api/v1/collections/board/leaderboard/?statistics=intervals&limit=200"
    ).json()["results"]
    ends = {row["run"]["tag"]: row["values"]["AP"] for row in board}
    frontier = read_frontier(
        collection=study,
        query=FrontierQuery(
            parse_measure("AP"), "ms", across=False, chosen=TogetherQuery([]), reader=alice
        ),
    )
    assert len(frontier.runs) > 1
    for run in frontier.runs:
        assert run.ends == pytest.approx(
            (ends[run.run.tag]["low"], ends[run.run.tag]["high"]), abs=1e-9
        )
    monkeypatch.setattr("metrics.charts.tracking.frontier.MOST_INTERVALS", 3)
    # Another address: the page of the first one is kept.
    assert sentence not in text_of(client.get(COST, {"x": "ms", "measure": "AP"}))


def test_of_many_runs_the_frontier_and_the_cheapest_have_rows(
    client: Client, study: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def statuses(page: str) -> list[str]:
        rows = page.partition('<table class="stacked"')[2]
        return re.findall(
            r'<th scope="row" class="fixed">.*?(on the frontier|dominated)', rows, re.DOTALL
        )

    whole = statuses(client.get(COST).content.decode())
    monkeypatch.setattr("metrics.pages.tracking.frontier._ROWS", 10)
    answer = client.get(COST, {"x": "ms"})
    some = statuses(answer.content.decode())
    assert (len(whole), len(some)) == (24, 10)
    assert some.count("on the frontier") == whole.count("on the frontier")
    assert "10 of 24 runs: all on the frontier, and the cheapest others" in text_of(answer)
    assert ">Markdown</a>" in answer.content.decode()


def test_blind_pages_tell_participants_nothing(
    client: Client, bob: User, study: Collection
) -> None:
    Collection.objects.update(blind=True)
    client.force_login(bob)
    for address in (PAGE, COST):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "Nothing that depends on the judgements is shown" in text_of(answer)
        # The token of a form may have any two letters.
        assert b"k1" not in re.sub(rb'csrfmiddlewaretoken" value="\w+', b"", answer.content)
        assert "ms" not in re.findall(r"<option[^>]*>([^<]*)", answer.content.decode())
