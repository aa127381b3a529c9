"""The page of a session set, of one of its sessions, and the progress of the set through the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.charts.sessions.charts import SESSION_CHARTS, SetChartRequest
from metrics.charts.sessions.curves import one_session_figure
from metrics.engine.arrays import Ints
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.blocks import Session
from metrics.exports.table import Cell
from metrics.models import SessionEvaluation
from metrics.pages.parts import (
    Query,
    ShownFigure,
    fill,
    level_class,
    query_of,
    set_figure,
    set_subject,
    status_piece,
)
from metrics.services.queue.status import detailed_statuses
from metrics.services.sessions.analyses import QueryCurvesQuery, read_lengths, read_query_curves
from metrics.services.sessions.one_session import (
    ShownDocument,
    ShownQuery,
    ShownSession,
    read_session,
)
from metrics.services.sessions.parameters import session_measure_in, session_measures_in
from metrics.services.sessions.searchers import BY_SYSTEM, Feature, read_searchers
from metrics.services.sessions.values import (
    ChosenSessions,
    SessionEvaluationQuery,
    SessionSelection,
    SetValues,
    choose_sessions,
    find_session_evaluation,
    read_session_values,
)
from metrics.tables import NOTHING, Paging, columns_of, figure, metadata_lines, signed
from runs.models import SessionSet
from runs.parameters import MAX_OFFSET, integer_in
from runs.services.storage.reports import grouped
from runs.web.access import check_scores, scored_session_set, visible_session_set
from runs.web.views import page, reads

_SESSIONS_OF_A_PAGE = 100
# Names of a kind that a field offers.
_OFFERED = 300
_QUERIES_OF_A_PAGE = 50
_MAX_DOCUMENTS = 1_000
# The columns of the table of lengths; longer sessions are in the last one.
_LENGTHS = 12
_SELECTION = ("system", "topic", "searcher", "least", "qrels")


@page
@reads("measures", "measure", "offset", "by", *_SELECTION)
def session_set_page(request: HttpRequest, session_set: UUID) -> HttpResponse:
    """Show a session set: its description, means and curves by system, lengths and reformulations, and its sessions."""
    found = visible_session_set(request, session_set)
    query = _given(request)
    context: dict[str, Any] = {
        "set": found,
        "may_change": SessionSet.objects.owned_by(request.user).filter(pk=found.pk).exists(),
        "subject": set_subject(found.pk),
        "status": detailed_statuses([found], request.user)[str(found.pk)],
        "facts": list(metadata_lines(found.metadata)),
        "warnings": grouped(found.warnings),
        "query": query,
        "measures": query.get("measures", ""),
    }
    status = fill(context, "chosen", _chosen, request, found, query)
    if "chosen" in context:
        chosen: ChosenSessions = context["chosen"]
        context |= {"evaluation": chosen.evaluation, "stale": chosen.evaluation.is_stale}
        asked = _asked(chosen, query)
        status = max(
            fill(context, "values", _values, chosen, query),
            fill(context, "curves", _chart, "curves", chosen, asked),
            fill(context, "queries", _chart, "queries", chosen, asked),
            fill(context, "each", _chart, "sessions", chosen, asked),
            fill(context, "changes", _changes, chosen, query),
            fill(context, "searchers", _searchers, chosen, query),
        )
        context |= {"lengths": _lengths(chosen), "offered": _offered(chosen)}
    return render(request, "metrics/session_set.html", context, status=status)


@page
def session_set_status(request: HttpRequest, session_set: UUID) -> HttpResponse:
    """Show the progress of a session set."""
    found = visible_session_set(request, session_set)
    return status_piece(
        request, set_subject(found.pk), detailed_statuses([found], request.user)[str(found.pk)]
    )


@page
@reads("measure", "documents", "offset", "qrels")
def session_page(request: HttpRequest, session_set: UUID, session: str) -> HttpResponse:
    """Show one session by query."""
    found = scored_session_set(request, session_set)
    query = _given(request)
    evaluation = find_session_evaluation(
        session_set=found, query=SessionEvaluationQuery.read(query)
    )
    measure = session_measure_in(query)
    documents = integer_in(query, "documents", 10, 1, _MAX_DOCUMENTS)
    shown = read_session(evaluation=evaluation, name=session, measure=measure, documents=documents)
    paging = Paging(
        integer_in(query, "offset", 0, 0, MAX_OFFSET), _QUERIES_OF_A_PAGE, len(shown.queries)
    )
    context: dict[str, Any] = {
        "set": found,
        "evaluation": evaluation,
        "stale": evaluation.is_stale,
        "query": query,
        "measure": measure,
        "shown_session": shown,
        "name": shown.session.session_id.decode(),
        "topic": found.collection.topics.filter(topic_id=shown.session.topic_id.decode()).first(),
        "value": figure(measure, shown.value),
        "paging": paging,
        "documents": documents,
        "queries": [
            _query_line(found, query, number)
            for number, query in enumerate(
                shown.queries[paging.offset : paging.offset + paging.limit], paging.offset + 1
            )
        ],
        **_neighbours(found, shown),
    }
    fill(context, "shown", _session_figure, evaluation, shown, measure, query)
    return render(request, "metrics/session.html", context)


def _given(request: HttpRequest) -> Query:
    """Return the filled fields of a form: an empty field selects nothing."""
    return {name: value for name, value in query_of(request).items() if value}


def _chosen(request: HttpRequest, found: SessionSet, query: Query) -> ChosenSessions:
    check_scores(request, found.collection)
    selection = SessionSelection.read(query)
    evaluation = find_session_evaluation(session_set=found, query=selection)
    return choose_sessions(evaluation=evaluation, selection=selection)


@dataclass(frozen=True)
class SystemLine:
    """One system's name, empty if the log has none, and its values."""

    name: str
    cells: list[Cell]


