"""Corrections for comparing many pairs at once: each takes the p values of one family."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats

# Equal p values become equal in any order of them: no stable sort is needed, which takes four times
# as long.


def holm(p_values: Floats) -> Floats:
    """Holm's step-down adjustment.

    Formula: the i-th smallest p of m becomes max over j <= i of min(1, (m - j + 1) p_j)
    Controls: the chance of one wrong finding or more, whatever the dependence
    Source: Holm, Scandinavian Journal of Statistics 6, 1979
    """
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


def bonferroni(p_values: Floats) -> Floats:
    """Bonferroni's adjustment.

    Formula: min(1, m p) for a family of m
    Controls: the chance of one wrong finding or more, whatever the dependence
    Source: Dunn, Journal of the American Statistical Association 56, 1961
    """
    return np.minimum(p_values * len(p_values), 1.0)


def hochberg(p_values: Floats) -> Floats:
    """Hochberg's step-up adjustment.

    Formula: the i-th smallest p of m becomes min over j >= i of min(1, (m - j + 1) p_j)
    Controls: the chance of one wrong finding or more, for independent or positively dependent tests
    Source: Hochberg, Biometrika 75(4), 1988
    """
    return _step_up(p_values, np.arange(len(p_values), 0.0, -1.0))


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Benjamini and Hochberg's adjustment.

    Formula: the i-th smallest p of m becomes min over j >= i of min(1, m p_j / j)
    Controls: the expected share of wrong findings among all findings, for independent or positively
    dependent tests
    Source: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57(1), 1995
    """
    return _step_up(p_values, len(p_values) / np.arange(1, len(p_values) + 1))


def benjamini_yekutieli(p_values: Floats) -> Floats:
    """Benjamini and Yekutieli's adjustment.

    Formula: the i-th smallest p of m becomes min over j >= i of min(1, m p_j / j (1 + 1/2 + ... +
    1/m))
    Controls: the expected share of wrong findings among all findings, whatever the dependence
    Source: Benjamini and Yekutieli, Annals of Statistics 29(4), 2001
    """
    ranks = np.arange(1, len(p_values) + 1)
    return _step_up(p_values, len(p_values) / ranks * (1 / ranks).sum())


def uncorrected(p_values: Floats) -> Floats:
    """No adjustment: each pair on its own.

    Formula: p
    Controls: the chance of a wrong finding in one pair
    """
    return p_values.copy()


def _step_up(p_values: Floats, factors: Floats) -> Floats:
    """Return the p values adjusted from the largest down; `factors` are for ascending p values."""
    order = np.argsort(p_values)[::-1]
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.minimum.accumulate(p_values[order] * factors[::-1]), 1.0)
    return adjusted
