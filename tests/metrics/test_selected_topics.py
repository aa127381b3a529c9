"""Selected topics of one run, and of curves: its page, and what is computed from judged views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient
from scipy import stats

from runs.models import Collection, Run, TopicAttributes
from tests.conftest import GOOD, POOR
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.test_pages import text_of

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
CHOSEN = {"topics": "type:navigational"}


@pytest.fixture(scope="module")
def pair(submit: Callable[..., Run]) -> tuple[Run, Run]:
    """Two runs on three topics, of which the first and the last are navigational."""
    pair = submit(GOOD), submit(POOR)
    TopicAttributes.objects.bulk_create(
        TopicAttributes(collection=pair[0].collection, topic_id=topic, attributes={"type": text})
        for topic, text in (("1", "navigational"), ("2", "informational"), ("3", "navigational"))
    )
    Collection.objects.update(attribute_keys=["type"])
    return pair


def answer_of(address: str, **query: str) -> Any:
    answer = APIClient().get(f"/api/v1/{address}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def chosen_of(curve: dict[str, Any]) -> Any:
    """Return the curves of the navigational topics, of a curve of all of them."""
    return np.array([t["values"] for t in curve["topics"] if t["topic_id"] in ("1", "3")])


@pytest.mark.parametrize(
    "measures", ["nDCG,DCG(dis='jk')", "P,R,F,GP", "nDCG(norm='average')", "nCG(gains='exp')"]
)
def test_curves_are_of_the_selected_topics(pair: tuple[Run, Run], measures: str) -> None:
    query = {"measures": measures, "depth": "4", "per_topic": "true"}
    for run in pair:
        whole = answer_of(f"runs/{run.pk}/curve/", **query)
        body = answer_of(f"runs/{run.pk}/curve/", **query, **CHOSEN)
        assert (body["topics_filter"], body["topics_selected"]) == ("type:navigational", 2)
        for curve, of_all in zip(body["curves"], whole["curves"], strict=True):
            chosen = chosen_of(of_all)
            assert np.array([t["values"] for t in curve["topics"]]) == pytest.approx(chosen)
            if "average" not in measures:
                assert curve["mean"] == pytest.approx(chosen.mean(axis=0))
                half = stats.t.ppf(0.975, 1) * stats.sem(chosen)
                assert curve["low"] == pytest.approx(chosen.mean(axis=0) - half)

        # Everything selected is the same as no selection.
        everything = answer_of(f"runs/{run.pk}/curve/", **query, topics="topic:*")
        for curve, of_all in zip(everything["curves"], whole["curves"], strict=True):
            assert curve["mean"] == pytest.approx(of_all["mean"], rel=1e-12)
            assert curve["ideal"] == pytest.approx(of_all["ideal"], rel=1e-12)


def test_the_ratio_of_averaged_vectors_is_of_the_selected_topics(pair: tuple[Run, Run]) -> None:
    query = {"depth": "4", "per_topic": "true"}
    run = pair[1]
    raw, ideal = (
        chosen_of(answer_of(f"runs/{run.pk}/curve/", measures=name, **query)["curves"][0])
        for name in ("CG", "IdealCG")
    )
    body = answer_of(f"runs/{run.pk}/curve/", measures="nCG(norm='average')", depth="4", **CHOSEN)
    assert body["curves"][0]["mean"] == pytest.approx(raw.sum(axis=0) / ideal.sum(axis=0))


def test_readings_are_of_the_selected_topics(pair: tuple[Run, Run]) -> None:
    query = {"measures": "CG,R", "depth": "3", "readings": "true", **CHOSEN}
    answers = [answer_of(f"runs/{run.pk}/curve/", **query) for run in pair]
    for body in answers:
        for curve in body["curves"]:
            mean, ideal = np.array(curve["mean"]), np.array(curve["ideal"])
            needed = [
                next((rank for rank in (1, 2, 3) if mean[rank - 1] >= value - 1e-12), None)
                for value in ideal
            ]
            assert curve["readings"]["needed"] == needed
            assert curve["readings"]["missed"] == pytest.approx(ideal - mean)

    # Several runs at once have the same curves, and are read against the best of them.
    together = answer_of("collections/small/curves/", **query)
    assert together["topics_selected"] == 2
    for entry, body in zip(together["runs"], answers, strict=True):
        for curve, alone in zip(entry["curves"], body["curves"], strict=True):
            assert curve["mean"] == alone["mean"]
            assert curve["readings"]["needed"] == alone["readings"]["needed"]


def test_precision_over_recall_is_of_the_selected_topics(pair: tuple[Run, Run]) -> None:
    query = {"points": "3", "rel": "all"}
    for run in pair:
        address = f"runs/{run.pk}/precision-recall/"
        whole = answer_of(address, **query, per_topic="true")
        body = answer_of(address, **query, **CHOSEN)
        means = [chosen_of(curve).mean(axis=0) for curve in whole["curves"]]
        for curve, mean in zip(body["curves"], means, strict=True):
            assert curve["mean"] == pytest.approx(mean)

        together = answer_of("collections/small/precision-recall/", **query, **CHOSEN)
        (entry,) = [entry for entry in together["runs"] if entry["id"] == str(run.pk)]
        assert [curve["mean"] for curve in entry["curves"]] == [
            curve["mean"] for curve in body["curves"]
        ]


def test_charts_say_which_topics_they_are_of(pair: tuple[Run, Run]) -> None:
    client, sentence = APIClient(), "On 2 of 3 topics: type:navigational."
    run = f"/api/v1/runs/{pair[0].pk}/charts/"
    for address in (
        f"{run}curve.svg",
        f"{run}precision-recall.svg",
        f"{run}distribution.svg?measure=AP",
        f"{run}topics.svg?measure=AP",
        "/api/v1/collections/small/charts/curves.svg",
        "/api/v1/collections/small/charts/precision-recall.svg",
    ):
        mark = "&" if "?" in address else "?"
        answer = client.get(f"{address}{mark}topics=type:navigational")
        assert answer.status_code == 200, answer.content
        assert sentence in answer.content.decode(), address
        assert sentence not in client.get(address).content.decode()

    # A ranking is of one topic.
    assert client.get(f"{run}ranking.svg?topic=1&topics=topic:1").status_code == 400


def test_the_pages_of_a_run_are_of_the_selected_topics(
    pair: tuple[Run, Run], api: APIClient
) -> None:
    page = f"/runs/{pair[1].pk}/"
    html = api.get(page, CHOSEN).content.decode()
    text = text_of(html)
    sentence = "On 2 of 3 topics: type:navigational."
    value = answer_of(f"runs/{pair[1].pk}/values/", **CHOSEN)["means"]["nDCG@10"]["mean"]
    assert f"2nd of 2, nDCG@10 {value:.4f}" in text
    assert text.count(f"{value:.4f}") >= 2
    # Above the page and below its chart.
    assert text.count(sentence) == 2
    assert "Only 2 topics selected" in text
    # The summary counts the topics that are selected.
    assert "Topics 2 num_q" in text
    # The tabs and the files keep the selection.
    assert 'topics/?topics=type%3Anavigational"' in html
    assert "values/export/csv/?topics=type%3Anavigational" in html
    assert 'value="type:navigational"' in html

    topics = api.get(f"{page}topics/", CHOSEN).content.decode()
    assert text_of(topics).count(sentence) == 3
    assert "?topic=3" in topics
    assert "?topic=2" not in topics
    curves = text_of(api.get(f"{page}curves/", CHOSEN).content.decode())
    assert curves.count(sentence) == 3
    assert "the mean of 2 topics" in curves

    for part in ("", "topics/", "curves/"):
        broken = api.get(f"{page}{part}", {"topics": "type"})
        assert broken.status_code == 400
        assert text_of(broken.content.decode()).count("write a key, a colon and a value") == 1
        none = api.get(f"{page}{part}", {"topics": "type:other"})
        assert none.status_code == 200
        words = text_of(none.content.decode())
        assert words.count("none of the 3 topics is selected by type:other") == 1


def test_curves_of_a_comparison_are_of_its_topics(pair: tuple[Run, Run]) -> None:
    query = {"runs": f"{pair[0].pk},{pair[1].pk}", "depth": "10", **CHOSEN}
    html = APIClient().get("/collections/small/comparison/", query).content.decode()
    assert "the mean of 2 topics" in text_of(html)
    assert "topics=type%3Anavigational&amp;readings=true" in html


def test_reasons_are_of_the_selected_topics(pair: tuple[Run, Run]) -> None:
    address, measures = f"runs/{pair[1].pk}/values/", "ASL,AP"
    whole = answer_of(address, measures=measures)
    body = answer_of(address, measures=measures, **CHOSEN)
    chosen = [topic for topic in whole["topics"] if topic["topic_id"] in ("1", "3")]
    assert body["topics"] == chosen
    assert any(topic["undefined"] for topic in chosen)
    assert body["means"]["AP"]["mean"] == np.mean([topic["values"]["AP"] for topic in chosen])
