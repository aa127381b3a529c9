"""Gain maps: what each level gains, levels that a map does not list among them, and what is said of those."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.analysis.what_if import PRESETS
from metrics.engine.judgement.gains import MAX_GAIN, GainMap
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.sessions.grammar import parse_session_measure
from tests.engine.build import judged_run

LEVELS = np.array([-2, 0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("written", "gains"),
    [
        ("linear", [0, 0, 1, 2, 3, 4, 5]),
        ("exp", [0, 0, 1, 3, 7, 15, 31]),
        ("tenfold", [0, 0, 1, 10, 100, 1000, 10_000]),
        ("binary", [0, 0, 1, 1, 1, 1, 1]),
        ("0-1-10-100", [0, 0, 1, 10, 100, 100, 100]),
        ("0-0-0-1", [0, 0, 0, 0, 1, 1, 1]),
        ("0-1-2-3", [0, 0, 1, 2, 3, 3, 3]),
        ("1-2", [0, 1, 2, 2, 2, 2, 2]),
        ("1:1,2:10", [0, 0, 1, 10, 3, 4, 5]),
    ],
)
def test_every_level_has_a_gain_listed_or_not(written: str, gains: list[float]) -> None:
    gain_map = GainMap.parse(written)
    assert gain_map.of(LEVELS).tolist() == gains
    assert GainMap.parse(str(gain_map)) == gain_map


def test_no_level_is_too_high_for_a_gain() -> None:
    gains = GainMap.parse("tenfold").of(np.array([16, 17, 1000]))
    assert gains.tolist() == [MAX_GAIN] * 3


@pytest.mark.parametrize("written", ["0-1-10-100", "tenfold", "exp", "linear"])
def test_the_best_ranking_is_perfect_where_levels_go_beyond_the_gains(written: str) -> None:
    measure = parse_measure(f"nDCG(gains='{written}')@10")
    qrels = {"t": {"a": 4, "b": 3, "c": 2}}
    best = judged_run(qrels, {"t": {"a": 3, "b": 2, "c": 1}})
    worst = judged_run(qrels, {"t": {"a": 1, "b": 2, "c": 3}})
    assert measure.compute(best)[0] == 1 > measure.compute(worst)[0]


@pytest.mark.parametrize(
    ("written", "levels", "codes"),
    [
        ("nDCG(gains='0-1-10-100')@10", [0, 1, 2, 3], []),
        ("nDCG(gains='0-1-10-100')@10", [-1, 0, 3, 4, 5], ["gains_completed"]),
        ("nDCG(gains='0-5-1')@10", [0, 1, 2, 3], ["gains_completed", "gain_order"]),
        ("nDCG(gains='0-5-1')@10", [0, 1], []),
        ("CG(gains='1:1,2:10,3:100')", [0, 1, 2, 3], []),
        ("CG(gains='1:1,2:10,3:100')", [0, 4], []),
        ("CG(gains='1:1,2:10,3:100')", [0, 2, 4], ["gain_order"]),
        ("CG(gains='tenfold')", [0, 40, 900], []),
        ("CG", [0, 7], []),
        ("AP", [0, 7], []),
    ],
)
def test_a_caution_says_what_levels_gain_that_are_not_listed(
    written: str, levels: list[int], codes: list[str]
) -> None:
    assert [caution.code for caution in parse_measure(written).cautions(levels)] == codes


def test_cautions_name_measure_levels_and_gains() -> None:
    (completed,) = parse_measure("nDCG(gains='0-1-10-100')@10").cautions([0, 4, 5])
    assert completed.message == (
        "nDCG(gains='0-1-10-100')@10: judged levels beyond its gains (4, 5) gain as much as level 3: 100"
    )
    (turned,) = parse_measure("CG(gains='1:1,2:10,3:100')").cautions([1, 2, 3, 4])
    assert turned.message == (
        "CG(gains='1:1,2:10,3:100'): level 4 gains 4, less than level 3 with 100; a level that gains= does not list "
        "keeps its level as gain"
    )
    (inner,) = parse_session_measure("Query(of='CG(gains=0-1)')@10").cautions([1, 2])
    assert inner.code == "gains_completed"


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("highest", [1, 3, 4, 9])
def test_presets_never_turn_levels_round(preset: str, highest: int) -> None:
    measure = parse_measure(PRESETS[preset])
    assert measure.cautions(range(highest + 1)) == []
