"""The API's answers about one session set, and what they share with leaderboards of systems."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import numpy as np
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from metrics.api.answers import Caution, cautions_of, number, numbers
from metrics.engine.arrays import Ints
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import LengthTable, Which
from metrics.engine.sessions.blocks import Session
from metrics.models import SessionEvaluation
from metrics.services.sessions import analyses, curves, judged_sets, one_session, values
from runs.web.shapes import Url

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
    reformulation: Literal["gained", "lost", "same"] | None


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
    url, after, before = request.build_absolute_uri(), offset + limit, max(0, offset - limit)
    return Paged(
        count=count,
        next=replace_query_param(url, "offset", after) if after < count else None,
        previous=replace_query_param(url, "offset", before) if offset else None,
    )


def session_mean(mean: judged_sets.Mean) -> SessionMean:
    return SessionMean(mean=number(mean[0]), sessions=mean[1])


def read_from(evaluation: SessionEvaluation) -> ReadFromSet:
    """Which evaluation an answer is made from, and how many of its sessions are judged."""
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


def values_answer(found: values.SetValues, page: slice, pages: Paged) -> SetValues:
    """Return the means over all chosen sessions and by system, and the values of one page of the sessions."""
    judged, places = found.chosen.judged, found.chosen.places.tolist()
    columns = {name: numbers(vector[page].tolist()) for name, vector in found.vectors.items()}
    return SetValues(
        **read_from(found.chosen.evaluation),
        **pages,
        cautions=cautions_of(found.cautions),
        means={name: session_mean(mean) for name, mean in found.means.items()},
        systems=[
            SystemMeans(
                system=name.decode(),
                means={of: session_mean(means[index]) for of, means in found.systems.items()},
            )
            for index, name in enumerate(judged.systems)
        ],
        sessions=[
            SessionValues(
                **_session_name(judged.sessions[at], places[at]),
                queries=int(judged.view.queries[at]),
                values={name: column[index] for name, column in columns.items()},
            )
            for index, at in enumerate(range(*page.indices(len(places))))
        ],
    )


def curves_answer(
    chosen: values.ChosenSessions, measure: Measure, drawn: curves.SessionCurves
) -> SessionCurves:
    """Return each system's curve beside its ideal's, and each session's own if requested."""
    read = read_from(chosen.evaluation)
    answer = SessionCurves(
        session_set=read["session_set"],
        qrels=read["qrels"],
        judged_by=read["judged_by"],
        engine_version=read["engine_version"],
        stale=read["stale"],
        coverage=read["coverage"],
        measure=measure.name,
        length=drawn.curves.values.shape[1],
        curves=[
            SessionCurve(
                system=system.decode(),
                values=numbers(curve),
                sessions=int(drawn.curves.count[at]),
                ideal=numbers(ideal),
            )
            for at, (system, curve, ideal) in enumerate(
                zip(
                    chosen.judged.systems,
                    drawn.curves.values.tolist(),
                    drawn.ideal.tolist(),
                    strict=True,
                )
            )
        ],
    )
    if drawn.vectors is not None:
        answer["sessions"] = [
            SessionVector(
                **_session_name(session, int(chosen.places[at])),
                values=numbers(drawn.vectors.of(at).tolist()),
            )
            for at, session in enumerate(chosen.judged.sessions)
        ]
    return answer


def queries_answer(
    chosen: values.ChosenSessions, measure: Measure, drawn: analyses.QueryCurves
) -> QueryCurves:
    names = [name.decode() for name in chosen.judged.systems]

    def curves(which: Which) -> list[QueryCurve]:
        found = drawn.curves[which]
        rows = zip(names, found.values.tolist(), found.count.tolist(), strict=True)
        return [
            QueryCurve(system=name, values=numbers(curve), queries=int(count))
            for name, curve, count in rows
        ]

    return QueryCurves(
        **read_from(chosen.evaluation),
        measure=measure.name,
        curves=WhichQueries(
            last=curves("last"), others=curves("others"), best=curves("best"), all=curves("all")
        ),
        reformulations=[
            Reformulations(system=name, gained=gained, lost=lost, same=same)
            for name, (gained, lost, same) in zip(names, drawn.changed, strict=True)
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
    evaluation: SessionEvaluation, measure: Measure, shown: one_session.ShownSession
) -> OneSession:
    return OneSession(
        **read_from(evaluation),
        **_session_name(shown.session, shown.place),
        measure=measure.name,
        judged=shown.is_judged,
        value=number(shown.value),
        starts=shown.starts.tolist(),
        vector=numbers(shown.vector.tolist()),
        ideal=numbers(shown.ideal.tolist()),
        normalised=numbers(shown.normalised.tolist()),
        queries=[_query(query, place) for place, query in enumerate(shown.queries, 1)],
    )


def _query(query: one_session.ShownQuery, place: int) -> ShownQuery:
    change = query.change
    return ShownQuery(
        number=place,
        text=query.query.text,
        time=query.query.time,
        scanned=query.scanned,
        clicked=[doc.decode() for doc in query.query.clicked],
        count=query.count,
        documents=[
            ShownDocument(rank=one.rank, doc_id=one.doc_id, score=one.score, level=one.level)
            for one in query.documents
        ],
        contribution=query.contribution,
        ideal=query.ideal,
        share=number(query.share),
        change=number(change),
        reformulation=None
        if np.isnan(change)
        else "gained"
        if change > 0
        else "lost"
        if change < 0
        else "same",
    )
