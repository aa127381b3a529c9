"""Sentences on the coverage of two runs, for pages and captions."""

from __future__ import annotations

import numpy as np

from metrics.engine.significance.verdicts import DEPENDS_ON_JUDGING
from metrics.exports.comparisons.words import TEST_NAMES
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import names_of, runs_by_row
from metrics.services.comparisons.stored import Answer
from metrics.services.values.coverage import percent
from metrics.tables import probability, probability_words, signed


def coverage_sentences(answer: Answer, compared: Compared) -> list[str]:
    """Return sentences on the coverage of two runs; none for more runs, which have too many names.

    Where the two are judged unevenly, they have their difference on judged documents alone.
    """
    coverage, runs = compared.coverage, runs_by_row(answer, compared)
    if len(runs) != 2 or compared.pairs.runs != 2 or np.isnan(coverage.judged).all():
        return []

    names = dict(zip(runs, names_of(list(runs.values())).values(), strict=True))
    sentences = [f"{coverage.judged_sentence(names)}."]
    if (coverage.answered < 1).any():
        shares = [f"{name} {percent(coverage.answered[row])}" for row, name in names.items()]
        sentences.insert(0, f"Topics answered: {', '.join(shares)}.")

    on_judged = coverage.on_judged
    if on_judged is None or not coverage.uneven(compared.pairs).any():
        return sentences

    # The difference on judged documents by the first test.
    family = on_judged.families[0]
    result = family.result
    figures = [signed(float(result.difference[0]))]
    if not np.isnan(result.low[0]):
        level = f"{100 * answer.query.options.confidence:g}%"
        low, high = signed(float(result.low[0])), signed(float(result.high[0]))
        figures.append(f"{level} interval {low} to {high}")

    if not np.isnan(family.adjusted[0]):
        text = probability_words(float(result.p_value[0]))
        if family.size > 1:
            text += f" uncorrected, {probability(float(family.adjusted[0]))} corrected"

        figures.append(text)

    verdict = "significant" if family.significant[0] else "not significant"
    sentences.append(f"On judged documents alone: {', '.join(figures)}, {verdict}.")

    depend = [
        TEST_NAMES[family.test]
        for family in compared.families
        if family.verdicts.have(DEPENDS_ON_JUDGING)[0]
    ]
    if len(compared.families) > 1 and depend:
        sentences.append(f"Tests with a verdict that depends on judging: {', '.join(depend)}.")

    return sentences


def coverage_of_results(answer: Answer) -> list[str]:
    """Return the same for all measures, with their names where there are several."""
    sentences = []
    for compared in answer.results:
        measure = f"{compared.measure.name}: " if len(answer.results) > 1 else ""
        sentences += [measure + sentence for sentence in coverage_sentences(answer, compared)]

    return sentences
