"""The page of sliders: another measure, another order."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from metrics.engine.analysis.what_if import PRESETS
from metrics.services.boards.what_if import ask_what_if
from runs.models import Collection, Qrels, Run
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words

Submit = Callable[..., Run]
# By nDCG the first is better (a level 2 at rank 1), with flat gains the second (two documents at
# once).
SHARP = "1 Q0 a 1 3 sharp\n1 Q0 b 2 2 sharp\n"
BROAD = "1 Q0 c 1 3 broad\n1 Q0 a 2 2 broad\n2 Q0 x 1 1 broad\n"
PATH = "/collections/small/what-if/"


@pytest.fixture
def browser() -> Client:
    return Client()


def test_a_slider_for_every_level_and_parameter_with_its_number(
    browser: Client, submit: Submit
) -> None:
    submit(SHARP)
    html = page(browser, PATH, g2="7.5", depth="20")
    sliders = re.findall(
        r'<input id="(\w+)" name="\w+" type="range" min="[\d.]+" max="[\d.]+" step="[\d.]+" value="([\d.]+)"',
        html,
    )
    assert dict(sliders) == {"depth": "20", "g1": "1", "g2": "7.5", "g3": "3", "b": "2", "p": "0.8"}
    assert '<output for="g2">7.5</output>' in html
    assert "<button>Rank the runs</button>" in html


def test_the_board_is_that_of_the_api(browser: Client, submit: Submit) -> None:
    submit(SHARP), submit(BROAD)
    html = page(browser, PATH, family="CG", g1="20", g2="1", depth="1")
    measure = "CG(gains='1:20,2:1')@1"
    board = browser.get("/api/v1/collections/small/what-if/", {"measures": measure}).json()[
        "combinations"
    ][0]
    means = [f"{place['mean']:.4f}" for place in board["leaderboard"]]
    assert re.findall(r"<strong>([\d.]+)</strong>", html) == means
    assert "with the ranking by" in html


def test_ranks_that_change_are_marked(browser: Client, submit: Submit) -> None:
    submit("1 Q0 a 1 3 high\n"), submit("1 Q0 c 1 3 low\n")
    assert "up" not in text_of(page(browser, PATH)).split("Rank Change")[1].split("Ranks of")[0]
    text = text_of(page(browser, PATH, family="CG", g1="20", g2="1", depth="1"))
    assert "1 ▲ up 1 low" in text
    assert "2 ▼ down 1 high" in text
    assert "-1.000" in text
    assert "2 of them differ" in text


@pytest.mark.parametrize(
    ("query", "measure"),
    [
        ({}, "nDCG(gains=&#x27;exp&#x27;)@10"),
        ({"family": "nDCG"}, "nDCG@10"),
        ({"dis": "jk", "b": "10"}, "nDCG(dis=&#x27;jk&#x27;,b=10)@10"),
        ({"family": "RBP", "p": "0.5"}, "RBP(p=0.5)@10"),
        ({"family": "CG", "dis": "jk"}, "CG@10"),
        ({"family": "nCG", "g1": "0", "g2": "0", "g3": "1"}, "nCG(gains="),
    ],
)
def test_the_controls_make_a_measure(
    browser: Client, submit: Submit, query: dict[str, str], measure: str
) -> None:
    submit(SHARP)
    assert f"<code>{measure}" in page(browser, PATH, **query)


@pytest.mark.slow
@pytest.mark.parametrize("query", [{"g1": "x"}, {"g1": "-1"}, {"b": "1"}, {"depth": "0"}, {"p": "1"}, {"family": "AP"},
                                   {"dis": "x"}, {"depth": "nan"}, {"g1": "1_0"}])  # fmt: skip
def test_a_control_beyond_its_range_says_so(
    browser: Client, submit: Submit, query: dict[str, str]
) -> None:
    submit(SHARP)
    html = page(browser, PATH, 400, **query)
    assert 'role="alert"' in html
    assert "Reset" in html


def test_every_shortcut_works(browser: Client, submit: Submit) -> None:
    submit(SHARP)
    shortcuts = re.findall(r'href="(\?family[^"]+)"', page(browser, PATH))
    assert len(shortcuts) == len(PRESETS)
    for shortcut in shortcuts:
        assert browser.get(PATH + shortcut.replace("&amp;", "&")).status_code == 200, shortcut


def test_several_settings_on_one_page_are_those_of_the_api(browser: Client, submit: Submit) -> None:
    submit(SHARP), submit(BROAD)
    query = {"gains": "0-1-1-1;0-1-10-100", "b": "2,10", "depths": "1,2", "preset": "impatient"}
    answer = browser.get("/api/v1/collections/small/what-if/", query).json()
    assert len(answer["combinations"]) == 9
    html = page(browser, PATH, **query)
    ranks, agreement = html.split("<tbody>")[1:3]
    rows = {
        match[1]: re.findall(r"<strong>(\d)</strong>|>\s*(\d)\s*<span", match[0])
        for match in re.finditer(r"<tr>.*?/runs/([\w-]+)/.*?</tr>", ranks, re.DOTALL)
    }
    boards = [answer["official"], *answer["combinations"]]
    expected = {
        run["id"]: [
            str(place["rank"])
            for board in boards
            for place in board["leaderboard"]
            if place["run"] == run["id"]
        ]
        for run in answer["runs"]
    }
    assert {run: [a or b for a, b in cells] for run, cells in rows.items()} == expected
    numbers = [float(text) for text in re.findall(r'number">(-?[\d.]+)<', agreement)]
    assert numbers == [
        pytest.approx(tau, abs=5e-4)
        for board, row in zip(answer["combinations"], answer["tau"], strict=True)
        for tau in (board["tau_official"], *row)
    ]
    assert '<th scope="row" class="fixed">impatient</th>' in agreement

    # The link to the JSON has the same settings.
    address = re.search(r'href="(/api/v1/collections/small/what-if/[^"]+)"', html)
    assert address
    assert browser.get(unescape(address[1])).json() == answer


def test_presets_are_taken_by_name_and_sliders_are_not_mixed_in(
    browser: Client, submit: Submit
) -> None:
    submit(SHARP)
    assert "2 settings" in text_of(page(browser, PATH, preset="patient,liberal"))
    assert "2 settings" in text_of(
        browser.get(f"{PATH}?preset=patient&preset=liberal").content.decode()
    )
    assert "depth belongs to the sliders" in text_of(
        page(browser, PATH, 400, preset="patient", depth="5")
    )
    assert 'role="alert"' in page(browser, PATH, 400, preset="nobody")


def test_states_without_a_board(browser: Client, api: Any, collection: str) -> None:
    assert "No runs to rank yet" in page(browser, PATH)
    Qrels.objects.update(active=False)
    assert "no active judgements" in page(browser, PATH)
    Collection.objects.update(blind=True)
    assert "until the organisers release them" in page(browser, PATH)


def test_an_order_is_made_once_until_something_changes(
    browser: Client, submit: Submit, monkeypatch: pytest.MonkeyPatch, answers_kept: None
) -> None:
    submit(SHARP)
    calls: list[Any] = []
    monkeypatch.setattr(
        "metrics.pages.boards.what_if.ask_what_if",
        lambda **options: calls.append(1) or ask_what_if(**options),
    )
    first = browser.get(PATH, {"g1": "20"})
    assert browser.get(PATH, {"g1": "20"}).content == first.content
    assert (
        browser.get(PATH, {"g1": "20"}, headers={"If-None-Match": first["ETag"]}).status_code == 304
    )
    assert len(calls) == 1
    assert browser.get(PATH, {"g1": "19"}).content != first.content
    submit(BROAD)
    assert "broad" in page(browser, PATH, g1="20")
    assert len(calls) == 3
    Collection.objects.update(blind=True)
    assert "ETag" not in browser.get(PATH, {"g1": "20"})
