"""Verdicts: the one rule of every badge, mark, tier and sentence about a pair.

A pair has a verdict if its corrected p is below the level, there are enough topics, and the test
has a statistic with the same direction as the difference of means that is shown with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance.cautions import pairs_in_words
from metrics.engine.significance.pairs import Caution, Correction, PairedResult

# With fewer topics an exact test of two runs cannot reach 0.05, and other tests cannot estimate the
# spread.
MIN_TOPICS = 5
# With fewer topics there are only comparisons of pairs, without tiers, letters or a set of the
# best.
MIN_TIERED_TOPICS = 10
# The verdicts on the first run of a pair.
VERDICTS = ("better", "worse")
TOO_FEW_TOPICS, NO_SPREAD, OTHER_DIRECTION = "too_few_topics", "no_spread", "other_direction"
# The reasons without a verdict that depend on the judging, not on the values.
FEW_TOPICS_ANSWERED = "few_topics_answered"
NOTHING_JUDGED = "nothing_judged"
DEPENDS_ON_JUDGING = "depends_on_judging"
OF_VALUES = (TOO_FEW_TOPICS, NO_SPREAD, OTHER_DIRECTION)
OF_COVERAGE = (FEW_TOPICS_ANSWERED, NOTHING_JUDGED, DEPENDS_ON_JUDGING)
WITHHELD = (*OF_VALUES, *OF_COVERAGE)
REASONS = ("", *WITHHELD)


@dataclass(frozen=True)
class Verdicts:
    """One entry per pair.

    `higher` is 1 where the first run's values are significantly higher, -1 where they are lower, 0
    without a verdict. `withheld` is an index into REASONS: why there is none, whatever p is; 0
    where the test could be made and its p was held against the level.
    """

    higher: Ints
    withheld: Ints

    @property
    def significant(self) -> Flags:
        significant: Flags = self.higher != 0
        return significant

    @property
    def not_significant(self) -> Ints:
        """Return the places of the pairs that could have a verdict, and have none."""
        return np.flatnonzero((self.higher == 0) & (self.withheld == 0))

    def better(self, lower_is_better: bool) -> Ints:
        """Return 1 where the first run is significantly better, -1 where worse, 0 without a
        verdict."""
        return -self.higher if lower_is_better else self.higher

    def of(self, pairs: Ints) -> Verdicts:
        """Return the verdicts of some pairs, by their places."""
        return Verdicts(self.higher[pairs], self.withheld[pairs])

    def withhold(self, pairs: Flags, reason: str) -> Verdicts:
        """Return the verdicts without those of these pairs, for a reason of REASONS."""
        return Verdicts(
            np.where(pairs, 0, self.higher),
            np.where(pairs, REASONS.index(reason), self.withheld),
        )

    def have(self, reason: str) -> Flags:
        """Return the pairs without a verdict for this reason."""
        pairs: Flags = self.withheld == REASONS.index(reason)
        return pairs


def decide(result: PairedResult, adjusted: Floats, alpha: float, topics: int) -> Verdicts:
    """Return the verdict of each pair at the level `alpha`, from its corrected p."""
    return verdicts_of(
        adjusted < alpha, np.isnan(adjusted), np.sign(result.difference), result.leaning, topics
    )


def verdicts_of(
    below: Flags, untested: Flags, means: Floats, leaning: Floats, topics: int
) -> Verdicts:
    """Return the verdict of each pair: `below` is whether its corrected p is below the level,
    `means` the sign of its difference of means, `leaning` that of the test's statistic."""
    withheld = np.zeros(len(below), np.int64)
    withheld[below & (leaning != means)] = REASONS.index(OTHER_DIRECTION)
    withheld[untested] = REASONS.index(NO_SPREAD)
    if topics < MIN_TOPICS:
        withheld[:] = REASONS.index(TOO_FEW_TOPICS)

    higher = np.where(below & (withheld == 0), means, 0).astype(np.int64)
    return Verdicts(higher, withheld)


def adjust(p_values: Floats, correction: Correction) -> Floats:
    """Return corrected p values; a pair without p (NaN) counts as one with p = 1, and stays NaN."""
    untested = np.isnan(p_values)
    return np.where(untested, np.nan, correction(np.where(untested, 1.0, p_values)))


def cautions_of(verdicts: Verdicts, topics: int) -> Iterator[Caution]:
    """Yield the cautions of pairs without a verdict. The test itself reports a missing spread."""
    if verdicts.have(TOO_FEW_TOPICS).any():
        message = (
            f"no verdicts: {topics} topics are too few to tell a difference from chance; "
            f"{MIN_TOPICS} are needed"
        )
        yield Caution("no_verdict", message)

    others = int(np.count_nonzero(verdicts.have(OTHER_DIRECTION)))
    if others:
        message = (
            f"in {pairs_in_words(others)} the test, which does not test means, is significant but "
            "does not point in the direction of the difference of means: no verdict"
        )
        yield Caution(OTHER_DIRECTION, message)
