"""The pages of search sessions, as a browser without scripts asks for them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import altair as alt
import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.charts.look import PALETTES, SIZES, Look
from metrics.charts.sessions.charts import SESSION_CHARTS, SetChartRequest
from metrics.engine.sessions.grammar import parse_session_measure
from metrics.models import Evaluation, SessionEvaluation
from metrics.services.sessions.analyses import read_session_curves
from metrics.services.sessions.values import SessionSelection, choose_sessions
from runs.models import Collection, SessionSet
from tests.conftest import SESSIONS, client_of, evaluate_all_sessions, upload
from tests.shared_data import alice, api, collection, module_data
from tests.web.test_pages import HOSTILE, SCRIPT_OR_STYLE, new_qrels, page, text_of

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words

Send = Callable[..., str]
BOARD = "/collections/small/sessions/"
ODD = (
    '{"session_id": "a/b", "topic_id": "1", "queries": [{"text": "TEXT", "documents": ["a"], "clicked": ["a"]}, '
    '{"documents": []}]}\n{"session_id": "..", "topic_id": "9", "queries": [{"documents": ["a"]}]}\n'
).replace("TEXT", HOSTILE.replace('"', '\\"'))


@pytest.fixture
def browser() -> Client:
    return Client()


@pytest.fixture(scope="module")
def send(api: APIClient, collection: str) -> Send:
    """Submit a log of Alice's and evaluate it, unless told not to; returns the path of its page."""

    def submit(content: str = SESSIONS, evaluate: bool = True, **query: Any) -> str:
        answer = upload(api, "collections/small/sessions/", content, **{"tag": "log", **query})
        assert answer.status_code == 202, answer.content
        if evaluate:
            evaluate_all_sessions()
        return f"/session-sets/{answer.json()['id']}/"

    return submit


