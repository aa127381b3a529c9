"""The pages of a session set and of one of its sessions, and the set's progress in the queue."""

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
    PageFigure,
    Query,
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
from runs.formats.documents import DocumentText
from runs.models import SessionSet, document_address
from runs.parameters import MAX_OFFSET, integer_in
from runs.services.collections.documents import read_titles
from runs.services.storage.reports import grouped
from runs.web.access import check_scores, scored_session_set, visible_session_set
from runs.web.views import page, reads

_SESSIONS_OF_A_PAGE = 100
# The most names of a kind that a field offers.
_OFFERED = 300
_QUERIES_OF_A_PAGE = 50
_MAX_DOCUMENTS = 1_000
# The columns of the table of lengths; longer sessions are in the last one.
_LENGTHS = 12
_SELECTION = ("system", "topic", "searcher", "least", "qrels")


@page
@reads("measures", "measure", "offset", "by", *_SELECTION)
def session_set_page(request: HttpRequest, session_set: UUID) -> HttpResponse:
    """Show a session set: means and curves by system, lengths, reformulations, and sessions."""
    visible_set = visible_session_set(request, session_set)
    query = _filled_fields(request)
    context: dict[str, Any] = {
        "set": visible_set,
        "may_change": SessionSet.objects.owned_by(request.user).filter(pk=visible_set.pk).exists(),
        "subject": set_subject(visible_set.pk),
        "status": detailed_statuses([visible_set], request.user)[str(visible_set.pk)],
        "facts": list(metadata_lines(visible_set.metadata)),
        "warnings": grouped(visible_set.warnings),
        "query": query,
        "measures": query.get("measures", ""),
    }

    status = fill(context, "chosen", _chosen, request, visible_set, query)

    if "chosen" in context:
        chosen: ChosenSessions = context["chosen"]
        context |= {"evaluation": chosen.evaluation, "stale": chosen.evaluation.is_stale}
        chart_request = _chart_request(chosen, query)
        status = max(
            fill(context, "values", _values, chosen, query),
            fill(context, "curves", _chart, "curves", chosen, chart_request),
            fill(context, "queries", _chart, "queries", chosen, chart_request),
            fill(context, "each", _chart, "sessions", chosen, chart_request),
            fill(context, "changes", _changes, chosen, query),
            fill(context, "searchers", _searchers, chosen, query),
        )

        context |= {"lengths": _lengths(chosen), "offered": _offered(chosen)}

    return render(request, "metrics/session_set.html", context, status=status)


@page
def session_set_status(request: HttpRequest, session_set: UUID) -> HttpResponse:
    """Show the progress of a session set."""
    visible_set = visible_session_set(request, session_set)
    return status_piece(
        request,
        set_subject(visible_set.pk),
        detailed_statuses([visible_set], request.user)[str(visible_set.pk)],
    )


@page
@reads("measure", "documents", "offset", "qrels")
def session_page(request: HttpRequest, session_set: UUID, session: str) -> HttpResponse:
    """Show one session by query."""
    visible_set = scored_session_set(request, session_set)
    query = _filled_fields(request)
    evaluation = find_session_evaluation(
        session_set=visible_set, query=SessionEvaluationQuery.read(query)
    )
    measure = session_measure_in(query)
    documents = integer_in(query, "documents", 10, 1, _MAX_DOCUMENTS)
    session_of_page = read_session(
        evaluation=evaluation, name=session, measure=measure, documents=documents
    )
    paging = Paging(
        integer_in(query, "offset", 0, 0, MAX_OFFSET),
        _QUERIES_OF_A_PAGE,
        len(session_of_page.queries),
    )
    queries = session_of_page.queries[paging.offset : paging.offset + paging.limit]
    titles = read_titles(
        visible_set.collection,
        (document.doc_id for query_of_page in queries for document in query_of_page.documents),
    )

    context: dict[str, Any] = {
        "set": visible_set,
        "evaluation": evaluation,
        "stale": evaluation.is_stale,
        "query": query,
        "measure": measure,
        "session": session_of_page,
        "name": session_of_page.session.session_id.decode(),
        "topic": visible_set.collection.topics.filter(
            topic_id=session_of_page.session.topic_id.decode()
        ).first(),
        "value": figure(measure, session_of_page.value),
        "paging": paging,
        "documents": documents,
        "queries": [
            _query_line(visible_set, query, number, titles)
            for number, query in enumerate(queries, paging.offset + 1)
        ],
        **_neighbours(visible_set, session_of_page),
    }

    fill(context, "chart", _session_figure, evaluation, session_of_page, measure, query)
    return render(request, "metrics/session.html", context)


