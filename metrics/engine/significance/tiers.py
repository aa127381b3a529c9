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
    separated from the tier's best one. Groups are `known`, or found when they are asked for: of
    `order`, the runs best first, and of whether two of them in this order are `alike`. Of a
    thousand runs that takes a second.
    """

    tier: Ints
    known: Groups | None = None
    order: Ints | None = None
    alike: Flags | None = None

    @cached_property
    def groups(self) -> Groups:
        if self.known is not None or self.order is None or self.alike is None:
            return self.known or ()
        return _membership(_cover(self.alike), self.order)

    def few_groups(self, most: int) -> Groups | None:
        """Return the groups, or None if there are more than `most`: to know this takes less
        time."""
        if (
            self.known is None
            and "groups" not in vars(self)
            and self.order is not None
            and self.alike is not None
        ):
            sets = _cover(self.alike, most)
            return None if len(sets) > most else _membership(sets, self.order)

        # The groups of a run are in ascending order.
        return (
            None
            if max((groups[-1] for groups in self.groups if groups), default=0) >= most
            else self.groups
        )

    def of(self, rows: Ints) -> Tiers:
        """Return some of the runs: the same tiers, and groups renumbered without those that tell
        nothing more of these runs, because another group has all of them that it has."""
        kept = [self.groups[row] for row in rows.tolist() if self.groups]
        members: dict[int, set[int]] = {}
        for place, groups in enumerate(kept):
            for group in groups:
                members.setdefault(group, set()).add(place)

        needed = [
            group
            for group, these in sorted(members.items())
            if not any(
                these < those or (these == those and other < group)
                for other, those in members.items()
            )
        ]

        numbers = {group: number for number, group in enumerate(needed)}
        return Tiers(
            self.tier[rows],
            tuple(tuple(numbers[group] for group in groups if group in numbers) for groups in kept),
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


def letters_of(found: Tiers) -> list[str] | None:
    """Return each run's groups as letters, a for the best run's first; None where the alphabet,
    small and large, is short."""
    groups = found.few_groups(len(string.ascii_letters))
    return (
        None
        if groups is None
        else ["".join(string.ascii_letters[number] for number in own) for own in groups]
    )


def _membership(sets: Sequence[Sequence[int]], order: Ints) -> Groups:
    """Return the sets that each run is in; their members are places in the order."""
    found: list[list[int]] = [[] for _ in order]
    runs = order.tolist()
    for number, members in enumerate(sets):
        for member in members:
            found[runs[member]].append(number)

    return tuple(map(tuple, found))


def _tiers(alike: Flags) -> Ints:
    tier, best, number = np.empty(len(alike), np.int64), 0, 1
    for run in range(len(alike)):
        if not alike[best, run]:
            best, number = run, number + 1
        tier[run] = number

    return tier


def _cover(alike: Flags, most: int | None = None) -> list[list[int]]:
    """Sets of runs, alike in each, such that every two that are alike share one; from the best
    run's on. With `most`, no more of them than one beyond that.

    A set of runs is a whole number, with a bit for each run: a thousand of them are then compared
    in one step.
    """
    rows = [
        int.from_bytes(row.tobytes(), "little")
        for row in np.packbits(alike, axis=1, bitorder="little")
    ]

    # The pairs that share no set yet, each at its better run, and runs that are in none with
    # themselves.
    open_pairs, sets = [row >> run << run for run, row in enumerate(rows)], []
    for run in range(len(rows)):
        while open_pairs[run]:
            members, others = _fill(
                rows, run, (open_pairs[run] & -open_pairs[run]).bit_length() - 1
            )
            for member in members:
                open_pairs[member] &= others
            sets.append(members)
            if most is not None and len(sets) > most:
                return sets

    return sets


def _fill(rows: list[int], run: int, other: int) -> tuple[list[int], int]:
    """Return every run that is alike to these two and to those that were let in before it, and the
    bits of all others."""
    candidates, members, others = rows[run] & rows[other], [], -1
    while candidates:
        lowest = candidates & -candidates
        members.append(lowest.bit_length() - 1)
        others ^= lowest
        candidates = (candidates ^ lowest) & rows[members[-1]]

    return members, others
