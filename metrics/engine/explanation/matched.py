"""Pairs of runs that differ in one setting and in nothing else: what changing it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from metrics.engine.explanation.settings import LEAST_RUNS, Setting
from metrics.engine.ranking import Ints
from metrics.engine.significance import paired_t
from metrics.engine.significance.corrections import holm
from metrics.engine.significance.pairs import Caution, Matrix, Options
from metrics.engine.significance.verdicts import adjust


@dataclass(frozen=True)
class Change:
    """A setting, given by its place, changed from one value to another, by their places, in some pairs of runs.

    `difference` is that of means, after minus before, with its interval over the topics; p is NaN where the difference
    is the same on every topic. `p_adjusted` counts for all changes.
    """

    setting: int
    before: int
    after: int
    pairs: int
    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float


def changes_of(
    values: Matrix, settings: Sequence[Setting], others: Sequence[Setting]
) -> list[Change]:
    """Every change of a value for which there are pairs of runs that are equal in every other setting.

    Formula: each topic has the difference averaged over the pairs; `paired_t` over the topics, Holm over all changes
    Groups: numbers are compared with their neighbours, other values with the most frequent one; values of fewer than
    three runs are left out
    Shapes: `values` (runs, topics), two topics or more; `others` are settings that must be equal, too, and are not
    examined themselves
    """
    planned, before, after = [], [], []
    for place, setting in enumerate(settings):
        rest = [one.codes for one in (*settings[:place], *settings[place + 1 :], *others)]
        blocks = _blocks(rest, len(values))
        counts = np.zeros((int(blocks.max()) + 1, len(setting.values)))
        np.add.at(counts, (blocks, setting.codes), 1)
        for old, new in _steps(setting):
            pairs = float(counts[:, old] @ counts[:, new])
            if pairs:
                planned.append((place, old, new, int(pairs)))
                before.append(np.where(setting.codes == old, counts[blocks, new], 0.0) / pairs)
                after.append(np.where(setting.codes == new, counts[blocks, old], 0.0) / pairs)
    if not planned:
        return []
    # Two rows for each change: the mean of what the values were changed to, and of what they were.
    rows = np.vstack([*after, *before]) @ values
    first = np.arange(len(planned))
    found = paired_t.compare(rows, first, first + len(planned), Options())
    adjusted = adjust(found.p_value, holm)
    columns = (found.difference, found.low, found.high, found.p_value, adjusted)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return [Change(*plan, *each) for plan, each in zip(planned, numbers, strict=True)]


def untested(changes: Sequence[Change]) -> list[Caution]:
    """Return a caution if a difference is the same on every topic, so that there is no p."""
    many = sum(np.isnan(change.p_value) for change in changes)
    message = f"{many} changes have the same difference on every topic, so there is no p"
    return [Caution("no_spread", message)] if many else []


def _blocks(codes: Sequence[Ints], runs: int) -> Ints:
    """Return for each run the number of its block: runs of a block are equal in all these settings."""
    if not codes:
        return np.zeros(runs, np.int64)
    known: dict[bytes, int] = {}
    rows = np.column_stack(codes).astype(np.int32)
    return np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], np.int64)


def _steps(setting: Setting) -> Iterator[tuple[int, int]]:
    """Yield the changes of value to compare: from the lower number to the next, from the most frequent value to every
    other one that is not a number, and to the most frequent number if it is not one itself."""
    often = [place for place, count in enumerate(setting.counts.tolist()) if count >= LEAST_RUNS]
    numbers = sorted(
        (place for place in often if setting.numbers_of(place)), key=setting.numbers_of
    )
    yield from pairwise(numbers)
    if not often:
        return
    usual = max(often, key=lambda place: setting.counts[place])
    yield from ((usual, place) for place in often if place not in (*numbers, usual))
    if numbers and usual not in numbers:
        yield usual, max(numbers, key=lambda place: setting.counts[place])
