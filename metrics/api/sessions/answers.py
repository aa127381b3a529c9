"""The API's answers about one session set, and what they share with leaderboards of systems."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import numpy as np
from rest_framework.request import Request

from metrics.api.answers import Caution, cautions_of, number, numbers, page_addresses
from metrics.engine.arrays import Ints
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import LengthTable, Which
from metrics.engine.sessions.blocks import Session
from metrics.models import SessionEvaluation
from metrics.services.sessions import analyses, curves, judged_sets, one_session, values
from runs.formats.documents import DocumentText
from runs.services.collections.documents import read_titles
from runs.web.shapes import Url

Reformulation = Literal["gained", "lost", "same"]
# About the measures of an answer, if the collection's judgements are used.
MeasureCautions = Annotated[list[Caution], "of gains that leave out levels that are judged"]


class SessionMean(TypedDict):
    mean: float | None
    sessions: Annotated[int, "sessions with a value"]


class SessionCoverage(TypedDict):
    judged: Annotated[int, "sessions with judgements"]
    sessions: int


class ReadFromSet(TypedDict):
    """The session set and its evaluation from which an answer was made."""

    session_set: UUID
    qrels: Annotated[int | None, "null where the log judges itself"]
    judged_by: str
    engine_version: str
    stale: bool
    coverage: SessionCoverage


class Paged(TypedDict):
    count: int
    next: Url | None
    previous: Url | None


class SessionName(TypedDict):
    number: Annotated[int, "place in the log, from 1"]
    session_id: str
    topic_id: str
    searcher: str
    system: str


class SystemMeans(TypedDict):
    system: str
    means: dict[str, SessionMean]


class SessionValues(SessionName):
    queries: int
    values: dict[str, float | None]


class SetValues(ReadFromSet, Paged):
    """A session set's values."""

    cautions: MeasureCautions
    means: Annotated[dict[str, SessionMean], "over the chosen sessions"]
    systems: list[SystemMeans]
    sessions: list[SessionValues]


class SystemCurve(TypedDict):
    system: str
    values: list[float | None]


class SessionCurve(SystemCurve):
    sessions: int
    ideal: Annotated[
        list[float | None], "of the same sessions; 1 throughout where the measure is normalised"
    ]


class SessionVector(SessionName):
    values: Annotated[list[float | None], "as long as the session is"]


class SessionCurves(ReadFromSet):
    """The mean curve of each system's sessions."""

    measure: str
    length: int
    curves: list[SessionCurve]
    sessions: NotRequired[list[SessionVector]]


class QueryCurve(SystemCurve):
    queries: int


class WhichQueries(TypedDict):
    last: list[QueryCurve]
    others: list[QueryCurve]
    best: Annotated[list[QueryCurve], "the query of each session that adds most to it"]
    all: list[QueryCurve]


class Reformulations(TypedDict):
    system: str
    gained: int
    lost: int
    same: int


class QueryCurves(ReadFromSet):
    """Mean curves of single queries at ranks 1 to X."""

    measure: str
    curves: WhichQueries
    reformulations: list[Reformulations]


class Length(TypedDict):
    sessions: int
    queries: int
    mean: Annotated[float | None, "queries a session"]
    counts: Annotated[list[int], "sessions of 1, 2, 3 and so on queries"]


class SystemLength(Length):
    system: str


class Lengths(ReadFromSet):
    """Sessions by number of queries."""

    all: Length
    systems: list[SystemLength]


class ShownDocument(TypedDict):
    rank: int
    doc_id: str
    title: Annotated[str, "empty if the collection has none"]
    score: float | None
    level: Annotated[int | None, "null for an unjudged document"]


class ShownQuery(TypedDict):
    number: int
    text: str
    time: Annotated[float | None, "seconds"]
    scanned: int | None
    clicked: list[str]
    count: Annotated[int, "documents that were returned"]
    documents: list[ShownDocument]
    contribution: Annotated[float, "what the query adds to sDCG"]
    ideal: Annotated[float, "what it would add at best"]
    share: float | None
    change: Annotated[
        float | None, "by how much it gains more than the query before, their places left out"
    ]
    reformulation: Reformulation | None


class OneSession(ReadFromSet, SessionName):
    """One session, by query."""

    measure: str
    judged: bool
    value: float | None
    starts: Annotated[list[int], "the component at which each query begins, and the end"]
    vector: Annotated[list[float | None], "sDCG"]
    ideal: Annotated[list[float | None], "the ideal session's"]
    normalised: Annotated[list[float | None], "the one divided by the other"]
    queries: list[ShownQuery]


def paged(request: Request, offset: int, limit: int, count: int) -> Paged:
    """Return the number of rows, and the addresses of the next and the previous page."""
    page = page_addresses(request.build_absolute_uri(), offset, limit, count)
    return Paged(count=count, next=page.next, previous=page.previous)


def session_mean(mean: judged_sets.Mean) -> SessionMean:
    return SessionMean(mean=number(mean[0]), sessions=mean[1])


def read_from(evaluation: SessionEvaluation) -> ReadFromSet:
    """Return the evaluation of an answer, and how many of its sessions are judged."""
    return ReadFromSet(
        session_set=evaluation.session_set_id,
        qrels=evaluation.qrels.version if evaluation.qrels else None,
        judged_by=evaluation.judged_by,
        engine_version=evaluation.engine_version,
        stale=evaluation.is_stale,
        coverage=SessionCoverage(
            judged=evaluation.sessions_judged or 0, sessions=evaluation.session_set.sessions
        ),
    )


