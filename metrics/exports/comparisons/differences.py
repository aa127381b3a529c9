"""Means, and every difference with the marks of two tests: one of ranks or signs, and one of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.measures.definition import Aggregate
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.engine.significance.verdicts import MIN_TOPICS, REASONS
from metrics.exports.comparisons.coverage import coverage_of_results
from metrics.exports.comparisons.words import (
    OMNIBUS_NAMES,
    how_tested,
    too_few,
    withheld_pairs,
)
from metrics.services.comparisons.comparison import Compared, ComparisonQuery
from metrics.services.comparisons.shown_pairs import names_of, rows_of, run_of
from metrics.services.comparisons.stored import Answer
from metrics.tables import probability
from runs.errors import InvalidInput
from runs.models import Collection, Run

MOST_PAIRS = 300
# A mark is doubled below this corrected p.
CLEARLY = 0.01


@dataclass(frozen=True)
class MarkedDifference:
    """A difference of two means as text, and how many marks (0 to 2) the test of ranks and that of means give it."""

    text: str
    by_ranks: int
    by_means: int

    @property
    def marks(self) -> str:
        """As the source prints them: `**` by ranks, `(##)` by means."""
        by_means = f"({'#' * self.by_means})" if self.by_means else ""
        return " ".join(mark for mark in ("*" * self.by_ranks, by_means) if mark)


@dataclass(frozen=True)
class DifferenceTable:
    """A column for each measure; lines of runs with their means, of pairs with their differences, and of tests of all
    runs with p, each with its name first; and the sentences of the caption."""

    measures: list[str]
    means: list[tuple[str, list[str]]]
    differences: list[tuple[tuple[str, str], list[MarkedDifference]]]
    omnibus: list[tuple[str, list[str]]]
    caption: list[str]


def two_kinds(query: ComparisonQuery) -> bool:
    """Return whether two tests were requested, one of ranks or signs and one of means."""
    return len(query.tests) == 2 and len({TESTS[test].ranks for test in query.tests}) == 2


def difference_table(collection: Collection, answer: Answer) -> DifferenceTable:
    """Build the table of a comparison by `two_kinds` of tests; InvalidInput for more than MOST_PAIRS pairs.

    Source: Järvelin and Kekäläinen, University of Tampere RN-2002-2, table 1, with measures as columns. Runs stand best
    first by the first measure, and a difference is that of the better run there minus the other, or of a run minus the
    baseline.
    """
    best = answer.results[0]
    there = {best.order[row]: run_of(answer, best, row) for row in rows_of(answer, best)}
    first, second = (side.tolist() for side in best.pairs.indices())
    pairs = [(best.order[a], best.order[b]) for a, b in zip(first, second, strict=True)]
    pairs = [(a, b) for a, b in pairs if a in there and b in there]
    if len(pairs) > MOST_PAIRS:
        message = (
            f"{len(pairs):,} pairs; a table of differences has at most {MOST_PAIRS}: name fewer runs or a baseline, or "
            "use csv, which has all of them"
        )
        raise InvalidInput(message, code="too_many_rows", pointer="runs")
    names = names_of(list(there.values()))
    means = [_means(compared) for compared in answer.results]
    differences = [_differences(compared) for compared in answer.results]
    tested = [
        name
        for name in OMNIBUS_NAMES
        if all(name in compared.omnibus for compared in answer.results)
    ]
    return DifferenceTable(
        [compared.measure.name for compared in answer.results],
        [(names[run], [column[place] for column in means]) for place, run in there.items()],
        [
            ((names[there[a]], names[there[b]]), [column[a, b] for column in differences])
            for a, b in pairs
        ],
        [
            (
                OMNIBUS_NAMES[name],
                [probability(compared.omnibus[name].p_value) for compared in answer.results],
            )
            for name in tested
        ],
        _caption(collection, answer, names),
    )


def _digits(compared: Compared) -> int:
    return 1 if compared.measure.definition.aggregate is Aggregate.SUM else 4


def _means(compared: Compared) -> dict[int, str]:
    """The mean of each entrant by its place."""
    means = compared.values.mean(axis=1).tolist()
    return {
        place: f"{mean:.{_digits(compared)}f}"
        for place, mean in zip(compared.order, means, strict=True)
    }


def _differences(compared: Compared) -> dict[tuple[int, int], MarkedDifference]:
    """The difference of each two entrants by their places, whichever is the better one under this measure."""
    counts = {}
    for family in compared.families:
        clear = family.adjusted < CLEARLY
        counts[TESTS[family.test].ranks] = np.where(family.significant, 1 + clear, 0).tolist()
    differences = compared.families[0].result.difference.tolist()
    found = {}
    ends = (side.tolist() for side in compared.pairs.indices())
    for a, b, difference, by_ranks, by_means in zip(
        *ends, differences, counts[True], counts[False], strict=True
    ):
        for one, other, sign in ((a, b, 1), (b, a, -1)):
            # Adding zero makes a plain one of a negative one.
            text = f"{round(sign * difference, _digits(compared)) + 0.0:.{_digits(compared)}f}"
            found[compared.order[one], compared.order[other]] = MarkedDifference(
                text, by_ranks, by_means
            )
    return found


def _caption(collection: Collection, answer: Answer, names: dict[Run, str]) -> list[str]:
    """Return what a reader needs to know about numbers and marks, one sentence each."""
    used = sorted({compared.topics for compared in answer.results})
    topics = f"{used[0]}" if len(used) == 1 else f"{used[0]} to {used[-1]}"
    source = f"{collection.name} (qrels version {answer.entrants.qrels.version})"
    said = [f"Means of {len(names)} runs of {source} on {topics} topics, and their differences."]
    if used[-1] < MIN_TOPICS:
        return [*said, too_few(used[-1])]
    few = [compared.measure.name for compared in answer.results if compared.topics < MIN_TOPICS]
    said += (
        [
            f"No verdicts by {', '.join(few)}: fewer than {MIN_TOPICS} topics have a value of every run."
        ]
        if few
        else []
    )
    alpha = answer.query.rule.alpha
    for number, family in sorted(
        enumerate(answer.results[0].families), key=lambda one: not _ranks(one[1])
    ):
        mark, kind = ("*", "ranks") if _ranks(family) else ("#", "means")
        once, twice = (mark, mark * 2) if _ranks(family) else (f"({mark})", f"({mark * 2})")
        levels = (
            f"{twice} p < {alpha:g}"
            if alpha <= CLEARLY
            else f"{once} p < {alpha:g}, {twice} p < {CLEARLY:g}"
        )
        said.append(f"By {kind}: {levels}; {how_tested(answer, family)}.")
        families = [compared.families[number] for compared in answer.results]
        withheld = [
            REASONS[reason] for one in families for reason in one.verdicts.withheld.tolist()
        ]
        said += [f"By {kind}, {sentence}" for sentence in withheld_pairs(withheld)]
    for compared in answer.results:
        cautions = [caution for family in compared.families for caution in family.result.cautions]
        found = [
            caution.message for caution in cautions if caution.code == "omnibus_not_significant"
        ]
        said += [f"{compared.measure.name}: {message}." for message in found]
    return [*said, *coverage_of_results(answer)]


def _ranks(family: Family) -> bool:
    return TESTS[family.test].ranks
