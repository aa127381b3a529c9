"""The answers of the API about systems: the leaderboard with its statistics, and the comparison."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NotRequired, TypedDict
from uuid import UUID

from metrics.api.answers import Caution, cautions_of, number
from metrics.api.comparisons.answers import Omnibus, omnibus_answer
from metrics.api.comparisons.pairs import Bounded, Way, way_of
from metrics.api.sessions.answers import MeasureCautions, Paged, SessionMean
from metrics.engine import ENGINE_VERSION
from metrics.engine.significance.effect_sizes import Estimate
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import OF_VALUES
from metrics.services.sessions import board, comparison
from metrics.services.sessions.standings import SessionStandings
from runs.models import Collection
from runs.web.shapes import OneOf


class SetName(TypedDict):
    id: UUID
    team: str
    tag: str
    created_at: datetime


class ByUnits(TypedDict):
    """F of a crossed analysis by searchers, or by topics."""

    statistic: Annotated[float | None, "F1 or F2; null where the means do not vary"]
    freedom: list[float]
    p_value: float | None


class PairFigures(TypedDict):
    """The results of a pair; effect sizes that the design does not have are null."""

    difference: Annotated[float, "of the first minus the second, over what is compared"]
    low: float | None
    high: float | None
    statistic: float | None
    p_value: Annotated[float | None, "null where the pair cannot be tested"]
    p_adjusted: float | None
    significant: bool
    verdict: Way
    withheld: Annotated[str | None, OneOf(OF_VALUES), "why there is no verdict"]
    detectable: Annotated[
        float | None,
        "the true difference of which the interval leaves out 0 in 8 of 10 such studies; null "
        "without one",
    ]
    relative: Annotated[float | None, "as a share of the second one's mean; null where it is 0"]
    cohen_d: Annotated[Bounded | None, "of paired values"]
    hedges_g: Annotated[Bounded | None, "of paired values"]
    wins: Annotated[int | None, "cells in which the first is better"]
    ties: int | None
    losses: int | None
    cliff_delta: Annotated[Bounded | None, "of unpaired samples: the rank-biserial correlation"]
    freedom: Annotated[
        list[float] | None, "of min F', which is the statistic of a crossed analysis"
    ]
    by_searchers: Annotated[ByUnits | None, "of a crossed analysis: F1"]
    by_topics: Annotated[ByUnits | None, "of a crossed analysis: F2"]


class SystemPair(PairFigures):
    a: str
    b: str


class UsedDesign(TypedDict):
    recognised: Annotated[str, "crossed wherever the sessions allow it"]
    reason: str
    used: str


class SystemTiering(TypedDict):
    count: Annotated[int, "tiers"]
    family: Annotated[int, "pairs that p counts for: all of the ranked systems"]
    significant: Annotated[int, "pairs with a verdict"]


class SystemContrast(TypedDict):
    system: str
    family: Annotated[int, "pairs that p counts for"]
    significant: Annotated[int, "pairs with a verdict"]


class SessionBoardStatistics(TypedDict):
    """The statistics of a leaderboard of systems; a part that was not requested or has no result is
    null."""

    measure: Annotated[str, "the measure that the leaderboard is sorted by"]
    parts: list[str]
    systems: Annotated[int, "ranked systems: those that take part"]
    design: Annotated[UsedDesign | None, "null where only intervals were requested"]
    cells: Annotated[
        int | None, "pairs of topic and searcher, topics, or sessions that are compared"
    ]
    test: str | None
    correction: Annotated[str | None, "null where p already accounts for all pairs"]
    alpha: float
    confidence: float
    resamples: Annotated[int | None, "B of the test; null for one that does not draw"]
    seed: int
    tiers: SystemTiering | None
    baseline: SystemContrast | None
    cautions: list[Caution]


class SystemStanding(TypedDict):
    """Null in whole for a system without a rank."""

    tier: int | None
    groups: Annotated[
        list[str] | None, "two systems share a letter exactly when the test does not separate them"
    ]
    baseline: Annotated[PairFigures | None, "this system minus the baseline"]


class BoundedSessionMean(SessionMean):
    low: NotRequired[
        Annotated[float | None, "of its interval, if requested; it may lie beyond the range"]
    ]
    high: NotRequired[float | None]


class SystemRow(TypedDict):
    rank: int | None
    code: Annotated[str, "why it has no rank where it is not stale: fewer_sessions, no_value"]
    reason: str
    stale: bool
    name: Annotated[str, "team/tag:system, or team/tag where the log names no system"]
    session_set: SetName
    system: str
    sessions: Annotated[int, "sessions with a value: judged, with a relevant document"]
    qrels: int | None
    engine_version: str
    values: dict[str, BoundedSessionMean]
    statistics: NotRequired[SystemStanding | None]


class SessionBoard(Paged):
    """A page of the leaderboard of systems."""

    collection: str
    judged_by: str
    measures: list[str]
    sort: str
    order: str
    states: Annotated[dict[str, int], "session sets by state"]
    cautions: MeasureCautions
    judged_otherwise: Annotated[int, "session sets that are not on this leaderboard"]
    statistics: NotRequired[SessionBoardStatistics]
    results: list[SystemRow]


class ComparedSystem(TypedDict):
    name: str
    session_set: Annotated[UUID | None, "null where searchers or topics are compared"]
    system: Annotated[str, "its own name in the log, or that of the searcher or topic"]
    sessions: int
    with_value: int
    mean: Annotated[float | None, "over its sessions with a value"]
    low: Annotated[float | None, "of Student's interval of the mean"]
    high: float | None
    tier: Annotated[int | None, "null where not all pairs are compared, or none can have a verdict"]
    groups: Annotated[
        list[str] | None, "two systems share a letter exactly when the test does not separate them"
    ]


class SessionComparison(TypedDict):
    """Systems compared on one value of each session, or searchers or topics, which `systems` then
    are."""

    collection: str
    compare: str
    judged_by: str
    qrels: Annotated[int | None, "null where the logs judge themselves"]
    engine_version: str
    measure: str
    design: UsedDesign
    cells: Annotated[int, "pairs of topic and searcher, topics, or sessions that are compared"]
    test: str
    correction: str | None
    alpha: float
    confidence: float
    resamples: Annotated[int, "B of a test that draws"]
    seed: Annotated[int, "of a test that draws"]
    family: int
    cautions: list[Caution]
    systems: list[ComparedSystem]
    omnibus: dict[str, Omnibus]
    pairs: list[SystemPair]


def board_answer(
    collection: Collection,
    systems: board.SessionBoard,
    standings: SessionStandings | None,
    pages: Paged,
) -> SessionBoard:
    """Return a page of the leaderboard, with its statistics if they were requested."""
    query = systems.query
    measures = [measure.name for measure in query.measures]
    answer = SessionBoard(
        count=pages["count"],
        next=pages["next"],
        previous=pages["previous"],
        collection=collection.slug,
        judged_by=systems.judged_by,
        measures=measures,
        sort=query.sort.name,
        order="desc" if query.descending else "asc",
        states=systems.states,
        cautions=cautions_of(systems.cautions),
        judged_otherwise=systems.others,
        results=[_row(row, measures, standings) for row in systems.rows],
    )

    if standings:
        answer["statistics"] = _statistics(standings)

    return answer


def _row(
    row: board.SystemRow, measures: list[str], standings: SessionStandings | None
) -> SystemRow:
    evaluation, session_set = row.evaluation, row.evaluation.session_set
    name = board.system_name(evaluation, row.system)
    values = {}
    for measure in measures:
        mean, sessions = row.values[measure]
        values[measure] = BoundedSessionMean(mean=mean, sessions=sessions)

    answer = SystemRow(
        rank=row.rank,
        code=row.code,
        reason=row.reason,
        stale=row.stale,
        name=name,
        session_set=SetName(
            id=session_set.pk,
            team=session_set.team.slug,
            tag=session_set.tag,
            created_at=session_set.created_at,
        ),
        system=row.system,
        sessions=row.sessions,
        qrels=evaluation.qrels.version if evaluation.qrels else None,
        engine_version=evaluation.engine_version,
        values=values,
    )

    if standings:
        if "intervals" in standings.query.parts:
            for measure, value in answer["values"].items():
                low, high = standings.intervals.get(
                    (evaluation.pk, row.system, measure), (None, None)
                )
                value["low"], value["high"] = number(low), number(high)

        standing = standings.of(name) if row.rank is not None else None
        answer["statistics"] = None
        if standing:
            figures, against = None, standings.baseline
            if against and standing.pair is not None:
                figures = _figures(against, standing.pair)

            answer["statistics"] = SystemStanding(
                tier=standing.tier, groups=standing.groups, baseline=figures
            )

    return answer


def _statistics(standings: SessionStandings) -> SessionBoardStatistics:
    query, compared = standings.query, standings.compared
    tiering = contrast = None

    tiers = standings.tiers
    if tiers and tiers.tiers:
        tiering = SystemTiering(
            count=int(tiers.tiers.tier.max()),
            family=tiers.family,
            significant=int(tiers.verdicts.significant.sum()),
        )

    against = standings.baseline
    if against and query.baseline:
        contrast = SystemContrast(
            system=query.baseline,
            family=against.family,
            significant=int(against.verdicts.significant.sum()),
        )

    return SessionBoardStatistics(
        measure=standings.measure.name,
        parts=list(query.parts),
        systems=len(standings.systems),
        design=_design(compared) if compared else None,
        cells=compared.cells if compared else None,
        test=compared.test if compared else None,
        correction=compared.correction if compared else None,
        alpha=query.rule.alpha,
        confidence=query.options.confidence,
        resamples=query.options.resamples if compared and compared.draws else None,
        seed=query.options.seed,
        tiers=tiering,
        baseline=contrast,
        cautions=cautions_of(standings.cautions),
    )


def _design(compared: comparison.SessionComparison) -> UsedDesign:
    return UsedDesign(recognised=compared.recognised, reason=compared.why, used=compared.design)


def comparison_answer(
    collection: Collection, compared: comparison.SessionComparison
) -> SessionComparison:
    """Return a comparison of systems with all its pairs."""
    query = compared.query
    letters = letters_of(compared.tiers) if compared.tiers else None
    first, second = (side.tolist() for side in compared.pairs.indices())
    names = [system.name for system in compared.systems]

    return SessionComparison(
        collection=collection.slug,
        compare=query.compare,
        judged_by=compared.judged_by,
        qrels=compared.qrels.version if compared.qrels else None,
        engine_version=ENGINE_VERSION,
        measure=query.measure.name,
        design=_design(compared),
        cells=compared.cells,
        test=compared.test,
        correction=compared.correction,
        alpha=query.rule.alpha,
        confidence=query.options.confidence,
        resamples=query.options.resamples,
        seed=query.options.seed,
        family=compared.family,
        cautions=cautions_of(compared.result.cautions),
        systems=[
            ComparedSystem(
                name=system.name,
                session_set=system.evaluation.session_set_id
                if query.compare == "systems"
                else None,
                system=system.system,
                sessions=system.sessions,
                with_value=system.with_value,
                mean=number(system.mean),
                low=number(system.low),
                high=number(system.high),
                tier=int(compared.tiers.tier[place]) if compared.tiers else None,
                groups=list(letters[place]) if letters else None,
            )
            for place, system in enumerate(compared.systems)
        ],
        omnibus={name: omnibus_answer(result) for name, result in compared.omnibus.items()},
        pairs=[
            SystemPair(a=names[a], b=names[b], **_figures(compared, pair))
            for pair, (a, b) in enumerate(zip(first, second, strict=True))
        ],
    )


def _figures(compared: comparison.SessionComparison, pair: int) -> PairFigures:
    """Return the results of one pair, by its place."""
    result, effects = compared.result, compared.effects
    sizes = effects.paired
    crossed = compared.crossed[pair] if compared.crossed else None

    return PairFigures(
        difference=float(result.difference[pair]),
        low=number(float(result.low[pair])),
        high=number(float(result.high[pair])),
        statistic=number(float(result.statistic[pair])),
        p_value=number(float(result.p_value[pair])),
        p_adjusted=number(float(compared.adjusted[pair])),
        significant=bool(compared.verdicts.significant[pair]),
        verdict=way_of(compared.better(pair)),
        withheld=compared.withheld(pair) or None,
        detectable=number(float(effects.detectable[pair])),
        relative=number(float(effects.relative[pair])),
        cohen_d=_bounded(sizes.cohen_d, pair) if sizes else None,
        hedges_g=_bounded(sizes.hedges_g, pair) if sizes else None,
        wins=int(sizes.wins[pair]) if sizes else None,
        ties=int(sizes.ties[pair]) if sizes else None,
        losses=int(sizes.losses[pair]) if sizes else None,
        cliff_delta=_bounded(effects.delta, pair) if effects.delta else None,
        freedom=list(crossed.freedom) if crossed else None,
        by_searchers=_by_units(crossed, 1) if crossed else None,
        by_topics=_by_units(crossed, 2) if crossed else None,
    )


def _by_units(crossed: OmnibusResult, place: int) -> ByUnits:
    systems, source = crossed.sources[0], crossed.sources[place]
    return ByUnits(
        statistic=source.statistic,
        freedom=[systems.freedom, source.freedom],
        p_value=source.p_value,
    )


def _bounded(size: Estimate, pair: int) -> Bounded:
    return Bounded(
        value=number(float(size.value[pair])),
        low=number(float(size.low[pair])),
        high=number(float(size.high[pair])),
    )
