"""Agreement of assessors against published tables, statsmodels and the figures of other libraries.

The figures of krippendorff 0.9.0 and scikit-learn 1.9.1 were computed once, on the same draws.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from metrics.engine.agreement.assessors import (
    NO_DOCUMENTS,
    ONE_LEVEL,
    UNJUDGED,
    AssessedDocuments,
    assessed_documents,
    assessor_agreement,
)
from metrics.engine.arrays import Ints
from metrics.engine.significance.pairs import Options
from tests.engine.test_assessments import judged

OPTIONS = Options(resamples=500, seed=3)
# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers, twelve
# units; 0 is a missing judgement.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]
# Ten subjects by fourteen raters in five categories, the table that encyclopedias print: .210.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def assessed(levels: Ints, scale: list[int], topics: list[int] | None = None) -> AssessedDocuments:
    """Levels (documents, assessors), UNJUDGED where missing, as places on the scale."""
    numbers = np.array(topics if topics is not None else [0] * len(levels), np.int64)
    places = np.where(levels == UNJUDGED, UNJUDGED, np.searchsorted(scale, levels))
    ids = [str(number).encode() for number in range(max(numbers.tolist(), default=-1) + 1)]
    return AssessedDocuments(ids, numbers, places, np.array(scale))


def drawn(scale: list[int]) -> tuple[Ints, Ints]:
    """Levels of 60 documents by four assessors who agree on many, and the same with gaps."""
    rng = np.random.default_rng(31)
    truth = rng.integers(0, 4, 60)
    places = np.where(rng.random((60, 4)) < 0.6, truth[:, None], rng.integers(0, 4, (60, 4)))
    levels = np.array(scale)[places]
    return levels, np.where(rng.random((60, 4)) < 0.75, levels, UNJUDGED)


def naive_alpha(levels: Ints, metric: str) -> float:
    """Krippendorff's alpha as his paper writes it: a dictionary of coincidences."""
    coincidences: dict[tuple[int, int], float] = {}
    for document in levels.tolist():
        judgements = [level for level in document if level != UNJUDGED]
        for pair in permutations(judgements, 2):
            coincidences[pair] = coincidences.get(pair, 0) + 1 / (len(judgements) - 1)

    occurring = sorted({level for pair in coincidences for level in pair})
    sizes = {c: sum(coincidences.get((c, k), 0) for k in occurring) for c in occurring}
    total = sum(sizes.values())

    def square(c: int, k: int) -> float:
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return float((c - k) ** 2)
        between = sum(sizes[g] for g in occurring if min(c, k) <= g <= max(c, k))
        return (between - (sizes[c] + sizes[k]) / 2) ** 2

    observed = sum(number * square(*pair) for pair, number in coincidences.items()) / total
    expected = sum(sizes[c] * sizes[k] * square(c, k) for c in occurring for k in occurring)
    return 1 - observed / (expected / (total * (total - 1)))


