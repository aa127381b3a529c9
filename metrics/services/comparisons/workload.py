"""Estimate the time of a comparison: answered immediately, by a worker, or not at all."""

from __future__ import annotations

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Options
from metrics.models import MetricVector
from metrics.services.comparisons.comparison import ComparisonQuery, Entrants
from metrics.services.values.coverage import USUAL_DEPTH, depth_of, read_coverage
from metrics.services.values.effort import seconds_of_test, seconds_of_views
from metrics.services.work import begin, begin_file

# A request waits at most this many seconds; a worker has nine minutes.
AT_ONCE_SECONDS, MOST_SECONDS = 1.0, 240.0
# The stored bytes of a comparison: one number of each kind for every pair, measure and test.
MOST_VERDICTS = 1_000_000
# For each result in an answer or a file: a pair under one measure and test.
_WRITTEN_SECONDS = 60e-6
# For the draws of a posterior of each pair in an answer or a file.
_DRAWN_SECONDS = 100e-6
# For each pair: correction, tiers, and writing the result.
_PAIR_SECONDS = 1e-6
# So many judged views are read within a tenth of a second.
_FEW_VIEWS = 100


def seconds_of(test: str, runs: int, topics: int, pairs: int, options: Options) -> float:
    """Return about how many seconds one test and its verdicts take."""
    return seconds_of_test(test, runs, topics, pairs, options.resamples) + pairs * _PAIR_SECONDS


def estimate(entrants: Entrants, query: ComparisonQuery) -> float:
    """Return the seconds of all tests and measures, without values that are not stored."""
    runs, pairs = len(entrants.evaluations), entrants.pairs.number
    once = sum(
        seconds_of(test, runs, entrants.qrels.topics, pairs, query.options) for test in query.tests
    )

    return once * len(query.measures)


def check_workload(entrants: Entrants, query: ComparisonQuery) -> None:
    """Raise StatisticsError for more work than a worker does, or a result that is too large."""
    verdicts = entrants.pairs.number * len(query.measures) * len(query.tests)
    if verdicts > MOST_VERDICTS:
        message = (
            f"{entrants.pairs.number:,} pairs under {len(query.measures)} measures and "
            f"{len(query.tests)} tests are {verdicts:,} results; at most {MOST_VERDICTS:,}: use "
            "fewer measures, tests or runs, or a baseline"
        )
        raise StatisticsError(message, code="too_many_results", pointer="runs")
    _check_seconds(estimate(entrants, query))


def check_missing(entrants: Entrants, query: ComparisonQuery) -> None:
    """Raise StatisticsError if a worker would take too long, also for values not stored."""
    _check_seconds(estimate(entrants, query) + seconds_of_missing(entrants, query))


def _check_seconds(seconds: float) -> None:
    if seconds > MOST_SECONDS:
        advice = "use fewer resamples, measures or runs"
        message = f"would take about {seconds:,.0f} s; the limit is {MOST_SECONDS:.0f} s: {advice}"
        raise StatisticsError(message, code="too_much_work", pointer="resamples")


def seconds_of_missing(entrants: Entrants, query: ComparisonQuery) -> float:
    """Return about how many seconds it takes to compute the values that are not stored."""
    pks = [evaluation.pk for evaluation in entrants.evaluations]
    names = {measure.name: measure for measure in query.measures}
    rows = MetricVector.objects.filter(evaluation__in=pks, measure__in=names)
    stored = set(rows.values_list("evaluation_id", "measure"))
    missing = {
        pk: [measure for name, measure in names.items() if (pk, name) not in stored] for pk in pks
    }
    lacking = {pk: measures for pk, measures in missing.items() if measures}

    return seconds_of_views(lacking) if lacking else 0.0


def seconds_on_judged(entrants: Entrants, query: ComparisonQuery) -> float:
    """Return the seconds to read many runs on judged documents alone.

    They count where any two runs are judged unevenly; few runs take no time that matters.
    """
    answered = {entry.pk: entry.topics_answered for entry in entrants.evaluations}
    if len(answered) <= _FEW_VIEWS:
        return 0.0

    usual = next((measure for measure in query.measures if depth_of(measure) == USUAL_DEPTH), None)
    if usual and not read_coverage(answered, usual, entrants.qrels).uneven(entrants.pairs).any():
        return 0.0
    return seconds_of_views(dict.fromkeys(answered, query.measures))


def fits_a_request(entrants: Entrants, query: ComparisonQuery) -> bool:
    """Return whether the comparison can be computed while its client waits."""
    seconds = estimate(entrants, query)
    if seconds > AT_ONCE_SECONDS:
        return False

    values = seconds_of_missing(entrants, query) + seconds_on_judged(entrants, query)
    return seconds + values <= AT_ONCE_SECONDS


def begin_results(pairs: int, most: int | None, query: ComparisonQuery) -> None:
    """Begin writing `most` of the pairs, or all, of every measure and test into an answer."""
    seconds = _seconds_of_results(min(pairs, most or pairs), query)
    begin(seconds, "the answer", "use a smaller limit=, or fewer measures or tests", "limit")


def begin_results_file(pairs: int, query: ComparisonQuery) -> None:
    """Begin writing all pairs into a file, which is sent while it is written."""
    begin_file(_seconds_of_results(pairs, query))


def _seconds_of_results(pairs: int, query: ComparisonQuery) -> float:
    resampling = _DRAWN_SECONDS if "bayes_bootstrap" in query.practical.tests else 0.0
    return pairs * len(query.measures) * (len(query.tests) * _WRITTEN_SECONDS + resampling)
