"""The AP correlation between orders of systems: tau in which the top counts more."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints


def tau_ap(truth: Ints, estimate: Ints) -> Floats:
    """The AP correlation of each row of ranks with the same row of the truth.

    Formula: 2 / m * sum over the m systems i below the top of C(i) / (p(i) - 1) - 1, p(i) the place
    in the estimate at which i's tie begins, C(i) the number of systems above that tie which the
    truth has above i as well
    Range: -1 to 1; NaN where the estimate is one tie
    Source: Yilmaz, Aslam and Robertson, SIGIR 2008; ties as in tau_AP,b of Urbano and Marrero,
    ICTIR 2017
    Shapes: `truth` and `estimate` (orders, systems); the result (orders,).
    """
    total, systems_below = np.zeros(len(truth)), np.zeros(len(truth))
    for system in range(truth.shape[1]):
        above = estimate < estimate[:, [system]]
        places = np.count_nonzero(above, axis=1)
        agreed = np.count_nonzero(above & (truth < truth[:, [system]]), axis=1)
        total += np.divide(agreed, places, out=np.zeros(len(truth)), where=places > 0)
        systems_below += places > 0

    mean = np.divide(total, systems_below, out=np.full(len(truth), np.nan), where=systems_below > 0)
    correlation: Floats = 2 * mean - 1
    return correlation


def symmetric_tau_ap(first: Ints, second: Ints) -> Floats:
    """The mean of the AP correlations with either one as the truth.

    Source: Yilmaz, Aslam and Robertson, SIGIR 2008; with ties tau_AP,b of Urbano and Marrero, ICTIR
    2017
    """
    return (tau_ap(first, second) + tau_ap(second, first)) / 2
