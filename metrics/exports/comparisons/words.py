"""The names of tests and corrections, and sentences on how a comparison was tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family, family_size
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.verdicts import (
    DEPENDS_ON_JUDGING,
    FEW_TOPICS_ANSWERED,
    MIN_TOPICS,
    NO_SPREAD,
    NOTHING_JUDGED,
    OTHER_DIRECTION,
    TOO_FEW_TOPICS,
)
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import visible_pairs
from metrics.services.comparisons.stored import Answer
from metrics.tables import probability

TEST_NAMES = {
    "paired_t": "paired t test",
    "t_and_tukey": "paired t (Holm) and Tukey's HSD",
    "wilcoxon": "Wilcoxon's signed rank test",
    "sign": "sign test",
    "randomisation": "randomisation test",
    "bootstrap": "bootstrap test (shift method)",
    "max_t": "step-down max|t| test",
    "tukey_hsd": "Tukey's HSD test",
    "randomised_tukey_hsd": "randomised Tukey HSD test",
    "nemenyi": "Nemenyi's test",
    "conover": "Conover's test",
    "welch_t": "Welch's t test, unpaired",
    "mann_whitney": "Mann-Whitney U test, unpaired",
    "latin_square": "analysis of variance of a Latin square",
    "min_f": "min F' by searchers and topics",
}
# Tests that take another form where every run is compared with baselines only.
BASELINE_NAMES = {
    "t_and_tukey": "paired t and common-variance t (both Holm)",
}
PRACTICAL_NAMES = {
    "tost": "two one-sided t tests (TOST)",
    "bayes_t": "Student's posterior",
    "bayes_bootstrap": "Bayesian bootstrap",
}
OMNIBUS_NAMES = {
    "anova": "Analysis of variance (Greenhouse-Geisser)",
    "friedman": "Friedman's test",
    "kruskal_wallis": "Kruskal and Wallis's test",
}
CORRECTION_NAMES = {
    "holm": "Holm's correction",
    "hochberg": "Hochberg's correction",
    "bonferroni": "Bonferroni's correction",
    "benjamini_hochberg": "Benjamini and Hochberg's correction",
    "benjamini_yekutieli": "Benjamini and Yekutieli's correction",
    "none": "no correction",
}

PAIR_CAUTION_NAMES = {"skewed_differences": "skewed", "heavy_ties": "many ties"}
WITHHELD = {
    TOO_FEW_TOPICS: "too few topics",
    NO_SPREAD: "cannot be tested",
    OTHER_DIRECTION: "points the other way",
    FEW_TOPICS_ANSWERED: "few topics answered",
    NOTHING_JUDGED: "nothing judged",
    DEPENDS_ON_JUDGING: "depends on judging",
}


def too_few(topics: int) -> str:
    """Return a sentence on why a comparison on so few topics has no verdicts."""
    return (
        f"No verdicts: {topics} topics are too few to tell a difference from chance; "
        f"{MIN_TOPICS} are needed."
    )


def verdict_text(significant: bool, withheld: str) -> str:
    """Return whether a difference is significant, as yes or no, or why there is no verdict."""
    return WITHHELD.get(withheld) or ("yes" if significant else "no")


def without_correction(result: OmnibusResult) -> str:
    """Return the p of an analysis of variance without its correction for sphericity, in words."""
    if result.sphericity is None:
        return ""

    p_value = probability(result.sphericity.p_uncorrected)
    equal = "" if p_value.startswith("<") else "= "
    return f"p {equal}{p_value} uncorrected, epsilon {result.sphericity.greenhouse_geisser:.2f}"


def withheld_pairs(reasons: Iterable[str | None] | Mapping[str, int]) -> list[str]:
    """Return a sentence on the pairs without a verdict for each reason.

    `reasons` has the reason of each pair, or the number of pairs by reason.
    """
    counts = Counter(reasons)
    clauses = {
        NO_SPREAD: "could not be tested, as the differences do not vary",
        OTHER_DIRECTION: "had no verdict, as the test and the difference of means point in "
        "opposite directions",
        FEW_TOPICS_ANSWERED: "had no verdict, as a run answered few topics",
        NOTHING_JUDGED: "had no verdict, as nothing that a run found first is judged",
        DEPENDS_ON_JUDGING: "had no verdict, as it depends on judging: the runs are judged "
        "unevenly, and judged documents alone give another one",
    }

    return [
        f"{counts[reason]:,} pair{'s' if counts[reason] != 1 else ''} {clause}."
        for reason, clause in clauses.items()
        if counts[reason]
    ]


def how_tested(answer: Answer, family: Family | None = None) -> str:
    """Return a test in words, by default the first: its correction, level, B and seed.

    The families of one test are of one size, whatever the measure.
    """
    query, options = answer.query, answer.query.options
    family = family or answer.results[0].families[0]
    name = test_name(family.test, baseline=answer.entrants.pairs.are_some)
    resamples = ""
    if TESTS[family.test].draws:
        resamples = f", B = {options.resamples:,}, seed {options.seed}"

    return f"{name}, {corrected(family)}, alpha = {query.rule.alpha:g}{resamples}"


def test_name(test: str, *, baseline: bool) -> str:
    """Return the name of a test of all pairs, or of the pairs with a baseline."""
    return BASELINE_NAMES.get(test, TEST_NAMES[test]) if baseline else TEST_NAMES[test]


def corrected(family: Family) -> str:
    """Return the correction for the number of pairs."""
    return corrected_over(family.correction, family.size)


def corrected_over(correction: str | None, pairs: int) -> str:
    """Return the correction for this many pairs, None for a test that accounts for all of them."""
    if pairs == 1:
        return "a single pair, no correction needed"
    if correction is None:
        return f"accounting for all {pairs:,} pairs at once"

    return f"{CORRECTION_NAMES[correction]} over {pairs:,} pairs"


def equivalence_sentence(answer: Answer, compared: Compared) -> str:
    """Return a sentence on the pairs that differ by less than the margin; empty without one."""
    equivalence = compared.equivalence
    if equivalence is None:
        return ""

    visible = visible_pairs(answer, compared)
    pairs = int(np.count_nonzero(visible))
    equivalent = int(np.count_nonzero(equivalence.both.holds & visible))
    verb = "differs" if 1 in (pairs, equivalent) else "differ"
    correction = corrected_over(equivalence.correction, equivalence.size)

    return (
        f"{equivalent:,} of {pairs:,} pair{'s' * (pairs != 1)} {verb} by less than "
        f"{equivalence.margin:g} {compared.measure.name} ({PRACTICAL_NAMES['tost']}, {correction}, "
        f"alpha = {answer.query.rule.alpha:g})."
    )


def named_family(answer: Answer, test: str) -> str:
    """Return the name of the pairs that were tested together; some tests always account for all."""
    pairs, against = answer.entrants.pairs, ""
    if pairs.baselines and (TESTS[test].of_given_pairs or not TESTS[test].simultaneous):
        against = f" with the baseline{'s' * (len(pairs.baselines) > 1)}"

    return f"the {family_size(test, pairs):,} pairs of {pairs.runs:,} runs{against}"
