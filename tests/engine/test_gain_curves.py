"""Stored curves give what the judged view gives, each bit of it."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.curve.curves import MAX_DEPTH, curve, curve_measure
from metrics.engine.curve.gain_curves import FAMILY, GainCurves, curve_sets
from metrics.engine.curve.readings import readings
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import parse_measure, parse_measures
from tests.engine.build import judged_run
from tests.engine.test_against_pytrec_eval import random_collection

JK = "nDCG(gains='0:0,1:1,2:10.5,3:100',dis='jk',b=2)"
WAYS = ("nDCG", JK, "nDCG(ideal='retrieved')", "nDCG(judged_only=True)")


@pytest.fixture(scope="module")
def view() -> JudgedRun:
    return judged_run(*random_collection(3))


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("depth", [1, 7, 100])
def test_stored_curves_are_those_of_the_view(view: JudgedRun, name: str, depth: int) -> None:
    computed = GainCurves.of(view, parse_measure(name), 100)
    stored = GainCurves.from_bytes(
        computed.to_bytes(), computed.means.tobytes(), computed.measure, 100
    )
    arguments = name.removeprefix("nDCG")

    served = [m for m in _family(arguments) if stored.serves(m, depth)]
    assert len(served) >= 2
    for measure in served:
        drawn, view_curve = stored.curve(measure, depth), curve(view, measure, depth)
        for part in ("mean", "ideal_mean", "topics", "ideal"):
            assert np.array_equal(getattr(drawn, part), getattr(view_curve, part)), (measure, part)
        assert np.array_equal(drawn.band(0.95), view_curve.band(0.95))
        read, expected = stored.readings(measure, depth), readings(view, measure, depth)
        for part in ("needed", "missed", "percent", "horizontal_from"):
            ours, theirs = getattr(read, part), getattr(expected, part)
            if theirs is None:
                assert ours is None, (measure, part)
            else:
                assert np.array_equal(ours, theirs, equal_nan=part == "percent"), (measure, part)


def _family(arguments: str) -> list:
    """Return the curves with those of the arguments that each of them takes, and nDCG with both
    kinds of means."""
    own = curve_measure(f"nDCG{arguments}").parameters
    measures = []
    for name in FAMILY:
        default = curve_measure(name)
        values = tuple((key, own.get(key, value)) for key, value in default.values)
        measures.append(type(default)(default.definition, None, values))
    pooled = tuple((k, "average" if k == "norm" else v) for k, v in measures[-1].values)
    return [*measures, type(default)(default.definition, None, pooled)]


def test_other_gains_discounts_and_depths_are_not_served(view: JudgedRun) -> None:
    stored = GainCurves.of(view, parse_measure("nDCG"), 50)
    for name in ("nDCG(gains='exp')", "nDCG(dis='jk')", "nCG(ideal='retrieved')", "P"):
        assert not stored.serves(curve_measure(name), 10)
    assert not stored.serves(curve_measure("nDCG"), 51)
    # The ideal of CG is the recall base, which this set does not have.
    retrieved = GainCurves.of(view, parse_measure("nDCG(ideal='retrieved')"), 50)
    assert not retrieved.serves(curve_measure("CG"), 10)


def test_measures_name_sets_of_curves() -> None:
    assert [m.name for m in curve_sets(parse_measures("AP,P@5"))] == ["nDCG"]
    names = "nDCG@10,nDCG@20,DCG(gains='exp')@5,nCG@7,AP"
    assert [m.name for m in curve_sets(parse_measures(names))] == ["nDCG", "nDCG(gains='exp')"]


def test_the_depth_may_be_the_longest_curve(view: JudgedRun) -> None:
    computed = GainCurves.of(view, parse_measure("nDCG"), MAX_DEPTH)
    assert computed.means.shape == (4, MAX_DEPTH)
