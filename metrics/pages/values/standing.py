"""The rank of a run on the leaderboard of its collection, which its pages begin with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.humanize.templatetags.humanize import ordinal

from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.exports.comparisons.words import WITHHELD, corrected_over
from metrics.pages.parts import Query
from metrics.pages.values.parameters import labelled_baseline
from metrics.services.boards.board_question import BoardQuery, BoardQuestion, active_qrels
from metrics.services.boards.leaderboard import Leaderboard, Row, read_leaderboard
from metrics.services.boards.mean_intervals import within_range
from metrics.services.boards.standing_parts import AgainstBaseline, Standings, StandingsQuery
from metrics.services.boards.standings import read_standings
from metrics.services.question import run_id_in
from metrics.tables import figure, mean_cell, probability_words, signed, with_minus
from runs.models import Run


@dataclass(frozen=True)
class RunStanding:
    """The rank, mean and interval of a run by one measure, as on the leaderboard.

    `note` says over how many topics the mean is if not over all, and `provisional` that other runs
    are still to be evaluated. Without a rank, `reason` says why.
    """

    measure: Measure
    ranked: int
    rank: str = ""
    mean: str = ""
    interval: str = ""
    note: str = ""
    provisional: str = ""
    reason: str = ""
    against: Against | None = None


@dataclass(frozen=True)
class Against:
    """The difference of a run from the baseline, with its verdict and a note on it.

    Without a difference, `reason` says why there is none.
    """

    baseline: Run
    difference: str = ""
    p_value: str = ""
    correction: str = ""
    mark: str = ""
    note: str = ""
    reason: str = ""


def read_standing(run: Run, reader: Any, query: Query) -> RunStanding | None:
    """Return the rank of a run by the first measure of the address.

    Return None for a run that the leaderboard leaves out, such as one that is not evaluated against
    the active judgements. Raise InvalidInput for a baseline that is not an id.
    """
    parameters = {name: query.get(name, "") for name in ("measures", "scores", "topics")}
    question = BoardQuery.read(parameters, run.collection, reader)
    question = replace(question, measures=[question.sort], limit=1, pinned=run.pk)
    board = read_leaderboard(collection=run.collection, query=question)
    baseline = _baseline(run, reader, query)

    for row in (*board.rows, *([board.pinned] if board.pinned else [])):
        if row.run.pk == run.pk and row.rank:
            return _ranked(replace(board, rows=[row], pinned=None), row, baseline)

    # Unranked runs are below all others, on some later page.
    whole = BoardQuestion(run.collection, active_qrels(run.collection), question)
    below = {whole.runs[pk]: topics for pk, topics in whole.order.below}
    if run.pk not in below:
        return None
    _, reason = whole.order.why_below(below[run.pk])
    return RunStanding(board.sort, board.ranked, reason=reason)


def _baseline(run: Run, reader: Any, query: Query) -> Run | None:
    """Return the baseline of the address, or else the run that a label of the team names so."""
    named = run_id_in(query, "baseline")
    if named is None:
        labelled = labelled_baseline(run, reader)
        named = str(labelled[1]) if labelled else None

    if named is None or named == str(run.pk):
        return None
    return Run.objects.visible_to(reader).filter(pk=named, collection=run.collection).first()


def _ranked(board: Leaderboard, row: Row, baseline: Run | None) -> RunStanding:
    standings, against = _statistics(board, row, baseline)
    mean = row.values[board.sort.name]
    judged = board.selection.topics if board.selection else row.evaluation.qrels.topics
    cell = mean_cell(board.sort, mean, judged)

    interval = ""
    ends = within_range(standings.intervals, board.sort).get(row.evaluation.pk)
    if ends and mean[0] is not None:
        low, high = (with_minus(figure(board.sort, end)) for end in ends)
        interval = f"{low}, {high}"

    return RunStanding(
        measure=board.sort,
        ranked=board.ranked,
        rank=str(ordinal(row.rank)),
        mean=cell.text,
        interval=interval,
        note=cell.note,
        provisional=f"provisional: {board.progress}" if board.waiting else "",
        against=against,
    )


def _statistics(
    board: Leaderboard, row: Row, baseline: Run | None
) -> tuple[Standings, Against | None]:
    """Return the interval of the mean, and the difference from the baseline.

    The difference is the one that the leaderboard of this baseline shows.
    """
    question = StandingsQuery.read({"statistics": "intervals"})
    if baseline is None:
        return read_standings(board=board, query=question), None

    with_baseline = StandingsQuery.read({"statistics": "intervals", "baseline": str(baseline.pk)})
    try:
        standings = read_standings(board=board, query=with_baseline)
    except StatisticsError as error:
        if error.pointer != "baseline":
            raise
        reason = "not a ranked run of this leaderboard"
        return read_standings(board=board, query=question), Against(baseline, reason=reason)

    standing = standings.of(row.evaluation.pk)
    contrast = standings.baseline
    against = standing.against[0] if standing and standing.against else None
    if not (contrast and against):
        reason = "; ".join(caution.message for caution in standings.cautions)
        return standings, Against(baseline, reason=reason)

    correction = corrected_over(with_baseline.corrected_by, contrast.family)
    return standings, _against(baseline, against, correction)


def _against(baseline: Run, against: AgainstBaseline, correction: str) -> Against:
    notes = []
    if not math.isnan(against.low):
        notes.append(f"interval {signed(against.low)} to {signed(against.high)}")
    if against.withheld:
        notes.append(f"no verdict: {WITHHELD[against.withheld]}")

    reason = ""
    if on_judged := against.on_judged:
        p_value = probability_words(on_judged.p_adjusted)
        reason = f"on judged documents alone {signed(on_judged.difference)}, {p_value}"

    return Against(
        baseline=baseline,
        difference=signed(against.difference),
        p_value=probability_words(against.p_adjusted),
        correction=correction,
        mark=against.mark or "",
        note="; ".join(notes),
        reason=reason,
    )
