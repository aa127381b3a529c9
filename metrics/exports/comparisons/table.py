"""A comparison as a table for a paper: a row for each run, a column of means for each measure, marks for one test."""

from __future__ import annotations

from dataclasses import dataclass, field

from metrics.engine.measures.definition import Aggregate
from metrics.engine.significance.families import Family
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import MIN_TIERED_TOPICS, MIN_TOPICS, REASONS
from metrics.exports.comparisons.coverage import coverage_of_results
from metrics.exports.comparisons.words import (
    equivalence_sentence,
    how_tested,
    too_few,
    withheld_pairs,
)
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import names_of, rows_of, run_of
from metrics.services.comparisons.stored import Answer
from runs.errors import InvalidInput
from runs.models import Collection, Run

BETTER, WORSE = "better", "worse"
# Of a run that can be the best.
BEST_MARK = "\N{BLACK CIRCLE}"


@dataclass(frozen=True)
class MeanCell:
    """A mean as text; `mark` is better or worse than the baseline, or the letters of the run's groups."""

    text: str
    best: bool
    mark: str = ""


@dataclass(frozen=True)
class MeanLine:
    """One run; `name` holds its team where another run of the table has the same tag.

    `before` and `after` are texts beside the name and beside the means; `marked` is a run that can be the best.
    """

    name: str
    baseline: bool
    cells: list[MeanCell] = field(default_factory=list)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    marked: bool = False

    @property
    def start(self) -> tuple[str, ...]:
        """Return `before` with the mark, for tables of text."""
        if not self.marked:
            return self.before
        return f"{BEST_MARK} {self.before[0]}", *self.before[1:]


@dataclass(frozen=True)
class MeanTable:
    """The content of a table: the names of the measures, the lines best first, and the sentences of the caption.

    `before` and `after` name the columns of those texts; `marked` is the one measure that has marks, None for all.
    `subject` is what a line is.
    """

    measures: list[str]
    lines: list[MeanLine]
    caption: list[str]
    with_baseline: bool
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    marked: str | None = None
    subject: str = "Run"

    def has_room_for_marks(self, measure: str) -> bool:
        return self.with_baseline and self.marked in (None, measure)


def table_of(collection: Collection, answer: Answer) -> MeanTable:
    """Build the table; InvalidInput for several tests, because it marks the results of one.

    `differences.difference_table` is the one of two kinds of tests.
    """
    if len(answer.query.tests) > 1:
        message = (
            "a table marks the results of one test, or of one of ranks and one of means: name them with tests=, or use "
            "csv, which has all of them"
        )
        raise InvalidInput(message, code="one_test_only", pointer="tests")
    columns = [_column(answer, compared) for compared in answer.results]
    runs = [run_of(answer, answer.results[0], row) for row in rows_of(answer, answer.results[0])]
    names = names_of(runs)
    lines = [
        MeanLine(
            names[run], str(run.pk) == answer.query.baseline, [column[run] for column in columns]
        )
        for run in runs
    ]
    measures = [compared.measure.name for compared in answer.results]
    return MeanTable(
        measures, lines, _caption(collection, answer, names), answer.query.baseline is not None
    )


def _column(answer: Answer, compared: Compared) -> dict[Run, MeanCell]:
    (family,) = compared.families
    digits = 1 if compared.measure.definition.aggregate is Aggregate.SUM else 4
    means = compared.values.mean(axis=1).tolist()
    marks = _letters(family) if compared.pairs.baseline is None else _against(compared, family)
    rows = rows_of(answer, compared)
    texts = {row: f"{means[row]:.{digits}f}" for row in rows}
    best = texts[rows[0]] if rows else ""
    return {
        run_of(answer, compared, row): MeanCell(texts[row], texts[row] == best, marks.get(row, ""))
        for row in rows
    }


def _letters(family: Family) -> dict[int, str]:
    """Return letters by row, or the tier where groups exceed the letters; nothing where no pair is tested."""
    if family.tiers is None:
        return {}
    tiers = family.tiers
    return dict(enumerate(letters_of(tiers) or [str(tier) for tier in tiers.tier.tolist()]))


def _against(compared: Compared, family: Family) -> dict[int, str]:
    """Return which rows are significantly better or worse than the baseline."""
    rows, _ = compared.pairs.indices()
    better = family.verdicts.better(compared.measure.definition.lower_is_better)
    said = {1: BETTER, -1: WORSE}
    return {row: said[way] for row, way in zip(rows.tolist(), better.tolist(), strict=True) if way}


def _caption(collection: Collection, answer: Answer, names: dict[Run, str]) -> list[str]:
    """Return what a reader needs to know about the numbers, one sentence each."""
    used = sorted({compared.topics for compared in answer.results})
    topics = f"{used[0]}" if len(used) == 1 else f"{used[0]} to {used[-1]}"
    source = f"{collection.name} (qrels version {answer.entrants.qrels.version})"
    return [
        f"Means of {len(names)} runs of {source} on {topics} topics.",
        "The best of each column is bold.",
        _marks(answer, names),
        f"Test: {how_tested(answer)}.",
        *_few(answer),
        *withheld_pairs(_withheld(answer)),
        *coverage_of_results(answer),
        *filter(None, (equivalence_sentence(answer, compared) for compared in answer.results)),
    ]


def _few(answer: Answer) -> list[str]:
    """Return the columns without marks, where others have some."""
    few = [compared.measure.name for compared in answer.results if compared.topics < MIN_TOPICS]
    if not few or len(few) == len(answer.results):
        return []
    return [
        f"No verdicts by {', '.join(few)}: fewer than {MIN_TOPICS} topics have a value of every run."
    ]


def _withheld(answer: Answer) -> list[str]:
    """Return why pairs have no verdict, of all measures."""
    families = [family for compared in answer.results for family in compared.families]
    return [REASONS[reason] for family in families for reason in family.verdicts.withheld.tolist()]


def _marks(answer: Answer, names: dict[Run, str]) -> str:
    most = max(compared.topics for compared in answer.results)
    if most < MIN_TOPICS:
        return too_few(most)
    if all(_withheld(answer)):
        return "No pair has a verdict."
    if answer.query.baseline is not None:
        baseline = next(
            (name for run, name in names.items() if str(run.pk) == answer.query.baseline),
            "the baseline",
        )
        return (
            f"Marked are runs that are significantly better (up) or worse (down) than {baseline}."
        )
    families = [family for compared in answer.results for family in compared.families]
    tiers = [family.tiers for family in families if family.tiers]
    if not tiers:
        return f"No letters: with fewer than {MIN_TIERED_TOPICS} topics runs are compared pair by pair only."
    if all(letters_of(found) for found in tiers):
        return "Runs that share a letter are not significantly different."
    return (
        "Superscripts are tiers: runs in a tier do not differ significantly from its best run; runs in "
        "different tiers may not differ either."
    )
