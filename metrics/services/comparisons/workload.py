"""How long a comparison will take: what is answered at once, by a worker, or not at all."""

from __future__ import annotations

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Options
from metrics.models import MetricVector
from metrics.services.comparisons.comparison import ComparisonQuery, Entrants
from metrics.services.values.effort import seconds_of_test

# A request waits so long at most; a worker has nine minutes.
AT_ONCE_SECONDS, MOST_SECONDS = 1.0, 240.0
# What is kept of a comparison: one figure of each kind for every pair, measure and test.
MOST_VERDICTS = 1_000_000
# A value that is not stored is computed from its judged view.
_VIEW_SECONDS = 0.005
# For each pair: correction, tiers, what is written.
_PAIR_SECONDS = 1e-6


def seconds_of(test: str, runs: int, topics: int, pairs: int, options: Options) -> float:
    """About how long one test takes with what follows from it."""
    return seconds_of_test(test, runs, topics, pairs, options.resamples) + pairs * _PAIR_SECONDS


def estimate(entrants: Entrants, query: ComparisonQuery) -> float:
    """About how many seconds all tests and measures take, without what is not stored."""
    runs, pairs = len(entrants.evaluations), entrants.pairs.number
    once = sum(seconds_of(test, runs, entrants.qrels.topics, pairs, query.options) for test in query.tests)
    return once * len(query.measures)


def check_workload(entrants: Entrants, query: ComparisonQuery) -> None:
    """StatisticsError for more than a worker can do, or than can be kept."""
    verdicts = entrants.pairs.number * len(query.measures) * len(query.tests)
    if verdicts > MOST_VERDICTS:
        message = (
            f"{entrants.pairs.number:,} pairs under {len(query.measures)} measures and {len(query.tests)} tests are "
            f"{verdicts:,} results; at most {MOST_VERDICTS:,}: use fewer measures, tests or runs, or a baseline"
        )
        raise StatisticsError(message, code="too_many_results", pointer="runs")
    seconds = estimate(entrants, query)
    if seconds > MOST_SECONDS:
        message = f"would take about {seconds:,.0f} s; the limit is {MOST_SECONDS:.0f} s: use fewer resamples or runs"
        raise StatisticsError(message, code="too_much_work", pointer="resamples")


def fits_a_request(entrants: Entrants, query: ComparisonQuery) -> bool:
    """Whether the comparison can be made while its client waits."""
    seconds = estimate(entrants, query)
    if seconds > AT_ONCE_SECONDS:
        return False
    names = [measure.name for measure in query.measures]
    stored = MetricVector.objects.filter(evaluation__in=entrants.evaluations, measure__in=names).count()
    missing = len(entrants.evaluations) * len(names) - stored
    return seconds + missing * _VIEW_SECONDS <= AT_ONCE_SECONDS