def cells(html: str, region: str) -> list[list[str]]:
    """The rows of the table in one region of a page."""
    table = html.split(f'aria-label="{region}"')[1].split("</table>", maxsplit=1)[0]
    rows = re.findall(r"<tr.*?</tr>", table.split("<tbody>")[1], re.DOTALL)
    return [
        [text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows
    ]


def test_a_set_has_the_means_of_the_api(browser: Client, send: Send) -> None:
    path = send()
    html, values = page(browser, path), browser.get(f"/api/v1{path}values/").json()
    means = [[f"{mean['mean']:.4f}" for mean in row["means"].values()] for row in values["systems"]]
    rows = cells(html, "Means by system")
    assert [(row[0], row[2:]) for row in rows[:2]] == [("A", means[0]), ("B", means[1])]
    assert rows[2][:2] == ["all", "4"]
    sessions = cells(html, "Sessions")
    assert [row[:5] for row in sessions][1] == ["s2", "1", "u1", "B", "2"]
    assert [row[5:] for row in sessions] == [
        [f"{value:.4f}" if value is not None else "–" for value in row["values"].values()]
        for row in values["sessions"]
    ]


def test_a_set_says_what_it_is(browser: Client, send: Send) -> None:
    path = send(description="What it is")
    text = text_of(page(browser, path))
    stored = SessionSet.objects.get()
    for words in (
        stored.sha256,
        "jsonl",
        "Judged by topic",
        "qrels v1",
        "What it is",
        "Sessions judged 4 of 4",
    ):
        assert words in text, words


def test_lengths_and_reformulations(browser: Client, send: Send) -> None:
    html = page(browser, send())
    assert cells(html, "Sessions by number of queries") == [
        ["A", "2", "0", "2", "1.00"], ["B", "1", "1", "2", "1.50"], ["all", "3", "1", "4", "1.25"],
    ]  # fmt: skip
    assert cells(html, "Reformulations") == [
        ["A", "0", "0", "0", "–"],
        ["B", "1", "0", "0", "100%"],
    ]


def test_many_queries_share_the_last_column(browser: Client, send: Send) -> None:
    queries = ",".join(['{"documents": ["a"]}'] * 30)
    path = send(f'{{"session_id": "long", "topic_id": "1", "queries": [{queries}]}}\n')
    html = page(browser, path)
    assert "12 and more" in html
    assert cells(html, "Sessions by number of queries") == [
        ["not named", *["0"] * 11, "1", "1", "30.00"]
    ]
    assert "1–30" not in text_of(page(browser, f"{path}sessions/long/"))


def test_the_curve_ends_at_the_mean(browser: Client, send: Send) -> None:
    path = send()
    text = text_of(page(browser, path))
    ends = {
        curve["system"]: curve["values"][-1]
        for curve in browser.get(f"/api/v1{path}curves/").json()["curves"]
    }
    assert f"A at {ends['A']:.4f} (2 sessions), B at {ends['B']:.4f} (2 sessions)" in text
    assert "ideal of A" in text_of(page(browser, path, measure="sDCG"))


def test_a_selection_holds_for_the_whole_page(browser: Client, send: Send) -> None:
    path = send()
    html = page(browser, path, least="2", system="")
    assert [row[0] for row in cells(html, "Sessions")] == ["s2"]
    assert [row[0] for row in cells(page(browser, path, system="A"), "Sessions")] == ["s1", "s4"]
    assert "no session here has a value, so there is nothing to draw" in page(
        browser, path, least="9"
    )


@pytest.mark.parametrize("query", [{"measures": "nDCG"}, {"measure": "x"}, {"least": "0"}, {"system": "nobody"},
                                   {"measure": "Query(of='AP')"}, {"offset": "-1"}, {"qrels": "x"}])  # fmt: skip
def test_a_bad_parameter_is_a_problem_on_the_page(
    browser: Client, send: Send, query: dict[str, str]
) -> None:
    html = page(browser, send(), 400, **query)
    assert 'role="alert"' in html
    assert "Provenance" in html


def test_a_session_from_query_to_query(browser: Client, send: Send) -> None:
    path = send() + "sessions/s2/"
    html, session = page(browser, path), browser.get(f"/api/v1{path}").json()
    text = text_of(html)
    for number, query in enumerate(session["queries"], 1):
        assert (
            f"Contribution {query['contribution']:.4f} of {query['ideal']:.4f} at best"
            in text.replace(" b ", " ")
        )
        listed = [[str(d["rank"]), d["doc_id"], "unjudged" if d["level"] is None else str(d["level"])]
                  for d in query["documents"]]  # fmt: skip
        assert cells(html, f"Ranking of query {number}") == listed
    assert "2. “again” gained +" in text
    assert f"nsDCG(b=2,bq=4)@10 {session['value']:.4f}" in text
    assert 'rel="prev" href="/session-sets/' in html
    assert [int(row[1]) for row in cells(html, "Data of the chart")] == session["starts"][1:]


def test_odd_names_and_texts_are_harmless(browser: Client, send: Send) -> None:
    path = send(ODD)
    html = page(browser, path)
    links = re.findall(rf'href="({path}sessions/[^"]+)"', html)
    assert links == [f"{path}sessions/1/", f"{path}sessions/2/"]
    first, second = (browser.get(link) for link in links)
    assert not SCRIPT_OR_STYLE.search(first.content)
    assert "clicked" in text_of(first.content.decode())
    assert "The query returned nothing" in first.content.decode()
    assert "This session is not judged" in second.content.decode()
    for link in re.findall(
        r'src="([^"]+svg[^"]+)"', first.content.decode() + second.content.decode()
    ):
        assert browser.get(link.replace("&amp;", "&")).status_code == 200, link


def test_a_session_that_is_not_there(browser: Client, send: Send) -> None:
    path = send()
    assert "No session of this set" in page(browser, f"{path}sessions/nobody/", 404)
    assert "has no curve" in page(browser, f"{path}sessions/s1/", 400, measure="Query(of='AP')")
    assert "documents" in page(browser, f"{path}sessions/s1/", 400, documents="0")


def test_the_board_and_the_comparison_are_those_of_the_api(browser: Client, send: Send) -> None:
    send()
    measure = "sDCG(b=3)"
    html = page(browser, BOARD, measure=measure)
    board = browser.get(
        "/api/v1/collections/small/session-leaderboard/", {"measures": measure}
    ).json()
    name = board["sort"]
    assert [row[:4] for row in cells(html, "Systems")] == [
        [
            str(row["rank"]),
            row["name"],
            str(row["values"][name]["sessions"]),
            f"{row['values'][name]['mean']:.4f}",
        ]
        for row in board["results"]
    ]
    compared = browser.get(
        "/api/v1/collections/small/session-comparison/", {"measure": measure}
    ).json()
    pair, text = compared["pairs"][0], text_of(html)
    assert [row[4] for row in cells(html, "Systems")] == [
        f"{max(system['low'], 0):.4f} to {system['high']:.4f}" for system in compared["systems"]
    ]
    for kind in ("csv", "md", "tex"):
        for what in ("leaderboard", "comparison"):
            address = re.findall(rf'"([^"]*session-{what}/export/{kind}/[^"]*)"', html)[0]
            assert browser.get(address.replace("&amp;", "&")).status_code == 200
    assert compared["design"]["reason"] in text
    row = cells(html, "Pairs of systems")[0]
    assert row[:2] == [pair["a"], pair["b"]]
    assert row[2] == f"{pair['difference']:+.4f}".replace("-", "\N{MINUS SIGN}")
    assert f"{pair['low']:+.4f}".replace("-", "\N{MINUS SIGN}") in row[3]
    assert f"{pair['p_value']:.4f}" in row
    assert "Session sets" in text


def test_systems_are_compared_as_the_form_says(browser: Client, send: Send) -> None:
    send()
    html = page(browser, BOARD, design="unpaired", test="mann_whitney", baseline="alice/log:B")
    assert '<option value="mann_whitney" selected>' in html
    assert "Cliff" in html
    assert [row[:2] for row in cells(html, "Pairs of systems")] == [["alice/log:A", "alice/log:B"]]
    unfit = page(browser, BOARD, 400, design="paired", test="mann_whitney")
    assert "does not fit the paired design" in unfit
    assert "Compare as detected" in unfit


@pytest.mark.parametrize(
    "query", [{"measure": "x"}, {"judged_by": "x"}, {"offset": "x"}, {"design": "x"}]
)
def test_a_bad_question_to_the_board_is_a_problem_on_it(
    browser: Client, send: Send, query: dict[str, str]
) -> None:
    send()
    assert 'role="alert"' in page(browser, BOARD, 400, **query)


def test_a_collection_says_how_many_session_sets_it_has(browser: Client, send: Send) -> None:
    assert "No sessions yet" in page(browser, BOARD)
    before = browser.get("/collections/small/")
    assert "session set" not in before.content.decode()
    send()
    after = browser.get("/collections/small/", headers={"If-None-Match": before["ETag"]})
    assert "(1 session set)" in text_of(after.content.decode())


def test_one_system_is_not_compared(browser: Client, send: Send) -> None:
    send(SESSIONS.replace('"B"', '"A"'))
    assert "needs 2 to 50 systems" in text_of(page(browser, BOARD))


def test_a_set_that_waits_says_so_and_asks_again(browser: Client, send: Send) -> None:
    path = send(evaluate=False)
    html = page(browser, path)
    assert "Position 1 in the queue" in html
    assert f'hx-get="{path}status/"' in html
    assert "HX-Refresh" not in browser.get(f"{path}status/")
    assert "No session set has been evaluated yet" in page(browser, BOARD)
    evaluate_all_sessions()
    assert browser.get(f"{path}status/")["HX-Refresh"] == "true"


def test_a_set_that_failed_says_why(browser: Client, send: Send) -> None:
    path = send(evaluate=False)
    SessionEvaluation.objects.update(
        state=Evaluation.State.FAILED, error_code="x", error_message="out of luck"
    )
    assert "Failed: out of luck" in text_of(page(browser, path))
    assert "1 failed" in text_of(page(browser, BOARD))


def test_stale_values_are_marked(browser: Client, api: APIClient, send: Send) -> None:
    path = send()
    new_qrels(api)
    for address in (path, f"{path}sessions/s1/"):
        assert "stale, qrels v1" in page(browser, address)
    assert 'class="stale"' in page(browser, BOARD)
    evaluate_all_sessions()
    assert "stale" not in text_of(page(browser, path))
    assert "stale, qrels v1" in page(browser, path, qrels="1")


def test_blind_pages_show_nothing_of_the_judgements(
    browser: Client, alice: Any, send: Send
) -> None:
    path = send()
    Collection.objects.update(blind=True)
    for address in (path, f"{path}status/", f"{path}sessions/s1/"):
        assert browser.get(address).status_code == 404, address
    assert "until the organisers release them" in page(browser, BOARD)
    assert "log" not in text_of(page(browser, BOARD).rpartition("</nav>")[2]).split()
    browser.force_login(alice)
    assert "Means by system" in page(browser, path)


def test_a_deleted_set_is_gone(browser: Client, api: APIClient, send: Send) -> None:
    path = send()
    assert api.delete(f"/api/v1{path}").status_code == 204
    assert page(browser, path, 404)
    assert "No sessions yet" in page(browser, BOARD)


def test_more_sessions_need_no_more_queries(
    browser: Client, send: Send, django_assert_max_num_queries: Any
) -> None:
    path = send("".join(re.sub('"(s[0-9])"', rf'"{number}\1"', SESSIONS) for number in range(60)))
    with django_assert_max_num_queries(9):
        html = page(browser, path)
    assert "1–100 of 240" in text_of(html)
    with django_assert_max_num_queries(8):
        page(browser, f"{path}sessions/7s1/")
    with django_assert_max_num_queries(14):
        page(browser, BOARD)


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSION_CHARTS)
def test_every_chart_comes_in_every_format_and_look(client: Client, send: Send, name: str) -> None:
    path = f"/api/v1{send()}charts/{name}"
    svg = client.get(f"{path}.svg")
    assert svg.status_code == 200, svg.content
    ET.fromstring(svg.content)
    for form, start in {"png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}.items():
        assert client.get(f"{path}.{form}").content.startswith(start)
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    figure = SESSION_CHARTS[name](SetChartRequest(evaluation, {"session": "s2", "measure": "sDCG"}))
    for theme, size in [(theme, size) for theme in PALETTES for size in SIZES]:
        chart = figure.draw(Look(theme, size, linked=True))
        assert isinstance(chart, alt.LayerChart)
        chart.to_dict()


@pytest.mark.parametrize(
    ("query", "status"),
    [("curves.svg?measure=Query(of='AP')", 400), ("curves.svg?least=9", 400), ("session.svg?session=nobody", 404),
     ("nothing.svg", 404), ("curves.gif", 404), ("curves.svg?theme=x", 400)],
)  # fmt: skip
def test_what_cannot_be_drawn_says_why(client: Client, send: Send, query: str, status: int) -> None:
    assert client.get(f"/api/v1{send()}charts/{query}").status_code == status


def test_a_curves_table_has_the_values_of_the_curve(send: Send) -> None:
    send()
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    figure = SESSION_CHARTS["curves"](SetChartRequest(evaluation, {}))
    chosen = choose_sessions(evaluation=evaluation, selection=SessionSelection())
    drawn = read_session_curves(chosen=chosen, measure=parse_session_measure("nsDCG"))
    assert figure.columns == ["Place", "A", "B", "ideal"]
    assert figure.rows == [
        [str(place), *(f"{curve[place - 1]:.4f}" for curve in drawn.curves.values), "1.0000"]
        for place in (1, 10, 20)
    ]


def test_a_strangers_token_sees_no_chart_of_a_private_collection(send: Send, bob: Any) -> None:
    path = send()
    Collection.objects.update(visibility="private")
    assert client_of(bob).get(f"/api/v1{path}charts/curves.svg").status_code == 404
