"""Groups of runs that a test does not separate: tiers for a board, letters for a table."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Tiers:
    """One entry per run: its tier from 1 on, and the groups it is in, as indices from 0 on.

    Two runs share a group exactly when the test does not separate them. In a tier no run is
    separated from the tier's best one. Groups are given, or computed at first use from `order`,
    the runs best first, and from whether two runs in this order are `alike`: for a thousand runs
    that takes a second.
    """

    tier: Ints
    given_groups: Groups | None = None
    order: Ints | None = None
    alike: Flags | None = None

    @cached_property
    def groups(self) -> Groups:
        if self.given_groups is not None or self.order is None or self.alike is None:
            return self.given_groups or ()
        return _membership(_cover(self.alike), self.order)

    def few_groups(self, limit: int) -> Groups | None:
        """Return the groups, or None if there are more than `limit`, which takes less time."""
        if (
            self.given_groups is None
            and "groups" not in vars(self)
            and self.order is not None
            and self.alike is not None
        ):
            sets = _cover(self.alike, limit)
            return None if len(sets) > limit else _membership(sets, self.order)

        # The groups of a run are in ascending order.
        if max((groups[-1] for groups in self.groups if groups), default=0) >= limit:
            return None
        return self.groups

    def of(self, rows: Ints) -> Tiers:
        """Return some of the runs: with their tiers, and the groups without those that are
        contained in another one, renumbered."""
        groups_of = [self.groups[row] for row in rows.tolist() if self.groups]
        members: dict[int, set[int]] = {}
        for place, groups in enumerate(groups_of):
            for group in groups:
                members.setdefault(group, set()).add(place)

        needed = [
            group
            for group, places in sorted(members.items())
            if not any(
                places < other_places or (places == other_places and other < group)
                for other, other_places in members.items()
            )
        ]

        numbers = {group: number for number, group in enumerate(needed)}
        return Tiers(
            self.tier[rows],
            tuple(
                tuple(numbers[group] for group in groups if group in numbers)
                for groups in groups_of
            ),
        )


def tiers(
    means: Floats, first: Ints, second: Ints, separated: Flags, *, lower_is_better: bool = False
) -> Tiers:
    """Tiers and groups from every pair's verdict; a pair that is not given counts as not separated.

    Groups: a cover of what is not separated by sets without a separated pair (letters of a compact
    display: Piepho, Journal of Computational and Graphical Statistics 13(2), 2004), here each
    filled greedily from the best run down.
    Tiers: the best run opens the first one; the next run that is separated from a tier's best opens
    a new one.
    """
    runs = len(means)
    alike = np.ones((runs, runs), np.bool_)
    np.put(alike, first * runs + second, ~separated)
    alike &= alike.T
    order = np.argsort(means if lower_is_better else -means, kind="stable")
    alike = alike[order][:, order]
    tier = np.empty(runs, np.int64)
    tier[order] = _tiers(alike)

    return Tiers(tier, order=order, alike=alike)


def letters_of(tiers: Tiers) -> list[str] | None:
    """Return each run's groups as letters, a for the best run's first, or None if there are more
    groups than small and large letters."""
    groups = tiers.few_groups(len(string.ascii_letters))
    if groups is None:
        return None
    return ["".join(string.ascii_letters[number] for number in numbers) for numbers in groups]


def _membership(sets: Sequence[Sequence[int]], order: Ints) -> Groups:
    """Return the sets of each run; their members are places in the order."""
    groups_of: list[list[int]] = [[] for _ in order]
    runs = order.tolist()
    for number, members in enumerate(sets):
        for member in members:
            groups_of[runs[member]].append(number)

    return tuple(map(tuple, groups_of))


def _tiers(alike: Flags) -> Ints:
    tier, best, number = np.empty(len(alike), np.int64), 0, 1
    for run in range(len(alike)):
        if not alike[best, run]:
            best, number = run, number + 1
        tier[run] = number

    return tier


def _cover(alike: Flags, limit: int | None = None) -> list[list[int]]:
    """Return sets of alike runs such that every alike pair shares a set, from the best run's on.

    With a `limit`, stop at one set more.

    A set of runs is a whole number, with a bit for each run: a thousand of them are then compared
    in one step.
    """
    rows = [
        int.from_bytes(row.tobytes(), "little")
        for row in np.packbits(alike, axis=1, bitorder="little")
    ]

    # The pairs without a common set, each at its better run; a run without a set is a pair with
    # itself.
    open_pairs, sets = [row >> run << run for run, row in enumerate(rows)], []
    for run in range(len(rows)):
        while open_pairs[run]:
            members, others = _fill(
                rows, run, (open_pairs[run] & -open_pairs[run]).bit_length() - 1
            )
            for member in members:
                open_pairs[member] &= others
            sets.append(members)
            if limit is not None and len(sets) > limit:
                return sets

    return sets


def _fill(rows: list[int], run: int, other: int) -> tuple[list[int], int]:
    """Return every run that is alike to these two and to those added before it, and the bits of all
    others."""
    candidates, members, others = rows[run] & rows[other], [], -1
    while candidates:
        lowest = candidates & -candidates
        members.append(lowest.bit_length() - 1)
        others ^= lowest
        candidates = (candidates ^ lowest) & rows[members[-1]]

    return members, others
