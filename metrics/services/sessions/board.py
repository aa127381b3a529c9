"""The board of a collection's session sets: the systems of all sets ranked by a session measure."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.core.cache import cache
from django.db.models import OuterRef, Subquery

from metrics.engine.errors import NotFound
from metrics.engine.grammar import Measure
from metrics.engine.sessions.grammar import session_values
from metrics.models import Evaluation, SessionEvaluation
from metrics.services.sessions.judged_sets import JudgedSet, Mean, check_work, load_set, work_of
from metrics.services.sessions.values import is_stale
from runs.models import Collection, SessionSet

_CACHE_SECONDS = 3600
_LONG = ("traceback", "qrels__topic_ids", "qrels__warnings", "session_set__warnings", "session_set__metadata")


@dataclass(frozen=True)
class SessionBoardQuery:
    """What the board is asked for; no `judged_by` means the first there is, of topic, session, query and own."""

    measures: list[Measure]
    sort: Measure
    descending: bool = True
    judged_by: str | None = None
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True)
class SystemRow:
    """One system of one set; `rank` is None of a stale set, and of a system without a value."""

    rank: int | None
    evaluation: SessionEvaluation
    system: str
    stale: bool
    values: dict[str, Mean]


@dataclass(frozen=True)
class SessionBoard:
    """One page of the board; `states` counts the live sets judged this way by state, `others` those judged otherwise,
    `total` the rows of all pages."""

    query: SessionBoardQuery
    judged_by: str
    states: dict[str, int]
    others: int
    total: int
    rows: list[SystemRow] = field(default_factory=list)


def read_session_board(*, collection: Collection, query: SessionBoardQuery) -> SessionBoard:
    """The page of the board that is asked for; ties share a rank, the earlier set comes first among them.

    What differs in how it is judged does not stand on one board. NotFound where there is no set, StatisticsError where
    too much would have to be computed.
    """
    judged_by = query.judged_by or first_judged_by(collection)
    sets = SessionSet.objects.filter(collection=collection, deleted_at=None)
    evaluations = current_evaluations(collection, judged_by)
    rows = _ranked([*_rows(evaluations, query, stale=False)], query)
    rows += _rows(_stale(collection, judged_by, evaluations), query, stale=True)
    page = slice(query.offset, query.offset + query.limit)
    states, others = _states(collection, judged_by), sets.exclude(judged_by=judged_by).count()
    return SessionBoard(query, judged_by, states, others, len(rows), rows[page])


def first_judged_by(collection: Collection) -> str:
    """The first way of judging that a set of the collection has; NotFound where there is no set."""
    live = SessionSet.objects.filter(collection=collection, deleted_at=None)
    there = set(live.order_by().values_list("judged_by", flat=True).distinct())
    for judged_by in SessionSet.JudgedBy.values:
        if judged_by in there:
            return str(judged_by)
    raise NotFound(f"collection {collection.slug} has no session sets yet", code="no_session_sets")


def current_evaluations(collection: Collection, judged_by: str) -> list[SessionEvaluation]:
    """The evaluations that count of the sets judged one way, in the order of submission."""
    rows = SessionEvaluation.objects.current().evaluated()
    rows = rows.filter(session_set__collection=collection, judged_by=judged_by)
    shown = rows.select_related("session_set__team", "session_set__collection", "qrels").defer(*_LONG)
    return list(shown.order_by("session_set__created_at", "session_set"))


def system_name(evaluation: SessionEvaluation, system: str) -> str:
    """A system as it is named beside those of other sets: team/tag:system, or the set's own name."""
    return f"{evaluation.session_set}:{system}" if system else str(evaluation.session_set)


