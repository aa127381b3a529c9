"""What a comparison may be asked beside whether runs differ: whether they differ by more than matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.errors import StatisticsError

PRACTICAL = ("tost",)


@dataclass(frozen=True)
class Practical:
    """The names of PRACTICAL that are asked for, and the difference that does not matter, in units of the measure.

    `margin` belongs to tost, which has no usual one. Raises StatisticsError where it is missing or has no meaning.
    """

    tests: tuple[str, ...] = ()
    margin: float | None = None

    def __post_init__(self) -> None:
        if "tost" not in self.tests:
            return
        if self.margin is None:
            message = (
                "tost needs a margin: the smallest difference that would matter, in units of the measure, such as "
                "margin=0.02; choose it before you look at the results"
            )
            raise StatisticsError(message, code="required", pointer="margin")
        if not 0 < self.margin < np.inf:
            message = f"margin must be above 0, not {self.margin!r}"
            raise StatisticsError(message, code="bad_parameter", pointer="margin")
