"""The parts of pages that are about curves: the choices of their forms, and the table of
readings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.engine.curve.curves import CURVES
from metrics.engine.judgement.gains import NAMED
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.curves_together import CurvesTogether
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.values.curves import CurveQuery, RecallQuery
from metrics.tables import NOTHING, with_minus
from runs.models import Qrels, Run

# Offered after the curves with their usual parameters.
_VARIANTS = (
    "nDCG(ideal='retrieved')",
    "nDCG(norm='average')",
    "nDCG(dis='jk')",
    "DCG(dis='jk')",
    "nCG(ideal='retrieved')",
    "nCG(norm='average')",
)
_INTERPOLATIONS = {
    "ceiling": "highest at that recall or more",
    "interval": "highest within each interval",
}
_ROUNDINGS = {"10": "as trec_eval", "9": "as trec_eval 9", "exact": "none"}
_READ_AT = (5, 10, 20, 50, 100, 200, 500, 1000)
# The rank of the sentence about a table, if it is in the table.
_USUAL_RANK = 10
_NEVER = "never"
RECALL_PARAMETERS = ("rel", "level", "gains", "interp", "rounding")


def curve_choices(measure: Measure) -> list[str]:
    """Return the measures that a form offers, with the chosen one."""
    return list(dict.fromkeys([*CURVES, *_VARIANTS, measure.name]))


def recall_choices(query: Mapping[str, str], qrels: Qrels) -> dict[str, Any]:
    """Return the choices of a form of precision over recall.

    `parameters` are the chosen ones as parameters of a chart.
    """
    single, gains = query.get("level") or "", query.get("gains") or ""
    rel = query.get("rel") or ("" if single or gains else "1")
    parameters = {
        "rel": rel,
        "level": single,
        "gains": gains,
        **{name: query.get(name) or "" for name in ("interp", "rounding")},
    }

    chosen = RecallQuery.read(parameters)
    levels = sorted((level for level in qrels.levels if int(level) > 0), key=int)

    return {
        "rel": rel,
        "alone": single,
        "choices": list(dict.fromkeys([*levels, *([rel] if rel else [])])),
        "alone_choices": list(dict.fromkeys([*levels, *([single] if single else [])])),
        "gains": gains,
        "gain_choices": list(dict.fromkeys([*NAMED, *([gains] if gains else [])])),
        "interp": chosen.interp,
        "rounding": chosen.rounding,
        "interpolations": _INTERPOLATIONS,
        "roundings": _ROUNDINGS,
        "parameters": {name: value for name, value in parameters.items() if value},
    }


@dataclass(frozen=True)
class ReadingLine:
    """One run at one rank; the last three texts are empty for a curve that may fall."""

    run: Run
    name: str
    value: str
    ideal: str
    missed: str
    percent: str
    needed: str
    for_best: str
    missed_of_best: str
    best: bool


@dataclass(frozen=True)
class ReadingTable:
    """Curves read at some ranks, with a line for each run at each rank.

    `across` says whether one curve can be read against another; `stops` is the rank from which the
    ideals are horizontal, and `summary` compares the best run with the slowest at one rank.
    """

    ranks: list[tuple[int, list[ReadingLine]]]
    several: bool
    across: bool
    stops: int | None
    summary: str


def ranks_read(query: CurveQuery) -> list[int]:
    """Return the requested ranks, or round ones down to the depth."""
    return list(query.ranks) or [rank for rank in _READ_AT if rank <= query.depth] or [query.depth]


def reading_table(together: CurvesTogether, query: CurveQuery) -> ReadingTable:
    """Return the readings of each run at the requested ranks; `together` must have readings."""
    runs = [evaluation.run for evaluation in together.evaluations]

    names, against, ranks = names_of(runs), together.against_best, ranks_read(query)

    rows = []
    for rank in ranks:
        at, lines = rank - 1, []
        for place, (run, curve, reading) in enumerate(
            zip(runs, together.curves, together.readings, strict=True)
        ):
            percent = NOTHING
            if not math.isnan(reading.percent[at]):
                percent = f"{with_minus(f'{reading.percent[at]:.1f}')}%"

            lines.append(
                ReadingLine(
                    run=run,
                    name=names[run],
                    value=_figure(curve.mean[at]),
                    ideal=_figure(curve.ideal_mean[at]),
                    missed=_figure(reading.missed[at]),
                    percent=percent,
                    needed="" if reading.needed is None else _rank(reading.needed[at]),
                    for_best="" if against is None else _rank(against.needed[place, at]),
                    missed_of_best="" if against is None else _figure(against.missed[place, at]),
                    best=against is not None and len(runs) > 1 and bool(against.best[at] == place),
                )
            )

        rows.append((rank, lines))

    summary = ""
    if against:
        usual = ranks.index(_USUAL_RANK) if _USUAL_RANK in ranks else 0
        summary = _best_and_slowest(rows[usual])

    stops = [reading.horizontal_from or 0 for reading in together.readings]
    return ReadingTable(
        ranks=rows,
        several=len(runs) > 1,
        across=against is not None,
        stops=max(stops) or None,
        summary=summary,
    )


def _best_and_slowest(row: tuple[int, list[ReadingLine]]) -> str:
    """Return a sentence on the rank at which the slowest run has as much as the best one."""
    rank, lines = row
    best = [line.name for line in lines if line.best]
    others = [line for line in lines if not line.best]
    if not (best and others):
        return ""

    never = [line.name for line in others if line.for_best == _NEVER]
    if never:
        return f"What {best[0]} has at rank {rank} is never reached by {', '.join(never)}."

    slowest = max(others, key=lambda line: int(line.for_best.replace(",", "")))
    return f"What {best[0]} has at rank {rank}, {slowest.name} has at rank {slowest.for_best}."


def _figure(value: float) -> str:
    return with_minus(f"{value:.4f}")


def _rank(rank: int) -> str:
    return f"{rank:,}" if rank else _NEVER
