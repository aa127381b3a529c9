"""The rank interval of each run over samples of the topics: a dot for its rank, and a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, row_axis, whole_ticks
from metrics.engine.agreement.intervals import RankIntervals
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.questions.addresses import run_page
from metrics.services.comparisons.comparison import MAX_RANKED, RANK_RESAMPLES, Compared
from metrics.services.comparisons.shown_pairs import names_of, runs_by_row
from metrics.services.comparisons.stored import Answer

# The height of a row and of everything around the rows, in pixels.
_ROW, _AROUND = 14, 120
_ROUNDING = 1e-9


def ranks_figure(answer: Answer, compared: Compared, spread: RankIntervals | None) -> Figure:
    """Draw a row for each run, best first; raise StatisticsError if there are no intervals."""
    if spread is None:
        message = f"rank intervals need {MIN_TOPICS} topics or more and at most {MAX_RANKED} runs"
        raise StatisticsError(message, code="nothing_to_draw", pointer="runs")

    rows = list(_rows(answer, compared, spread))
    options = answer.query.options
    caption = (
        f"Ranks by {compared.measure.name} on {RANK_RESAMPLES:,} bootstrap samples of "
        f"{compared.topics} topics (seed {options.seed}): the dot is the rank on these topics, "
        f"the line the {100 * options.confidence:g}% interval. "
        "Ranked first: the share of samples in which the run is first, tied or alone."
    )

    caption += first_on_note(spread)
    table = [
        [row["run"], str(row["rank"]), str(row["low"]), str(row["high"]), row["first"]]
        for row in rows
    ]
    title = f"{compared.measure.name}: rank uncertainty"
    figure = Figure(
        name="ranks",
        caption=caption,
        columns=["Run", "Rank", "low", "high", "Ranked first"],
        rows=table,
        drawing=lambda look: _draw(rows, compared.pairs.runs, title, look),
        height=lambda look: max(look.height, _AROUND + _ROW * len(rows)),
    )

    qrels = answer.entrants.qrels
    return figure.drawn_from(
        qrels.collection,
        qrels,
        measure=compared.measure.name,
        runs=(len(rows), compared.pairs.runs),
    )


def first_on_note(spread: RankIntervals) -> str:
    """Return why the shares of first ranks add up to more than 1; empty if they do not."""
    if spread.share_first.sum() < 1 + _ROUNDING:
        return ""
    return (
        " Runs that tie for the first rank of a sample all count as first: "
        "the shares add up to more than 100%."
    )


def _rows(answer: Answer, compared: Compared, spread: RankIntervals) -> Iterator[dict[str, Any]]:
    runs = runs_by_row(answer, compared)
    names = names_of(list(runs.values()))
    for row, run in runs.items():
        yield {
            "run": names[run],
            "rank": int(spread.rank[row]),
            "low": int(spread.low[row]),
            "high": int(spread.high[row]),
            "first": f"{100 * spread.share_first[row]:.0f}%",
            "address": run_page(run),
        }


def _draw(rows: list[dict[str, Any]], runs: int, title: str, look: Look) -> Any:
    palette = look.palette
    size = max(11, min(13, int(0.6 * look.height / len(rows))))
    axis = row_axis([row["run"] for row in rows], size, 0.36 * look.room)
    y = alt.Y("row:O", title=None, axis=alt.Axis(**axis))
    last = max(row["high"] for row in rows)
    ranks = alt.Axis(format="d", values=whole_ticks(1, last, look))
    x = alt.X(
        "low:Q", title="rank", scale=alt.Scale(domain=[0.5, last + 0.5], nice=False), axis=ranks
    )
    tooltip = ["run:N", "rank:Q", "low:Q", "high:Q", alt.Tooltip("first:N", title="ranked first")]
    base = marks({"row": place, **row} for place, row in enumerate(rows))
    layers = [
        base.mark_rule(strokeWidth=3, opacity=0.45, color=palette.run).encode(
            x=x, x2="high:Q", y=y, tooltip=tooltip, **look.link
        ),
        base.mark_point(filled=True, opacity=1, size=70, color=palette.run).encode(
            x="rank:Q", y=y, tooltip=tooltip, **look.link
        ),
    ]

    return layered_chart(
        layers, look, title, f"of {runs} runs, over bootstrap samples of the topics"
    )
