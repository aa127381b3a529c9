"""Which entries of a phase were pooled, as far as organisers show it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from runs import hooks
from runs.models import Phase, can_see_scores


def pooled_runs(phase: Phase) -> set[UUID] | None:
    """Return the keys of the runs in pools of a phase; None where organisers show no pool."""
    answers: list[tuple[Any, Any]] = hooks.pooled_runs.send(Phase, phase=phase)
    recorded = [set(runs) for _, runs in answers if runs is not None]
    return set[UUID]().union(*recorded) if recorded else None


def pooled_runs_seen(phase: Phase, viewer: Any) -> set[UUID] | None:
    """Return the keys of the runs in pools of a phase; None for who does not see its results, too."""
    return pooled_runs(phase) if can_see_scores(viewer, phase.collection) else None
