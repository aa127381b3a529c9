"""The values of a session set: one for each session, and the means of its systems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.cautions import Caution
from metrics.engine.measures.grammar import Measure
from metrics.models import SessionEvaluation
from metrics.services.question import VERSION, Exact, Integer, Question, nested, parameter
from metrics.services.queue.damage import check_files
from metrics.services.sessions.judged_sets import (
    JudgedSet,
    Mean,
    begin_sessions,
    load_set,
    values_of,
    work_of,
)
from metrics.services.sessions.parameters import SessionMeasures
from runs.errors import InvalidInput, NotFound
from runs.models import SessionSet

MAX_QUERIES = 1_000


@dataclass(frozen=True)
class SessionEvaluationQuery(Question):
    """Which evaluation of a set is read."""

    version: int | None = parameter(VERSION)


@dataclass(frozen=True)
class SessionSelection(SessionEvaluationQuery):
    """A selection of sessions of a set.

    It is of one system, topic or searcher, or of sessions with at least this many queries; None
    means all.

    An empty system or searcher selects the sessions for which the log names none.
    """

    system: str | None = parameter(Exact("only the sessions with this system"))
    topic: str | None = parameter(Exact("only those of this topic (its topic_id)"))
    searcher: str | None = parameter(Exact("only those of this searcher"))
    least: int = parameter(
        Integer("only those of at least so many queries", default=1, low=1, high=MAX_QUERIES)
    )

    @property
    def words(self) -> str:
        """Return the selection in words for a chart; empty for all sessions."""
        named = (("topic", self.topic), ("searcher", self.searcher), ("system", self.system))
        parts = [
            f"{factor} {name}" if name else f"no {factor} named"
            for factor, name in named
            if name is not None
        ]
        parts += [f"sessions of at least {self.least:,} queries"] if self.least > 1 else []

        return ", ".join(parts)


@dataclass(frozen=True)
class SessionValuesQuery(Question):
    """The measures, and a page of the selected sessions."""

    measures: list[Measure] = parameter(SessionMeasures())
    selection: SessionSelection = nested(SessionSelection)
    limit: int = parameter(
        Integer("sessions of a page, at most 10,000", default=1_000, low=1, high=10_000)
    )
    offset: int = parameter(Integer("sessions to pass over", default=0))


@dataclass(frozen=True)
class ChosenSessions:
    """The selected sessions of an evaluated set.

    `places` are their places in the log, from 0, and `whole` is the set that they were selected
    from.
    """

    evaluation: SessionEvaluation
    selection: SessionSelection
    judged: JudgedSet
    places: Ints
    whole: JudgedSet


@dataclass(frozen=True)
class SetValues:
    """The values of the chosen sessions by measure, in their order, NaN where there is none.

    `means` are over all sessions, and `systems` has those by system.
    """

    chosen: ChosenSessions
    measures: list[Measure]
    vectors: dict[str, Floats]
    means: dict[str, Mean]
    systems: dict[str, list[Mean]]

    @property
    def cautions(self) -> list[Caution]:
        """Return the cautions about the measures under these levels."""
        levels = np.unique(self.chosen.judged.view.recall_base.level).tolist()
        return [caution for measure in self.measures for caution in measure.cautions(levels)]


def find_session_evaluation(
    *, session_set: SessionSet, query: SessionEvaluationQuery
) -> SessionEvaluation:
    """Return the evaluation of a set to read.

    It is the one under the named qrels version, the active one, or else the newest one that exists.

    Raise NotFound with the reason if there is no evaluation.
    """
    evaluations = SessionEvaluation.objects.evaluated().filter(
        session_set=session_set, judged_by=session_set.judged_by
    )
    if query.version:
        evaluations = evaluations.filter(qrels__version=query.version)

    order = ("-qrels__active", "-qrels__version", "-engine_version")
    rows = (
        evaluations.with_files().order_by(*order).select_related("qrels").defer("qrels__topic_ids")
    )
    newest: SessionEvaluation | None = rows.first()
    if newest is None:
        raise NotFound(_why_not(session_set, query.version), code="not_evaluated")

    check_files(SessionEvaluation, [(newest.pk, newest.same_files)])
    newest.session_set = session_set
    return newest


def choose_sessions(
    *, evaluation: SessionEvaluation, selection: SessionSelection, whole: JudgedSet | None = None
) -> ChosenSessions:
    """Return the sessions of a set that the selection names.

    They are those of its judged view if that was read already.

    Raise InvalidInput for an unknown name.
    """
    judged = load_set(evaluation) if whole is None else whole
    selected = judged.view.queries >= selection.least
    for name, attribute in (("system", "system"), ("topic", "topic_id"), ("searcher", "searcher")):
        value: str | None = getattr(selection, name)
        if value is None:
            continue

        text = value.encode("utf-8", "surrogatepass")

        equal = np.array(
            [getattr(session, attribute) == text for session in judged.sessions], np.bool_
        )
        if not equal.any():
            raise InvalidInput(
                f"no session of this set has the {name} {value[:100]!r}", pointer=name
            )
        selected &= equal

    places = np.flatnonzero(selected)
    chosen = judged if len(places) == len(judged.sessions) else judged.take(places)
    return ChosenSessions(evaluation, selection, chosen, places, judged)


def read_session_values(*, chosen: ChosenSessions, measures: list[Measure]) -> SetValues:
    """Return the values of the chosen sessions, computed from the judged view.

    Raise StatisticsError for too many at once.
    """
    judged = chosen.judged
    begin_sessions(work_of(judged.view.n_queries, measures))
    vectors = values_of(judged, measures)
    means = {measure.name: measure.aggregate(vectors[measure.name]) for measure in measures}
    systems = {measure.name: judged.means(measure, vectors[measure.name]) for measure in measures}

    return SetValues(chosen, measures, vectors, means, systems)


def _why_not(session_set: SessionSet, version: int | None) -> str:
    rows = SessionEvaluation.objects.filter(
        session_set=session_set, judged_by=session_set.judged_by
    )

    latest = rows.order_by("-created_at").first()
    if latest is None:
        return "the session set is not evaluated: the collection has no active judgements yet"
    if version:
        return f"the session set is not evaluated against version {version} of the judgements"

    reason = f": {latest.error_message}" if latest.error_message else ""
    return f"the session set is not evaluated: its evaluation is {latest.state}{reason}"