@dataclass(frozen=True)
class SessionLine:
    """One session of the list, with the address of its page and its values."""

    name: str
    address: str
    session: Session
    queries: int
    cells: list[Cell]


def _values(chosen: ChosenSessions, query: Query) -> dict[str, Any]:
    measures = session_measures_in(
        query, documents=chosen.evaluation.session_set.collection.documents
    )
    values = read_session_values(chosen=chosen, measures=measures)
    paging = Paging(
        integer_in(query, "offset", 0, 0, MAX_OFFSET), _SESSIONS_OF_A_PAGE, len(chosen.places)
    )
    return {
        "cautions": [caution.message for caution in values.cautions],
        "columns": columns_of(measures, None, True),
        "systems": _system_lines(values),
        "all": [
            _mean(measure, values.means[measure.name], len(chosen.places)) for measure in measures
        ],
        "paging": paging,
        "lines": _session_lines(values, paging),
    }


def _mean(measure: Measure, mean: tuple[float | None, int], sessions: int) -> Cell:
    """Return a mean; if not all sessions have a value, the note says how many do."""
    note = f"{mean[1]} of {sessions} sessions have a value" if mean[1] != sessions else ""
    return Cell(figure(measure, mean[0]), note=note)


def _system_lines(values: SetValues) -> list[tuple[SystemLine, int]]:
    """Return the means of each system, with the numbers of sessions."""
    judged = values.chosen.judged
    counts = np.bincount(judged.system, minlength=len(judged.systems)).tolist()
    return [
        (
            SystemLine(
                name.decode(),
                [_mean(m, values.systems[m.name][at], count) for m in values.measures],
            ),
            count,
        )
        for at, (name, count) in enumerate(zip(judged.systems, counts, strict=True))
    ]


def _session_lines(values: SetValues, paging: Paging) -> list[SessionLine]:
    chosen = values.chosen
    shown = range(*slice(paging.offset, paging.offset + paging.limit).indices(len(chosen.places)))
    return [
        SessionLine(
            chosen.judged.sessions[at].session_id.decode(),
            _address(
                chosen.evaluation.session_set, chosen.judged.sessions[at], int(chosen.places[at])
            ),
            chosen.judged.sessions[at],
            int(chosen.judged.view.queries[at]),
            [
                Cell(figure(measure, float(values.vectors[measure.name][at])))
                for measure in values.measures
            ],
        )
        for at in shown
    ]


def _address(found: SessionSet, session: Session, place: int) -> str:
    """Return the address by the id, or by the number if the id cannot be part of an address."""
    name = session.session_id.decode()
    known = str(place + 1) if "/" in name or name in (".", "..") else name
    return reverse("session-page", args=[found.pk, known])


def _offered(chosen: ChosenSessions) -> dict[str, list[str]]:
    """Return the systems, topics and searchers of the whole set that the form suggests."""
    names = {"system": "system", "topic": "topic_id", "searcher": "searcher"}
    found = {}
    for name, attribute in names.items():
        known = {getattr(session, attribute).decode() for session in chosen.whole.sessions} - {""}
        found[name] = sorted(known)[:_OFFERED]
    return found


def _asked(chosen: ChosenSessions, query: Query) -> SetChartRequest:
    """Return the question of a chart: the parameters of the request, and the judgements of its evaluation."""
    asked = {name: query[name] for name in ("measure", *_SELECTION) if name in query}
    asked |= {"qrels": str(chosen.evaluation.qrels.version)} if chosen.evaluation.qrels else {}
    return SetChartRequest(chosen.evaluation, asked, chosen.whole)


def _chart(name: str, chosen: ChosenSessions, asked: SetChartRequest) -> dict[str, Any]:
    measure = QueryCurvesQuery.read(asked.query).measure.name
    shown = set_figure(
        SESSION_CHARTS[name](asked), chosen.evaluation.session_set_id, asked.query, "wide"
    )
    return {"measure": measure, "shown": shown}


