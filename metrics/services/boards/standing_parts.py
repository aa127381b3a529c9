"""What the statistics of a leaderboard consist of, and what can be asked about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from metrics.engine.measures.grammar import Measure
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.families import USUAL_RULE, USUAL_TEST, Pairs
from metrics.engine.significance.pairs import Caution
from metrics.services.boards.mean_intervals import Ends
from metrics.services.question import (
    RANK_RESAMPLES,
    RESAMPLES,
    SEED,
    Baselines,
    Integer,
    Parameter,
    Share,
    Statistics,
    StatisticsQuestion,
    parameter,
)

# B by default where it is not 100,000, so that everything about 200 runs on 250 topics is answered
# at once. p of the last two counts for all pairs: no correction multiplies the smallest that B
# allows, and at 0.05 its error is 0.0022.
BOARD_RESAMPLES = {"bootstrap": 50_000, "max_t": 10_000, "randomised_tukey_hsd": 10_000}
PARTS = ("intervals", "tiers", "ranks", "expected", "baseline")


@dataclass(frozen=True)
class StandingsQuery(StatisticsQuestion):
    """The requested `parts` and their options; `baselines` are ids of runs."""

    NAMED_BY = "id of a run"

    parts: tuple[str, ...] = parameter(
        Statistics(
            "of intervals, tiers, ranks, baseline, separated by commas; or all; default: none",
            parts=PARTS,
            together=("intervals", "tiers", "ranks", "expected"),
        )
    )
    baselines: list[str] = parameter(
        Baselines(
            "the ids of ranked runs separated by commas: hold every other run against each of them"
        )
    )
    test: str = parameter(Parameter(", ".join(TESTS), default=USUAL_TEST))
    correction: str = parameter(Parameter(", ".join(CORRECTIONS), default=USUAL_RULE.correction))
    alpha: float = parameter(Share("significance level", default=USUAL_RULE.alpha))
    confidence: float = parameter(Share("of the intervals", default=0.95))
    resamples: int = parameter(
        Integer(
            "B of a test that draws; bootstrap 50,000, max_t and randomised_tukey_hsd 10,000",
            default=100_000,
            usual=lambda context: BOARD_RESAMPLES.get(context.values["test"], 100_000),
            low=RESAMPLES[0],
            high=RESAMPLES[1],
        )
    )
    rank_resamples: int = parameter(
        Integer(
            "B of the rank intervals", default=2_000, low=RANK_RESAMPLES[0], high=RANK_RESAMPLES[1]
        )
    )
    seed: int = parameter(SEED)

    @property
    def corrected_by(self) -> str | None:
        """Return the correction, or None if the test's own p accounts for all pairs."""
        return None if TESTS[self.test].simultaneous else self.correction


@dataclass(frozen=True)
class Tiering:
    """The tier, the group letters and the rank set of each run, in the order of the leaderboard.

    `groups` is None for too many runs. `rank_sets` holds the lowest and the highest rank of each,
    and `best` whether it is in the set of the best; both are None where the family does not limit
    the chance of any wrong finding about means. `family` is the number of pairs that p accounts
    for; of these `across` are in different tiers, and `undecided_across` of them do not differ
    significantly. `detectable` is the true difference that half of the pairs without a significant
    one would show in 8 of 10 samples of topics; NaN if there are none.
    """

    tier: list[int]
    groups: list[list[str]] | None
    rank_sets: list[tuple[int, int]] | None
    best: list[bool] | None
    family: int
    significant: int
    across: int
    undecided_across: int
    detectable: float
    cautions: list[Caution]

    @property
    def marks_best(self) -> bool:
        """Return whether the set of the best is marked.

        Where all runs are in it, a mark says nothing.
        """
        return self.best is not None and not all(self.best)


@dataclass(frozen=True)
class RankSpread:
    """The ends of each run's rank interval and its share of first places.

    They are in the order of the leaderboard.
    """

    low: list[int]
    high: list[int]
    share_first: list[float]


