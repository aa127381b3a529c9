"""Charts of session sets: they say what was chosen, and a system keeps its colour."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from metrics.charts.look import Look
from metrics.charts.sessions.charts import SESSION_CHARTS, SetChartRequest
from metrics.models import SessionEvaluation
from runs.models import SessionSet
from tests.conftest import SESSIONS
from tests.shared_data import alice, api, collection, module_data
from tests.web.test_session_pages import Send, send

pytestmark = pytest.mark.words

__all__ = ["alice", "api", "collection", "module_data", "send"]

QUERIES = ("last query", "best query", "other queries")


def test_a_chart_of_a_selection_says_what_was_chosen(send: Send) -> None:
    send()
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    chosen = {"measure": "sDCG", "topic": "1", "searcher": "u1", "least": "2"}
    figure = SESSION_CHARTS["curves"](SetChartRequest(evaluation, chosen))
    subtitle = " ".join(figure.draw(Look()).to_dict()["title"]["subtitle"])
    selection = "topic 1, searcher u1, sessions of at least 2 queries"
    assert subtitle == f"sDCG(b=2,bq=4)@10; {selection}; dashed: the ideal"
    assert f"Only {selection}. At position 20: B at " in figure.caption
    assert "(1 session)" in figure.caption
    chart = SESSION_CHARTS["session"](
        SetChartRequest(evaluation, {"session": "s2", "measure": "sDCG"})
    )
    whose = " ".join(chart.draw(Look()).to_dict()["title"]["subtitle"])
    assert whose.startswith(
        "topic 1, searcher u1, system B; sDCG(b=2,bq=4)@10: discounted cumulated gain"
    )
    # nsDCG is the measure of the table; the curve is not normalised.
    line = SESSION_CHARTS["session"](SetChartRequest(evaluation, {"session": "s2"})).draw(Look())
    titles = [layer["encoding"].get("y", {}).get("title") for layer in line.to_dict()["layer"]]
    assert "discounted cumulated gain" in titles


def test_all_and_the_longer_sessions_in_one_chart(send: Send, client: Client) -> None:
    path = send()
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    query = {"measure": "sDCG", "least": "2,1", "length": "15", "ideal": "false"}
    figure = SESSION_CHARTS["curves"](SetChartRequest(evaluation, query))
    assert figure.columns == ["Place", "A", "B", "B, at least 2 queries"]
    assert [row[0] for row in figure.rows] == ["1", "10", "15"]
    curves = f"/api/v1{path}curves/?measure=sDCG&length=15"
    every, longer = (
        {line["system"]: line["values"][14] for line in client.get(address).json()["curves"]}
        for address in (curves, f"{curves}&least=2")
    )
    assert every["B"] != longer["B"]
    values = [every["A"], every["B"], longer["B"]]
    assert figure.rows[2][1:] == [f"{value:.4f}" for value in values]

    # Above the lines are the points that have tooltips.
    layer, _ = figure.draw(Look()).to_dict()["layer"]
    colours = layer["encoding"]["color"]["scale"]["range"]
    assert (colours[0] == colours[1], colours[1] == colours[2]) == (False, True)
    assert layer["encoding"]["strokeDash"]["scale"]["range"] == [[1, 0], [1, 0], [2, 2]]
    assert "ideal" not in figure.caption

    address = f"/api/v1{path}charts/curves.json"
    assert client.get(address, query).status_code == 200
    for wrong in ("1,2,3", "0", "x"):
        answer = client.get(address, {"least": wrong})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "least")
    assert client.get(address, {"length": "401"}).json()["errors"][0]["pointer"] == "length"


def test_a_system_has_one_colour_whatever_is_chosen(send: Send) -> None:
    def colours(evaluation: SessionEvaluation, **query: str) -> dict[str, str]:
        figure = SESSION_CHARTS["curves"](
            SetChartRequest(evaluation, {"measure": "nsDCG", **query})
        )
        scale = figure.draw(Look()).to_dict()["layer"][1]["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    for tag, content in (
        ("old", SESSIONS),
        ("new", SESSIONS.replace('"A"', '"C"')),
        ("last", SESSIONS),
    ):
        send(content, tag=tag)
    sets = SessionEvaluation.objects.select_related("session_set").order_by(
        "session_set__created_at"
    )
    old, new, last = (colours(evaluation) for evaluation in sets)
    assert [*old] == ["A", "B", "ideal"]
    assert colours(sets[0], system="B") == {name: old[name] for name in ("B", "ideal")}
    assert colours(sets[0], least="2") == {name: old[name] for name in ("B", "ideal")}
    assert (last, [*new]) == (old, ["B", "C", "ideal"])
    assert (new["B"], new["C"] in old.values()) == (old["B"], False)
    SessionSet.objects.filter(tag="old").update(deleted_at=timezone.now())
    assert colours(sets[1]) == new


def test_last_best_and_other_queries_are_those_of_the_api(send: Send, client: Client) -> None:
    path = send()
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    figure = SESSION_CHARTS["queries"](SetChartRequest(evaluation, {"measure": "sDCG@2"}))
    # With A every session has one query.
    assert figure.columns == [
        "Rank",
        "A, last query",
        "A, best query",
        *(f"B, {n}" for n in QUERIES),
    ]
    curves = client.get(f"/api/v1{path}queries/", {"measure": "sDCG@2"}).json()["curves"]
    lines = [curves[kind][0] for kind in ("last", "best")] + [
        curves[kind][1] for kind in ("last", "best", "others")
    ]
    assert figure.rows == [
        [str(rank + 1), *(f"{line['values'][rank]:.4f}" for line in lines)] for rank in range(2)
    ]
    assert "B, other queries at 0.0000 (1)" in figure.caption
    drawn = figure.draw(Look()).to_dict()["layer"][0]["encoding"]
    assert (
        drawn["color"]["scale"]["range"][0]
        == drawn["color"]["scale"]["range"][1]
        != drawn["color"]["scale"]["range"][2]
    )
    assert drawn["strokeDash"]["scale"]["range"] == [[1, 0], [2, 2], [1, 0], [2, 2], [6, 4]]


def test_single_sessions_are_of_one_system_and_topic(send: Send) -> None:
    lines = SESSIONS.splitlines()
    send("\n".join([*lines, lines[1].replace('"s2"', '"s6"').replace('"u1"', '"u2"')]) + "\n")
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    chosen = {"measure": "sDCG@2", "system": "B", "topic": "1"}
    figure = SESSION_CHARTS["sessions"](SetChartRequest(evaluation, chosen))
    assert figure.columns == ["Session", "position 1", "position 2", "position 4"]
    assert [row[0] for row in figure.rows] == ["mean", "session s2", "session s6"]
    assert figure.rows[0][1:] == figure.rows[1][1:] == ["0.0000", "0.0000", "0.6667"]
    assert "of 2 sessions with B" in figure.caption
    assert "Only topic 1, system B." in figure.caption
    # The system's colour in the chart of mean curves.
    curves = (
        SESSION_CHARTS["curves"](SetChartRequest(evaluation, {}))
        .draw(Look())
        .to_dict()["layer"][1]["encoding"]
    )
    scale = figure.draw(Look()).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale["range"][0] == curves["color"]["scale"]["range"][1]
    first = SESSION_CHARTS["sessions"](SetChartRequest(evaluation, {}))
    assert "with A, each" in first.caption
    assert "Only topic 1, system A." in first.caption


def test_averaged_vectors_are_drawn_and_have_no_values(send: Send, client: Client) -> None:
    path, measure = send(), "nsDCG(norm='average')"
    curves = client.get(f"/api/v1{path}curves/", {"measure": measure}).json()["curves"]
    raw = client.get(f"/api/v1{path}curves/", {"measure": "sDCG"}).json()["curves"]
    for ratio, parts in zip(curves, raw, strict=True):
        assert ratio["values"] == pytest.approx(
            [a / b for a, b in zip(parts["values"], parts["ideal"], strict=True)]
        )
    assert client.get(path, {"measure": measure}).status_code == 200
    refused = client.get(f"/api/v1{path}values/", {"measures": measure})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "measures")


def test_more_systems_than_colours_are_told_apart(send: Send) -> None:
    names = [f"S{number:02}" for number in range(12)]
    lines = [
        SESSIONS.splitlines()[0].replace('"A"', f'"{name}"').replace("s1", f"s{name}")
        for name in names
    ]
    send("\n".join(lines) + "\n")
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    send(f"{lines[0]}\n{lines[8]}\n", tag="both")
    figure = SESSION_CHARTS["curves"](
        SetChartRequest(SessionEvaluation.objects.exclude(pk=evaluation.pk).get(), {})
    )
    scale = figure.draw(Look()).to_dict()["layer"][1]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["S00", "S08", "ideal"]
    assert len(set(scale["range"])) == 3
