"""The rules of a gate: what they say of numbers, and how often they are wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.weightstats import ttost_paired

from evalhub.client.errors import BadRule, EvalHubError
from evalhub.client.rules import (
    AT_LEAST,
    FINE,
    NO_DROP,
    NO_SIGNIFICANT_DROP,
    NO_WORSE,
    UNDECIDED,
    WORSE,
    Result,
    Rule,
    decide,
    decide_least,
    holm,
    parse_rule,
    read_pair,
)
from tests.benchmarks.gate import rates, verdicts_of


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("nDCG@10 no-worse-than 0.01", Rule("nDCG@10", NO_WORSE, 0.01)),
        ("  R@1000   no-worse-than  2% ", Rule("R@1000", NO_WORSE, 0.02, relative=True)),
        ("nDCG@10 1e-3", Rule("nDCG@10", NO_WORSE, 0.001)),
        ("nDCG(b=2, dis='jk')@10 no-drop", Rule("nDCG(b=2, dis='jk')@10", NO_DROP)),
        ("AP no-significant-drop", Rule("AP", NO_SIGNIFICANT_DROP)),
        ("AP no-significant-drop .02", Rule("AP", NO_SIGNIFICANT_DROP, 0.02)),
        ("AP at-least 0", Rule("AP", AT_LEAST, 0.0)),
    ],
)
def test_rules_are_read(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule
    assert parse_rule(rule) is rule


@pytest.mark.parametrize(
    "text",
    ["", "  ", "AP", "AP no-worse-than", "AP no-worse-than 0", "AP no-worse-than -0.1", "AP no-worse-than 100%",
     "AP no-worse-than .", "AP no-worse-than 1e999", "AP at-least", "AP at-least 5%", "AP no-drop 0.1", "0.01",
     "AP no-worse-then 0.01"],
)  # fmt: skip
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(BadRule):
        parse_rule(text)


def of(kind: str, **fields: Any) -> Result:
    """A result of 50 topics, decided."""
    number = fields.get("margin")
    result = Result(Rule("AP", kind, number), **{"n": 50, **fields})
    decide([result], 0.05)
    return result


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"d": -0.05, "low": -0.07, "high": -0.03}, WORSE), ({"d": 0.0, "low": -0.005, "high": 0.005}, FINE),
        ({"d": -0.005, "low": -0.02, "high": 0.01}, UNDECIDED), ({"d": 0.1, "low": 0.05, "high": 0.15}, FINE),
        # At the margin itself neither is said; a margin of nothing decides nothing.
        ({"d": -0.02, "low": -0.03, "high": -0.01}, UNDECIDED), ({"d": 0.0, "low": -0.01, "high": 0.01}, UNDECIDED),
        ({"d": 0.1, "low": 0.05, "high": 0.15, "margin": 0.0}, UNDECIDED), ({"d": 0.1, "low": None}, UNDECIDED),
        # Without spread d alone decides, but for the rounding of a sum.
        ({"d": -0.011, "low": -0.011, "high": -0.011}, WORSE), ({"d": -0.1 + 0.09, "low": -0.01, "high": -0.01}, FINE),
        # Too few topics, whatever the numbers.
        ({"d": -0.5, "low": -0.6, "high": -0.4, "n": 9}, UNDECIDED),
    ],
)  # fmt: skip
def test_no_worse_than(fields: dict[str, Any], verdict: str) -> None:
    result = of(NO_WORSE, **{"margin": 0.01, "topics_needed": 400, "high": None, **fields})
    assert (result.verdict, bool(result.reason)) == (verdict, True)


def test_the_other_rules() -> None:
    assert of(NO_DROP, d=-1e-9).verdict == WORSE
    assert of(NO_DROP, d=-1e-13).verdict == of(NO_DROP, d=0.1, n=2).verdict == FINE
    assert of(NO_SIGNIFICANT_DROP, d=-0.1, p_value=0.01).verdict == WORSE
    assert of(NO_SIGNIFICANT_DROP, d=0.1, p_value=0.01).verdict == FINE
    # A difference without spread has no p and is certain.
    assert of(NO_SIGNIFICANT_DROP, d=-0.1, p_value=None).verdict == WORSE
    assert of(NO_SIGNIFICANT_DROP, d=0.0, p_value=None).verdict == FINE
    warned = of(NO_SIGNIFICANT_DROP, d=-0.01, p_value=0.4, detectable=0.05, margin=0.02)
    assert (warned.verdict, warned.cautions[0]["code"]) == (FINE, "blind_to_margin")
    least = Rule("AP", AT_LEAST, 0.3)
    means = [(0.3, False), (0.29, False), (0.29, True), (0.31, True), (None, False)]
    verdicts = [decide_least(least, mean, 50, lower).verdict for mean, lower in means]
    assert verdicts == [FINE, WORSE, FINE, WORSE, UNDECIDED]


def test_p_is_corrected_over_the_rules_about_significance() -> None:
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    results = [
        Result(Rule("AP", NO_SIGNIFICANT_DROP), d=-0.1, n=50, p_value=p) for p in (0.03, 0.04)
    ]
    decide(results, 0.05)
    assert [(row.p_adjusted, row.verdict) for row in results] == [(0.06, FINE), (0.06, FINE)]


def test_a_pair_is_read_the_right_way_round() -> None:
    """The server subtracts the second of the order of means; of a measure of costs the candidate has more."""
    test = {"low": 0.1, "high": 0.3, "p_value": 0.01, "cautions": []}
    pair = {
        "a": "old",
        "b": "new",
        "difference": 0.2,
        "tests": {"paired_t": test},
        "deviation": 1.0,
        "detectable": 0.4,
    }
    compared = {
        "pairs": [pair], "lower_is_better": False,
        "topics": {"used": 40, "left_out": 1, "reasons": [{"topic_id": "7"}]},
        "means": [{"run": "old", "mean": 0.5}, {"run": "new", "mean": 0.3}], "cautions": [],
        "tests": {"paired_t": test},
    }  # fmt: skip
    rule = parse_rule("AP no-worse-than 2%")
    read = read_pair(rule, compared, "new", "paired_t")
    assert (read.d, read.low, read.high, read.margin) == (-0.2, -0.3, -0.1, pytest.approx(0.01))
    assert (read.candidate_mean, read.baseline_mean, read.topics_left_out) == (0.3, 0.5, ["7"])
    assert read.topics_needed == 40 * 40**2
    turned = read_pair(rule, {**compared, "lower_is_better": True}, "new", "paired_t")
    assert (turned.d, turned.low, turned.high) == (0.2, 0.1, 0.3)
    with pytest.raises(EvalHubError, match="too old"):
        read_pair(rule, {"pairs": [pair]}, "new", "paired_t")


def test_verdicts_are_those_of_statsmodels() -> None:
    """One side of TOST; with the margin at the bound itself its p is alpha."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.normal(0.3, 0.1, (2, 30))
        verdict, result = verdicts_of(np.array([a, b]), 0.05)[0]
        _, lower, _ = ttost_paired(a, b, -0.05, 10.0)
        assert (verdict == FINE) == (lower[1] < 0.05)
        assert ttost_paired(a, b, result.low, 10.0)[1][1] == pytest.approx(0.05, abs=1e-9)


def test_the_rates_are_those_that_are_promised() -> None:
    """At the margin itself fine in at most alpha; without a difference and with the printed topics in about .8."""
    trials = 2_000
    at_margin, needed, at_none = rates(trials, seed=3)
    assert at_margin <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)
    assert needed > 100
    assert at_none == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / trials) + 0.01)
