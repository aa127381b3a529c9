"""TESTS and CORRECTIONS: how runs are compared over topics. A new test is a file and a line here."""

from __future__ import annotations

from metrics.engine.significance import paired_t
from metrics.engine.significance.corrections import bonferroni, holm, uncorrected
from metrics.engine.significance.pairs import Correction, PairedTest

TESTS: dict[str, PairedTest] = {
    "paired_t": paired_t.compare,
}

CORRECTIONS: dict[str, Correction] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "none": uncorrected,
}
