"""Rank the systems of a collection's session sets by a session measure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from django.core.cache import cache
from django.db.models import OuterRef, Subquery

from metrics.engine.agreement.standings import standings
from metrics.engine.cautions import Caution
from metrics.engine.measures.grammar import Measure
from metrics.models import SessionEvaluation, SessionEvaluationQuerySet
from metrics.services.question import (
    MAX_LIMIT,
    Context,
    Descending,
    Integer,
    Question,
    parameter,
)
from metrics.services.queue.damage import check_files
from metrics.services.queue.status import with_states
from metrics.services.sessions.judged_sets import (
    Mean,
    begin_sessions,
    check_means,
    default_measures,
    load_sets,
    values_of,
    work_of,
)
from metrics.services.sessions.parameters import JUDGED_BY, SessionMeasure, SessionMeasures
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.common_values import qrels_cautions
from runs.errors import NotFound
from runs.models import Collection, SessionSet

_CACHE_SECONDS = 3600
_LONG = (
    "traceback",
    "qrels__topic_ids",
    "qrels__warnings",
    "session_set__warnings",
    "session_set__metadata",
)


@dataclass(frozen=True)
class _Sort(SessionMeasure):
    """The measure to rank by."""

    def value(self, context: Context) -> Measure:
        first: Measure = context.values["measures"][0]
        return super().value(context) if context.parameters.get(self.name) else first


@dataclass(frozen=True)
class SessionBoardQuery(Question):
    """The parameters of the leaderboard.

    No `judged_by` means the first that exists, of topic, session, query and own, and no `limit`
    every row.
    """

    measures: list[Measure] = parameter(SessionMeasures())
    sort: Measure = parameter(_Sort("the measure to rank by; default: the first"))
    descending: bool = parameter(
        Descending(
            "default: best first",
            usually_descending=lambda context: not context.values["sort"].lower_is_better,
        )
    )
    judged_by: str | None = parameter(JUDGED_BY)
    limit: int | None = parameter(
        Integer(f"rows of a page, at most {MAX_LIMIT}", default=50, low=1, high=MAX_LIMIT)
    )
    offset: int = parameter(Integer("rows to pass over", default=0))


@dataclass(frozen=True)
class SystemRow:
    """One system of one set.

    `rank` is None for a stale set and for a system whose mean covers a smaller share of its
    sessions than those of the ranked systems; `code` and `reason` say so.

    `sessions` are sessions with a value: judged, with a relevant document.
    """

    rank: int | None
    evaluation: SessionEvaluation
    system: str
    stale: bool
    sessions: int
    values: dict[str, Mean]
    code: str = ""
    reason: str = ""


@dataclass(frozen=True)
class SessionBoard:
    """One page of the leaderboard.

    `states` counts the live sets judged this way by state, `others` those judged differently,
    `total` the rows of all pages, and `ranked` names the systems that have a rank, in their
    order.
    """

    query: SessionBoardQuery
    judged_by: str
    states: dict[str, int]
    others: int
    total: int
    ranked: list[str] = field(default_factory=list)
    rows: list[SystemRow] = field(default_factory=list)

    @property
    def cautions(self) -> list[Caution]:
        """Return cautions about the measures, if the collection's judgements judge the rows."""
        qrels = next(
            (row.evaluation.qrels for row in self.rows if row.evaluation.qrels and not row.stale),
            None,
        )

        return (
            qrels_cautions(dict.fromkeys([*self.query.measures, self.query.sort]), qrels)
            if qrels
            else []
        )


def read_session_board(*, collection: Collection, query: SessionBoardQuery) -> SessionBoard:
    """Return the requested page of the leaderboard.

    Ties share a rank, the earlier set comes first among them.

    A measure may have no value where a system found nothing, and a system that fails in all
    sessions but one would win by that one. Systems whose means leave out more of their sessions
    than others' therefore have no rank. Rows, states and counts are as of one moment, whatever is
    evaluated meanwhile. Sets that are judged differently are not on one leaderboard. Raise NotFound
    if there is no set, StatisticsError if too much would have to be computed.
    """
    return read_in_snapshot(lambda: _read_board(collection, query))