@pytest.mark.parametrize(
    ("metric", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_publishes_the_same_alpha(metric: str, published: float) -> None:
    levels = np.array(KRIPPENDORFF).T
    documents = assessed(np.where(levels == 0, UNJUDGED, levels), [1, 2, 3, 4, 5])
    estimate = assessor_agreement(documents, OPTIONS).estimates[f"alpha_{metric}"]
    assert round(estimate.value, 3) == published


def test_fleiss_kappa_is_that_of_the_table_and_of_statsmodels() -> None:
    from statsmodels.stats.inter_rater import fleiss_kappa

    raters = np.array([np.repeat(range(1, 6), row) for row in FLEISS])
    estimate = assessor_agreement(assessed(raters, [1, 2, 3, 4, 5]), OPTIONS)
    value = estimate.estimates["fleiss_kappa"].value
    assert round(value, 3) == 0.210
    assert value == pytest.approx(fleiss_kappa(np.array(FLEISS)), rel=1e-12)


def test_libraries_have_the_same_alpha_with_missing_judgements() -> None:
    _, gaps = drawn([0, 1, 2, 5])
    four = assessor_agreement(assessed(gaps, [0, 1, 2, 5]), OPTIONS).estimates
    two = assessor_agreement(assessed(gaps[:, :2], [0, 1, 2, 5]), OPTIONS).estimates
    for metric, of_four, of_two in (
        ("nominal", 0.28124646533197617, 0.29069103369503135),
        ("ordinal", 0.23955200818022704, 0.2508852258852259),
        ("interval", 0.16442907877744328, 0.2516013323084807),
    ):
        assert four[f"alpha_{metric}"].value == pytest.approx(of_four, rel=1e-12)
        assert four[f"alpha_{metric}"].value == pytest.approx(naive_alpha(gaps, metric), rel=1e-12)
        assert two[f"alpha_{metric}"].value == pytest.approx(of_two, rel=1e-12)


def test_libraries_have_the_same_kappas() -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    _, gaps = drawn([0, 1, 2, 3])
    answer = assessor_agreement(assessed(gaps[:, :2], [0, 1, 2, 3]), OPTIONS)
    kappas = {
        "kappa": 0.2913385826771653,
        "linear_kappa": 0.2953020134228188,
        "quadratic_kappa": 0.3154390345401582,
    }
    for name, expected in kappas.items():
        assert answer.estimates[name].value == pytest.approx(expected, rel=1e-12)

    assert answer.estimates["kappa"].value == pytest.approx(
        cohens_kappa(answer.confusion).kappa, rel=1e-12
    )
    relevant = answer.confusion[2:, 2:].sum()
    threshold = answer.thresholds[1]
    assert threshold.level == 2
    assert threshold.overlap.value == relevant / (
        answer.confusion.sum() - answer.confusion[:2, :2].sum()
    )


def test_several_assessors_have_the_mean_over_pairs() -> None:
    levels, gaps = drawn([0, 1, 2, 3])
    answer = assessor_agreement(assessed(gaps, [0, 1, 2, 3]), OPTIONS)
    pairs = [
        assessor_agreement(assessed(gaps[:, list(pair)], [0, 1, 2, 3]), OPTIONS)
        for pair in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    ]
    for name in ("agreement", "kappa", "quadratic_kappa"):
        mean = np.mean([pair.estimates[name].value for pair in pairs])
        assert answer.estimates[name].value == pytest.approx(mean, rel=1e-12)

    # Of assessors who judged everything the order does not matter.
    whole, turned = (
        assessor_agreement(assessed(side, [0, 1, 2, 3]), OPTIONS)
        for side in (levels, levels[:, ::-1])
    )
    for name, estimate in whole.estimates.items():
        assert turned.estimates[name].value == pytest.approx(estimate.value, rel=1e-12)


def test_topics_are_matched_and_have_values_of_their_own() -> None:
    first = judged([("1", "a", 1), ("1", "b", 0), ("2", "a", 1), ("3", "x", 2)])
    second = judged([("2", "c", 0), ("2", "a", 0), ("1", "b", 0), ("1", "a", 1), ("4", "y", 1)])
    documents = assessed_documents([first, second])
    assert documents.topic_ids == [b"1", b"2", b"3", b"4"]

    answer = assessor_agreement(documents, OPTIONS)
    assert answer.documents.tolist() == [2, 1, 0, 0]
    assert answer.confusion.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    agreement = answer.estimates["agreement"]
    assert agreement.value == 2 / 3
    assert np.array_equal(agreement.topics, [1, 0, np.nan, np.nan], equal_nan=True)
    # Each sample of two topics has 1, 2/3 or 0.
    assert agreement.low == 0
    assert agreement.high == 1


def test_the_interval_is_over_topics_not_documents() -> None:
    """Documents of a topic that agree or not together are worth one observation."""
    same = np.array([topic % 3 > 0 for topic in range(12) for _ in range(50)])
    levels = np.column_stack([np.ones(600, np.int64), same.astype(np.int64)])
    topics = [topic for topic in range(12) for _ in range(50)]
    estimate = assessor_agreement(assessed(levels, [0, 1], topics), OPTIONS).estimates["agreement"]
    of_documents = 1.96 * math.sqrt(2 / 9 / 600)
    assert estimate.value == pytest.approx(2 / 3)
    assert estimate.high - estimate.low > 5 * of_documents

    again = assessor_agreement(assessed(levels, [0, 1], topics), OPTIONS).estimates["agreement"]
    assert (again.low, again.high) == (estimate.low, estimate.high)


def test_undefined_coefficients_have_a_reason() -> None:
    nothing = assessor_agreement(
        assessed_documents([judged([("1", "a", 1)]), judged([("1", "b", 1)])]), OPTIONS
    )
    for estimate in nothing.estimates.values():
        assert math.isnan(estimate.value)
        assert estimate.reason == NO_DOCUMENTS

    side = judged([("1", "a", 1), ("2", "a", 1), ("3", "b", 1)])
    equal = assessor_agreement(assessed_documents([side, side]), OPTIONS)
    assert equal.estimates["agreement"].value == equal.thresholds[0].overlap.value == 1
    for name, estimate in equal.estimates.items():
        if name != "agreement":
            assert math.isnan(estimate.value)
            assert estimate.reason == ONE_LEVEL
