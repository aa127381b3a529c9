"""Student's paired t test."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.errors import StatisticsError
from metrics.engine.ranking import Floats, Ints
from metrics.engine.significance.pairs import Matrix, PairedResult

# Pairs whose differences are held at once: bounds the memory at 8 bytes x topics x this.
_CHUNK = 65_536


def compare(values: Matrix, first: Ints, second: Ints, confidence: float = 0.95) -> PairedResult:
    """Two-sided paired t test of each pair, with the t interval of the mean difference.

    Formula: t = mean(d) / (sd(d) / sqrt(n)), d the per-topic differences, n - 1 degrees of freedom
    Source: Student (1908); for retrieval Hull, SIGIR 1993
    Identical runs have p = 1. A difference that is the same on every topic has no spread: p = 0 and no statistic.
    """
    topics = values.shape[1]
    if topics < 2:
        raise StatisticsError(f"a paired t test needs at least 2 common topics, here are {topics}")
    parts = [
        _mean_and_error(values, first[at : at + _CHUNK], second[at : at + _CHUNK])
        for at in range(0, len(first), _CHUNK)
    ]
    difference, error = (np.concatenate(part) for part in zip(*parts, strict=True))
    statistic, p_value = _t_test(difference, error, topics - 1)
    margin = special.stdtrit(topics - 1, (1 + confidence) / 2) * error
    return PairedResult(difference, difference - margin, difference + margin, statistic, p_value)


def _mean_and_error(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    differences = values[first] - values[second]
    # Divided by the largest first: squares of huge gains would overflow.
    largest = np.maximum(np.abs(values[first]).max(axis=1), np.abs(values[second]).max(axis=1))
    scale = np.where(largest > 0, largest, 1.0)
    mean, error = _scaled_mean_and_error(differences / scale[:, None])
    return mean * scale, error * scale


def _scaled_mean_and_error(differences: Matrix) -> tuple[Floats, Floats]:
    mean = differences.mean(axis=1)
    error = differences.std(axis=1, ddof=1) / np.sqrt(differences.shape[1])
    # Differences that agree to the last bits have a spread of rounding errors only.
    noise = 4 * np.finfo(np.float64).eps
    mean = np.where(np.abs(differences).max(axis=1) <= noise, 0.0, mean)
    return mean, np.where(np.ptp(differences, axis=1) <= noise, 0.0, error)


def _t_test(difference: Floats, error: Floats, freedom: int) -> tuple[Floats, Floats]:
    spread = error > 0
    statistic = np.full(len(difference), np.nan)
    np.divide(difference, error, out=statistic, where=spread)
    p_value = np.where(difference == 0, 1.0, 0.0)
    p_value[spread] = 2 * special.stdtr(freedom, -np.abs(statistic[spread]))
    statistic[~spread & (difference == 0)] = 0.0
    return statistic, p_value
