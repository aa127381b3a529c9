"""Division where nothing over nothing is nothing."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints


def ratio(above: Floats | Ints, below: Floats | Ints) -> Floats:
    """above / below, and 0 where below is 0: trec_eval's rule for topics without a relevant
    document."""
    result = np.zeros(len(below), np.float64)
    np.divide(above, below, out=result, where=below != 0)
    return result