def _read_board(collection: Collection, query: SessionBoardQuery) -> SessionBoard:
    judged_by = query.judged_by or first_judged_by(collection)
    sets = SessionSet.objects.filter(collection=collection, deleted_at=None)
    evaluations = current_evaluations(collection, judged_by)
    rows = _ranked(_rows(evaluations, query, stale=False), query)
    rows += _rows(_stale(collection, judged_by, evaluations), query, stale=True)
    states = Counter(with_states(sets.filter(judged_by=judged_by)).values_list("state", flat=True))
    others = sets.exclude(judged_by=judged_by).count()
    ranked = [system_name(row.evaluation, row.system) for row in rows if row.rank is not None]
    page = slice(query.offset, None if query.limit is None else query.offset + query.limit)

    return SessionBoard(query, judged_by, states, others, len(rows), ranked, rows[page])


def first_judged_by(collection: Collection) -> str:
    """Return the first way of judging that a set of the collection has.

    Raise NotFound if there is no set.
    """
    live = SessionSet.objects.filter(collection=collection, deleted_at=None)
    existing = set(live.order_by().values_list("judged_by", flat=True).distinct())
    for judged_by in SessionSet.JudgedBy.values:
        if judged_by in existing:
            return str(judged_by)

    raise NotFound(f"collection {collection.slug} has no session sets yet", code="no_session_sets")


def current_evaluations(collection: Collection, judged_by: str) -> list[SessionEvaluation]:
    """Return the current evaluations of the sets judged one way, in the order of submission."""
    rows = SessionEvaluation.objects.counting().live().evaluated()
    return _in_order(rows.filter(session_set__collection=collection, judged_by=judged_by))


def system_name(evaluation: SessionEvaluation, system: str) -> str:
    """Return a system's name among those of other sets: team/tag:system, or the set's own name."""
    return f"{evaluation.session_set}:{system}" if system else str(evaluation.session_set)


def _stale(
    collection: Collection, judged_by: str, current: list[SessionEvaluation]
) -> list[SessionEvaluation]:
    """Return for every live set without a current evaluation its newest older evaluation."""
    evaluated = SessionEvaluation.objects.evaluated().filter(judged_by=judged_by)
    newest = evaluated.filter(session_set=OuterRef("session_set")).order_by(
        "-qrels__version", "-engine_version"
    )
    rows = evaluated.filter(
        session_set__collection=collection,
        session_set__deleted_at=None,
        session_set__judged_by=judged_by,
        pk=Subquery(newest.values("pk")[:1]),
    ).exclude(session_set__in=[evaluation.session_set_id for evaluation in current])

    return [evaluation for evaluation in _in_order(rows) if evaluation.is_stale]


def _in_order(rows: SessionEvaluationQuerySet) -> list[SessionEvaluation]:
    """Return the evaluations in the order of submission, with the fields of a row.

    Raise StoredValueCorrupt where one was made from another log.
    """
    ordered = (
        rows.with_files()
        .select_related("session_set__team", "session_set__collection", "qrels")
        .defer(*_LONG)
    )

    evaluations = list(ordered.order_by("session_set__created_at", "session_set"))
    check_files(
        SessionEvaluation, ((evaluation.pk, evaluation.same_files) for evaluation in evaluations)
    )
    return evaluations


