"""How much was measured of two runs, in sentences for pages and captions."""

from __future__ import annotations

import numpy as np

from metrics.engine.significance.verdicts import DEPENDS_ON_JUDGING
from metrics.exports.comparisons.words import TEST_NAMES
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import names_of, rows_of, run_of
from metrics.services.comparisons.stored import Answer
from metrics.services.values.coverage import percent
from metrics.tables import probability, signed


def coverage_sentences(answer: Answer, compared: Compared) -> list[str]:
    """Return of two runs how much was measured, and the difference on judged documents alone where they are judged
    unevenly; nothing of more runs, which are too many to name."""
    coverage, rows = compared.coverage, rows_of(answer, compared)
    if len(rows) != 2 or compared.pairs.runs != 2 or np.isnan(coverage.judged).all():
        return []
    runs = [run_of(answer, compared, row) for row in rows]
    names = dict(zip(rows, names_of(runs).values(), strict=True))
    sentences = [f"{coverage.judged_sentence(names)}."]
    if (coverage.answered < 1).any():
        shares = [f"{name} {percent(coverage.answered[row])}" for row, name in names.items()]
        sentences.insert(0, f"Topics answered: {', '.join(shares)}.")
    found = coverage.on_judged
    if found is None or not coverage.uneven(compared.pairs).any():
        return sentences
    result, family = found.families[0].result, found.families[0]
    p_value, low, high = family.adjusted[0], result.low[0], result.high[0]
    said = [signed(float(result.difference[0]))]
    if not np.isnan(low):
        said.append(
            f"{100 * answer.query.options.confidence:g}% interval {signed(float(low))} to {signed(float(high))}"
        )
    if not np.isnan(p_value):
        said.append(_p(float(result.p_value[0])))
        if family.size > 1:
            said[-1] += f" uncorrected, {probability(float(p_value))} corrected"
    verdict = "significant" if family.significant[0] else "not significant"
    sentences.append(f"On judged documents alone: {', '.join(said)}, {verdict}.")
    depend = [
        TEST_NAMES[family.test]
        for family in compared.families
        if family.verdicts.have(DEPENDS_ON_JUDGING)[0]
    ]
    if len(compared.families) > 1 and depend:
        sentences.append(f"Tests with a verdict that depends on judging: {', '.join(depend)}.")
    return sentences


def _p(value: float) -> str:
    text = probability(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def coverage_of_results(answer: Answer) -> list[str]:
    """Return the same of all measures, with their names where there are several."""
    named = len(answer.results) > 1
    return [
        f"{compared.measure.name}: {sentence}" if named else sentence
        for compared in answer.results
        for sentence in coverage_sentences(answer, compared)
    ]
