"""The official order of a phase's entries, and their tiers."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from metrics.engine.agreement.standings import standings
from metrics.engine.significance.families import USUAL_RULE, Pairs, compare_family
from metrics.services.campaigns.reference import EntryValues
from metrics.services.campaigns.tested import TEST
from runs.models import Entry
from runs.services.campaigns.selection import official

# All pairs of more runs are not tested; their tiers are left out.
MAX_TESTED = 500


def placed_entries(
    read: EntryValues, stood: tuple[str, ...] | None = None
) -> list[tuple[int, int | None]]:
    """Return the places among the entries of the official ones and those that organisers entered, best mean of the
    primary measure first, with ranks 1, 2, 2, 4; baselines and runs out of competition stand at their places with
    None. `stood` names the official ones where a release has fixed them."""
    measure = read.measures[0]
    of_run = {entry.run_id: row for row, entry in enumerate(read.entries)}

    def known(runs: list[UUID]) -> dict[UUID, float]:
        return {
            run: read.primary(of_run[run])
            for run in runs
            if run in of_run and np.isfinite(read.primary(of_run[run]))
        }

    if stood is None:
        competing = [
            of_run[entry.run_id] for entry in official(read.phase, known) if entry.run_id in of_run
        ]
    else:
        competing = [row for row, entry in enumerate(read.entries) if str(entry.pk) in stood]
    beside = [
        row
        for row, entry in enumerate(read.entries)
        if entry.role != Entry.Role.COMPETING and not entry.late
    ]
    rows = [*competing, *beside]
    means = [read.means[measure.name][read.evaluations[row]][0] for row in competing]
    values = np.array([[np.nan if mean is None else mean for mean in means]])
    ranks = standings(values, np.array([measure.lower_is_better]))[0].tolist() if competing else []
    ranked = dict(zip(competing, ranks, strict=True))
    ordered = sorted(
        rows, key=lambda row: (-read.primary(row), ranked.get(row, 0), read.entries[row].number)
    )
    return [(row, ranked.get(row)) for row in ordered]


def tiers_of(read: EntryValues, places: list[tuple[int, int | None]]) -> dict[int, int]:
    """Return the tier of each ranked row by the primary measure, if there are enough topics and not too many runs."""
    rows, measure = [row for row, rank in places if rank], read.measures[0]
    if measure.name not in read.values or not 2 <= len(rows) <= MAX_TESTED:
        return {}
    values = read.values[measure.name][rows]
    common = np.isfinite(values).all(axis=0)
    if np.count_nonzero(common) < 2:
        return {}
    lower = measure.lower_is_better
    family = compare_family(
        values[:, common], Pairs(len(rows)), TEST, USUAL_RULE, lower_is_better=lower
    )
    return dict(zip(rows, family.tiers.tier.tolist(), strict=True)) if family.tiers else {}
