"""The official order of a phase's entries, their tiers and which of them can be the best."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import numpy as np

from evalhub.campaigns.services.reference_sets import EntryValues
from metrics.engine.significance.families import USUAL_RULE, USUAL_TEST, Pairs, compare_family
from metrics.engine.significance.rank_sets import holds_for_ranks, rank_sets
from metrics.services.boards.fair_order import fair_order
from metrics.services.boards.official_entries import official
from metrics.services.values.judged_views import covered_topics
from runs.models import Entry

# All pairs of more runs are not tested; their tiers are left out.
MAX_TESTED = 500


class TestedPlace(NamedTuple):
    """The tier of an entry, and whether it is in the set of the best (None without a test of it)."""

    tier: int
    in_best_set: bool | None


def placed_entries(
    read: EntryValues, stood: tuple[str, ...] | None = None
) -> list[tuple[int, int | None]]:
    """Return the rows of official entries and of those that organisers entered, with their ranks.

    The best mean of the primary measure is first, and ranks are as in 1, 2, 2, 4. Baselines and
    runs out of competition are placed by their means with None. Official entries that cannot be
    ranked, since their means cover fewer topics, follow with None. `stood` has the ids of the
    official entries where a release has fixed them.
    """
    row_of = {entry.run_id: row for row, entry in enumerate(read.entries)}

    def means(runs: list[UUID]) -> dict[UUID, float]:
        rows = [row_of[run] for run in runs if run in row_of]
        return {read.entries[row].run_id: read.primary(row) for row in _ranks(read, rows)}

    if stood is None:
        entries = official(read.phase, means)
        competing = [row_of[entry.run_id] for entry in entries if entry.run_id in row_of]
    else:
        competing = [row for row, entry in enumerate(read.entries) if str(entry.pk) in stood]

    unranked_roles = [
        row
        for row, entry in enumerate(read.entries)
        if entry.role != Entry.Role.COMPETING and not entry.late
    ]
    ranks = _ranks(read, competing)

    def place(row: int) -> tuple[float, int, int]:
        return -read.primary(row), ranks.get(row, 0), read.entries[row].number

    below = sorted((row for row in competing if row not in ranks), key=place)
    ordered = sorted([*ranks, *unranked_roles], key=place)

    return [(row, ranks.get(row)) for row in [*ordered, *below]]


def _ranks(read: EntryValues, rows: list[int]) -> dict[int, int]:
    """Return the ranks by the primary measure of those of these rows that can be ranked."""
    measure, row_of = read.measures[0], {read.evaluations[row]: row for row in rows}
    order = fair_order(
        {key: read.means[measure.name][key] for key in row_of},
        read.qrels.topics,
        lambda keys: covered_topics(keys, measure),
        lower_first=measure.lower_is_better,
    )

    return {row_of[key]: rank for key, rank in order.rank_of.items()}


def tiers_of(read: EntryValues, places: list[tuple[int, int | None]]) -> dict[int, TestedPlace]:
    """Return the tier of each ranked row by the primary measure, and whether it can be the best.

    The result is empty with too few topics or too many runs.
    """
    rows, measure = [row for row, rank in places if rank], read.measures[0]
    if measure.name not in read.values or not 2 <= len(rows) <= MAX_TESTED:
        return {}

    values = read.values[measure.name][rows]
    common = np.isfinite(values).all(axis=0)
    if np.count_nonzero(common) < 2:
        return {}

    lower = measure.lower_is_better
    pairs = Pairs(len(rows))
    family = compare_family(values[:, common], pairs, USUAL_TEST, USUAL_RULE, lower_is_better=lower)
    if family.tiers is None:
        return {}

    best: list[bool | None] = [None] * len(rows)
    if holds_for_ranks(USUAL_TEST, USUAL_RULE.correction):
        better = family.verdicts.better(lower)
        best = rank_sets(len(rows), *pairs.indices(), better).best.tolist()

    return dict(zip(rows, map(TestedPlace, family.tiers.tier.tolist(), best), strict=True))
