"""Charts of session sets: they say what was chosen, and a system keeps its colour."""

from __future__ import annotations

import pytest
from django.utils import timezone

from metrics.charts.look import Look
from metrics.charts.sessions.charts import SESSION_CHARTS, AskedOfSet
from metrics.models import SessionEvaluation
from runs.models import SessionSet
from tests.conftest import SESSIONS
from tests.web.test_session_pages import Send, send

pytestmark = pytest.mark.words

__all__ = ["send"]


def test_a_chart_of_a_selection_says_what_was_chosen(send: Send) -> None:
    send()
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    chosen = {"measure": "sDCG", "topic": "1", "searcher": "u1", "least": "2"}
    figure = SESSION_CHARTS["curves"](AskedOfSet(evaluation, chosen))
    subtitle = " ".join(figure.draw(Look()).to_dict()["title"]["subtitle"])
    said = "topic 1, searcher u1, sessions of at least 2 queries"
    assert subtitle == f"sDCG(b=2,bq=4)@10; {said}; dashed: the ideal"
    assert f"Only {said}. At position 20: B at " in figure.caption
    assert "(1 session)" in figure.caption
    one = SESSION_CHARTS["session"](AskedOfSet(evaluation, {"session": "s2", "measure": "sDCG"}))
    whose = " ".join(one.draw(Look()).to_dict()["title"]["subtitle"])
    assert whose.startswith("topic 1, searcher u1, system B; sDCG(b=2,bq=4)@10: cumulated discounted gain")


def test_a_system_has_one_colour_whatever_is_chosen(send: Send) -> None:
    def colours(evaluation: SessionEvaluation, **query: str) -> dict[str, str]:
        figure = SESSION_CHARTS["curves"](AskedOfSet(evaluation, {"measure": "nsDCG", **query}))
        scale = figure.draw(Look()).to_dict()["layer"][1]["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    for tag, content in (("old", SESSIONS), ("new", SESSIONS.replace('"A"', '"C"')), ("last", SESSIONS)):
        send(content, tag=tag)
    sets = SessionEvaluation.objects.select_related("session_set").order_by("session_set__created_at")
    old, new, last = (colours(evaluation) for evaluation in sets)
    assert [*old] == ["A", "B", "ideal"]
    assert colours(sets[0], system="B") == {name: old[name] for name in ("B", "ideal")}
    assert colours(sets[0], least="2") == {name: old[name] for name in ("B", "ideal")}
    assert (last, [*new]) == (old, ["B", "C", "ideal"])
    assert (new["B"], new["C"] in old.values()) == (old["B"], False)
    SessionSet.objects.filter(tag="old").update(deleted_at=timezone.now())
    assert colours(sets[1]) == new


def test_more_systems_than_colours_are_told_apart(send: Send) -> None:
    names = [f"S{number:02}" for number in range(12)]
    lines = [SESSIONS.splitlines()[0].replace('"A"', f'"{name}"').replace("s1", f"s{name}") for name in names]
    send("\n".join(lines) + "\n")
    evaluation = SessionEvaluation.objects.select_related("session_set").get()
    send(f"{lines[0]}\n{lines[8]}\n", tag="both")
    figure = SESSION_CHARTS["curves"](AskedOfSet(SessionEvaluation.objects.exclude(pk=evaluation.pk).get(), {}))
    scale = figure.draw(Look()).to_dict()["layer"][1]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["S00", "S08", "ideal"]
    assert len(set(scale["range"])) == 3