@dataclass(frozen=True)
class Outlook:
    """The mean that each run is expected to have on other topics, and its chance to be best.

    They are in the order of the leaderboard. `excess` is how much worse than here the run of the
    best mean is expected to be.
    """

    means: list[float]
    chances: list[float]
    excess: float
    cautions: list[Caution]


@dataclass(frozen=True)
class DifferenceOnJudged:
    """One run minus the baseline on judged documents alone."""

    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True)
class AgainstBaseline:
    """One run minus the baseline; a win is a topic on which the run is better.

    `mark` is None without a verdict, and `withheld`, one of REASONS, says why there is none
    whatever p is. `on_judged` is None unless the two are judged unevenly.
    """

    difference: float
    low: float
    high: float
    relative: float
    statistic: float
    p_value: float
    p_adjusted: float
    mark: str | None
    withheld: str | None
    wins: int
    ties: int
    losses: int
    on_judged: DifferenceOnJudged | None = None


@dataclass(frozen=True)
class Contrast:
    """Every other run against each of the baselines, which `pairs` has by their places.

    `rows` has for each baseline the runs in the order of the leaderboard. None are the baseline
    itself and those named before it: two baselines are a pair once.

    `family` is the number of pairs that p accounts for; `detectable` is that of `Tiering`, of these
    pairs.
    """

    pairs: Pairs
    rows: list[list[AgainstBaseline | None]]
    family: int
    significant: int
    detectable: float
    cautions: list[Caution]


@dataclass(frozen=True)
class Standing:
    """The statistics of one row; parts that were not requested or have no result are None.

    `against` has an entry for each baseline.
    """

    tier: int | None
    groups: list[str] | None
    rank_set: tuple[int, int] | None
    in_best_set: bool | None
    rank_low: int | None
    rank_high: int | None
    share_first: float | None
    expected: float | None
    chance_best: float | None
    against: list[AgainstBaseline | None]


@dataclass(frozen=True)
class Received:
    """The runs that a leaderboard was tested on, withdrawn ones included.

    They are those that a collection, or a phase of a campaign as entries, has ever received.
    """

    runs: int
    teams: int
    withdrawn: int
    since: datetime | None


@dataclass(frozen=True)
class Standings:
    """The statistics of a leaderboard.

    `places` gives the place of an evaluation in the lists of its parts.

    `intervals` has both ends by evaluation and measure; `topics` are those on which every run has a
    value.
    """

    query: StandingsQuery
    measure: Measure
    places: dict[int, int]
    topics: int | None = None
    tiers: Tiering | None = None
    ranks: RankSpread | None = None
    expected: Outlook | None = None
    baseline: Contrast | None = None
    received: Received | None = None
    intervals: dict[tuple[int, str], Ends] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)

    def is_marked(self, evaluation_id: int) -> bool:
        """Return whether a row is marked as one that can be the best."""
        best = self.tiers.best if self.tiers and self.tiers.marks_best else None
        place = self.places.get(evaluation_id)
        return best is not None and place is not None and best[place]

    def of(self, evaluation_id: int) -> Standing | None:
        """Return the statistics of one row, or None for a stale run or one without a mean."""
        at = self.places.get(evaluation_id)
        if at is None:
            return None

        ranks, groups = self.ranks, self.tiers.groups if self.tiers else None
        sets, best = (self.tiers.rank_sets, self.tiers.best) if self.tiers else (None, None)
        return Standing(
            self.tiers.tier[at] if self.tiers else None,
            groups[at] if groups else None,
            sets[at] if sets else None,
            best[at] if best else None,
            ranks.low[at] if ranks else None,
            ranks.high[at] if ranks else None,
            ranks.share_first[at] if ranks else None,
            self.expected.means[at] if self.expected else None,
            self.expected.chances[at] if self.expected else None,
            [rows[at] for rows in self.baseline.rows] if self.baseline else [],
        )
