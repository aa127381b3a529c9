"""What explains the values of runs whose settings are known: two answers, and silence where there
is none."""

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

# With fewer runs nothing is said.
LEAST_RUNS = 12
ALPHA = 0.05
# Cramér's V from which parameters share a row, and from which a reader is told.
TOGETHER, OFTEN_TOGETHER = 0.9, 0.5
TOO_FEW_RUNS, NO_PARAMETERS, NO_SPREAD, NO_ASSOCIATION = (
    "too_few_runs",
    "no_parameters",
    "no_spread",
    "no_association",
)
REASONS = (TOO_FEW_RUNS, NO_PARAMETERS, NO_SPREAD, NO_ASSOCIATION)


@dataclass(frozen=True)
class Explanation:
    """What `explain` found.

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
    given: Sequence[Setting],
    *,
    permutations: int = PERMUTATIONS,
    resamples: int = RESAMPLES,
    seed: int = 0,
    watch: Watch = unwatched,
) -> Explanation:
    """Return what changing a setting changed where nothing else did, and which settings go with the
    means.

    Shapes: `values` (runs, topics), two topics or more; each setting has the value of every run.
    """
    runs = len(values)
    if runs < LEAST_RUNS:
        return Explanation(runs, reason=TOO_FEW_RUNS)

    varied = [setting for setting in given if len(setting.values) > 1]
    naming = [setting.name for setting in varied if setting.names_runs]
    alone = {setting: levels_of([setting]) for setting in varied if setting.name not in naming}
    rare = [setting for setting, levels in alone.items() if len(levels.labels) < 2]
    kept = [setting for setting in alone if setting not in rare]
    found = Explanation(
        runs, naming=naming, rare=[setting.name for setting in rare], reason=NO_PARAMETERS
    )
    if not kept:
        return found

    strength = cramers_v([alone[setting] for setting in kept])
    groups = _groups(strength)
    members = [[kept[place] for place in group] for group in groups]
    settings = [together(group) for group in members]
    levels = [levels_of(group) for group in members]
    found = replace(
        found,
        settings=settings,
        levels=levels,
        linked=_linked(strength, groups),
        changes=changes_of(values, settings, rare),
        reason=NO_SPREAD,
    )

    if not has_spread(values):
        return found

    associations = associate(
        values, levels, permutations=permutations, resamples=resamples, seed=seed, watch=watch
    )
    if (associations.p_value >= ALPHA).all():
        return replace(found, reason=NO_ASSOCIATION)
    return replace(found, associations=associations, reason="")


def _groups(strength: Matrix) -> list[list[int]]:
    """Return the parameters that change together, by their places: each is with one of its group,
    at least."""
    left = list(range(len(strength)))
    groups = []
    while left:
        group, reached = [], [left.pop(0)]
        while reached:
            group.append(reached.pop())
            near = [place for place in left if strength[group[-1], place] >= TOGETHER]
            reached += near
            left = [place for place in left if place not in near]
        groups.append(sorted(group))

    return groups


def _linked(strength: Matrix, groups: Sequence[Sequence[int]]) -> list[tuple[int, int, float]]:
    """Return the pairs of groups of which two parameters often change together, the strongest
    first."""
    found = []
    for place, group in enumerate(groups):
        for after, other in enumerate(groups[place + 1 :], place + 1):
            strongest = float(strength[np.ix_(group, other)].max())
            if strongest >= OFTEN_TOGETHER:
                found.append((place, after, strongest))

    return sorted(found, key=lambda pair: -pair[2])