def _stale(collection: Collection, judged_by: str, current: list[SessionEvaluation]) -> list[SessionEvaluation]:
    """For every live set that is not evaluated under what counts, its newest evaluation under anything older."""
    done = SessionEvaluation.objects.evaluated().filter(judged_by=judged_by)
    newest = done.filter(session_set=OuterRef("session_set")).order_by("-qrels__version", "-engine_version")
    rows = done.filter(
        session_set__collection=collection, session_set__deleted_at=None, session_set__judged_by=judged_by,
        pk=Subquery(newest.values("pk")[:1]),
    ).exclude(session_set__in=[evaluation.session_set_id for evaluation in current])  # fmt: skip
    shown = rows.select_related("session_set__team", "session_set__collection", "qrels").defer(*_LONG)
    return [
        evaluation for evaluation in shown.order_by("session_set__created_at", "session_set") if is_stale(evaluation)
    ]


def _states(collection: Collection, judged_by: str) -> dict[str, int]:
    live = SessionSet.objects.filter(collection=collection, deleted_at=None, judged_by=judged_by)
    current = SessionEvaluation.objects.current().filter(session_set=OuterRef("pk"))
    states: dict[str, int] = {}
    for state in live.annotate(state=Subquery(current.values("state")[:1])).values_list("state", flat=True):
        name = state or Evaluation.State.QUEUED.value
        states[name] = states.get(name, 0) + 1
    return states


def _rows(evaluations: list[SessionEvaluation], query: SessionBoardQuery, *, stale: bool) -> list[SystemRow]:
    measures = list(dict.fromkeys([*query.measures, query.sort]))
    means = _means(evaluations, measures)
    return [
        SystemRow(
            None, evaluation, system, stale, {name: column[place] for name, column in means[evaluation.pk].items()}
        )
        for evaluation in evaluations
        for place, system in enumerate(_systems(evaluation))
    ]


def _systems(evaluation: SessionEvaluation) -> list[str]:
    """In the order of the stored means: those the log names, and the unnamed one where it comes in."""
    return list(evaluation.means["systems"])


def _ranked(rows: list[SystemRow], query: SessionBoardQuery) -> list[SystemRow]:
    sign, name = (-1.0 if query.descending else 1.0), query.sort.name
    rows.sort(key=lambda row: (row.values[name][0] is None, sign * (row.values[name][0] or 0.0)))
    ranked: list[SystemRow] = []
    for index, row in enumerate(rows):
        mean = row.values[name][0]
        tied = index > 0 and mean == rows[index - 1].values[name][0]
        rank = None if mean is None else ranked[-1].rank if tied else index + 1
        ranked.append(SystemRow(rank, row.evaluation, row.system, row.stale, row.values))
    return ranked


def _means(evaluations: list[SessionEvaluation], measures: list[Measure]) -> dict[int, dict[str, list[Mean]]]:
    """Means by system of each evaluation: stored with it, remembered for an hour, or computed from the view."""
    found: dict[int, dict[str, list[Mean]]] = {}
    for evaluation in evaluations:
        stored = evaluation.means["values"]
        found[evaluation.pk] = {m.name: [(mean, n) for mean, n in stored[m.name]] for m in measures if m.name in stored}
    missing = {e.pk: [m for m in measures if m.name not in found[e.pk]] for e in evaluations}
    known = cache.get_many([_key(pk, measure) for pk, wanted in missing.items() for measure in wanted])
    unknown = {pk: [m for m in wanted if _key(pk, m) not in known] for pk, wanted in missing.items()}
    queries = {evaluation.pk: evaluation.session_set.queries for evaluation in evaluations}
    check_work(sum(work_of(queries[pk], wanted) for pk, wanted in unknown.items()))
    for evaluation in (evaluation for evaluation in evaluations if unknown[evaluation.pk]):
        known |= _computed(evaluation, load_set(evaluation), unknown[evaluation.pk])
    for pk, wanted in missing.items():
        found[pk].update({measure.name: known[_key(pk, measure)] for measure in wanted})
    return found


def _computed(evaluation: SessionEvaluation, judged: JudgedSet, measures: list[Measure]) -> dict[str, list[Mean]]:
    fresh = {_key(evaluation.pk, m): judged.means(m, session_values(judged.view, m)) for m in measures}
    cache.set_many(fresh, _CACHE_SECONDS)
    return fresh


def _key(pk: int, measure: Measure) -> str:
    return f"session-means:{pk}:{measure.name.encode().hex()}"
