"""Pairs of runs that differ in one setting only: by how much, for other runs and topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.explanation.settings import LEAST_RUNS, Setting
from metrics.engine.significance import paired_t
from metrics.engine.significance.corrections import holm
from metrics.engine.significance.pairs import DEFAULTS, ROUNDING, Caution, Matrix
from metrics.engine.significance.verdicts import adjust


@dataclass(frozen=True)
class Change:
    """A setting changed from one value to another, each by its place, in some pairs of runs.

    `difference` is that of means, after minus before. The interval and p allow for other topics and
    for other runs; `p_adjusted` corrects for all changes that have a p. All four are NaN for a
    single pair and without any spread.
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
    """Every change of a value for which there are pairs of runs that are equal in every other
    setting.

    Formula: d, the difference averaged over the pairs; t = d / sqrt(V1 + V2), so that t^2 = min F'
    of runs and topics, with (V1 + V2)^2 / (V1^2 / n1 + V2^2 / n2) degrees of freedom; Holm over all
    changes with a p. V2 is the squared standard error of d over the topics, with n2 = topics - 1.
    V1 = s^2 sum(w^2), w the weight of each run in d and s^2 the mean square, with n1 degrees of
    freedom, of what the value and the other settings leave of the run means
    Assumes: runs of equal settings, such as those of other seeds, spread alike
    Source: Clark, Journal of Verbal Learning and Verbal Behavior 12, 1973
    Groups: numbers are compared with their neighbours, other values with the most frequent one;
    values of fewer than three runs are left out
    Shapes: `values` (runs, topics), two topics or more; `others` are settings that must be equal,
    too, and are not examined themselves
    Note: A single pair leaves nothing of its run means, so it has no interval and no p.
    """
    changes, weights, spreads = [], [], []
    means = values.mean(axis=1)
    for place, setting in enumerate(settings):
        other_codes = [
            other.codes for other in (*settings[:place], *settings[place + 1 :], *others)
        ]
        blocks = _blocks(other_codes, len(values))
        counts = np.zeros((int(blocks.max()) + 1, len(setting.values)))
        np.add.at(counts, (blocks, setting.codes), 1)

        for before, after in _steps(setting):
            pairs = int(counts[:, before] @ counts[:, after])
            if pairs:
                is_before, is_after = setting.codes == before, setting.codes == after
                weight = counts[blocks, before] * is_after - counts[blocks, after] * is_before
                changes.append((place, before, after, pairs))
                weights.append(weight / pairs)
                in_pairs = weight != 0
                spreads.append(_spread(means[in_pairs], blocks[in_pairs], is_after[in_pairs]))

    if not changes:
        return []

    weight = np.array(weights)
    variance, runs_freedom = np.array(spreads).T

    # Two rows for each change: the mean of the runs after it, and of those before it.
    rows = np.vstack([np.maximum(weight, 0), np.maximum(-weight, 0)]) @ values
    first = np.arange(len(changes))
    difference, by_topics = paired_t.mean_and_error(rows, first, first + len(changes))

    by_runs = np.sqrt(variance * np.square(weight).sum(axis=1))
    error = np.hypot(by_runs, by_topics)
    share = np.divide(by_runs, error, out=np.zeros_like(error), where=error > 0) ** 2
    freedom = 1 / (share**2 / runs_freedom + (1 - share) ** 2 / (values.shape[1] - 1))
    _, p_value = paired_t.t_test(difference, error, freedom)
    p_value[np.isnan(variance)] = np.nan

    margin = paired_t.margin_of(difference, error, freedom, DEFAULTS.confidence)
    adjusted = np.full(len(changes), np.nan)
    has_p = ~np.isnan(p_value)
    adjusted[has_p] = adjust(p_value[has_p], holm)
    ends = difference - margin, difference + margin
    columns = (column.tolist() for column in (difference, *ends, p_value, adjusted))

    return [
        Change(*change, *numbers)
        for change, numbers in zip(changes, zip(*columns, strict=True), strict=True)
    ]


def untested(changes: Sequence[Change]) -> list[Caution]:
    """Return the cautions of changes without p."""
    pairs_without_p = [change.pairs for change in changes if np.isnan(change.p_value)]
    single = pairs_without_p.count(1)
    cautions = []
    if single:
        message = (
            f"{single} of {len(changes)} changes without p: each has a single pair of runs, and "
            "only more pairs show how much runs differ by chance"
        )
        cautions.append(Caution("single_pair", message))

    if len(pairs_without_p) > single:
        message = (
            f"{len(pairs_without_p) - single} of {len(changes)} changes without p: the difference "
            "is the same on every topic and in every pair"
        )
        cautions.append(Caution("no_spread", message))

    return cautions


def _blocks(codes: Sequence[Ints], runs: int) -> Ints:
    """Return the block of each run; runs of a block are equal in all these settings."""
    if not codes:
        return np.zeros(runs, np.int64)
    numbers: dict[bytes, int] = {}
    rows = np.column_stack(codes).astype(np.int32)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], np.int64)


def _spread(means: Floats, blocks: Ints, is_after: Flags) -> tuple[float, int]:
    """Return the residual mean square of the run means, after blocks and value, and its freedom.

    NaN, and 1, where nothing is left. Every block has runs of both values.
    """
    _, block, runs = np.unique(blocks, return_inverse=True, return_counts=True)
    freedom = len(means) - len(runs) - 1
    if not freedom:
        return float("nan"), 1

    def within(numbers: Floats) -> Floats:
        centred: Floats = numbers - (np.bincount(block, numbers) / runs)[block]
        return centred

    scale = float(np.abs(means).max()) or 1.0
    value, residuals = within(is_after.astype(np.float64)), within(means / scale)
    residuals = residuals - value * (value @ residuals) / (value @ value)
    squares = float(residuals @ residuals)
    noise = len(means) * ROUNDING**2

    return (squares / freedom * scale**2 if squares > noise else 0.0), freedom


def _steps(setting: Setting) -> Iterator[tuple[int, int]]:
    """Yield the changes of value to compare: from the lower number to the next, from the most
    frequent value to every other one that is not a number, and to the most frequent number if it is
    not one itself."""
    frequent = [place for place, count in enumerate(setting.counts.tolist()) if count >= LEAST_RUNS]
    numbers = sorted(
        (place for place in frequent if setting.numbers_of(place)), key=setting.numbers_of
    )
    yield from pairwise(numbers)
    if not frequent:
        return

    most_frequent = max(frequent, key=lambda place: setting.counts[place])
    yield from (
        (most_frequent, place) for place in frequent if place not in (*numbers, most_frequent)
    )
    if numbers and most_frequent not in numbers:
        yield most_frequent, max(numbers, key=lambda place: setting.counts[place])
