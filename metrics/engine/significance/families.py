"""A family: pairs that are compared by one test and corrected together, with their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.spelling import closest
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS
from metrics.engine.significance.cautions import (
    are_skewed,
    are_tied,
    heavy_ties,
    skewed_differences,
)
from metrics.engine.significance.corrections import holm
from metrics.engine.significance.moments import moments_of, ties_of
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Caution,
    Matrix,
    Options,
    PairedResult,
    all_pairs,
    baseline_pairs,
)
from metrics.engine.significance.practical import PRACTICAL
from metrics.engine.significance.tiers import Tiers, tiers
from metrics.engine.significance.verdicts import (
    MIN_TIERED_TOPICS,
    MIN_TOPICS,
    NO_SPREAD,
    OTHER_DIRECTION,
    Verdicts,
    adjust,
    decide,
    verdicts_of,
)
from metrics.engine.significance.verdicts import cautions_of as cautions_of_verdicts


@dataclass(frozen=True)
class Pairs:
    """The pairs of a family: all pairs of the runs, or every run against each of the baselines.

    The baselines are different indices of runs. Two of them are a pair once: the later one against
    the earlier one.
    """

    runs: int
    baselines: tuple[int, ...] = ()

    def indices(self) -> tuple[Ints, Ints]:
        """Return the first and the second run of each pair."""
        if not self.baselines:
            return all_pairs(self.runs)
        return baseline_pairs(self.runs, self.baselines)

    @property
    def number(self) -> int:
        """Return the number of pairs."""
        if not self.baselines:
            return self.runs * (self.runs - 1) // 2
        baselines = len(self.baselines)
        return baselines * (self.runs - 1) - baselines * (baselines - 1) // 2

    @property
    def are_some(self) -> bool:
        """Return whether tests take the form that they have for the pairs with baselines.

        Several baselines may leave out no pair of the runs.
        """
        return len(self.baselines) == 1 or self.number < Pairs(self.runs).number


@dataclass(frozen=True)
class Rule:
    """The rule of verdicts: a corrected p below the level is significant."""

    correction: str = "holm"
    alpha: float = 0.05


USUAL_RULE = Rule()
# The test of families, and that of a single pair, where it is Student's.
USUAL_TEST, USUAL_TEST_OF_A_PAIR = "t_and_tukey", "paired_t"


@dataclass(frozen=True)
class Family:
    """One test's result with an adjusted p and a verdict for each pair.

    `correction` is None where the test's own p counts for all pairs already; `size` is the number
    of pairs that p values are corrected for. There are tiers and groups where all pairs are given
    and any of them can have a verdict.
    """

    test: str
    size: int
    correction: str | None
    result: PairedResult
    adjusted: Floats
    verdicts: Verdicts
    tiers: Tiers | None

    @property
    def significant(self) -> Flags:
        """Return the pairs with a verdict."""
        return self.verdicts.significant

    def of(self, rows: Ints, pairs: Ints) -> Family:
        """Return some runs and pairs, by their places; p, verdicts and tiers stay as they are."""
        entries = {field.name: getattr(self.result, field.name) for field in fields(self.result)}
        arrays: dict[str, Any] = {
            name: entry[pairs] for name, entry in entries.items() if isinstance(entry, np.ndarray)
        }
        return replace(
            self,
            result=replace(self.result, **arrays),
            adjusted=self.adjusted[pairs],
            verdicts=self.verdicts.of(pairs),
            tiers=self.tiers and self.tiers.of(rows),
        )


def compare_family(
    values: Matrix,
    pairs: Pairs,
    test: str,
    rule: Rule,
    options: Options = DEFAULTS,
    *,
    lower_is_better: bool = False,
) -> Family:
    """Compare the pairs under one test; `values` has shape (runs, topics).

    Raises StatisticsError for fewer than 2 topics.
    """
    entry, topics = TESTS[test], values.shape[1]
    first, second = pairs.indices()
    result = entry.compare(values, first, second, options)
    correction = None if entry.simultaneous else rule.correction
    adjusted = adjust(result.p_value, CORRECTIONS[correction]) if correction else result.p_value
    verdicts = decide(result, adjusted, rule.alpha, topics)
    cautions = (
        *result.cautions,
        *_of_assumption(values, test, rule),
        *_of_findings(values, pairs, test, verdicts),
        *cautions_of_verdicts(verdicts, topics),
        *_without_tiers(pairs, topics),
    )

    result = replace(result, cautions=cautions)
    separated = _tiers(values, pairs, verdicts, lower_is_better=lower_is_better)
    size = family_size(test, pairs)
    return Family(test, size, correction, result, adjusted, verdicts, separated)


@dataclass(frozen=True)
class Separated:
    """The verdicts and tiers of all pairs of some runs: a Family without the numbers of each
    pair."""

    size: int
    cautions: tuple[Caution, ...]
    verdicts: Verdicts
    tiers: Tiers | None


def separate(
    values: Matrix,
    test: str,
    rule: Rule,
    options: Options = DEFAULTS,
    *,
    lower_is_better: bool = False,
) -> Separated:
    """Return the verdicts of `compare_family` for all pairs, without p if there is a critical
    value.

    Raises StatisticsError for fewer than 2 topics.
    """
    entry, topics, pairs = TESTS[test], values.shape[1], Pairs(len(values))
    by_holm = entry.simultaneous or CORRECTIONS[rule.correction] is holm
    if entry.separate is None or not by_holm:
        family = compare_family(values, pairs, test, rule, options, lower_is_better=lower_is_better)
        return Separated(family.size, family.result.cautions, family.verdicts, family.tiers)

    separation = entry.separate(values, *pairs.indices(), rule.alpha)
    means = np.sign(separation.difference)
    verdicts = verdicts_of(separation.significant, separation.untested, means, means, topics)
    cautions = (
        *separation.cautions,
        *_of_findings(values, pairs, test, verdicts),
        *cautions_of_verdicts(verdicts, topics),
        *_without_tiers(pairs, topics),
    )

    separated = _tiers(values, pairs, verdicts, lower_is_better=lower_is_better)
    return Separated(pairs.number, cautions, verdicts, separated)


def _tiers(
    values: Matrix, pairs: Pairs, verdicts: Verdicts, *, lower_is_better: bool
) -> Tiers | None:
    """Return the tiers of all pairs; None if only some pairs are given, or none has a verdict."""
    too_few = values.shape[1] < (MIN_TOPICS if pairs.number == 1 else MIN_TIERED_TOPICS)
    if pairs.baselines or too_few or verdicts.have(NO_SPREAD).all():
        return None
    means = values.mean(axis=1)
    return tiers(means, *pairs.indices(), verdicts.significant, lower_is_better=lower_is_better)


def family_size(test: str, pairs: Pairs) -> int:
    """Return how many pairs p values count for: in Tukey's and Nemenyi's tests all pairs of the
    runs, whichever are compared."""
    entry = TESTS[test]
    if entry.of_given_pairs or not entry.simultaneous:
        return pairs.number
    return Pairs(pairs.runs).number


def _of_findings(values: Matrix, pairs: Pairs, test: str, verdicts: Verdicts) -> list[Caution]:
    """Return the cautions of significant pairs: skewed differences and many ties."""
    entry, topics = TESTS[test], values.shape[1]
    first, second = (side[verdicts.significant] for side in pairs.indices())
    cautions = []
    if entry.normal:
        skewness = moments_of(values, first, second).skewness
        cautions += skewed_differences(are_skewed(skewness, topics), topics)

    if entry.paired:
        cautions += heavy_ties(are_tied(ties_of(values, first, second), topics))
    return cautions


def _without_tiers(pairs: Pairs, topics: int) -> list[Caution]:
    """Return the caution of pairs that can have a verdict but make no tiers."""
    if pairs.baselines or pairs.number == 1:
        return []
    if not MIN_TOPICS <= topics < MIN_TIERED_TOPICS:
        return []

    message = (
        f"no tiers, letters or set of the best: {topics} topics are too few to tell all pairs of "
        f"{pairs.runs} runs apart; {MIN_TIERED_TOPICS} are needed"
    )
    return [Caution("no_tiers", message)]


def _of_assumption(values: Matrix, test: str, rule: Rule) -> list[Caution]:
    """Return the caution of a post-hoc test if the test of all runs at once finds nothing."""
    entry = TESTS[test]
    if not entry.assumes_omnibus or entry.omnibus is None:
        return []

    p_value = OMNIBUS[entry.omnibus](values).p_value
    if p_value < rule.alpha:
        return []

    message = (
        f"{entry.omnibus} finds no difference of the runs (p = {p_value:.2g}), and {test} assumes "
        "that it does: what it finds here is not to be relied on"
    )
    return [Caution("omnibus_not_significant", message)]


def disagreements(families: Sequence[Family]) -> Ints:
    """Return the pairs with different verdicts by a test of means and one of ranks or signs."""
    disagree = np.zeros(len(families[0].significant), np.bool_)
    for means in (family for family in families if not TESTS[family.test].ranks):
        for ranks in (family for family in families if TESTS[family.test].ranks):
            disagree |= (means.significant != ranks.significant) | ranks.verdicts.have(
                OTHER_DIRECTION
            )
    return np.flatnonzero(disagree)


def check_known(tests: Iterable[str], correction: str, others: Iterable[str] = ()) -> None:
    """Raise StatisticsError for a name that is in no table; `others` are further tests."""
    for test in tests:
        _check("test", test, [*TESTS, *others])
    _check("correction", correction, list(CORRECTIONS))


def _check(kind: str, name: str, names: list[str]) -> None:
    if name not in names:
        nearest = closest(name, names)
        suggestion = f"did you mean {nearest!r}? " if nearest else ""
        message = f"unknown {kind} {name[:40]!r}; {suggestion}known: {', '.join(names)}"
        if kind == "test" and name in OMNIBUS:
            message = (
                f"{name} tests all runs at once and cannot be requested: anova and friedman come "
                "with every comparison of 3 runs or more, kruskal_wallis with mann_whitney; tests "
                f"of pairs: {', '.join(names)}"
            )

        if kind == "test" and name in PRACTICAL:
            message = (
                f"{name} can only be added to the tests of a comparison; here: {', '.join(names)}"
            )

        raise StatisticsError(message, code=f"unknown_{kind}", pointer=kind)


def cautions_of(families: Iterable[Family]) -> list[Caution]:
    """Return the cautions of all families, each once."""
    return list(dict.fromkeys(caution for family in families for caution in family.result.cautions))
