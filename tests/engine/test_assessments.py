"""Two sets of judgements side by side, held against statsmodels and against plain sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from metrics.engine.agreement.assessments import Assessments, compare_assessments
from metrics.engine.judgement.judging import Judgements
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.trec_qrels import read_qrels


def judged(lines: list[tuple[str, str, int]]) -> Judgements:
    text = "".join(f"{topic} 0 {document} {level}\n" for topic, document, level in lines).encode()
    return read_qrels(lambda: in_memory(text, DEFAULT_LIMITS)).judgements


def drawn(seed: int, share: float) -> dict[tuple[str, str], int]:
    """Levels -1 to 3 of some of 20 topics x 30 documents."""
    rng = np.random.default_rng(seed)
    pairs = [(f"t{topic}", f"d{document}") for topic in range(20) for document in range(30)]
    return {pair: int(rng.integers(-1, 4)) for pair in pairs if rng.random() < share}


@pytest.fixture(scope="module")
def sides() -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    first, second = drawn(1, 0.7), drawn(2, 0.5)
    # Half of what both have is the same; a topic of its own on each side, in another order of
    # topics.
    for number, pair in enumerate(sorted(first.keys() & second.keys())):
        if number % 2:
            second[pair] = first[pair]
    first["only-first", "d1"] = 2
    return first, {("only-second", "d1"): 3, **dict(reversed(second.items()))}


@pytest.fixture(scope="module")
def compared(sides: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]) -> Assessments:
    first, second = ([(*pair, level) for pair, level in side.items()] for side in sides)
    return compare_assessments(judged(first), judged(second))


def test_the_cross_table_counts_what_sets_count(
    compared: Assessments, sides: tuple[dict, dict]
) -> None:
    first, second = sides
    assert compared.levels.tolist() == [-1, 0, 1, 2, 3]
    for row, level in enumerate(compared.levels):
        assert compared.only_first[row] == sum(
            first[pair] == level for pair in first.keys() - second.keys()
        )
        assert compared.only_second[row] == sum(
            second[pair] == level for pair in second.keys() - first.keys()
        )
        for column, other in enumerate(compared.levels):
            shared = [
                pair
                for pair in first.keys() & second.keys()
                if (first[pair], second[pair]) == (level, other)
            ]
            assert compared.both[row, column] == len(shared)


def test_kappas_are_those_of_statsmodels(compared: Assessments) -> None:
    plain, weighted = (
        cohens_kappa(compared.both),
        cohens_kappa(compared.both, weights=compared.levels),
    )
    assert compared.kappa == pytest.approx(plain.kappa, rel=1e-12)
    assert compared.weighted_kappa == pytest.approx(weighted.kappa, rel=1e-12)


def test_shares_are_those_of_the_documents(compared: Assessments, sides: tuple[dict, dict]) -> None:
    first, second = sides
    shared = sorted(first.keys() & second.keys())
    assert compared.agreement == sum(first[pair] == second[pair] for pair in shared) / len(shared)
    relevant = [{pair for pair, level in side.items() if level >= 1} for side in sides]
    assert compared.overlap == len(relevant[0] & relevant[1]) / len(relevant[0] | relevant[1])
    a, b = (np.maximum([side[pair] for pair in shared], 0) for side in sides)
    assert compared.cosine == pytest.approx(a @ b / math.sqrt((a @ a) * (b @ b)), rel=1e-12)


def test_a_figure_that_divides_by_nothing_is_undefined() -> None:
    alone = compare_assessments(judged([("1", "a", 0)]), judged([("2", "a", 0)]))
    figures = [alone.agreement, alone.kappa, alone.weighted_kappa, alone.overlap, alone.cosine]
    assert all(math.isnan(figure) for figure in figures)
    same = compare_assessments(judged([("1", "a", 1)]), judged([("1", "a", 1)]))
    # Two judges who only ever say one thing agree as much by chance.
    assert (same.agreement, same.overlap, same.cosine) == (1, 1, 1)
    assert math.isnan(same.kappa)
