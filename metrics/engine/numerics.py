"""Functions of SciPy, which are loaded at their first use.

Its larger packages take 0.2 s and load half of SciPy, `scipy.special` a tenth, most of it to support other arrays than
NumPy's: too much at the start of every process, because most never compare runs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from metrics.engine.late import Late
from metrics.engine.ranking import Floats

if TYPE_CHECKING:
    from scipy import special
else:
    special = Late("scipy.special")

__all__ = ["cubic_spline", "find_root", "special"]

Curve = Callable[[Floats], Floats]


def cubic_spline(at: Floats, heights: Floats) -> Curve:
    """Return the cubic spline through the heights, as SciPy's `CubicSpline` makes it."""
    curve: Curve = import_module("scipy.interpolate").CubicSpline(at, heights)
    return curve


def find_root(of: Callable[[float], float], low: float, high: float, **options: float) -> float:
    """Return where the function is 0 between two points at which its signs differ, by Brent's method."""
    root: float = import_module("scipy.optimize").brentq(of, low, high, **options)
    return root
