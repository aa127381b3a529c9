"""How deep a run is judged without a gap."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.judgement.judged import JudgedRun


def judged_ranks(run: JudgedRun) -> Ints:
    """Return for each topic the largest k for which all documents at ranks 1..k are judged; shape
    (topics,)."""
    starts = np.searchsorted(run.topic, np.arange(len(run.num_ret)))
    place = np.arange(len(run.topic)) - starts[run.topic] + 1

    # Rows are sorted by rank: a row is at its rank as long as none above it is missing.
    return np.bincount(run.topic[run.rank == place], minlength=len(run.num_ret))


def judged_depth(run: JudgedRun) -> int:
    """Return the largest k for which all documents at ranks 1..k of answered topics are judged.

    A topic with fewer documents than k is judged that deep if all of its documents are. A run of a
    pool of depth k has a judged depth of at least k.
    """
    answered = run.num_ret > 0
    if not answered.any():
        return 0

    ranks = judged_ranks(run)
    short = answered & (ranks < run.num_ret)
    return int(ranks[short].min() if short.any() else run.num_ret.max())
