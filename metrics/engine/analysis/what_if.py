"""Combinations of other gains, discounts and depths."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import BASE, show
from metrics.engine.measures.grammar import Measure, parse_measure

MAX_COMBINATIONS = 50
FAMILIES = ("nDCG", "DCG", "nCG", "CG")
# Combinations with a name in the literature, the same for any number of levels. The users are
# those of Järvelin and Kekäläinen, TOIS 20(4), 2002, section 4, and University of Tampere
# RN-2002-2: one looks at the first few answers and wants the best (down to rank 30, gains
# 0-1-10-100, base 2), one digs for marginal ones too (rank 200, gains 0-1-2-3, base 10), and one
# digs to the end and takes all that is relevant alike: precision averaged over 11 points of recall.
PRESETS = {
    "linear": "nDCG@10",
    "exponential": "nDCG(gains='exp')@10",
    "impatient": "nDCG(gains='tenfold',dis='jk',b=2)@30",
    "patient": "nDCG(dis='jk',b=10)@200",
    "liberal": "11pt_avg",
    "binary": "RBP(p=0.8,rel=1)@100",
}
USERS = ("impatient", "patient")


@dataclass(frozen=True)
class Grid:
    """Values of each parameter; all combinations are tried. Depth None is the whole ranking."""

    families: tuple[str, ...] = ("nDCG",)
    gains: tuple[GainMap, ...] = (LINEAR,)
    discounts: tuple[str, ...] = ("log2",)
    bases: tuple[float, ...] = (BASE.default,)
    depths: tuple[int | None, ...] = (10,)

    def measures(self) -> list[Measure]:
        """Return every combination once, with a base only for discounts that have one. Raise
        MeasureError for too many combinations."""
        discounts = [
            (dis, base)
            for dis in self.discounts
            for base in (self.bases if dis != "log2" else (BASE.default,))
        ]
        axes = (self.families, self.gains, discounts, self.depths)
        if np.prod([len(axis) for axis in axes]) > MAX_COMBINATIONS * len(FAMILIES):
            raise too_many_combinations()
        return list(dict.fromkeys(_measure(*combination) for combination in product(*axes)))


def too_many_combinations() -> MeasureError:
    return MeasureError(
        f"at most {MAX_COMBINATIONS} combinations at once; use fewer gains, bases or depths",
        code="too_many_combinations",
    )


def _measure(
    family: str, gains: GainMap, discount: tuple[str, float], depth: int | None
) -> Measure:
    dis, base = discount
    arguments = {"gains": show(gains), "dis": show(dis)}
    if dis != "log2":
        arguments["b"] = show(base)

    names = {parameter.name for parameter in MEASURES[family].parameters}
    text = ",".join(f"{name}={value}" for name, value in arguments.items() if name in names)
    return parse_measure(f"{family}({text})" + (f"@{depth}" if depth else ""))
