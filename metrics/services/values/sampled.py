"""Measures under sampled judgements."""

from __future__ import annotations

from collections.abc import Iterable

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure
from runs.models import Qrels
from runs.parameters import pointed


def check_suits(measures: Iterable[Measure], qrels: Qrels, pointer: str = "measures") -> None:
    """Raise MeasureError for a measure that is wrong under the sampling of these judgements."""
    if (design := qrels.design) is None:
        return

    for measure in measures:
        try:
            measure.check_design(design)
        except MeasureError as error:
            raise pointed(error, pointer) from error