def _filled_fields(request: HttpRequest) -> Query:
    """Return the fields of a form that are filled: an empty one selects nothing."""
    return {name: value for name, value in query_of(request).items() if value}


def _chosen(request: HttpRequest, session_set: SessionSet, query: Query) -> ChosenSessions:
    check_scores(request, session_set.collection)
    selection = SessionSelection.read(query)
    evaluation = find_session_evaluation(session_set=session_set, query=selection)
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
    """Return a mean; if not all sessions have a value, the note has their number."""
    note = f"{mean[1]} of {sessions} sessions have a value" if mean[1] != sessions else ""
    return Cell(figure(measure, mean[0]), note=note)


def _system_lines(values: SetValues) -> list[tuple[SystemLine, int]]:
    """Return the means of each system, with its number of sessions."""
    judged = values.chosen.judged

    counts = np.bincount(judged.system, minlength=len(judged.systems)).tolist()
    lines = []
    for system, (name, count) in enumerate(zip(judged.systems, counts, strict=True)):
        cells = [
            _mean(measure, values.systems[measure.name][system], count)
            for measure in values.measures
        ]
        lines.append((SystemLine(name.decode(), cells), count))

    return lines


def _session_lines(values: SetValues, paging: Paging) -> list[SessionLine]:
    chosen = values.chosen

    indices = range(*slice(paging.offset, paging.offset + paging.limit).indices(len(chosen.places)))
    lines = []
    for index in indices:
        session = chosen.judged.sessions[index]
        address = _address(chosen.evaluation.session_set, session, int(chosen.places[index]))
        cells = [
            Cell(figure(measure, float(values.vectors[measure.name][index])))
            for measure in values.measures
        ]
        lines.append(
            SessionLine(
                name=session.session_id.decode(),
                address=address,
                session=session,
                queries=int(chosen.judged.view.queries[index]),
                cells=cells,
            )
        )

    return lines


def _address(session_set: SessionSet, session: Session, place: int) -> str:
    """Return the address by the id, or by the number if the id cannot be part of an address."""
    name = session.session_id.decode()
    label = str(place + 1) if "/" in name or name in (".", "..") else name
    return reverse("session-page", args=[session_set.pk, label])


def _offered(chosen: ChosenSessions) -> dict[str, list[str]]:
    """Return the systems, topics and searchers of the whole set that the form suggests."""
    attributes = {"system": "system", "topic": "topic_id", "searcher": "searcher"}
    offered = {}
    for name, attribute in attributes.items():
        names = {getattr(session, attribute).decode() for session in chosen.whole.sessions} - {""}
        offered[name] = sorted(names)[:_OFFERED]

    return offered


def _chart_request(chosen: ChosenSessions, query: Query) -> SetChartRequest:
    """Return the request of a chart with the parameters of the page and its judgements."""
    parameters = {name: query[name] for name in ("measure", *_SELECTION) if name in query}
    parameters |= {"qrels": str(chosen.evaluation.qrels.version)} if chosen.evaluation.qrels else {}
    return SetChartRequest(chosen.evaluation, parameters, chosen.whole)


def _chart(name: str, chosen: ChosenSessions, request: SetChartRequest) -> dict[str, Any]:
    measure = QueryCurvesQuery.read(request.query).measure.name
    chart = set_figure(
        SESSION_CHARTS[name](request), chosen.evaluation.session_set_id, request.query, "wide"
    )
    return {"measure": measure, "chart": chart}


def _changes(chosen: ChosenSessions, query: Query) -> list[tuple[str, list[str]]]:
    """Return the shares of reformulations that gained, lost and did neither, by system."""
    measure = QueryCurvesQuery.read(query).measure

    curves = read_query_curves(chosen=chosen, measure=measure)
    lines = []
    for name, (gained, lost, same) in zip(chosen.judged.systems, curves.changed, strict=True):
        total = gained + lost + same
        share = f"{100 * gained / total:.0f}%" if total else NOTHING
        lines.append((name.decode(), [f"{gained:,}", f"{lost:,}", f"{same:,}", share]))

    return lines


