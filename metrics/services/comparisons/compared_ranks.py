"""Where each compared run stands on other samples of the topics."""

from __future__ import annotations

from dataclasses import replace

from metrics.engine.agreement.intervals import RankIntervals, rank_intervals
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.stored import Answer

# Ranks of every resample are held at once; more runs than this are no picture either.
MAX_RANKED = 200
RANK_RESAMPLES = 2_000


def read_rank_intervals(answer: Answer, compared: Compared) -> RankIntervals | None:
    """By row of the comparison, at its confidence and from its seed.

    None for more runs than MAX_RANKED, or too few topics to draw from.
    """
    if compared.pairs.runs > MAX_RANKED or compared.topics < MIN_TOPICS:
        return None
    options = replace(answer.query.options, resamples=RANK_RESAMPLES)
    return rank_intervals(compared.values, options, lower_is_better=compared.measure.definition.lower_is_better)
