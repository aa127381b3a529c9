"""Corrections for comparing many pairs at once: each takes the p values of one family."""

from __future__ import annotations

import numpy as np

from metrics.engine.ranking import Floats


def holm(p_values: Floats) -> Floats:
    """Holm's step-down adjustment.

    Formula: the i-th smallest p of m becomes max over j <= i of min(1, (m - j + 1) p_j)
    Source: Holm, Scandinavian Journal of Statistics 6, 1979
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


def bonferroni(p_values: Floats) -> Floats:
    """Bonferroni's adjustment.

    Formula: min(1, m p) for a family of m
    Source: Dunn, Journal of the American Statistical Association 56, 1961
    """
    return np.minimum(p_values * len(p_values), 1.0)


def uncorrected(p_values: Floats) -> Floats:
    """No adjustment: each pair on its own.

    Formula: p
    """
    return p_values.copy()
