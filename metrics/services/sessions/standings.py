"""Compute intervals, tiers and groups, and p against a baseline, of a session leaderboard.

Tiers and baseline are of all ranked systems, whichever page is shown, by the measure that the
leaderboard is sorted by and the design of their sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from metrics.engine.cautions import Caution
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.designs import Design, Factors
from metrics.engine.significance.crossed import mean_interval
from metrics.engine.significance.families import Rule, check_known
from metrics.engine.significance.pairs import Options
from metrics.engine.significance.tiers import letters_of
from metrics.services.question import Parameter, Statistics, StatisticsQuestion, group, parameter
from metrics.services.sessions.board import SessionBoard
from metrics.services.sessions.comparison import SessionComparison, compare_sample
from metrics.services.sessions.judged_sets import begin_sessions, load_sets, values_of, work_of
from metrics.services.sessions.sample import (
    ALPHA,
    CONFIDENCE,
    CORRECTION,
    DESIGN,
    DRAWS,
    MAX_SYSTEMS,
    OWN_TESTS,
    SEED,
    TEST,
    SessionComparisonQuery,
    read_sample,
)
from runs.models import Collection

PARTS = ("intervals", "tiers", "baseline")

Ends = tuple[float, float]


@dataclass(frozen=True)
class SessionStandingsQuery(StatisticsQuestion):
    """The requested `parts` and their options, which are those of a comparison of systems."""

    NAMED_BY = "name of a system"

    parts: tuple[str, ...] = parameter(
        Statistics(
            "of intervals, tiers, baseline, separated by commas; or all; default: none",
            parts=PARTS,
            together=("intervals", "tiers"),
        )
    )
    baseline: str | None = parameter(Parameter("a ranked system: hold every other one against it"))
    design: Design | None = parameter(DESIGN)
    test: str | None = parameter(TEST)
    rule: Rule = group(Rule, correction=CORRECTION, alpha=ALPHA)
    options: Options = group(Options, confidence=CONFIDENCE, resamples=DRAWS, seed=SEED)


@dataclass(frozen=True)
class SystemStanding:
    """The statistics of one row: its tier, its letters, and its place in the baseline's pairs.

    Parts that were not requested or have no result are None.
    """

    tier: int | None
    groups: list[str] | None
    pair: int | None


@dataclass(frozen=True)
class SessionStandings:
    """The statistics of a leaderboard of systems.

    `tiers` compares all pairs of the ranked systems, `baseline` every other one with it.
    `intervals` has both ends by evaluation, system and measure.
    """

    query: SessionStandingsQuery
    measure: Measure
    systems: list[str]
    tiers: SessionComparison | None = None
    baseline: SessionComparison | None = None
    intervals: dict[tuple[int, str, str], Ends] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)

    @property
    def compared(self) -> SessionComparison | None:
        """Return either comparison: both are of the same sessions, with the same options."""
        return self.tiers or self.baseline

    def of(self, name: str) -> SystemStanding | None:
        """Return the statistics of one system, or None for one without a rank."""
        if name not in self.systems:
            return None

        tier = groups = pair = None
        if self.tiers and self.tiers.tiers:
            place = [system.name for system in self.tiers.systems].index(name)
            letters = letters_of(self.tiers.tiers)
            tier = int(self.tiers.tiers.tier[place])
            groups = list(letters[place]) if letters else None

        if self.baseline:
            place = [system.name for system in self.baseline.systems].index(name)
            pairs = self.baseline.pairs.indices()[0].tolist()
            pair = pairs.index(place) if place in pairs else None

        return SystemStanding(tier, groups, pair)


def read_session_standings(
    *, collection: Collection, board: SessionBoard, query: SessionStandingsQuery
) -> SessionStandings:
    """Return the statistics of a leaderboard that was read in the same snapshot.

    Raise StatisticsError for an unknown test, correction or baseline, too many systems, or too much
    work. A leaderboard of fewer than two ranked systems has no tiers; a caution says so.
    """
    check_known(
        [query.test] if query.test and query.test not in OWN_TESTS else [], query.rule.correction
    )
    standings = SessionStandings(query, board.query.sort, board.ranked)

    if query.baseline is not None and _full_name(query.baseline, board.ranked) is None:
        message = (
            f"baseline {query.baseline[:100]!r} is not a ranked system of this leaderboard; "
            "write team/tag:system"
        )
        raise StatisticsError(message, code="unknown_system", pointer="baseline")
    if len(board.ranked) > MAX_SYSTEMS and set(query.parts) - {"intervals"}:
        message = (
            f"tiers and p need a leaderboard of at most {MAX_SYSTEMS} systems; this one has "
            f"{len(board.ranked):,}"
        )
        raise StatisticsError(message, code="too_many_systems", pointer="statistics")

    if set(query.parts) - {"intervals"}:
        standings = _compare(collection, board, query, standings)

    if "intervals" in query.parts:
        _add_intervals(standings, board, query.options.confidence)

    return standings


def _full_name(name: str, systems: list[str]) -> str | None:
    matches = [full for full in systems if full == name or full.endswith(f":{name}")]
    return matches[0] if len(matches) == 1 else None


def _compare(
    collection: Collection,
    board: SessionBoard,
    query: SessionStandingsQuery,
    standings: SessionStandings,
) -> SessionStandings:
    """Return the statistics with tiers and baseline, or with a caution that says why not."""
    if len(board.ranked) < 2:
        few = Caution(
            "too_few_systems",
            f"a comparison needs at least two ranked systems; found {len(board.ranked)}",
        )

        return SessionStandings(query, standings.measure, standings.systems, cautions=[few])

    comparison = SessionComparisonQuery(
        standings.measure,
        systems=board.ranked,
        design=query.design,
        test=query.test,
        rule=query.rule,
        options=query.options,
        descending=board.query.descending,
    )

    tiers = baseline = None
    try:
        sample = read_sample(collection, board.judged_by, comparison)
        if "tiers" in query.parts:
            tiers = compare_sample(sample, board.judged_by, comparison)

        if query.baseline:
            baseline = compare_sample(
                sample, board.judged_by, replace(comparison, baseline=query.baseline)
            )
    except StatisticsError as error:
        # Errors of a parameter are errors of the request.
        if error.pointer is not None:
            raise
        return SessionStandings(
            query,
            standings.measure,
            standings.systems,
            cautions=[Caution(error.code, error.message)],
        )

    compared = tiers or baseline
    cautions = list(compared.result.cautions) if compared else []
    return SessionStandings(
        query, standings.measure, standings.systems, tiers, baseline, cautions=cautions
    )


def _add_intervals(standings: SessionStandings, board: SessionBoard, confidence: float) -> None:
    """Add the interval of every mean on the page, from the sessions with a value.

    Stale rows have none.
    """
    measures = list(dict.fromkeys([*board.query.measures, board.query.sort]))
    evaluations = list(
        {row.evaluation.pk: row.evaluation for row in board.rows if not row.stale}.values()
    )
    queries = sum(evaluation.session_set.queries for evaluation in evaluations)
    begin_sessions(work_of(queries, measures), "statistics", read=queries)

    single = False
    for evaluation, judged in load_sets(evaluations):
        factors = Factors.of(judged.sessions)
        systems = [np.flatnonzero(judged.system == place) for place in range(len(judged.systems))]
        for name, values in values_of(judged, measures).items():
            for system, sessions in zip(judged.systems, systems, strict=True):
                standings.intervals[evaluation.pk, system.decode(), name] = mean_interval(
                    values[sessions],
                    factors.topic[sessions],
                    factors.searcher[sessions],
                    confidence,
                )

        single |= any(
            len(sessions) > 1 and factor[sessions[0]] >= 0 and np.ptp(factor[sessions]) == 0
            for sessions in systems
            for factor in (factors.topic, factors.searcher)
        )

    if single:
        message = (
            "some systems have sessions of a single topic or searcher: the intervals of their "
            "means say nothing about others"
        )
        standings.cautions.append(Caution("single_topic_or_searcher", message))
