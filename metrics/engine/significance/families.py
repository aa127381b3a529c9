"""A family: the pairs that are compared together under one test, corrected together, and what that separates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.ranking import Flags, Floats, Ints
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Caution,
    Matrix,
    Options,
    PairedResult,
    all_pairs,
    baseline_pairs,
)
from metrics.engine.significance.tiers import Tiers, tiers


@dataclass(frozen=True)
class Pairs:
    """The pairs of one family among so many runs: all, or every other run against the baseline (an index)."""

    runs: int
    baseline: int | None = None

    def indices(self) -> tuple[Ints, Ints]:
        """The first and the second run of each pair."""
        return all_pairs(self.runs) if self.baseline is None else baseline_pairs(self.runs, self.baseline)

    @property
    def number(self) -> int:
        return self.runs - 1 if self.baseline is not None else self.runs * (self.runs - 1) // 2


@dataclass(frozen=True)
class Rule:
    """How verdicts are reached: by a correction, and at a level below which a corrected p is significant."""

    correction: str = "holm"
    alpha: float = 0.05


USUAL_RULE = Rule()


@dataclass(frozen=True)
class Family:
    """One test's result with an adjusted p and a verdict for each pair; tiers and groups where all pairs are given.

    `correction` is None where the test's own p counts for all pairs already; `size` is the number of pairs that p
    values are corrected for.
    """

    test: str
    size: int
    correction: str | None
    result: PairedResult
    adjusted: Floats
    significant: Flags
    tiers: Tiers | None


def compare_family(
    values: Matrix, pairs: Pairs, test: str, rule: Rule, options: Options = DEFAULTS, *, lower_is_better: bool = False
) -> Family:
    """Compare the pairs under one test; `values` has shape (runs, topics).

    Raises StatisticsError for fewer than 2 topics.
    """
    entry = TESTS[test]
    first, second = pairs.indices()
    result = entry.compare(values, first, second, options)
    correction = None if entry.simultaneous else rule.correction
    adjusted = CORRECTIONS[correction](result.p_value) if correction else result.p_value
    significant: Flags = adjusted < rule.alpha
    separated = None
    if pairs.baseline is None:
        separated = tiers(values.mean(axis=1), first, second, significant, lower_is_better=lower_is_better)
    size = pairs.runs * (pairs.runs - 1) // 2 if entry.simultaneous else pairs.number
    return Family(test, size, correction, result, adjusted, significant, separated)


def disagreements(families: Sequence[Family]) -> Ints:
    """The pairs on which a test of means and one of ranks or signs come to different verdicts."""
    split = np.zeros(len(families[0].significant), np.bool_)
    for means in (family for family in families if not TESTS[family.test].ranks):
        for ranks in (family for family in families if TESTS[family.test].ranks):
            split |= means.significant != ranks.significant
    return np.flatnonzero(split)


def common_topics(values: Matrix) -> Flags:
    """The topics on which every run has a value; shape (topics,)."""
    common: Flags = np.logical_not(np.isnan(values).any(axis=0))
    return common


def check_known(tests: Iterable[str], correction: str) -> None:
    """StatisticsError for a name that is in no table."""
    for test in tests:
        _check("test", test, list(TESTS))
    _check("correction", correction, list(CORRECTIONS))


def _check(what: str, name: str, known: list[str]) -> None:
    if name not in known:
        message = f"unknown {what} {name[:40]!r}; known: {', '.join(known)}"
        raise StatisticsError(message, code=f"unknown_{what}", pointer=what)


def cautions_of(families: Iterable[Family]) -> list[Caution]:
    """The cautions of all families, each once."""
    return list(dict.fromkeys(caution for family in families for caution in family.result.cautions))
