"""The names of tests and corrections in text, and a phrase on how a comparison was tested."""

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
# Tests that take another form where every run is compared with a baseline only.
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
    """Return why there is nothing significant, nor not significant, on so few topics."""
    return f"No verdicts: {topics} topics are too few to tell a difference from chance; {MIN_TOPICS} are needed."


def verdict_text(significant: bool, withheld: str) -> str:
    """Return whether a difference is significant, as yes or no, or why there is no verdict."""
    return WITHHELD.get(withheld) or ("yes" if significant else "no")


def without_correction(found: OmnibusResult) -> str:
    """Return the p of an analysis of variance that assumes one variance for all differences, to stand second."""
    if found.sphericity is None:
        return ""
    plain = probability(found.sphericity.p_uncorrected)
    equal = "" if plain.startswith("<") else "= "
    return f"p {equal}{plain} uncorrected, epsilon {found.sphericity.greenhouse_geisser:.2f}"


def withheld_pairs(reasons: Iterable[str | None] | Mapping[str, int]) -> list[str]:
    """Return a sentence with the number of pairs for each reason why they have no verdict, from the reason of each pair
    or from these numbers."""
    counts = Counter(reasons)
    said = {
        NO_SPREAD: "could not be tested, as the differences do not vary",
        OTHER_DIRECTION: "had no verdict, as the test and the difference of means point in opposite directions",
        FEW_TOPICS_ANSWERED: "had no verdict, as a run answered few topics",
        NOTHING_JUDGED: "had no verdict, as nothing that a run found first is judged",
        DEPENDS_ON_JUDGING: "had no verdict, as it depends on judging: the runs are judged unevenly, and judged "
        "documents alone give another one",
    }
    return [
        f"{counts[reason]:,} pair{'s' if counts[reason] != 1 else ''} {words}."
        for reason, words in said.items()
        if counts[reason]
    ]


def how_tested(answer: Answer, family: Family | None = None) -> str:
    """Test, correction with its family, level, and B and seed of a test that draws; the first test unless one is given.

    The families of one test are of one size, whatever the measure.
    """
    query, family = answer.query, family or answer.results[0].families[0]
    drawn = (
        f", B = {query.options.resamples:,}, seed {query.options.seed}"
        if TESTS[family.test].draws
        else ""
    )
    name = test_name(family.test, baseline=answer.entrants.baseline is not None)
    return f"{name}, {corrected(family)}, alpha = {query.rule.alpha:g}{drawn}"


def test_name(test: str, *, baseline: bool) -> str:
    """Return the name of a test of all pairs, or of the pairs with a baseline."""
    return BASELINE_NAMES.get(test, TEST_NAMES[test]) if baseline else TEST_NAMES[test]


def corrected(family: Family) -> str:
    """Return the correction for the number of pairs."""
    return corrected_over(family.correction, family.size)


def corrected_over(correction: str | None, pairs: int) -> str:
    """Return the correction for this many pairs; without a correction the test itself accounts for all of them."""
    if pairs == 1:
        return "a single pair, no correction needed"
    if correction is None:
        return f"accounting for all {pairs:,} pairs at once"
    return f"{CORRECTION_NAMES[correction]} over {pairs:,} pairs"


def equivalence_sentence(answer: Answer, compared: Compared) -> str:
    """Return how many pairs differ by less than the margin; empty where that was not asked for."""
    found = compared.equivalence
    if found is None:
        return ""
    there = visible_pairs(answer, compared)
    counted, pairs = int(np.count_nonzero(found.both.holds & there)), int(np.count_nonzero(there))
    differ = "pair differs" if pairs == 1 else "pairs differs" if counted == 1 else "pairs differ"
    return (
        f"{counted:,} of {pairs:,} {differ} by less than {found.margin:g} {compared.measure.name} "
        f"({PRACTICAL_NAMES['tost']}, {corrected_over(found.correction, found.size)}, alpha = "
        f"{answer.query.rule.alpha:g})."
    )


def named_family(answer: Answer, test: str) -> str:
    """Return the name of the pairs that were tested together; some tests account for all pairs in any case."""
    pairs, against = answer.entrants.pairs, ""
    if pairs.baseline is not None and (TESTS[test].of_given_pairs or not TESTS[test].simultaneous):
        against = " with the baseline"
    return f"the {family_size(test, pairs):,} pairs of {pairs.runs:,} runs{against}"
