"""How far the judgements reach, as a table of the runs and in sentences."""

from __future__ import annotations

import math
from typing import Any

from evalhub.pools.services.reusability import (
    BY_RUN,
    BY_TEAM,
    INFERRED,
    NAMED,
    MeasureReach,
    Reusability,
)
from metrics.exports.table import Column, Row, Table
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, with_minus
from runs.models import Collection


def reusability_table(collection: Collection, answer: Reusability, reach: MeasureReach) -> Table:
    """Build the table of the runs by one measure, the best by the official mean first."""
    measure, order = reach.measure.name, reach.order
    columns = [
        Column("run", format=None),
        Column("", "Run", head=True),
        Column("team", format=None),
        Column("tag", format=None),
        Column("group", format=None),
        Column("pooled", "Pooled", format=_yes),
        Column("judged_depth", "Judged depth", format="{:,}".format),
        Column("median_depth", format=None),
        Column("mean", measure, format=_mean),
        Column("left_out", "Without own", format=_mean),
        Column("change", "Change", format=_percent),
        Column("rank", "Rank"),
        Column("left_out_rank", "Rank without own"),
        Column("corrected", "Corrected", format=_bracketed),
        *(Column(name, format=None) for name in _inputs(collection, answer, reach)),
    ]

    names = names_of([run.run for run in answer.runs])
    changes = reach.changes
    rows = [
        Row(
            [
                str(run.run.pk),
                names[run.run],
                run.run.team.slug,
                run.run.tag,
                run.group,
                run.pooled,
                run.judged_depth,
                run.median_depth,
                _data(reach.means[place]),
                _data(reach.left_out[place]),
                _data(changes[place]),
                int(order.ranks[place]),
                int(order.left_out_ranks[place]),
                _data(reach.corrected(place, run)),
                *_inputs(collection, answer, reach).values(),
            ]
        )
        for place, run in sorted(enumerate(answer.runs), key=lambda pair: order.ranks[pair[0]])
    ]
    name = f"{collection.slug}-reusability"
    title = f"{measure} with and without own judgements"
    return Table(name, columns, rows, sentences(answer, reach), title=title)


def sentences(answer: Reusability, reach: MeasureReach) -> list[str]:
    """Return in words what was pooled, what runs lose without it, and what that does to ranks."""
    return [_of_pool(answer), *_of_changes(answer, reach)]


def _of_pool(answer: Reusability) -> str:
    pooled, depth = answer.pooled, answer.pooled.depth
    to_depth = f" to depth {depth}" if depth else ""
    if pooled.source == INFERRED:
        source = ": they are judged that deep on every topic, and no pool is recorded"
    elif pooled.source == NAMED:
        source = ", as requested"
    else:
        plural = "s" * (len(pooled.pools) != 1)
        source = f", as recorded by pool{plural} {', '.join(map(str, pooled.pools))}"

    return f"{answer.pooled_runs} of {len(answer.runs)} runs were pooled{to_depth}{source}."


def _of_changes(answer: Reusability, reach: MeasureReach) -> list[str]:
    measure, order = reach.measure.name, reach.order
    if math.isnan(reach.mean_change):
        return [f"No run has judgements of its own by which {measure} would change."]

    own = {BY_TEAM: "their own team", BY_RUN: "each"}.get(
        answer.by, f"runs with the same {answer.by}"
    )
    text = (
        f"Without the judgements that {own} alone brought, the {measure} of runs changes by "
        f"{_percent(reach.mean_change)} on average and by {reach.largest_change:.1%} at most"
    )
    if reach.largest_drop > 0:
        place = int((order.left_out_ranks - order.ranks).argmax())
        run = answer.runs[place].run
        text += (
            f"; the largest drop is that of {names_of([run])[run]}, from rank "
            f"{order.ranks[place]} to {order.left_out_ranks[place]}"
        )

    outlook = (
        f"Kendall’s tau between the official order and the order by these means is "
        f"{_figure(order.tau)}, and its AP correlation {_figure(order.tau_ap)}: a run that comes "
        "later, without judgements of its own, is placed about as well as that"
    )
    correction = reach.correction
    if math.isnan(correction.bias) or answer.pooled_runs == len(answer.runs):
        return [f"{text}.", f"{outlook}."]

    corrected = (
        f"A run that was not pooled loses about {_mean(correction.bias)} (error "
        f"{_mean(correction.error)}): the corrected mean in brackets adds this, and no rank uses it"
    )
    return [f"{text}.", f"{outlook}.", f"{corrected}."]


def _inputs(collection: Collection, answer: Reusability, reach: MeasureReach) -> dict[str, Any]:
    return {
        "collection": collection.slug,
        "qrels": answer.qrels.version,
        "measure": reach.measure.name,
        "by": answer.by,
        "pooled_by": answer.pooled.source,
        "depth": answer.pooled.depth,
    }


def _data(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _figure(value: float) -> str:
    return NOTHING if math.isnan(value) else with_minus(f"{value:.3f}")


def _mean(value: float | None) -> str:
    return NOTHING if value is None else with_minus(f"{value:.4f}")


def _bracketed(value: float | None) -> str:
    return NOTHING if value is None else f"({with_minus(f'{value:.4f}')})"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else with_minus(f"{value:+.1%}")


def _yes(value: bool) -> str:
    return "yes" if value else "no"