def _searchers(chosen: ChosenSessions, query: Query) -> dict[str, Any]:
    """Return a row for each attribute of the searchers, with columns for all and for each group."""
    searchers = read_searchers(chosen=chosen, by=query.get("by"))
    groups = [searchers.whole, *searchers.groups]
    rows = [
        (feature.name, [_feature_text(group.features[number]) for group in groups])
        for number, feature in enumerate(searchers.whole.features)
    ]

    return {
        "columns": [(group.name or "all", group.searchers) for group in groups],
        "rows": rows,
        "choices": [BY_SYSTEM, *(feature.name for feature in searchers.whole.features)],
        "differing": searchers.differing,
    }


def _feature_text(feature: Feature) -> str:
    if feature.texts is not None:
        return ", ".join(f"{text}: {count:,}" for text, count in feature.texts.items()) or NOTHING
    if feature.mean is None:
        return NOTHING

    spread = f" ± {feature.deviation:.2f}" if feature.deviation is not None else ""
    return f"{feature.mean:.2f}{spread}"


def _lengths(chosen: ChosenSessions) -> dict[str, Any]:
    """Return the sessions by number of queries; the last column has all longer ones."""
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
    """Return the sessions of each number of queries, their total, and the mean number."""
    columns, sessions = counts[:_LENGTHS].copy(), int(counts.sum())
    columns[-1] += counts[_LENGTHS:].sum()
    queries = int(counts @ np.arange(1, len(counts) + 1))
    return columns.tolist(), sessions, f"{queries / sessions:.2f}" if sessions else NOTHING


@dataclass(frozen=True)
class DocumentOfQuery:
    """A document of a query's ranking on the page."""

    document: ShownDocument
    label: str
    clicked: bool
    address: str
    title: str

    @property
    def kind(self) -> str:
        return level_class(self.document.level)


@dataclass(frozen=True)
class QueryLine:
    """A query on the page: its contribution, its share of the ideal, and the effect of its
    reformulation."""

    number: int
    query: ShownQuery
    contribution: str
    ideal: str
    share: str
    change: str
    verdict: str
    documents: list[DocumentOfQuery]


def _query_line(
    session_set: SessionSet, query: ShownQuery, number: int, titles: dict[str, DocumentText]
) -> QueryLine:
    first = bool(np.isnan(query.change))
    verdict = change = ""

    if not first:
        change = signed(query.change)
        verdict = "same"
        if query.change:
            verdict = "gained" if query.change > 0 else "lost"

    collection = session_set.collection
    clicked, labels = {doc.decode() for doc in query.query.clicked}, collection.level_labels
    documents = [
        DocumentOfQuery(
            document=document,
            label=str(labels.get(str(document.level), "")),
            clicked=document.doc_id in clicked,
            address=document_address(collection, document.doc_id),
            title=titles[document.doc_id].title,
        )
        for document in query.documents
    ]

    share = NOTHING if np.isnan(query.share) else f"{100 * query.share:.1f}%"
    return QueryLine(
        number=number,
        query=query,
        contribution=f"{query.contribution:.4f}",
        ideal=f"{query.ideal:.4f}",
        share=share,
        change=change,
        verdict=verdict,
        documents=documents,
    )


def _neighbours(
    session_set: SessionSet, session_of_page: ShownSession
) -> dict[str, tuple[str, str] | None]:
    """Return names and addresses of the previous and the next session in the log."""
    sides = {
        "before": (session_of_page.before, session_of_page.place - 1),
        "after": (session_of_page.after, session_of_page.place + 1),
    }
    return {
        side: (session.session_id.decode(), _address(session_set, session, place))
        if session
        else None
        for side, (session, place) in sides.items()
    }


def _session_figure(
    evaluation: SessionEvaluation, session: ShownSession, measure: Measure, query: Query
) -> PageFigure:
    parameters: dict[str, str] = {
        name: query[name] for name in ("measure", "qrels") if name in query
    }
    chart = SetChartRequest(evaluation, parameters).source_of(
        one_session_figure(session, measure=measure), measure
    )

    return set_figure(
        chart,
        evaluation.session_set_id,
        parameters | {"session": session.session.session_id.decode()},
        "wide",
    )