def _session_name(session: Session, place: int) -> SessionName:
    return SessionName(
        number=place + 1,
        session_id=session.session_id.decode(),
        topic_id=session.topic_id.decode(),
        searcher=session.searcher.decode(),
        system=session.system.decode(),
    )


def values_answer(values_of_set: values.SetValues, page: slice, pages: Paged) -> SetValues:
    """Return the means over all chosen sessions and by system, and one page of the sessions."""
    chosen = values_of_set.chosen
    judged, places = chosen.judged, chosen.places.tolist()

    systems = []
    for index, system in enumerate(judged.systems):
        means = {name: session_mean(by[index]) for name, by in values_of_set.systems.items()}
        systems.append(SystemMeans(system=system.decode(), means=means))

    columns = {
        name: numbers(vector[page].tolist()) for name, vector in values_of_set.vectors.items()
    }
    sessions = [
        SessionValues(
            **_session_name(judged.sessions[index], places[index]),
            queries=int(judged.view.queries[index]),
            values={name: column[row] for name, column in columns.items()},
        )
        for row, index in enumerate(range(*page.indices(len(places))))
    ]

    return SetValues(
        **read_from(chosen.evaluation),
        **pages,
        cautions=cautions_of(values_of_set.cautions),
        means={name: session_mean(mean) for name, mean in values_of_set.means.items()},
        systems=systems,
        sessions=sessions,
    )


def curves_answer(
    chosen: values.ChosenSessions, measure: Measure, curves_of_set: curves.SessionCurves
) -> SessionCurves:
    """Return the curves of each system and its ideal, and those of each session if requested."""
    means, origin = curves_of_set.curves, read_from(chosen.evaluation)
    answer = SessionCurves(
        session_set=origin["session_set"],
        qrels=origin["qrels"],
        judged_by=origin["judged_by"],
        engine_version=origin["engine_version"],
        stale=origin["stale"],
        coverage=origin["coverage"],
        measure=measure.name,
        length=means.values.shape[1],
        curves=[
            SessionCurve(
                system=system.decode(),
                values=numbers(means.values[index].tolist()),
                sessions=int(means.count[index]),
                ideal=numbers(curves_of_set.ideal[index].tolist()),
            )
            for index, system in enumerate(chosen.judged.systems)
        ],
    )

    if curves_of_set.vectors is not None:
        answer["sessions"] = [
            SessionVector(
                **_session_name(session, int(chosen.places[index])),
                values=numbers(curves_of_set.vectors.of(index).tolist()),
            )
            for index, session in enumerate(chosen.judged.sessions)
        ]

    return answer


def queries_answer(
    chosen: values.ChosenSessions, measure: Measure, query_curves: analyses.QueryCurves
) -> QueryCurves:
    names = [name.decode() for name in chosen.judged.systems]

    def curves(which: Which) -> list[QueryCurve]:
        means = query_curves.curves[which]
        return [
            QueryCurve(
                system=name,
                values=numbers(means.values[index].tolist()),
                queries=int(means.count[index]),
            )
            for index, name in enumerate(names)
        ]

    return QueryCurves(
        **read_from(chosen.evaluation),
        measure=measure.name,
        curves=WhichQueries(
            last=curves("last"), others=curves("others"), best=curves("best"), all=curves("all")
        ),
        reformulations=[
            Reformulations(system=name, gained=gained, lost=lost, same=same)
            for name, (gained, lost, same) in zip(names, query_curves.changed, strict=True)
        ],
    )


def lengths_answer(chosen: values.ChosenSessions, table: LengthTable) -> Lengths:
    """Return the sessions by number of queries: counts[0] have one query."""
    return Lengths(
        **read_from(chosen.evaluation),
        all=_length(np.sum(table.counts, axis=0)),
        systems=[
            SystemLength(**_length(counts), system=name.decode())
            for name, counts in zip(chosen.judged.systems, table.counts, strict=True)
        ],
    )


def _length(counts: Ints) -> Length:
    sessions, queries = int(counts.sum()), int(counts @ np.arange(1, len(counts) + 1))
    mean = queries / sessions if sessions else None
    return Length(sessions=sessions, queries=queries, mean=mean, counts=counts.tolist())


def session_answer(
    evaluation: SessionEvaluation, measure: Measure, session: one_session.ShownSession
) -> OneSession:
    titles = read_titles(
        evaluation.session_set.collection,
        (document.doc_id for query in session.queries for document in query.documents),
    )
    return OneSession(
        **read_from(evaluation),
        **_session_name(session.session, session.place),
        measure=measure.name,
        judged=session.is_judged,
        value=number(session.value),
        starts=session.starts.tolist(),
        vector=numbers(session.vector.tolist()),
        ideal=numbers(session.ideal.tolist()),
        normalised=numbers(session.normalised.tolist()),
        queries=[_query(query, place, titles) for place, query in enumerate(session.queries, 1)],
    )


def _query(
    query: one_session.ShownQuery, place: int, titles: dict[str, DocumentText]
) -> ShownQuery:
    change = query.change
    reformulation: Reformulation | None = None
    if not np.isnan(change):
        reformulation = "gained" if change > 0 else "lost" if change < 0 else "same"

    return ShownQuery(
        number=place,
        text=query.query.text,
        time=query.query.time,
        scanned=query.scanned,
        clicked=[doc.decode() for doc in query.query.clicked],
        count=query.count,
        documents=[
            ShownDocument(
                rank=document.rank,
                doc_id=document.doc_id,
                title=titles[document.doc_id].title,
                score=document.score,
                level=document.level,
            )
            for document in query.documents
        ],
        contribution=query.contribution,
        ideal=query.ideal,
        share=number(query.share),
        change=number(change),
        reformulation=reformulation,
    )
