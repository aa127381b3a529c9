"""Read one session by query: its rankings with levels, its vector, and contributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.measures.grammar import Measure
from metrics.engine.measures.ratio import ratio
from metrics.engine.sessions.analyses import reformulations
from metrics.engine.sessions.blocks import Query, Session, SessionBlock
from metrics.engine.sessions.grammar import session_values, setting_of
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.slots import slots_of
from metrics.engine.sessions.vectors import (
    contributions,
    ideal_contributions,
    ideal_vectors,
    normalised_vectors,
    session_vectors,
    undiscounted,
)
from metrics.models import SessionEvaluation
from metrics.services.question import Integer, Question, nested, parameter
from metrics.services.sessions.judged_sets import load_set
from metrics.services.sessions.parameters import SessionMeasure
from metrics.services.sessions.values import SessionEvaluationQuery
from metrics.services.values.effort import begin_reading_file
from runs.errors import InvalidInput, NotFound
from runs.services.submissions.session_sets import find_session

MAX_DOCUMENTS = 100_000


@dataclass(frozen=True)
class OneSessionQuery(Question):
    """A measure of one session, and how many documents of each query are listed."""

    measure: Measure = parameter(SessionMeasure("a session measure, default: nsDCG"))
    evaluation: SessionEvaluationQuery = nested(SessionEvaluationQuery)
    documents: int = parameter(
        Integer("listed for each query, at most 10,000", default=100, high=10_000)
    )


@dataclass(frozen=True)
class ShownDocument:
    """A document at its rank; `level` is None if it is unjudged, `score` if the log has none."""

    rank: int
    doc_id: str
    score: float | None
    level: int | None


@dataclass(frozen=True)
class ShownQuery:
    """A query with the number of its documents; the first of them are listed.

    `contribution` is what it adds to the session, `ideal` what it would add at best, `share` the
    ratio of both, NaN without an ideal; `change` is how much more it gains than the query before
    it, NaN for the first.
    """

    query: Query
    scanned: int | None
    count: int
    documents: list[ShownDocument]
    contribution: float
    ideal: float
    share: float
    change: float


@dataclass(frozen=True)
class ShownSession:
    """A session in detail. `starts` are the components at which each query begins, and the end.

    `before` and `after` are its neighbours in the log, None at the ends of it.
    """

    place: int
    session: Session
    is_judged: bool
    value: float
    vector: Floats
    ideal: Floats
    normalised: Floats
    starts: Ints
    queries: list[ShownQuery]
    before: Session | None = None
    after: Session | None = None


def read_session(
    *, evaluation: SessionEvaluation, name: str, measure: Measure, documents: int
) -> ShownSession:
    """Return a session by its id, or else by its number from 1 on.

    `documents` are listed for each query.

    The rankings come from the stored log, everything else from the judged view. Raise NotFound for
    an unknown session, MeasureError for a measure that is not a vector.
    """
    begin_reading_file(evaluation.session_set.size)
    judged = load_set(evaluation)
    place = _find(judged.sessions, name)
    session, view = judged.sessions[place], judged.view.take(np.array([place]))
    setting, normalised = setting_of(measure)
    kind = normalised or ("repeated", "session")

    if view.n_queries * documents > MAX_DOCUMENTS:
        message = (
            f"{view.n_queries} queries x {documents:,} documents; at most {MAX_DOCUMENTS:,} are "
            "listed at once"
        )
        raise InvalidInput(message, code="too_many_values", pointer="documents")

    gain = contributions(view, setting)
    best = ideal_contributions(view, setting if kind[1] == "session" else undiscounted(setting))
    change = reformulations(view, setting, normalised=normalised is not None).change
    shares = np.where(best > 0, ratio(gain, best), np.nan)
    block, index = find_session(evaluation.session_set, place)
    first = int(block.query_starts[index])
    figures = zip(*(column.tolist() for column in (gain, best, shares, change)), strict=True)
    queries = [
        _query(block, first + number, view, number, documents, *row)
        for number, row in enumerate(figures)
    ]

    return ShownSession(
        place,
        session,
        bool(view.is_judged[0]),
        float(session_values(view, measure)[0]),
        session_vectors(view, setting).values,
        ideal_vectors(view, setting, kind[0]).values,
        normalised_vectors(view, setting, *kind).values,
        np.append(0, np.cumsum(slots_of(view, setting).count)),
        queries,
        judged.sessions[place - 1] if place else None,
        judged.sessions[place + 1] if place + 1 < len(judged.sessions) else None,
    )


def _find(sessions: list[Session], name: str) -> int:
    text = name.encode("utf-8", "surrogatepass")
    for place, session in enumerate(sessions):
        if session.session_id == text:
            return place

    if name.isascii() and name.isdecimal() and len(name) < 10 and 1 <= int(name) <= len(sessions):
        return int(name) - 1
    raise NotFound(f"no session of this set has the id or number {name[:100]!r}")


def _query(
    block: SessionBlock, query: int, view: JudgedSessions, number: int, most: int, *figures: float
) -> ShownQuery:
    """Return a query with the first `most` of its documents.

    `query` is its place in the block, `number` that in the session.
    """
    start, end = block.document_starts[query : query + 2].tolist()
    judged = view.query == number
    levels = dict(zip(view.rank[judged].tolist(), view.level[judged].tolist(), strict=True))

    documents = []
    for row in range(start, min(end, start + most)):
        rank, score = int(block.ranks[row]), float(block.scores[row])
        name = block.data[block.doc_starts[row] : block.doc_ends[row]].tobytes().decode()
        documents.append(
            ShownDocument(rank, name, None if np.isnan(score) else score, levels.get(rank))
        )

    scanned = int(block.scanned[query])
    return ShownQuery(
        block.queries[query], scanned if scanned >= 0 else None, end - start, documents, *figures
    )
