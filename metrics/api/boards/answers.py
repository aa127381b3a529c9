"""The API's answer for a leaderboard and its statistics."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict

from rest_framework import serializers

from metrics.api.answers import (
    Aggregate,
    Caution,
    Coverage,
    Mean,
    MeasureCautions,
    RunName,
    aggregates_of,
    cautions_of,
    coverage,
    number,
    page_addresses,
    run_name,
)
from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import INTERVALS
from metrics.engine.significance.verdicts import REASONS, VERDICTS
from metrics.services.boards import leaderboard, standing_parts
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.entries import SHOWN_ENTRIES, STATUSES
from metrics.services.boards.states import BOARD_STATES
from metrics.services.boards.versions import ALL, CAPTIONS, VERSIONS
from runs.models import Collection
from runs.web.shapes import Id, Kind, OneOf, Url

_DETECTABLE = (
    "the true difference that half of the other pairs, each tested alone, would show in 8 of 10 "
    "samples of topics"
)


class Tiering(TypedDict):
    count: Annotated[int, "tiers"]
    best: Annotated[
        int | None,
        "runs that no other is significantly better than: the set of the best. null with a test of "
        "ranks or a correction that does not limit the chance of any wrong finding",
    ]
    family: Annotated[int, "pairs that p counts for: all of the ranked runs"]
    significant: Annotated[int, "pairs with a verdict"]
    across: Annotated[int, "pairs in different tiers"]
    undecided_across: Annotated[int, "of these, pairs that do not differ significantly"]
    detectable: Annotated[float | None, _DETECTABLE]
    cautions: list[Caution]


class Ranks(TypedDict):
    resamples: Annotated[int, "bootstrap samples of the topics"]


class Outlook(TypedDict):
    excess: Annotated[
        float,
        "how much worse on other topics the run of the best mean is expected to be: the best of "
        "many runs looks better than it is",
    ]
    cautions: list[Caution]


class Received(TypedDict):
    """What the collection has ever received, or on the leaderboard of a phase the entries that the
    caller sees, withdrawn ones included: each was tested with all others, and may follow what
    earlier ones showed. No p accounts for that."""

    runs: int
    teams: int
    withdrawn: int
    since: Annotated[datetime | None, "when the first one came"]


class Contrast(TypedDict):
    run: Id
    family: Annotated[
        int,
        "pairs that p counts for: every other ranked run with this one, or all pairs where the "
        "test counts so",
    ]
    intervals: Annotated[str, OneOf(INTERVALS), "whether each holds alone, or all at once"]
    significant: Annotated[int, "pairs with a verdict"]
    detectable: Annotated[float | None, _DETECTABLE]
    cautions: list[Caution]


class Contrasts(TypedDict):
    """Every other run against each of several baselines, as one family."""

    runs: Annotated[list[Id], "the baselines, in the order of the request"]
    family: Annotated[int, "pairs that p counts for; two baselines are a pair once"]
    intervals: Annotated[str, OneOf(INTERVALS), "whether each holds alone, or all at once"]
    significant: Annotated[int, "pairs with a verdict"]
    detectable: Annotated[float | None, _DETECTABLE]
    cautions: list[Caution]


class BoardStatistics(TypedDict):
    """How the statistics of a leaderboard were computed; a part that was not requested or has no
    result is null."""

    measure: Annotated[str, "the measure that the leaderboard is sorted by"]
    parts: list[str]
    runs: Annotated[int, "ranked runs with a mean: those that take part"]
    topics: Annotated[int | None, "on which every run has a value"]
    test: str
    correction: Annotated[str | None, "null where p already accounts for all pairs"]
    alpha: float
    confidence: float
    resamples: Annotated[int | None, "B of the test; null for one that does not draw"]
    seed: int
    tiers: Tiering | None
    ranks: Ranks | None
    expected: Outlook | None
    received: Received | None
    baseline: Contrast | None
    baselines: NotRequired[Annotated[Contrasts, "with several, instead of `baseline`"]]
    cautions: list[Caution]


class RankInterval(TypedDict):
    low: int
    high: int
    share_first: Annotated[float, "samples of topics in which the run is first, tied or alone"]


class DifferenceOnJudged(TypedDict):
    """The run minus the baseline on judged documents alone: unjudged ones removed, the rest moved
    up."""

    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: Annotated[float | None, "corrected over the same family"]


class AgainstBaseline(TypedDict):
    difference: Annotated[float, "mean of the run minus mean of the baseline"]
    low: float | None
    high: float | None
    relative: Annotated[float | None, "as a share of the baseline's mean; null where it is 0"]
    statistic: float | None
    p_value: Annotated[float | None, "null where the pair cannot be tested"]
    p_adjusted: float | None
    mark: Annotated[str | None, OneOf(VERDICTS), "where there is a verdict"]
    withheld: Annotated[str | None, OneOf(REASONS[1:]), "why there is no verdict, whatever p is"]
    wins: Annotated[int, "topics on which the run is better"]
    ties: int
    losses: int
    on_judged: Annotated[
        DifferenceOnJudged | None,
        "where the two are judged unevenly; null elsewhere, and where there are no such values",
    ]


class Standing(TypedDict):
    """The statistics of a run; null for a stale run and for one without a mean."""

    tier: int | None
    groups: Annotated[
        list[str] | None, "two runs share a letter exactly when the test does not separate them"
    ]
    rank_set: Annotated[
        list[int] | None,
        "the lowest and the highest rank that no significant pair excludes; the sets of all runs "
        "hold at once. From 1 on: in the set of the best",
    ]
    in_best_set: Annotated[bool | None, "in the set of the best; null where there is none"]
    rank: RankInterval | None
    expected: Annotated[float | None, "the mean that is expected on other topics"]
    chance_best: Annotated[float | None, "estimated, to be the best of these runs on other topics"]
    baseline: AgainstBaseline | None
    baselines: NotRequired[
        Annotated[
            list[AgainstBaseline | None],
            "against each of several; null for itself, and where the pair is that of the other one",
        ]
    ]


class BoundedMean(Mean):
    low: NotRequired[
        Annotated[float | None, "of its interval, if requested; it may lie beyond the range"]
    ]
    high: NotRequired[float | None]


class BoardVersion(TypedDict):
    """The version that stands for its system."""

    of: Annotated[
        int, "versions from which it was taken: of the latest all, of the best the evaluated ones"
    ]
    newer: Annotated[int | None, "the number of a newer version, which has no values yet"]
    expected_best: Annotated[
        float | None, "mean of the best version on topics on which it was not chosen"
    ]


class EntryCounts(TypedDict):
    """The live runs of a collection by their entries."""

    shown: Annotated[str, OneOf(SHOWN_ENTRIES), "which runs are shown and ranked"]
    official: int
    others: int


class Replicates(TypedDict):
    """The number of replicates of a run, and their means of the measure that ranks the runs."""

    runs: int
    deviation: Annotated[
        float | None, "standard deviation of the means; null for one replicate, or without a mean"
    ]
    lowest: float | None
    highest: float | None


class Row(TypedDict):
    rank: int | None
    state: Annotated[str, OneOf(BOARD_STATES)]
    stale: bool
    code: Annotated[
        str,
        "why a run waits or failed, as in its status, or has no rank: fewer_topics, other_topics, "
        "no_value, not_competing, disqualified, withdrawn",
    ]
    reason: str
    run: RunName
    labels: Annotated[list[str], "names of the labels that name the run"]
    system: Annotated[str | None, "of the run's team, of which it is a version"]
    version: int | None
    versions: NotRequired[
        Annotated[BoardVersion | None, "on a leaderboard of systems; null for a run without one"]
    ]
    entry_status: NotRequired[
        Annotated[str, OneOf(STATUSES), "of its entry, on a collection with a phase"]
    ]
    entry_phase: NotRequired[Annotated[str | None, "campaign/phase"]]
    entry_number: NotRequired[Annotated[int | None, "of the entry in its phase"]]
    replicates: NotRequired[
        Annotated[Replicates, "of a run whose values are means over its replicates"]
    ]
    coverage: Coverage
    judged_at_10: Annotated[float | None, "mean of Judged@10; null for a run without values"]
    tied_documents: int
    qrels: int
    engine_version: str
    values: dict[str, BoundedMean]
    columns: NotRequired[
        Annotated[dict[str, Any], Kind(serializers.DictField), "by name; null where it is not set"]
    ]
    groups: NotRequired[
        Annotated[
            dict[str, Mean], "of the measure that ranks the runs, by group; empty for a stale run"
        ]
    ]
    statistics: NotRequired[Standing | None]


class BoardGroup(TypedDict):
    group: str
    topics: int


class Leaderboard(TypedDict):
    """A page of a leaderboard."""

    collection: str
    qrels: int
    scores: str
    measures: list[str]
    aggregates: Annotated[dict[str, Aggregate], "what `mean` is, for each measure"]
    cautions: MeasureCautions
    sort: str
    order: str
    columns: NotRequired[Annotated[list[str], "the requested parameters and costs"]]
    arrange: NotRequired[Annotated[str, "the column that orders the rows"]]
    versions: NotRequired[
        Annotated[str, OneOf(VERSIONS), "which versions of systems are shown, if not all"]
    ]
    caption: NotRequired[Annotated[str, "what these rows are"]]
    entries: NotRequired[
        Annotated[EntryCounts, "on a collection with an evaluation or development phase"]
    ]
    topics_filter: NotRequired[Annotated[str, "the topics that count, if not all"]]
    by: NotRequired[Annotated[str, "the key of the groups of topics"]]
    groups: NotRequired[list[BoardGroup]]
    count: Annotated[int, "rows of all pages: those that the filter shows"]
    ranked: Annotated[int, "runs that have a rank, whatever the filter shows"]
    topics: Annotated[int, "topics that the mean of every ranked run covers"]
    provisional: Annotated[
        bool, "whether runs or means are still to come, so that ranks may change"
    ]
    states: dict[str, int]
    computing: Annotated[
        dict[str, int],
        "measures of the leaderboard that workers are computing, with the number of runs that "
        "lack each",
    ]
    next: Url | None
    previous: Url | None
    statistics: NotRequired[BoardStatistics]
    results: list[Row]


def leaderboard_answer(
    collection: Collection,
    query: BoardQuery,
    board: leaderboard.Leaderboard,
    standings: standing_parts.Standings | None,
    url: str,
) -> Leaderboard:
    """Return a leaderboard with its statistics, if requested; `url` is that of the request."""
    page = page_addresses(url, query.offset, query.limit, board.total)
    answer = Leaderboard(
        collection=collection.slug,
        qrels=board.qrels.version,
        scores=board.scores,
        measures=[measure.name for measure in board.measures],
        aggregates=aggregates_of(board.measures),
        cautions=cautions_of(board.cautions),
        sort=board.sort.name,
        order="desc" if board.descending else "asc",
        count=board.total,
        ranked=board.ranked,
        topics=board.topics,
        provisional=board.waiting,
        states=board.states,
        computing=board.computing,
        results=[_row(board, row, standings) for row in board.rows],
        next=page.next,
        previous=page.previous,
    )

    if board.columns:
        answer["columns"] = [column.name for column in board.columns]

    if board.selection:
        answer["topics_filter"] = board.selection.text

    if board.groups:
        answer["by"] = board.by
        answer["groups"] = [
            BoardGroup(group=group.name, topics=group.topics) for group in board.groups
        ]

    if board.arrange:
        answer["arrange"] = board.arrange.name

    if board.versions != ALL:
        answer["versions"], answer["caption"] = board.versions, CAPTIONS[board.versions]

    if board.entries:
        answer["entries"] = EntryCounts(
            shown=board.entries.shown, official=board.entries.official, others=board.entries.others
        )

    if standings:
        answer["statistics"] = _board_statistics(standings)

    return answer


def _row(
    board: leaderboard.Leaderboard, row: leaderboard.Row, standings: standing_parts.Standings | None
) -> Row:
    values = {
        name: BoundedMean(mean=mean, topics=topics) for name, (mean, topics) in row.values.items()
    }
    answer = Row(
        rank=row.rank,
        state=row.state,
        stale=row.stale,
        code=row.code,
        reason=row.reason,
        run=run_name(row.run),
        labels=list(row.labels),
        system=row.run.system.slug if row.run.system else None,
        version=row.run.version,
        coverage=coverage(row.evaluation),
        judged_at_10=number(row.judged),
        tied_documents=row.run.tied_documents,
        qrels=row.evaluation.qrels.version,
        engine_version=row.evaluation.engine_version,
        values=values,
    )

    if row.entry:
        answer["entry_status"] = row.entry.status
        answer["entry_phase"] = row.entry.place
        answer["entry_number"] = row.entry.number

    if row.spread:
        answer["replicates"] = Replicates(
            runs=row.spread.replicates,
            deviation=row.spread.deviation,
            lowest=row.spread.lowest,
            highest=row.spread.highest,
        )

    if row.cells:
        answer["columns"] = row.cells

    if board.groups:
        answer["groups"] = {
            group.name: Mean(mean=mean, topics=topics)
            for group, (mean, topics) in zip(board.groups, row.groups, strict=False)
        }

    if board.versions != ALL:
        answer["versions"] = None
        if version := row.chosen:
            answer["versions"] = BoardVersion(
                of=version.of, newer=version.newer, expected_best=version.expected
            )

    if standings:
        if "intervals" in standings.query.parts:
            for name, value in values.items():
                low, high = standings.intervals.get((row.evaluation.pk, name), (None, None))
                value["low"], value["high"] = number(low), number(high)

        standing = standings.of(row.evaluation.pk) if row.rank is not None else None
        answer["statistics"] = _standing(standing) if standing else None

    return answer


def _standing(standing: standing_parts.Standing) -> Standing:
    rank = None
    low, high, share = standing.rank_low, standing.rank_high, standing.share_first
    if low is not None and high is not None and share is not None:
        rank = RankInterval(low=low, high=high, share_first=share)

    against = [None if row is None else _against(row) for row in standing.against]
    answer = Standing(
        tier=standing.tier,
        groups=standing.groups,
        rank_set=standing.rank_set and list(standing.rank_set),
        in_best_set=standing.in_best_set,
        rank=rank,
        expected=standing.expected,
        chance_best=standing.chance_best,
        baseline=against[0] if len(against) == 1 else None,
    )
    if len(against) > 1:
        answer["baselines"] = against

    return answer


def _against(against: standing_parts.AgainstBaseline) -> AgainstBaseline:
    on_judged = None
    if condensed := against.on_judged:
        on_judged = DifferenceOnJudged(
            difference=condensed.difference,
            low=number(condensed.low),
            high=number(condensed.high),
            p_value=number(condensed.p_value),
            p_adjusted=number(condensed.p_adjusted),
        )

    return AgainstBaseline(
        difference=against.difference,
        low=number(against.low),
        high=number(against.high),
        relative=number(against.relative),
        statistic=number(against.statistic),
        p_value=number(against.p_value),
        p_adjusted=number(against.p_adjusted),
        mark=against.mark,
        withheld=against.withheld,
        wins=against.wins,
        ties=against.ties,
        losses=against.losses,
        on_judged=on_judged,
    )


def _board_statistics(standings: standing_parts.Standings) -> BoardStatistics:
    query = standings.query
    tiering = outlook = received = baseline = None

    if tiers := standings.tiers:
        tiering = Tiering(
            count=max(tiers.tier),
            best=None if tiers.best is None else sum(tiers.best),
            family=tiers.family,
            significant=tiers.significant,
            across=tiers.across,
            undecided_across=tiers.undecided_across,
            detectable=number(tiers.detectable),
            cautions=cautions_of(tiers.cautions),
        )

    if expected := standings.expected:
        outlook = Outlook(excess=expected.excess, cautions=cautions_of(expected.cautions))

    if history := standings.received:
        received = Received(
            runs=history.runs,
            teams=history.teams,
            withdrawn=history.withdrawn,
            since=history.since,
        )

    contrast = standings.baseline
    if contrast and len(query.baselines) == 1:
        baseline = Contrast(
            run=query.baselines[0],
            family=contrast.family,
            intervals=TESTS[query.test].intervals,
            significant=contrast.significant,
            detectable=number(contrast.detectable),
            cautions=cautions_of(contrast.cautions),
        )

    answer = BoardStatistics(
        measure=standings.measure.name,
        parts=list(query.parts),
        runs=len(standings.places),
        topics=standings.topics,
        test=query.test,
        correction=query.corrected_by,
        alpha=query.alpha,
        confidence=query.confidence,
        resamples=query.resamples if TESTS[query.test].draws else None,
        seed=query.seed,
        tiers=tiering,
        ranks=Ranks(resamples=query.rank_resamples) if standings.ranks else None,
        expected=outlook,
        received=received,
        baseline=baseline,
        cautions=cautions_of(standings.cautions),
    )
    if contrast and len(query.baselines) > 1:
        answer["baselines"] = Contrasts(
            runs=query.baselines,
            family=contrast.family,
            intervals=TESTS[query.test].intervals,
            significant=contrast.significant,
            detectable=number(contrast.detectable),
            cautions=cautions_of(contrast.cautions),
        )

    return answer
