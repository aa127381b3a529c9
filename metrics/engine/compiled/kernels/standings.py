"""The compiled pass over orders of systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.words import NONE, compiled


@compiled
def count_ranks(cost: Any, order: Any, tie: Any, counts: Any) -> None:
    """Add to `counts` in how many combinations each system has each rank, by the rule of
    `standings`.

    Shapes: `cost` and `order` (combinations, systems), the lowest cost first; `counts` (systems,
    ranks).
    """
    for combination in range(cost.shape[0]):
        end, rank = 0.0, NONE
        for at in range(cost.shape[1]):
            system = np.uint64(order[combination, at])
            system_cost = cost[combination, system]
            if at == 0 or system_cost > end:
                end, rank = system_cost + tie * max(1.0, abs(system_cost)), np.uint64(at)
            counts[system, rank] += 1
