"""COEFFICIENTS: how far two orders of the same systems agree."""

from __future__ import annotations

from collections.abc import Callable

from metrics.engine.agreement.kendall import tau
from metrics.engine.agreement.rbo import rbo
from metrics.engine.agreement.tau_ap import symmetric_tau_ap, tau_ap
from metrics.engine.arrays import Floats, Ints

Coefficient = Callable[[Ints, Ints], Floats]
"""coefficient(ranks (orders, systems), ranks to compare with, same shape) -> one value per order"""

COEFFICIENTS: dict[str, Coefficient] = {
    "tau": tau,
    "tau_ap": tau_ap,
    "symmetric_tau_ap": symmetric_tau_ap,
    "rbo": rbo,
}
