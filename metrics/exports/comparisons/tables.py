"""A comparison as tables: every pair at full precision, and runs or differences for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metrics.engine import ENGINE_VERSION
from metrics.engine.arrays import Ints
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import MIN_TIERED_TOPICS, MIN_TOPICS, REASONS
from metrics.exports.comparisons.coverage import coverage_of_results
from metrics.exports.comparisons.group_columns import (
    WAYS,
    GroupColumns,
    digits_of,
    group_columns,
    group_notes,
    headings_of_groups,
)
from metrics.exports.comparisons.methods import method_words
from metrics.exports.comparisons.words import (
    OMNIBUS_NAMES,
    equivalence_sentence,
    how_tested,
    too_few,
    withheld_pairs,
)
from metrics.exports.table import (
    Cell,
    Column,
    Row,
    Table,
    listed_baselines,
    marks_of_several,
)
from metrics.services.comparisons.comparison import Compared, ComparisonQuery
from metrics.services.comparisons.replicates import compare_methods
from metrics.services.comparisons.shown_pairs import (
    Bounded,
    PairSelection,
    ShownPair,
    Verdict,
    choose_pairs,
    names_of,
    run_of,
    runs_by_row,
    shown_pairs,
)
from metrics.services.comparisons.stored import Answer
from metrics.tables import direction_of, probability
from runs.errors import InvalidInput
from runs.models import Collection, Run

# The rows of a file of pairs, and the pairs of a table of differences.
MOST_ROWS, MOST_PAIRS = 200_000, 300
# A mark is doubled below this corrected p.
CLEARLY = 0.01


def pairs_table(collection: Collection, answer: Answer, selection: PairSelection) -> Table:
    """Build the table with a row for each measure, pair and test, and the inputs of its figures.

    Raise InvalidInput for more rows than one file has.
    """
    chosen = [
        (compared, choose_pairs(answer, compared, selection)[1]) for compared in answer.results
    ]
    rows = sum(len(pairs) * len(compared.families) for compared, pairs in chosen)
    if rows > MOST_ROWS:
        message = (
            f"{rows:,} rows; a file has at most {MOST_ROWS:,}: name one run with run=, or page "
            "through the pairs"
        )
        raise InvalidInput(message, code="too_many_rows", pointer="run")

    return Table.of_records(collection.slug, _records(collection, answer, chosen))


def _records(
    collection: Collection, answer: Answer, tables: list[tuple[Compared, Ints]]
) -> Iterator[dict[str, Any]]:
    query, selection = answer.query, answer.entrants.selection
    inputs = {
        "alpha": query.rule.alpha,
        "confidence": query.options.confidence,
        "resamples": query.options.resamples,
        "seed": query.options.seed,
        "zeros": query.options.zeros,
        "ties": query.options.ties,
        "min_difference": query.options.min_difference,
        **({"margin": query.practical.margin} if "tost" in query.practical.tests else {}),
        **({"rope": query.practical.rope} if query.practical.posteriors else {}),
        "collection": collection.slug,
        "qrels": answer.entrants.qrels.version,
        **({"judged_by": answer.entrants.qrels.authors} if answer.entrants.qrels.authors else {}),
        "scores": answer.entrants.scores,
        **({"topics_filter": selection.text} if selection else {}),
        "engine_version": answer.stored.engine_version if answer.stored else ENGINE_VERSION,
    }
    groups = {part.compared.measure: part for part in group_columns(answer)}
    for compared, chosen in tables:
        families = {family.test: family for family in compared.families}
        places = {run: row for row, run in runs_by_row(answer, compared).items()}
        for pair in shown_pairs(answer, compared, chosen):
            coverage = _coverage(compared, places[pair.a], places[pair.b])
            in_groups = groups[compared.measure].data(pair.a, pair.b) if groups else {}
            for place, verdict in enumerate(pair.verdicts):
                family = families[verdict.test]
                correction = {
                    "correction": family.correction or "by the test",
                    "family": family.size,
                    "intervals": TESTS[family.test].intervals,
                }
                yield {
                    **_pair(compared, pair, verdict),
                    **in_groups,
                    **coverage,
                    **_on_judged(pair, place),
                    **correction,
                    **inputs,
                }


def _pair(compared: Compared, pair: ShownPair, verdict: Verdict) -> dict[str, Any]:
    return {
        "measure": compared.measure.name,
        "test": verdict.test,
        "team_a": pair.a.team.slug,
        "tag_a": pair.a.tag,
        "run_a": str(pair.a.pk),
        "team_b": pair.b.team.slug,
        "tag_b": pair.b.tag,
        "run_b": str(pair.b.pk),
        "topics": compared.topics,
        "mean_a": pair.mean_a,
        "mean_b": pair.mean_b,
        "difference": pair.difference,
        "low": verdict.low,
        "high": verdict.high,
        "statistic": verdict.statistic,
        "p_value": verdict.p_value,
        "p_adjusted": verdict.p_adjusted,
        "exact": verdict.exact,
        "significant": verdict.significant,
        "verdict": WAYS.get(verdict.better, ""),
        "withheld": verdict.withheld,
        "relative_difference": pair.relative,
        "reading": pair.reading,
        **_bounded("cohen_d", pair.cohen_d),
        **_bounded("hedges_g", pair.hedges_g),
        **_bounded("standardised_difference", pair.standardised),
        **_bounded("cliff_delta", pair.cliff_delta),
        **_bounded("probability_better", pair.probability_better),
        "wins": pair.wins,
        "topics_tied": pair.ties,
        "losses": pair.losses,
        "cautions": " ".join(pair.cautions),
        **_equivalence(pair),
        **{
            f"{name}_{side}": getattr(chance, side)
            for name, chance in pair.chances.items()
            for side in ("better", "equal", "worse")
        },
    }


def _coverage(compared: Compared, a: int, b: int) -> dict[str, Any]:
    """Return the columns of the coverage of the runs in two rows."""
    coverage = compared.coverage
    return {
        "answered_a": float(coverage.answered[a]),
        "judged_a": float(coverage.judged[a]),
        "answered_b": float(coverage.answered[b]),
        "judged_b": float(coverage.judged[b]),
        "judged_depth": coverage.k,
    }


def _on_judged(pair: ShownPair, place: int) -> dict[str, Any]:
    """Return the columns of judged documents alone; empty if the runs are judged alike.

    `place` is that of the test.
    """
    on_judged = pair.on_judged
    verdict = on_judged and on_judged.verdicts[place]

    return {
        "on_judged_difference": on_judged and on_judged.difference,
        "on_judged_low": verdict and verdict.low,
        "on_judged_high": verdict and verdict.high,
        "on_judged_p_value": verdict and verdict.p_value,
        "on_judged_p_adjusted": verdict and verdict.p_adjusted,
    }


def _equivalence(pair: ShownPair) -> dict[str, Any]:
    """Return the columns of tost, if it was requested."""
    equivalence = pair.equivalence
    if equivalence is None:
        return {}

    claims = {
        "a_not_worse": equivalence.a,
        "b_not_worse": equivalence.b,
        "equivalent": equivalence.both,
    }
    columns: dict[str, Any] = {"tost_low": equivalence.low, "tost_high": equivalence.high}
    for name, claim in claims.items():
        columns |= {f"{name}_p": claim.p_value, f"{name}_p_adjusted": claim.p_adjusted}
        columns[name] = claim.holds

    columns["equivalence_withheld"] = equivalence.withheld
    columns["equivalence_topics"] = equivalence.topics

    return columns


def _bounded(name: str, figure: Bounded) -> dict[str, float]:
    return {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}


def paper_table(collection: Collection, answer: Answer, _: PairSelection) -> Table:
    """Build the table of runs with marks of one test, or of differences for two kinds of tests."""
    build = difference_table if two_kinds(answer.query) else means_table
    return build(collection, answer, group_columns(answer))


def means_table(
    collection: Collection, answer: Answer, groups: Sequence[GroupColumns] = ()
) -> Table:
    """Build the table with a row for each run, a column for each measure, and the marks of a test.

    Raise InvalidInput for several tests.
    """
    if len(answer.query.tests) > 1:
        message = (
            "a table marks the results of one test, or of one of ranks and one of means: name them "
            "with tests=, or use csv, which has all of them"
        )
        raise InvalidInput(message, code="one_test_only", pointer="tests")

    baselines = answer.query.baselines
    cells = [_means_of_runs(answer, compared) for compared in answer.results]
    runs = list(runs_by_row(answer, answer.results[0]).values())
    names = names_of(runs)
    rows = [
        Row(
            [
                names[run],
                *(column[run] for column in cells),
                *(cell for part in groups for cell in part.of_run(run)),
            ],
            baseline=str(run.pk) in baselines,
        )
        for run in runs
    ]
    if any(part.tested for part in groups):
        rows.append(_row_of_two(answer, groups, names))

    columns = [
        Column("run", "Run", head=True),
        *_measure_columns(answer, with_marks=len(baselines) == 1),
        *headings_of_groups(groups),
    ]

    notes = [*_notes(collection, answer, names), *group_notes(groups)]
    return Table(collection.slug, columns, rows, notes)


def _row_of_two(answer: Answer, groups: Sequence[GroupColumns], names: dict[Run, str]) -> Row:
    """Return the row of the difference of two runs, on all topics and in each group."""
    best = answer.results[0]
    first, second = (int(side[0]) for side in best.pairs.indices())
    a, b = run_of(answer, best, first), run_of(answer, best, second)
    pair = best.order[first], best.order[second]
    cells = [_differences(compared)[pair] for compared in answer.results]

    return Row(
        [
            f"{names[a]} \N{MINUS SIGN} {names[b]}",
            *(cell.text for cell in cells),
            *(cell for part in groups for cell in part.of_pair(a, b)),
        ],
        begins_part=True,
    )


def _measure_columns(answer: Answer, *, with_marks: bool = False) -> Iterator[Column]:
    for compared in answer.results:
        direction = direction_of(compared.measure)
        yield Column(compared.measure.name, direction=direction, with_marks=with_marks)


def _means_of_runs(answer: Answer, compared: Compared) -> dict[Run, Cell]:
    (family,) = compared.families
    digits = digits_of(compared)
    means = compared.values.mean(axis=1).tolist()
    marks = _against(compared, family) if compared.pairs.baselines else _letters(family)

    runs = runs_by_row(answer, compared)
    texts = {row: f"{means[row]:.{digits}f}" for row in runs}
    best = next(iter(texts.values()), "")

    return {
        run: Cell(texts[row], texts[row] == best, mark=marks.get(row, ""))
        for row, run in runs.items()
    }


def _letters(family: Family) -> dict[int, str]:
    """Return letters by row, or tiers if there are too many groups; empty without tests."""
    if family.tiers is None:
        return {}

    tiers = family.tiers
    return dict(enumerate(letters_of(tiers) or [str(tier) for tier in tiers.tier.tolist()]))


def _against(compared: Compared, family: Family) -> dict[int, str]:
    """Return the marks of rows that are significantly better or worse than a baseline.

    Of several baselines each has a letter in them.
    """
    baselines = compared.pairs.baselines
    rows, against = (side.tolist() for side in compared.pairs.indices())
    better = family.verdicts.better(compared.measure.definition.lower_is_better).tolist()

    marks: dict[int, list[str]] = {row: [""] * len(baselines) for row in rows}
    for row, baseline, way in zip(rows, against, better, strict=True):
        marks[row][baselines.index(baseline)] = WAYS.get(way, "")

    if len(baselines) > 1:
        return {row: marks_of_several(of_row) for row, of_row in marks.items()}
    return {row: mark for row, (mark,) in marks.items()}


def _notes(collection: Collection, answer: Answer, names: dict[Run, str]) -> list[str]:
    """Return what a reader needs to know about the numbers, one sentence each."""
    return [
        f"{_source(collection, answer, names)}.",
        "The best of each column is bold.",
        _marks(answer, names),
        f"Test: {how_tested(answer)}.",
        *_few(answer),
        *withheld_pairs(_withheld(answer)),
        *coverage_of_results(answer),
        *_methods(answer),
        *filter(None, (equivalence_sentence(answer, compared) for compared in answer.results)),
    ]


def _source(collection: Collection, answer: Answer, names: dict[Run, str]) -> str:
    topics = sorted({compared.topics for compared in answer.results})
    span = f"{topics[0]}" if len(topics) == 1 else f"{topics[0]} to {topics[-1]}"
    source = f"{collection.name} ({answer.entrants.qrels.full_name})"
    selection = answer.entrants.selection
    selected = f", selected by {selection.text}" if selection else ""

    return f"Means of {len(names)} runs of {source} on {span} topics{selected}"


def _methods(answer: Answer) -> list[str]:
    """Return the test of two methods, of runs with replicates, for each measure."""
    sentences = []
    for compared in answer.results:
        methods = compare_methods(answer, compared)
        if methods and methods.test:
            a, b = methods.replicates
            sentences.append(
                f"{compared.measure.name} for other topics and other replicates ({a} and {b}): "
                f"{method_words(methods.test)}."
            )

    return sentences


def _few(answer: Answer) -> list[str]:
    """Return a sentence on the measures that have too few topics for verdicts, if others do not."""
    few = [compared.measure.name for compared in answer.results if compared.topics < MIN_TOPICS]
    if not few or len(few) == len(answer.results):
        return []

    measures = ", ".join(few)
    return [f"No verdicts by {measures}: fewer than {MIN_TOPICS} topics have a value of every run."]


def _withheld(answer: Answer) -> list[str]:
    """Return the reason of each pair without a verdict, by all measures."""
    families = [family for compared in answer.results for family in compared.families]
    return [REASONS[reason] for family in families for reason in family.verdicts.withheld.tolist()]


def _marks(answer: Answer, names: dict[Run, str]) -> str:
    """Return a sentence on the marks of runs."""
    most = max(compared.topics for compared in answer.results)
    if most < MIN_TOPICS:
        return too_few(most)
    if all(_withheld(answer)):
        return "No pair has a verdict."

    if answer.query.baselines:
        by_id = {str(run.pk): name for run, name in names.items()}
        baselines = [by_id.get(run, "the baseline") for run in answer.query.baselines]
        return (
            "Marked are runs that are significantly better (up) or worse (down) than "
            f"{listed_baselines(baselines)}."
        )

    families = [family for compared in answer.results for family in compared.families]
    tierings = [family.tiers for family in families if family.tiers]
    if not tierings:
        return (
            f"No letters: with fewer than {MIN_TIERED_TOPICS} topics runs are compared pair by "
            "pair only."
        )
    if all(letters_of(tiers) for tiers in tierings):
        return "Runs that share a letter are not significantly different."

    return (
        "Superscripts are tiers: runs in a tier do not differ significantly from its best run; "
        "runs in different tiers may not differ either."
    )


def two_kinds(query: ComparisonQuery) -> bool:
    """Return whether two tests were requested, one of ranks or signs and one of means."""
    return len(query.tests) == 2 and len({TESTS[test].ranks for test in query.tests}) == 2


def difference_table(
    collection: Collection, answer: Answer, groups: Sequence[GroupColumns] = ()
) -> Table:
    """Build the table of a comparison by `two_kinds` of tests.

    Its parts are runs with their means, pairs with their differences, and tests of all runs with p.
    Raise InvalidInput for more than MOST_PAIRS pairs.

    Differences have `**` from the test of ranks and `(##)` from that of means, as in the source:
    Järvelin and Kekäläinen, University of Tampere RN-2002-2, table 1, with measures as columns.
    Runs are best first by the first measure, and a difference is that of the better run there minus
    the other, or of a run minus the baseline.
    """
    best = answer.results[0]
    runs = {best.order[row]: run for row, run in runs_by_row(answer, best).items()}
    first, second = (side.tolist() for side in best.pairs.indices())
    pairs = [(best.order[a], best.order[b]) for a, b in zip(first, second, strict=True)]
    pairs = [(a, b) for a, b in pairs if a in runs and b in runs]
    if len(pairs) > MOST_PAIRS:
        message = (
            f"{len(pairs):,} pairs; a table of differences has at most {MOST_PAIRS}: name fewer "
            "runs or a baseline, or use csv, which has all of them"
        )
        raise InvalidInput(message, code="too_many_rows", pointer="runs")

    names, of_groups = names_of(list(runs.values())), list(headings_of_groups(groups))
    means = [_means(compared) for compared in answer.results]
    rows = [
        Row(
            [
                names[run],
                *(column[place] for column in means),
                *(cell for part in groups for cell in part.of_run(run)),
            ]
        )
        for place, run in runs.items()
    ]

    differences = [_differences(compared) for compared in answer.results]
    for index, (a, b) in enumerate(pairs):
        pair = f"{names[runs[a]]} \N{MINUS SIGN} {names[runs[b]]}"
        cells = [column[a, b] for column in differences]
        cells += [cell for part in groups for cell in part.of_pair(runs[a], runs[b])]
        rows.append(Row([pair, *cells], begins_part=index == 0))

    tests = [
        name
        for name in OMNIBUS_NAMES
        if all(name in compared.omnibus for compared in answer.results)
    ]
    for index, name in enumerate(tests):
        p_values = [probability(compared.omnibus[name].p_value) for compared in answer.results]
        empty = [""] * len(of_groups)
        rows.append(Row([f"{OMNIBUS_NAMES[name]}, p", *p_values, *empty], begins_part=index == 0))

    columns = [Column("run", "Run", head=True), *_measure_columns(answer), *of_groups]
    notes = [*_difference_notes(collection, answer, names), *group_notes(groups)]
    return Table(collection.slug, columns, rows, notes)


def _means(compared: Compared) -> dict[int, str]:
    """Return the mean of each entrant by its place."""
    digits, means = digits_of(compared), compared.values.mean(axis=1).tolist()
    return {place: f"{mean:.{digits}f}" for place, mean in zip(compared.order, means, strict=True)}


def _differences(compared: Compared) -> dict[tuple[int, int], Cell]:
    """Return the difference of every two entrants by their places, in both directions."""
    # Marks of every pair: none, one or two.
    marks: dict[bool, list[int]] = {}
    for family in compared.families:
        clear = family.adjusted < CLEARLY
        marks[TESTS[family.test].ranks] = np.where(family.significant, 1 + clear, 0).tolist()

    digits, order = digits_of(compared), compared.order
    differences = compared.families[0].result.difference.tolist()
    first, second = (side.tolist() for side in compared.pairs.indices())
    cells = {}
    for pair, difference in enumerate(differences):
        by_ranks, by_means = (marks[kind][pair] if kind in marks else 0 for kind in (True, False))
        aside = f"({'#' * by_means})" if by_means else ""
        a, b = order[first[pair]], order[second[pair]]
        for places, signed in (((a, b), difference), ((b, a), -difference)):
            # Adding zero makes a plain zero of a negative one.
            text = f"{round(signed, digits) + 0.0:.{digits}f}"
            cells[places] = Cell(text, mark="*" * by_ranks, aside=aside)

    return cells


def _difference_notes(collection: Collection, answer: Answer, names: dict[Run, str]) -> list[str]:
    """Return what a reader needs to know about numbers and marks, one sentence each."""
    notes = [f"{_source(collection, answer, names)}, and their differences."]
    most = max(compared.topics for compared in answer.results)
    if most < MIN_TOPICS:
        return [*notes, too_few(most)]

    notes += _few(answer)

    # The test of ranks comes first.
    alpha, families = answer.query.rule.alpha, answer.results[0].families
    for index in sorted(range(len(families)), key=lambda at: not TESTS[families[at].test].ranks):
        if TESTS[families[index].test].ranks:
            kind, once, twice = "ranks", "*", "**"
        else:
            kind, once, twice = "means", "(#)", "(##)"

        levels = f"{once} p < {alpha:g}, {twice} p < {CLEARLY:g}"
        if alpha <= CLEARLY:
            levels = f"{twice} p < {alpha:g}"

        notes.append(f"By {kind}: {levels}; {how_tested(answer, families[index])}.")

        withheld = []
        for compared in answer.results:
            reasons = compared.families[index].verdicts.withheld.tolist()
            withheld += [REASONS[reason] for reason in reasons]

        notes += [f"By {kind}, {sentence}" for sentence in withheld_pairs(withheld)]

    for compared in answer.results:
        for family in compared.families:
            for caution in family.result.cautions:
                if caution.code == "omnibus_not_significant":
                    notes.append(f"{compared.measure.name}: {caution.message}.")

    return [*notes, *coverage_of_results(answer)]
