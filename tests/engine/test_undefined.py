"""Why a topic has no value."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.measures import MEASURES
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.measures.undefined import REASONS
from tests.engine.build import judged_run

# A topic with all found, one with a part found, one with nothing found, one without a relevant
# document, one without an answer, and one whose judged documents are all relevant.
QRELS = {
    "all": {"a": 2, "n": 0}, "part": {"a": 1, "b": 1, "n": 0}, "none": {"a": 1}, "poor": {"n": 0}, "lost": {"a": 1},
}  # fmt: skip
RUN = {
    "all": {"a": 3, "n": 2, "x": 1}, "part": {"n": 2, "b": 1}, "none": {"x": 2, "n": 1}, "poor": {"n": 1},
}  # fmt: skip
LOST, NOTHING = "relevant_document_not_retrieved", "no_relevant_document"


@pytest.mark.parametrize(
    ("measure", "reasons"),
    [
        ("SearchLength", [None, None, LOST, NOTHING, LOST]),
        ("SearchLength(missing='last',documents=2)", [None, None, None, NOTHING, None]),
        ("ASL", [None, LOST, LOST, NOTHING, LOST]),
        ("ASL(missing='last',documents=1)", [None, "collection_too_small", "collection_too_small", NOTHING, None]),
        ("ESL(n=2)", [*["too_few_relevant_documents"] * 1, LOST, "too_few_relevant_documents", NOTHING,
                      "too_few_relevant_documents"]),
        ("NormRecall(documents=9)", [None, LOST, LOST, NOTHING, LOST]),
        ("NormRecall(documents=1,missing='last')", ["collection_too_small"] * 3 + [NOTHING, "every_document_relevant"]),
        ("Accuracy", [None, None, "no_pair_of_documents", "no_pair_of_documents", "no_document_retrieved"]),
        ("Satisfaction", [None, None, None, NOTHING, None]),
        ("Frustration", [None, None, None, None, "no_document_retrieved"]),
        ("RelRelevance", [None, None, None, "no_document_with_gain", None]),
        ("RHL", [None, None, "no_gain_retrieved", "no_document_with_gain", "no_gain_retrieved"]),
        ("Coverage", ["no_known_documents"] * 5),
        ("RelativeRecall", ["nothing_expected"] * 5),
        ("RecallEffort(expected=1)", [None, None, *["expected_not_reached"] * 3]),
        ("AP", [None] * 5),
    ],
)  # fmt: skip
def test_topics_without_a_value_say_why(measure: str, reasons: list[str | None]) -> None:
    parsed, view = parse_measure(measure), judged_run(QRELS, RUN)
    values = parsed.compute(view)
    assert parsed.why_undefined(view, values) == reasons
    assert np.isnan(values).tolist() == [reason is not None for reason in reasons]
    assert {reason for reason in reasons if reason} <= set(REASONS)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_that_can_be_undefined_has_its_reasons(name: str) -> None:
    """Of an empty run and a full one: a value or a reason, for every topic."""
    definition = MEASURES[name]
    suffix = {"required": "@5", "share": "@0.2"}.get(definition.cutoff.value, "")
    examples = ",".join(
        f"{parameter.name}={parameter.example}"
        for parameter in definition.parameters
        if parameter.example
    )
    measure = parse_measure(name + (f"({examples})" if examples else "") + suffix)
    for run in (RUN, {"elsewhere": {"a": 1}}):
        view = judged_run(QRELS, run)
        values = measure.compute(view)
        reasons = measure.why_undefined(view, values)
        assert [reason is not None for reason in reasons] == np.isnan(values).tolist()
        assert np.isnan(values).any() <= ("undefined" in definition.sections())
