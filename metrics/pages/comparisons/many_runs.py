"""Many runs compared: which differ, which cannot be told apart, the uncertainty of their ranks, and every pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse

from metrics.charts.comparisons.ranks import ranks_figure
from metrics.charts.comparisons.significance import significance_figure
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import disagreements
from metrics.exports.comparisons.tables import MOST_PAIRS, difference_table, two_kinds
from metrics.exports.comparisons.words import (
    OMNIBUS_NAMES,
    TEST_NAMES,
    corrected,
    without_correction,
)
from metrics.pages.comparisons.answers import (
    Shown,
    answer_figure,
    common_parts,
    curves_part,
    drawn_choices,
    recall_part,
)
from metrics.pages.comparisons.tables import (
    RUNS_SHOWN,
    families_table,
    matrix_table,
    pairs_table,
    runs_table,
)
from metrics.pages.comparisons.words import not_excluded_by_many, report
from metrics.pages.parts import fill
from metrics.questions.addresses import pair_address
from metrics.services.boards.curves_together import MAX_TOGETHER
from metrics.services.comparisons.comparison import read_rank_intervals
from metrics.services.comparisons.shown_pairs import (
    PairSelection,
    choose_pairs,
    shown_pairs,
    visible_pairs,
)
from metrics.tables import Paging, probability

_PAIRS_OF_A_PAGE = 100
_SPLIT_SHOWN = 20


def many_runs_parts(shown: Shown) -> tuple[dict[str, Any], int]:
    """Return the context of the page, and its status."""
    answer, compared, family = shown.answer, shown.compared, shown.family
    where = "" if shown.link else pair_address(answer, compared)
    spread = read_rank_intervals(compared, answer.query.options)
    visible = visible_pairs(answer, compared)
    context = common_parts(shown) | {
        "runs": runs_table(answer, compared, family, spread),
        "runs_shown": RUNS_SHOWN,
        "test": TEST_NAMES[family.test],
        "corrected": corrected(family),
        "significant": np.count_nonzero(family.significant & visible),
        "compared": np.count_nonzero(visible),
        "tests": families_table(compared, visible),
        "omnibus": [
            (OMNIBUS_NAMES[name], probability(found.p_value), without_correction(found))
            for name, found in compared.omnibus.items()
        ],
        "split": _split(shown),
        "differences": _differences(shown),
        "matrix": matrix_table(shown.collection, answer, compared, family),
        "pair_address": where,
        "not_excluded": not_excluded_by_many(answer, compared, family),
        "report": report(answer, compared, family, None),
    }
    status = max(
        fill(context, "pairs", _pairs, shown, where),
        fill(
            context,
            "heat",
            lambda: answer_figure(
                shown, significance_figure(answer, compared, family, address=where)
            ),
        ),
        fill(
            context,
            "standing",
            lambda: answer_figure(shown, ranks_figure(answer, compared, spread)),
        ),
    )
    if not shown.in_detail:
        return context, status
    if len(shown.rows) > MAX_TOGETHER:
        fill(context, "drawn", drawn_choices, shown)
    return context, max(
        status,
        fill(context, "curves", curves_part, shown),
        fill(context, "recall", recall_part, shown),
    )


def _pairs(shown: Shown, address: str) -> dict[str, Any]:
    selection = PairSelection.of(
        {**shown.text, "limit": str(_PAIRS_OF_A_PAGE)}, replace(shown.answer.query, tests=["sign"])
    )
    number, chosen = choose_pairs(shown.answer, shown.compared, selection)
    pairs = shown_pairs(shown.answer, shown.compared, chosen)
    return {
        "table": pairs_table(shown.answer, shown.compared, pairs, address),
        "paging": Paging(selection.offset, _PAIRS_OF_A_PAGE, number),
        "sort": selection.sort,
    }


def _differences(shown: Shown) -> dict[str, Any]:
    """Return the means and differences of all measures with the marks of two kinds of tests, if both kinds were
    requested; otherwise the address that requests the tests that follow up Friedman's test and the
    analysis of variance."""
    if two_kinds(shown.answer.query):
        few = np.count_nonzero(visible_pairs(shown.answer, shown.compared)) <= MOST_PAIRS
        return {
            "table": difference_table(shown.collection, shown.answer) if few else None,
            "most": MOST_PAIRS,
        }
    if shown.answer.stored or shown.link:
        return {}
    asked = {**shown.asked, "tests": "conover,tukey_hsd"}
    return {
        "address": f"{reverse('comparison-page', args=[shown.collection.slug])}?{urlencode(asked)}#differences"
    }


def _split(shown: Shown) -> dict[str, Any] | None:
    """Return the pairs on which tests of means and of ranks have different verdicts, or None for one kind of test."""
    families = shown.compared.families
    if len({TESTS[family.test].ranks for family in families}) < 2:
        return None
    found = disagreements(families)
    found = found[visible_pairs(shown.answer, shown.compared)[found]]
    pairs = list(shown_pairs(shown.answer, shown.compared, found[:_SPLIT_SHOWN]))
    return {"number": len(found), "pairs": pairs}
