"""Explain the values of runs by their settings: by changes of one setting, and by associations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from metrics.engine.explanation.association import (
    PERMUTATIONS,
    RESAMPLES,
    Associations,
    associate,
    has_spread,
)
from metrics.engine.explanation.matched import Change, changes_of
from metrics.engine.explanation.settings import Levels, Setting, cramers_v, levels_of, together
from metrics.engine.significance.pairs import Matrix, Watch, unwatched

# The fewest runs that are explained.
LEAST_RUNS = 12
ALPHA = 0.05
# Cramér's V from which parameters share a row, and from which a caution says so.
TOGETHER, OFTEN_TOGETHER = 0.9, 0.5
TOO_FEW_RUNS = "too_few_runs"
NO_PARAMETERS = "no_parameters"
NO_SPREAD = "no_spread"
NO_ASSOCIATION = "no_association"
REASONS = (TOO_FEW_RUNS, NO_PARAMETERS, NO_SPREAD, NO_ASSOCIATION)


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`.

    `settings` are those examined, parameters that change together as one, with their `levels`.
    `naming` are parameters that are different in every run, and `rare` those of which fewer than
    two values have three runs. `linked` are pairs of settings, by their places, that often change
    together, with their V. `associations` is None unless a p is below ALPHA, and `reason` then says
    why.
    """

    runs: int
    settings: list[Setting] = field(default_factory=list)
    levels: list[Levels] = field(default_factory=list)
    naming: list[str] = field(default_factory=list)
    rare: list[str] = field(default_factory=list)
    linked: list[tuple[int, int, float]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    associations: Associations | None = None
    reason: str = ""


def explain(
    values: Matrix,
    parameters: Sequence[Setting],
    *,
    permutations: int = PERMUTATIONS,
    resamples: int = RESAMPLES,
    seed: int = 0,
    watch: Watch = unwatched,
) -> Explanation:
    """Return the effects of changing one setting alone, and the settings that go with the means.

    Shapes: `values` (runs, topics), two topics or more; each setting has the value of every run.
    """
    runs = len(values)
    if runs < LEAST_RUNS:
        return Explanation(runs, reason=TOO_FEW_RUNS)

    varied = [setting for setting in parameters if len(setting.values) > 1]
    naming = [setting.name for setting in varied if setting.names_runs]
    own_levels = {setting: levels_of([setting]) for setting in varied if setting.name not in naming}
    rare = [setting for setting, levels in own_levels.items() if len(levels.labels) < 2]
    examined = [setting for setting in own_levels if setting not in rare]
    explanation = Explanation(
        runs, naming=naming, rare=[setting.name for setting in rare], reason=NO_PARAMETERS
    )
    if not examined:
        return explanation

    strength = cramers_v([own_levels[setting] for setting in examined])
    groups = _groups(strength)
    members = [[examined[place] for place in group] for group in groups]
    settings = [together(group) for group in members]
    levels = [levels_of(group) for group in members]
    explanation = replace(
        explanation,
        settings=settings,
        levels=levels,
        linked=_linked(strength, groups),
        changes=changes_of(values, settings, rare),
        reason=NO_SPREAD,
    )

    if not has_spread(values):
        return explanation

    associations = associate(
        values, levels, permutations=permutations, resamples=resamples, seed=seed, watch=watch
    )
    if (associations.p_value >= ALPHA).all():
        return replace(explanation, reason=NO_ASSOCIATION)
    return replace(explanation, associations=associations, reason="")


def _groups(strength: Matrix) -> list[list[int]]:
    """Return the groups of parameters that change together, by their places: each does with at
    least one other of its group."""
    remaining = list(range(len(strength)))
    groups = []
    while remaining:
        group, reached = [], [remaining.pop(0)]
        while reached:
            group.append(reached.pop())
            near = [place for place in remaining if strength[group[-1], place] >= TOGETHER]
            reached += near
            remaining = [place for place in remaining if place not in near]
        groups.append(sorted(group))

    return groups


def _linked(strength: Matrix, groups: Sequence[Sequence[int]]) -> list[tuple[int, int, float]]:
    """Return the pairs of groups with parameters that often change together, strongest first."""
    linked = []
    for place, group in enumerate(groups):
        for other_place, other in enumerate(groups[place + 1 :], place + 1):
            strongest = float(strength[np.ix_(group, other)].max())
            if strongest >= OFTEN_TOGETHER:
                linked.append((place, other_place, strongest))

    return sorted(linked, key=lambda pair: -pair[2])
