"""The official order of a phase's entries."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from metrics.engine.agreement.standings import standings
from metrics.services.campaigns.reference import EntryValues
from runs.models import Entry
from runs.services.campaigns.selection import official


def placed_entries(read: EntryValues, stood: tuple[str, ...] | None = None) -> list[tuple[int, int | None]]:
    """Return the places among the entries of the official ones and those that organisers entered, best mean of the
    primary measure first, with ranks 1, 2, 2, 4; baselines and runs out of competition stand at their places with
    None. `stood` names the official ones where a release has fixed them."""
    measure = read.measures[0]
    of_run = {entry.run_id: row for row, entry in enumerate(read.entries)}

    def known(runs: list[UUID]) -> dict[UUID, float]:
        return {
            run: read.primary(of_run[run]) for run in runs if run in of_run and np.isfinite(read.primary(of_run[run]))
        }

    if stood is None:
        competing = [of_run[entry.run_id] for entry in official(read.phase, known) if entry.run_id in of_run]
    else:
        competing = [row for row, entry in enumerate(read.entries) if str(entry.pk) in stood]
    beside = [row for row, entry in enumerate(read.entries) if entry.role != Entry.Role.COMPETING and not entry.late]
    rows = [*competing, *beside]
    means = [read.means[measure.name][read.evaluations[row]][0] for row in competing]
    values = np.array([[np.nan if mean is None else mean for mean in means]])
    ranks = standings(values, np.array([measure.lower_is_better]))[0].tolist() if competing else []
    ranked = dict(zip(competing, ranks, strict=True))
    ordered = sorted(rows, key=lambda row: (-read.primary(row), ranked.get(row, 0), read.entries[row].number))
    return [(row, ranked.get(row)) for row in ordered]
