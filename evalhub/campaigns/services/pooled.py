"""Which entries of a phase were pooled, as far as organisers show it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from runs import hooks
from runs.models import Phase


def pooled_runs(phase: Phase) -> set[UUID] | None:
    """Return the keys of the runs in pools of a phase; None where organisers show no pool."""
    answers: list[tuple[Any, Any]] = hooks.pooled_runs.send(Phase, phase=phase)
    recorded = [set(runs) for _, runs in answers if runs is not None]
    return set[UUID]().union(*recorded) if recorded else None
