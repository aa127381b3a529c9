"""Measures of value tables: another program has computed their values.

Their names begin with `x:`, as in `x:latency_ms`. What such a name means is declared in a
collection, so that `parse_measure` does not know it; `runs.models.Collection.measure` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.sampling import DESIGNS
from metrics.engine.measures.definition import Aggregate, Cutoff, MeasureDefinition

PREFIX = "x:"
# Without white space, commas and brackets, which separate measures in a list.
NAME_RULE = r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,59}"
_NAME = re.compile(PREFIX + NAME_RULE)
# No value is further from 0: sums and squares of larger ones may be infinite.
MAX_VALUE = 1e100
# Why what needs rankings has no answer.
FROM_TABLES = "its values come from tables, not from rankings"
# The reason why a topic has no value.
NOT_IN_TABLE = "not_in_table"
# The reason why no topic has a value of a measure that is computed from rankings.
NO_RANKING = "no_ranking"


def is_external(name: str) -> bool:
    """Return whether a name is one of a measure of value tables."""
    return name.strip().startswith(PREFIX)


def computed_names(names: Iterable[str]) -> list[str]:
    """Return the names of measures that are computed from rankings."""
    return [name for name in names if not is_external(name)]


def check_external(name: str) -> str:
    """Return a name of such a measure without blanks around it. Raise MeasureError for others."""
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise MeasureError(
            f"{name[:80]!r}: behind {PREFIX} a name has 1 to 60 letters, digits, '_', '.', '@', "
            "'+' and '-', and begins with a letter, a digit or '_'"
        )
    return name


def _compute(run: JudgedRun, cutoff: None = None) -> Floats:
    # What tables do not contain has no value; nothing of it follows from the ranking.
    return np.full(len(run.num_ret), np.nan)


@dataclass(frozen=True)
class ExternalDefinition(MeasureDefinition):
    """A declared measure.

    `low` and `high` bound its values where they are numbers; `unit` is a short text such as ms.
    `reported` says that teams give the values of their own runs, otherwise organisers do.
    `version` is the number of the last table with values of it, so that a measure differs from what
    it was before that table.
    """

    low: float | None = None
    high: float | None = None
    unit: str = ""
    description: str = ""
    reported: bool = False

    def sections(self) -> dict[str, str]:
        """Return the description as summary."""
        return {"summary": self.description}

    @cached_property
    def bounds(self) -> tuple[float, float]:
        low, high = self.low, self.high
        return -math.inf if low is None else low, math.inf if high is None else high

    @property
    def source_words(self) -> str:
        """Return who gives the values."""
        return "reported by each team" if self.reported else "from the organisers"


def external_definition(
    name: str, *, lower_is_better: bool, aggregate: Aggregate, **fields: object
) -> ExternalDefinition:
    """Return the definition of a measure, named without the prefix."""
    return ExternalDefinition(
        PREFIX + name,
        _compute,
        Cutoff.NONE,
        aggregate=aggregate,
        lower_is_better=lower_is_better,
        designs=DESIGNS,
        **fields,  # type: ignore[arg-type]
    )
