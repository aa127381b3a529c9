"""Many runs compared: which differ, the uncertainty of their ranks, and every pair."""

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
    ShownComparison,
    answer_figure,
    common_parts,
    files,
    fill_curves,
)
from metrics.pages.comparisons.tables import (
    RUNS_SHOWN,
    families_table,
    matrix_table,
    pairs_table,
    runs_table,
)
from metrics.pages.comparisons.words import not_excluded_by_many, report
from metrics.pages.parts import PageFigure, fill
from metrics.questions.addresses import pair_address
from metrics.services.comparisons.comparison import read_rank_intervals
from metrics.services.comparisons.shown_pairs import (
    PairSelection,
    choose_pairs,
    shown_pairs,
    visible_pairs,
)
from metrics.services.comparisons.topic_groups import compare_in_groups
from metrics.tables import Paging, probability

_PAIRS_OF_A_PAGE = 25
_SPLIT_SHOWN = 20


def many_runs_parts(comparison: ShownComparison) -> tuple[dict[str, Any], int]:
    """Return the context of the page, and its status."""
    answer, compared, family = comparison.answer, comparison.compared, comparison.family
    # Readers of a share link see no page of a pair.
    pair_page = "" if comparison.link else pair_address(answer, compared)
    spread = read_rank_intervals(compared, answer.query.options)
    visible = visible_pairs(answer, compared)
    context = common_parts(comparison) | {
        "runs": runs_table(answer, compared, family, spread),
        "runs_shown": RUNS_SHOWN,
        "test": TEST_NAMES[family.test],
        "corrected": corrected(family),
        "significant": np.count_nonzero(family.significant & visible),
        "compared": np.count_nonzero(visible),
        "tests": families_table(compared, visible),
        "omnibus": [
            (OMNIBUS_NAMES[name], probability(result.p_value), without_correction(result))
            for name, result in compared.omnibus.items()
        ],
        "split": _split(comparison),
        "differences": _differences(comparison),
        "matrix": matrix_table(comparison.collection, answer, compared, family),
        "pair_address": pair_page,
        "not_excluded": not_excluded_by_many(answer, compared, family),
        "report": report(answer, compared, family, None),
    }

    def heat() -> PageFigure:
        figure = significance_figure(answer, compared, family, address=pair_page)
        return answer_figure(comparison, figure)

    status = max(
        fill(context, "pairs", _pairs, comparison, pair_page),
        fill(context, "heat", heat),
        fill(
            context,
            "standing",
            lambda: answer_figure(comparison, ranks_figure(answer, compared, spread)),
        ),
    )

    # Groups of topics are compared of two runs.
    if answer.query.by and comparison.link is None:
        status = max(status, fill(context, "groups", compare_in_groups, answer, compared))
    if comparison.has_curves:
        status = max(status, fill_curves(context, comparison))

    return context, status


def _pairs(comparison: ShownComparison, address: str) -> dict[str, Any]:
    # Pairs are chosen by what all tests have in common, so that any one test will do.
    query = replace(comparison.answer.query, tests=["sign"])
    selection = PairSelection.of({**comparison.text, "limit": str(_PAIRS_OF_A_PAGE)}, query)
    number, chosen = choose_pairs(comparison.answer, comparison.compared, selection)
    pairs = shown_pairs(comparison.answer, comparison.compared, chosen)

    return {
        "table": pairs_table(comparison.answer, comparison.compared, pairs, address),
        "paging": Paging(selection.offset, _PAIRS_OF_A_PAGE, number),
        "sort": selection.sort,
        "named": any(comparison.text.get(name) for name in ("sort", "offset", "run")),
        "file": dict(files(comparison))["CSV"],
    }


def _differences(comparison: ShownComparison) -> dict[str, Any]:
    """Return the table of all measures with the marks of a test of ranks and one of means.

    If not both kinds were requested, return the address that requests those that follow up
    Friedman's test and the analysis of variance.
    """
    if two_kinds(comparison.answer.query):
        few = np.count_nonzero(visible_pairs(comparison.answer, comparison.compared)) <= MOST_PAIRS
        return {
            "table": difference_table(comparison.collection, comparison.answer) if few else None,
            "most": MOST_PAIRS,
        }

    if comparison.answer.stored or comparison.link:
        return {}

    parameters = {**comparison.parameters, "tests": "conover,tukey_hsd"}
    page = reverse("comparison-page", args=[comparison.collection.slug])

    return {"address": f"{page}?{urlencode(parameters)}#differences"}


def _split(comparison: ShownComparison) -> dict[str, Any] | None:
    """Return the pairs with other verdicts by tests of means than of ranks; None for one kind."""
    families = comparison.compared.families
    if len({TESTS[family.test].ranks for family in families}) < 2:
        return None

    split = disagreements(families)
    split = split[visible_pairs(comparison.answer, comparison.compared)[split]]
    pairs = list(shown_pairs(comparison.answer, comparison.compared, split[:_SPLIT_SHOWN]))

    return {"number": len(split), "pairs": pairs}
