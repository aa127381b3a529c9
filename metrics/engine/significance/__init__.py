"""TESTS, OMNIBUS and CORRECTIONS: the ways to compare runs over topics.

A new test is a module and a line here.
"""

from __future__ import annotations

from metrics.engine.significance import (
    anova,
    bootstrap,
    conover,
    friedman,
    kruskal_wallis,
    mann_whitney,
    max_t,
    nemenyi,
    paired_t,
    randomisation,
    randomised_tukey_hsd,
    sign,
    t_and_tukey,
    tukey_hsd,
    welch_t,
    wilcoxon,
)
from metrics.engine.significance.corrections import (
    benjamini_hochberg,
    benjamini_yekutieli,
    bonferroni,
    hochberg,
    holm,
    uncorrected,
)
from metrics.engine.significance.omnibus import OmnibusTest
from metrics.engine.significance.pairs import Correction, SignificanceTest

TESTS: dict[str, SignificanceTest] = {
    "paired_t": SignificanceTest(paired_t.compare, normal=True, separate=paired_t.separate),
    "t_and_tukey": SignificanceTest(
        t_and_tukey.compare,
        simultaneous=True,
        of_given_pairs=True,
        joint_intervals=True,
        normal=True,
        omnibus="anova",
        separate=t_and_tukey.separate,
    ),
    "wilcoxon": SignificanceTest(wilcoxon.compare, ranks=True),
    "sign": SignificanceTest(sign.compare, ranks=True),
    "randomisation": SignificanceTest(randomisation.compare, draws=True),
    "bootstrap": SignificanceTest(bootstrap.compare, draws=True),
    "max_t": SignificanceTest(
        max_t.compare,
        simultaneous=True,
        of_given_pairs=True,
        joint_intervals=True,
        draws=True,
        normal=True,
    ),
    "tukey_hsd": SignificanceTest(
        tukey_hsd.compare, simultaneous=True, joint_intervals=True, omnibus="anova"
    ),
    "randomised_tukey_hsd": SignificanceTest(
        randomised_tukey_hsd.compare, simultaneous=True, joint_intervals=True, draws=True
    ),
    "nemenyi": SignificanceTest(nemenyi.compare, simultaneous=True, ranks=True, omnibus="friedman"),
    "conover": SignificanceTest(
        conover.compare, ranks=True, omnibus="friedman", assumes_omnibus=True
    ),
    "welch_t": SignificanceTest(
        welch_t.compare, paired=False, compare_samples=welch_t.compare_samples
    ),
    "mann_whitney": SignificanceTest(
        mann_whitney.compare,
        paired=False,
        ranks=True,
        omnibus="kruskal_wallis",
        compare_samples=mann_whitney.compare_samples,
    ),
}

OMNIBUS: dict[str, OmnibusTest] = {
    "anova": anova.analyse,
    "friedman": friedman.analyse,
    "kruskal_wallis": kruskal_wallis.analyse,
}

CORRECTIONS: dict[str, Correction] = {
    "holm": holm,
    "hochberg": hochberg,
    "bonferroni": bonferroni,
    "benjamini_hochberg": benjamini_hochberg,
    "benjamini_yekutieli": benjamini_yekutieli,
    "none": uncorrected,
}
