"""Compute the statistics of a leaderboard.

They are intervals of its means, tiers and groups, rank intervals, and p against a baseline.

They cover all ranked runs of the leaderboard, whatever page is shown, under the measure by which it
is sorted.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from django.db.models import Count, Min, Q

from metrics.engine.agreement.intervals import rank_intervals
from metrics.engine.analysis.differences import differences
from metrics.engine.arrays import Flags, Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance import TESTS
from metrics.engine.significance.effect_sizes import detectable_by_half, relative_difference
from metrics.engine.significance.families import Family, Pairs, Rule, compare_family, separate
from metrics.engine.significance.pairs import ROUNDING, Caution, Matrix, Options
from metrics.engine.significance.rank_sets import holds_for_ranks, rank_sets
from metrics.engine.significance.shrinkage import MIN_RUNS, expected_means
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import MIN_TIERED_TOPICS, MIN_TOPICS, REASONS
from metrics.models import Evaluation
from metrics.services.answer_store import keep, recall
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.mean_intervals import mean_intervals, without_interval
from metrics.services.boards.standing_parts import (
    AgainstBaseline,
    Contrast,
    DifferenceOnJudged,
    Outlook,
    RankSpread,
    Received,
    Standings,
    StandingsQuery,
    Tiering,
)
from metrics.services.boards.topic_selection import TopicSelection
from metrics.services.boards.versions import BEST, BEST_CAUTION
from metrics.services.values.common_values import (
    CommonValues,
    cautions_of,
    check_names,
    not_corrected_again,
    pooled_words,
    read_common_values,
)
from metrics.services.values.coverage import Coverage, read_coverage, with_judged
from metrics.services.values.effort import check_values, seconds_of_ranks, seconds_of_test
from metrics.services.work import begin
from runs.models import Qrels, Run

_MARKS = {1: "better", -1: "worse", 0: None}
MAX_RUNS = 1000
# Of more runs no groups are shown: there are hundreds, and hundreds of letters in a row are
# unreadable.
MAX_GROUPED_RUNS = 200
# The advice for a part that takes too long, and the parameter concerned.
_NARROW = {
    "tiers": ("use fewer resamples, another test, or leave it out of statistics=", "test"),
    "ranks": ("use fewer rank_resamples, or leave it out of statistics=", "rank_resamples"),
}
_T = TypeVar("_T")


def read_standings(
    *, board: Leaderboard, query: StandingsQuery, received: Received | None = None
) -> Standings:
    """Return the statistics of a leaderboard that was read.

    `received` counts the runs of the whole collection by default.

    Raise StatisticsError for an unknown test, correction or baseline, too many runs, or a request
    that would take too long. A leaderboard with fewer than two runs or topics, or sorted by a ratio
    of averaged vectors, has none, and a caution says so.

    Of best versions there are neither intervals, rank sets nor expected means: they were chosen by
    these means. Tiers and p are those of the pairs of all versions, so that choosing afterwards
    makes no error more likely.
    """
    check_names(query.test, query.correction)
    received = received or _received(board.qrels.collection_id)
    if board.versions == BEST:
        parts = tuple(
            part for part in query.parts if part not in ("intervals", "ranks", "expected")
        )
        standings = _read_standings(board, replace(query, parts=parts))

        # The ranks of all versions, not those of the systems.
        tiers = standings.tiers and replace(standings.tiers, rank_sets=None, best=None)
        cautions = [*standings.cautions, BEST_CAUTION]
        baseline = _without_intervals(standings)
        return replace(
            standings, tiers=tiers, baseline=baseline, received=received, cautions=cautions
        )

    return replace(_read_standings(board, query), received=received)


def _without_intervals(standings: Standings) -> Contrast | None:
    contrast = standings.baseline
    if contrast is None:
        return None

    rows = [
        [row and _without_interval(row) for row in of_baseline] for of_baseline in contrast.rows
    ]
    return replace(contrast, rows=rows)


def _without_interval(row: AgainstBaseline) -> AgainstBaseline:
    on_judged = row.on_judged and replace(row.on_judged, low=math.nan, high=math.nan)
    return replace(row, low=math.nan, high=math.nan, on_judged=on_judged)


def _read_standings(board: Leaderboard, query: StandingsQuery) -> Standings:
    ranked = [(pk, mean) for pk, mean in board.order if mean is not None]
    if len(ranked) > MAX_RUNS:
        message = (
            f"statistics need a leaderboard of at most {MAX_RUNS:,} runs; this one has "
            f"{len(ranked):,}"
        )
        raise StatisticsError(message, code="too_many_runs", pointer="statistics")

    places = {pk: place for place, (pk, _) in enumerate(ranked)}
    baselines: list[int] = []
    if query.baselines:
        current = Evaluation.objects.current(board.qrels, board.scores).evaluated()
        named = current.filter(run__in=query.baselines).values_list("run_id", "pk")
        by_run = {str(run): pk for run, pk in named}
        for baseline in query.baselines:
            if by_run.get(baseline) not in places:
                message = f"baseline {baseline} is not a ranked run of this leaderboard"
                raise StatisticsError(message, code="unknown_run", pointer="baseline")
            baselines.append(places[by_run[baseline]])

    if set(query.parts) <= {"intervals"}:
        standings = Standings(query, board.sort, places)
    elif len(places) < 2:
        few = Caution(
            "too_few_runs", f"a comparison needs at least two ranked runs; found {len(places)}"
        )
        standings = Standings(query, board.sort, places, cautions=[few])
    elif board.sort.pools:
        pooled = Caution("pooled_measure", pooled_words(board.sort))
        standings = Standings(query, board.sort, places, cautions=[pooled])
    else:
        check_values(len(places), board.qrels.topics, 1)
        means = np.array([mean for _, mean in ranked])
        entrants = _Entrants(
            [*places], means, board.sort, board.descending, board.qrels, board.selection
        )
        standings = _compare(entrants, query, places, tuple(baselines))

    if "intervals" in query.parts:
        standings.intervals.update(mean_intervals(board, query.confidence))
        standings.cautions.extend(without_interval(board.measures))

    return standings


def _received(collection: int) -> Received:
    runs = Run.objects.filter(collection=collection).order_by()
    withdrawn = Q(deleted_at__isnull=False)

    return Received(
        **runs.aggregate(
            runs=Count("pk"),
            teams=Count("team", distinct=True),
            withdrawn=Count("pk", filter=withdrawn),
            since=Min("created_at"),
        )
    )


@dataclass(frozen=True)
class _Entrants:
    """The ranked evaluations that have a mean, best first.

    Their values are read when they are needed.
    """

    ids: list[int]
    means: Floats
    measure: Measure
    descending: bool
    qrels: Qrels
    selection: TopicSelection | None = None

    @property
    def selected(self) -> Flags | None:
        return self.selection.selected if self.selection else None

    @cached_property
    def common(self) -> CommonValues:
        return read_common_values(self.ids, [self.measure], self.qrels, self.selected)[0]

    @cached_property
    def identity(self) -> str:
        """Return a key that is the same for all readers of the leaderboard.

        It changes with its runs, means or order.
        """
        digest = hashlib.sha256(np.array(self.ids, np.int64).tobytes() + self.means.tobytes())
        digest.update(f"{self.descending} {self.measure.key}".encode())
        if self.selection:
            digest.update(self.selection.identity)
        return digest.hexdigest()

    def remembered(
        self,
        part: str,
        options: tuple[object, ...],
        make: Callable[[CommonValues], _T],
        seconds: float = 0.0,
    ) -> _T:
        """Return the stored result for the same values, or compute it in about so many seconds."""
        key, since = f"standings {self.identity} {part} {options!r}", time.monotonic()
        result = recall(key)
        if result is None:
            begin(
                seconds, f"{part} of {len(self.ids):,} runs", *_NARROW.get(part, _NARROW["tiers"])
            )
            result = make(self.common)
            keep(key, result, took=time.monotonic() - since)

        return cast(_T, result)


def _compare(
    entrants: _Entrants, query: StandingsQuery, places: dict[int, int], baselines: tuple[int, ...]
) -> Standings:
    """Return all parts except the intervals of the means.

    Each part is computed once for all readers.
    """
    lower, measure = not entrants.descending, entrants.measure
    try:
        topics, left_out, reordered = entrants.remembered(
            "topics", (), lambda common: _topics(common, lower)
        )
    except StatisticsError as error:
        if error.code == "too_much_work":
            raise
        return Standings(query, measure, places, cautions=[Caution(error.code, error.message)])

    cautions = cautions_of([measure], left_out)
    enough = topics >= MIN_TOPICS
    if not enough and {"tiers", "ranks", "expected"} & set(query.parts):
        message = (
            f"no tiers, rank intervals or expected means: {topics} topics are too few; at least "
            f"{MIN_TOPICS} are needed"
        )
        cautions.append(Caution("no_verdict", message))
    elif reordered:
        message = (
            "tests use arithmetic means, which order the runs differently; tiers and rank "
            "intervals follow them"
        )
        cautions.append(Caution("other_order", message))

    # Only the options that the test reads: others do not change its result.
    options = Options(confidence=query.confidence)
    if TESTS[query.test].draws:
        options = Options(confidence=query.confidence, resamples=query.resamples, seed=query.seed)

    test_options = (options, query.test, query.correction, query.alpha)
    tiers, ranks, expected, contrast = None, None, None, None
    runs = len(entrants.ids)

    def seconds_of_pairs(pairs: int) -> float:
        return seconds_of_test(query.test, runs, entrants.qrels.topics, pairs, query.resamples)

    if enough and "tiers" in query.parts:
        seconds = seconds_of_pairs(runs * (runs - 1) // 2)
        tiers, untiered = entrants.remembered(
            "tiers",
            test_options,
            lambda common: _tiers(common, query, options, measure, lower),
            seconds,
        )
        cautions += untiered

    if enough and "ranks" in query.parts:
        resampling = Options(
            confidence=query.confidence, resamples=query.rank_resamples, seed=query.seed
        )
        seconds = seconds_of_ranks(runs, entrants.qrels.topics, query.rank_resamples)
        ranks = entrants.remembered(
            "ranks", (resampling,), lambda common: _rank_spread(common, resampling, lower), seconds
        )

        if topics < MIN_TIERED_TOPICS:
            message = (
                f"only {topics} topics: a 95% interval holds the true rank in 92 of 100 samples "
                "on average, of the best run in fewer"
            )
            cautions.append(Caution("few_topics_interval", message))

    if enough and "expected" in query.parts and runs >= MIN_RUNS:
        # The best is best whatever the order of the leaderboard.
        lowest = measure.definition.lower_is_better
        expected = entrants.remembered(
            "expected", (lowest,), lambda common: _outlook(common, lowest)
        )

    if baselines:
        pairs = Pairs(runs, baselines)
        contrast = entrants.remembered(
            "baseline",
            (*test_options, *baselines),
            lambda common: _contrast(entrants, common, query, options, pairs),
            seconds_of_pairs(pairs.number),
        )

    return Standings(
        query, measure, places, topics, tiers, ranks, expected, contrast, cautions=cautions
    )


def _topics(common: CommonValues, lower_is_better: bool) -> tuple[int, int, bool]:
    """Return how many topics are common and left out, and whether means reorder the runs.

    These are arithmetic means.
    """
    means = common.values.mean(axis=1)
    steps = np.diff(-means if lower_is_better else means)
    return common.topics, common.left_out, bool((steps > ROUNDING * np.abs(means).max()).any())


def _tiers(
    common: CommonValues,
    query: StandingsQuery,
    options: Options,
    measure: Measure,
    lower_is_better: bool,
) -> tuple[Tiering | None, list[Caution]]:
    """Return the tiers, or None and the cautions that say why no pair can be tested."""
    runs = len(common.values)
    grouped = runs <= MAX_GROUPED_RUNS
    rule = Rule(query.correction, query.alpha)
    separation = separate(common.values, query.test, rule, options, lower_is_better=lower_is_better)
    cautions = [*not_corrected_again(query.test, query.correction), *separation.cautions]

    if separation.tiers is None:
        return None, cautions

    letters = letters_of(separation.tiers) if grouped else None
    if letters is None:
        message = (
            f"groups have letters on leaderboards of at most {MAX_GROUPED_RUNS} runs and 52 groups"
        )
        cautions.append(Caution("groups_left_out", message))

    groups = None if letters is None else [list(text) for text in letters]
    sets = best = None
    if holds_for_ranks(query.test, query.correction):
        ranks = rank_sets(runs, *Pairs(runs).indices(), separation.verdicts.better(lower_is_better))
        sets = list(zip(ranks.low.tolist(), ranks.high.tolist(), strict=True))

        # A leaderboard that begins with the worst has the best at its end.
        worst_first = lower_is_better != measure.definition.lower_is_better
        best = (ranks.high == runs if worst_first else ranks.best).tolist()

    significant = int(separation.verdicts.significant.sum())
    first, second = Pairs(runs).indices()
    undecided = separation.verdicts.not_significant
    across = separation.tiers.tier[first] != separation.tiers.tier[second]
    detectable = detectable_by_half(
        common.values, first[undecided], second[undecided], query.confidence
    )

    return Tiering(
        tier=separation.tiers.tier.tolist(),
        groups=groups,
        rank_sets=sets,
        best=best,
        family=separation.size,
        significant=significant,
        across=int(across.sum()),
        undecided_across=int((across & ~separation.verdicts.significant).sum()),
        detectable=detectable,
        cautions=cautions,
    ), []


def _rank_spread(common: CommonValues, options: Options, lower_is_better: bool) -> RankSpread:
    intervals = rank_intervals(common.values, options, lower_is_better=lower_is_better)
    return RankSpread(
        intervals.low.tolist(), intervals.high.tolist(), intervals.share_first.tolist()
    )


def _outlook(common: CommonValues, lower_is_better: bool) -> Outlook:
    estimate = expected_means(common.values, lower_is_better=lower_is_better)
    means = common.values.mean(axis=1)
    best = means.argmin() if lower_is_better else means.argmax()
    excess = abs(float(means[best] - estimate.means[best]))

    return Outlook(estimate.means.tolist(), estimate.chances.tolist(), excess, [*estimate.cautions])


def _contrast(
    entrants: _Entrants,
    common: CommonValues,
    query: StandingsQuery,
    options: Options,
    pairs: Pairs,
) -> Contrast:
    rule, measure = Rule(query.correction, query.alpha), entrants.measure
    lower_is_better = measure.definition.lower_is_better

    def compare(values: Matrix) -> list[Family]:
        return [compare_family(values, pairs, query.test, rule, options)]

    families = compare(common.values)
    topics = dict(
        Evaluation.objects.filter(pk__in=entrants.ids).values_list("pk", "topics_answered")
    )
    answered = {pk: topics[pk] for pk in entrants.ids}

    coverage = with_judged(
        read_coverage(answered, measure, entrants.qrels, entrants.selected),
        entrants.ids,
        measure,
        common.values,
        common.common,
        pairs,
        compare,
    )

    (family,) = coverage.apply(families, common.values, pairs, lower_is_better=lower_is_better)
    result = family.result
    first, second = pairs.indices()
    bases = {place: common.values[place].mean() for place in pairs.baselines}
    base = np.array([bases[place] for place in second.tolist()])
    relative = relative_difference(result.difference, base)

    better = family.verdicts.better(lower_is_better).tolist()
    on_judged = _on_judged(coverage, pairs)
    columns: dict[int, list[AgainstBaseline | None]] = {
        place: [None] * pairs.runs for place in pairs.baselines
    }
    for i, (run, baseline) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        outcomes = differences(
            common.values[run], common.values[baseline], lower_is_better=lower_is_better
        )
        columns[baseline][run] = AgainstBaseline(
            difference=float(result.difference[i]),
            low=float(result.low[i]),
            high=float(result.high[i]),
            relative=float(relative[i]),
            statistic=float(result.statistic[i]),
            p_value=float(result.p_value[i]),
            p_adjusted=float(family.adjusted[i]),
            mark=_MARKS[better[i]],
            withheld=REASONS[family.verdicts.withheld[i]] or None,
            wins=outcomes.wins,
            ties=outcomes.ties,
            losses=outcomes.losses,
            on_judged=on_judged[i],
        )

    cautions = [
        *not_corrected_again(query.test, query.correction),
        # A board counts runs: their names may not be shown to its reader.
        *coverage.cautions(pairs, family.verdicts),
        *result.cautions,
    ]

    undecided = family.verdicts.not_significant
    detectable = detectable_by_half(
        common.values, first[undecided], second[undecided], query.confidence
    )
    return Contrast(
        pairs=pairs,
        rows=list(columns.values()),
        family=family.size,
        significant=int(family.significant.sum()),
        detectable=detectable,
        cautions=cautions,
    )


def _on_judged(coverage: Coverage, pairs: Pairs) -> list[DifferenceOnJudged | None]:
    """Return the differences of the pairs that are judged unevenly on judged documents alone."""
    if coverage.on_judged is None:
        return [None] * pairs.number

    (family,) = coverage.on_judged.families
    result = family.result
    columns = (result.difference, result.low, result.high, result.p_value, family.adjusted)
    return [
        DifferenceOnJudged(*figures) if uneven else None
        for uneven, figures in zip(
            coverage.uneven(pairs).tolist(), np.array(columns).T.tolist(), strict=True
        )
    ]
