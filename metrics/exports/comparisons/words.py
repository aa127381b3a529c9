"""What tests and corrections are called where people read of them, and how a comparison was tested in one phrase."""

from __future__ import annotations

from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.services.comparisons.stored import Answer

TEST_NAMES = {
    "paired_t": "paired t test",
    "wilcoxon": "Wilcoxon's signed rank test",
    "sign": "sign test",
    "randomisation": "randomisation test",
    "bootstrap": "bootstrap test (shift method)",
    "tukey_hsd": "Tukey's HSD test",
    "randomised_tukey_hsd": "randomised Tukey HSD test",
    "nemenyi": "Nemenyi's test",
    "conover": "Conover's test",
    "welch_t": "Welch's t test, unpaired",
    "mann_whitney": "Mann-Whitney U test, unpaired",
}
CORRECTION_NAMES = {
    "holm": "Holm's correction",
    "hochberg": "Hochberg's correction",
    "bonferroni": "Bonferroni's correction",
    "benjamini_hochberg": "Benjamini and Hochberg's correction",
    "benjamini_yekutieli": "Benjamini and Yekutieli's correction",
    "none": "no correction",
}


def how_tested(answer: Answer, family: Family | None = None) -> str:
    """Test, correction with its family, level, and B and seed of a test that draws; the first test unless one is given.

    The families of one test are of one size, whatever the measure.
    """
    query, family = answer.query, family or answer.results[0].families[0]
    drawn = f", B = {query.options.resamples:,}, seed {query.options.seed}" if TESTS[family.test].draws else ""
    return f"{TEST_NAMES[family.test]}, {corrected(family)}, alpha = {query.rule.alpha:g}{drawn}"


def corrected(family: Family) -> str:
    """What is done for the number of pairs."""
    if family.size == 1:
        return "one pair, nothing to correct"
    if family.correction is None:
        return f"counting for {family.size:,} pairs at once"
    return f"{CORRECTION_NAMES[family.correction]} over {family.size:,} pairs"
