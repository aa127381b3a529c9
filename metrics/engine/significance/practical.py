"""The tests of whether runs differ by more than matters, next to whether they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.errors import StatisticsError

PRACTICAL = ("tost", "bayes_t", "bayes_bootstrap")
# A point of a hundred, for measures from 0 to 1.
USUAL_ROPE = 0.01


@dataclass(frozen=True)
class Practical:
    """The requested names of PRACTICAL, and the differences that do not matter.

    Both differences are in units of the measure. `margin` belongs to tost, which has no usual one.
    `rope` is half the width of the region around 0 in which the posteriors call runs practically
    equal; 0 leaves a point. Raises StatisticsError where one is missing or has no meaning."""

    tests: tuple[str, ...] = ()
    margin: float | None = None
    rope: float = USUAL_ROPE

    def __post_init__(self) -> None:
        if not 0 <= self.rope < np.inf:
            message = f"rope must be 0 or above, not {self.rope!r}"
            raise StatisticsError(message, code="bad_parameter", pointer="rope")

        if "tost" not in self.tests:
            return

        if self.margin is None:
            message = (
                "tost needs a margin: the smallest difference that would matter, in units of the "
                "measure, such as margin=0.02; choose it before you look at the results"
            )
            raise StatisticsError(message, code="required", pointer="margin")

        if not 0 < self.margin < np.inf:
            message = f"margin must be above 0, not {self.margin!r}"
            raise StatisticsError(message, code="bad_parameter", pointer="margin")

    @property
    def posteriors(self) -> list[str]:
        """Return the names of the posteriors."""
        return [test for test in self.tests if test != "tost"]
