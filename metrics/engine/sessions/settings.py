"""The options for scoring sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.gains import LINEAR, GainMap

MAX_DEPTH = 1000
DEFAULT_DEPTH = 10

Scan = Literal["fixed", "recorded"]
Duplicates = Literal["every", "first"]
Ideal = Literal["repeated", "once"]
Norm = Literal["session", "query", "average"]
Form = Literal["source", "shifted"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The discount of gains and the length to which lists are read.

    `depth` is X, the documents of each query that count; with scan='recorded' it bounds the
    recorded number, or replaces a missing one. `short` says how a shorter list is treated: 'pad' it
    with zeros, take it 'asis', or pad it to m documents ('min:m'). `duplicates` says whether a
    document found by several queries of a session gains every time or the first time. `bq` None
    leaves the query's position out. `half_life` is the time in seconds after which a gain counts
    half, None for one that counts the same at any time. `form` 'source' divides by 1 + log_b r and
    1 + log_bq q, 'shifted' by log_b(r + b - 1) and log_bq(q + bq - 1)."""

    gains: GainMap = LINEAR
    depth: int = DEFAULT_DEPTH
    b: float = 2.0
    bq: float | None = 4.0
    short: str = "pad"
    duplicates: Duplicates = "every"
    scan: Scan = "fixed"
    form: Form = "source"
    half_life: float | None = None

    @property
    def least(self) -> int:
        """Return to how many documents a list is padded at least."""
        return int(self.short.removeprefix("min:")) if self.short.startswith("min:") else 0

    def rank_weight(self, rank: Ints) -> Floats:
        """Return what a gain at each rank (1-based) is multiplied by; same shape."""
        return _weight(rank, self.b, self.form)

    def query_weight(self, number: Ints) -> Floats:
        """Return what a gain of each query (1-based) is multiplied by; same shape."""
        return np.ones(len(number)) if self.bq is None else _weight(number, self.bq, self.form)


def _weight(place: Ints, base: float, form: Form) -> Floats:
    if form == "shifted":
        shifted: Floats = np.log(base) / np.log(place + (base - 1.0))
        return shifted

    # log2 is exact at powers of two, where dividing logarithms is not.
    logarithm = np.log2(place) if base == 2 else np.log(place) / np.log(base)
    weight: Floats = 1.0 / (1.0 + logarithm)
    return weight
