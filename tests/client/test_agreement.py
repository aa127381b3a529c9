"""Values of another program beside EvalHub's: what is the same, and the reason of what is not."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.client.agreement import Agreement, OtherValues, agreement_row
from evalhub.client.answers import Values

OURS = {"1": 0.51234, "2": 0.25, "3": 0.0}
NAN = float("nan")


def values(
    by_topic: dict[str, float | None], mean: float | None = None, aggregate: str = "mean"
) -> Values:
    known = [value for value in by_topic.values() if value is not None]
    mean = sum(known) / len(known) if mean is None else mean
    topics: list[dict[str, Any]] = [
        {
            "topic_id": topic,
            "values": {"AP": value},
            "undefined": {} if value is not None else {"AP": "no_pair"},
        }
        for topic, value in by_topic.items()
    ]
    return Values(
        {
            "means": {"AP": {"mean": mean, "topics": len(known), "aggregate": aggregate}},
            "topics": topics,
        }
    )


def mean_of(by_topic: dict[str, float]) -> OtherValues:
    return OtherValues(sum(by_topic.values()) / len(by_topic), by_topic)


def test_equal_values_have_no_reason() -> None:
    row = agreement_row(
        "bm25",
        "map",
        mean_of({topic: value + 1e-15 for topic, value in OURS.items()}),
        values(OURS),
    )
    assert (row["topics"], row["differing"], row["reason"]) == (3, 0, "")
    assert row["largest"] < 1e-12
    agreement = Agreement({"collection": "c", "results": [row]})
    assert agreement.differences == []
    assert agreement.text() == "1 runs and 1 measures: every value is EvalHub's."


@pytest.mark.parametrize(
    ("theirs", "ours", "reason"),
    [
        (
            mean_of({"1": 0.51234, "2": 0.25}),
            values(OURS),
            "the mean there is over 2 topics, over which EvalHub's mean is 0.38117, here over 3",
        ),
        (mean_of({**OURS, "9": 0.5}), values(OURS), "1 topic (9): in the mean there, not judged here"),
        (OtherValues(0.25, {"1": 0.51, "2": 0.25, "3": 0.0}), values(OURS), "values there are rounded to 2 decimals"),
        (OtherValues(0.2541, {}), values(OURS), "the mean there is rounded to 4 decimals"),
        (OtherValues(0.3, {}), values(OURS), "only means are known there, so that no topic can be compared"),
        (OtherValues(sum(OURS.values()), OURS), values(OURS), "it is the sum over topics there, the mean here"),
        (
            OtherValues(sum(OURS.values()) / 3, OURS),
            values(OURS, mean=0.76234, aggregate="sum"),
            "it is the mean over topics there, the sum here",
        ),
        (OtherValues(NAN, {**OURS, "9": NAN}), values(OURS), "its mean there is not a number: topics without judgements"),
        (
            mean_of({**OURS, "4": 0.0}),
            values({**OURS, "4": None}),
            "1 topic (4): no value here (no_pair), 0 there",
        ),
        (mean_of(OURS), values({**OURS, "2": 0.3}), "1 topic (2): not explained; 2 has 0.25 there, 0.3 here"),
    ],
)  # fmt: skip
def test_every_difference_has_its_reason(theirs: OtherValues, ours: Values, reason: str) -> None:
    row = agreement_row("bm25", "map", theirs, ours)
    assert row["reason"].startswith(reason)


def test_what_is_known_of_a_topic_is_told_and_the_rest_is_not_explained() -> None:
    requests = []

    def explain(topics: Any) -> dict[str, str]:
        requests.extend(topics)
        return {"1": "2 documents are judged differently"}

    row = agreement_row(
        "bm25", "map", mean_of({"1": 0.4, "2": 0.3, "3": 0.0}), values(OURS), explain
    )
    assert requests == ["1", "2"]
    assert row["differing"] == 2
    assert row["largest"] == pytest.approx(0.11234)
    assert row["reason"].startswith(
        "1 topic (1): 2 documents are judged differently; 1 topic (2): not explained"
    )
    text = Agreement({"results": [row]}).text()
    assert text == f"bm25, map: {row['reason']}"


def test_values_that_happen_to_have_few_decimals_are_not_called_rounded() -> None:
    row = agreement_row(
        "bm25",
        "P_5",
        mean_of({"1": 0.4, "2": 0.6, "3": 0.2}),
        values({"1": 0.4, "2": 0.8, "3": 0.2}),
    )
    assert "rounded" not in row["reason"]