def _changes(chosen: ChosenSessions, query: Query) -> list[tuple[str, list[str]]]:
    """Return for each system how many reformulations gained, lost and did neither."""
    measure = QueryCurvesQuery.read(query).measure
    found = read_query_curves(chosen=chosen, measure=measure)
    lines = []
    for name, (gained, lost, same) in zip(chosen.judged.systems, found.changed, strict=True):
        share = (
            f"{100 * gained / (gained + lost + same):.0f}%" if gained or lost or same else NOTHING
        )
        lines.append((name.decode(), [f"{gained:,}", f"{lost:,}", f"{same:,}", share]))
    return lines


def _searchers(chosen: ChosenSessions, query: Query) -> dict[str, Any]:
    """Return a row for each attribute of the searchers, with a column for all of them and for each group."""
    found = read_searchers(chosen=chosen, by=query.get("by"))
    groups = [found.whole, *found.groups]
    rows = [
        (feature.name, [_feature_text(group.features[at]) for group in groups])
        for at, feature in enumerate(found.whole.features)
    ]
    return {
        "columns": [(group.name or "all", group.searchers) for group in groups],
        "rows": rows,
        "choices": [BY_SYSTEM, *(feature.name for feature in found.whole.features)],
        "differing": found.differing,
    }


def _feature_text(feature: Feature) -> str:
    if feature.texts is not None:
        return ", ".join(f"{text}: {count:,}" for text, count in feature.texts.items()) or NOTHING
    if feature.mean is None:
        return NOTHING
    spread = f" ± {feature.deviation:.2f}" if feature.deviation is not None else ""
    return f"{feature.mean:.2f}{spread}"


def _lengths(chosen: ChosenSessions) -> dict[str, Any]:
    """Return the sessions by number of queries: a column for each number, the longest in the last."""
    table = read_lengths(chosen=chosen)
    most = table.counts.shape[1]
    columns = [str(number) for number in range(1, min(most, _LENGTHS) + 1)]
    if most > _LENGTHS:
        columns[-1] += " and more"
    rows = [
        (name.decode(), *_of_lengths(counts))
        for name, counts in zip(chosen.judged.systems, table.counts, strict=True)
    ]
    whole = _of_lengths(np.sum(table.counts, axis=0)) if len(rows) > 1 else None
    return {"columns": columns, "rows": rows, "all": whole}


def _of_lengths(counts: Ints) -> tuple[list[int], int, str]:
    """Return the sessions of each number of queries, in total, and the mean number."""
    shown, sessions = counts[:_LENGTHS].copy(), int(counts.sum())
    shown[-1] += counts[_LENGTHS:].sum()
    queries = int(counts @ np.arange(1, len(counts) + 1))
    return shown.tolist(), sessions, f"{queries / sessions:.2f}" if sessions else NOTHING


@dataclass(frozen=True)
class DocumentOfQuery:
    """A document of a query's ranking on the page."""

    document: ShownDocument
    label: str
    clicked: bool

    @property
    def kind(self) -> str:
        return level_class(self.document.level)


@dataclass(frozen=True)
class QueryLine:
    """A query on the page: its contribution, its share of the best possible one, and the effect of its
    reformulation."""

    number: int
    shown: ShownQuery
    contribution: str
    ideal: str
    share: str
    change: str
    verdict: str
    documents: list[DocumentOfQuery]


def _query_line(found: SessionSet, query: ShownQuery, number: int) -> QueryLine:
    first = bool(np.isnan(query.change))
    verdict = (
        "" if first else "gained" if query.change > 0 else "lost" if query.change < 0 else "same"
    )
    clicked, labels = {doc.decode() for doc in query.query.clicked}, found.collection.level_labels
    documents = [
        DocumentOfQuery(one, str(labels.get(str(one.level), "")), one.doc_id in clicked)
        for one in query.documents
    ]
    share = NOTHING if np.isnan(query.share) else f"{100 * query.share:.1f}%"
    change = "" if first else signed(query.change)
    return QueryLine(
        number,
        query,
        f"{query.contribution:.4f}",
        f"{query.ideal:.4f}",
        share,
        change,
        verdict,
        documents,
    )


def _neighbours(found: SessionSet, shown: ShownSession) -> dict[str, tuple[str, str] | None]:
    """Return names and addresses of the sessions before and after this one in the log."""
    sides = {"before": (shown.before, shown.place - 1), "after": (shown.after, shown.place + 1)}
    return {
        side: (session.session_id.decode(), _address(found, session, place)) if session else None
        for side, (session, place) in sides.items()
    }


def _session_figure(
    evaluation: SessionEvaluation, shown: ShownSession, measure: Measure, query: Query
) -> ShownFigure:
    asked: dict[str, str] = {name: query[name] for name in ("measure", "qrels") if name in query}
    drawn = SetChartRequest(evaluation, asked).source_of(
        one_session_figure(shown, measure=measure), measure
    )
    return set_figure(
        drawn,
        evaluation.session_set_id,
        asked | {"session": shown.session.session_id.decode()},
        "wide",
    )