def _rows(
    evaluations: list[SessionEvaluation], query: SessionBoardQuery, *, stale: bool
) -> list[SystemRow]:
    """Return a row for each system in the order of the stored means.

    The unnamed system is the last one, where it occurs.
    """
    means = _means(evaluations, list(dict.fromkeys([*query.measures, query.sort])))
    rows = []
    for evaluation in evaluations:
        # nsDCG has a value for every session with a relevant document, whatever was retrieved.
        sessions_of_systems = evaluation.means["values"].get(default_measures()[0].name)
        for place, system in enumerate(evaluation.means["systems"]):
            values = {name: column[place] for name, column in means[evaluation.pk].items()}
            rows.append(
                SystemRow(
                    None,
                    evaluation,
                    system,
                    stale,
                    sessions_of_systems[place][1] if sessions_of_systems else 0,
                    values,
                )
            )

    return rows


def _ranked(rows: list[SystemRow], query: SessionBoardQuery) -> list[SystemRow]:
    """Return the rows in their order, with ranks.

    The best come first, then rows whose means leave out more of their sessions, then those without
    a mean.
    """
    if not rows:
        return []

    means_and_counts = [row.values[query.sort.name] for row in rows]
    means = np.array([np.nan if mean is None else mean for mean, _ in means_and_counts])
    shares = np.array(
        [
            min(1.0, number / (row.sessions or 1))
            for row, (_, number) in zip(rows, means_and_counts, strict=True)
        ]
    )

    is_ranked = (shares == shares.max()) & ~np.isnan(means)
    ranks = standings(
        np.where(is_ranked, means, np.nan)[None, :], np.array([not query.descending])
    )[0].tolist()
    best_first = sorted(np.flatnonzero(is_ranked).tolist(), key=lambda place: ranks[place])
    cost = np.nan_to_num(-means if query.descending else means, nan=np.inf)
    others = sorted(
        np.flatnonzero(~is_ranked).tolist(), key=lambda place: (-shares[place], cost[place])
    )
    ranked = [replace(rows[place], rank=ranks[place]) for place in best_first]

    for place in others:
        row, number = rows[place], means_and_counts[place][1]
        if number:
            reason = f"mean of {number:,} of {row.sessions:,} sessions"
            ranked.append(replace(row, code="fewer_sessions", reason=reason))
        else:
            ranked.append(replace(row, code="no_value", reason="no session has a value"))

    return ranked


def _means(
    evaluations: list[SessionEvaluation], measures: list[Measure]
) -> dict[int, dict[str, list[Mean]]]:
    """Return the means by system of each evaluation.

    They are stored with it, cached for an hour, or computed from the view.

    Raise StoredValueCorrupt if stored ones are damaged.
    """
    check_means(evaluations)
    means: dict[int, dict[str, list[Mean]]] = {}
    for evaluation in evaluations:
        stored = evaluation.means["values"]
        means[evaluation.pk] = {
            m.name: [(mean, n) for mean, n in stored[m.name]] for m in measures if m.name in stored
        }

    missing = {e.pk: [m for m in measures if m.name not in means[e.pk]] for e in evaluations}
    cached = cache.get_many(
        [_key(pk, measure) for pk, lacking in missing.items() for measure in lacking]
    )
    uncached = {
        pk: [m for m in lacking if _key(pk, m) not in cached] for pk, lacking in missing.items()
    }
    queries = {evaluation.pk: evaluation.session_set.queries for evaluation in evaluations}
    read = sum(queries[pk] for pk, lacking in uncached.items() if lacking)
    begin_sessions(
        sum(work_of(queries[pk], lacking) for pk, lacking in uncached.items()), read=read
    )

    for evaluation, judged in load_sets(
        [evaluation for evaluation in evaluations if uncached[evaluation.pk]]
    ):
        values = values_of(judged, uncached[evaluation.pk])
        fresh = {
            _key(evaluation.pk, m): judged.means(m, values[m.name]) for m in uncached[evaluation.pk]
        }
        cache.set_many(fresh, _CACHE_SECONDS)
        cached |= fresh

    for pk, lacking in missing.items():
        means[pk].update({measure.name: cached[_key(pk, measure)] for measure in lacking})

    return means


def _key(pk: int, measure: Measure) -> str:
    return f"session-means:{pk}:{measure.name.encode().hex()}"
