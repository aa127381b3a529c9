"""Stored judged views of session sets, with the topic, searcher and system of each session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import zstandard

from metrics.engine.arrays import Floats, Ints
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.blocks import Session
from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.judged import JudgedSessions
from metrics.models import SessionEvaluation, SessionView
from metrics.services.queue.damage import give_up_evaluations
from metrics.services.work import begin
from runs.attention import keep_going

# The measures computed when a set is evaluated, and answered if no measure is named.
DEFAULT_MEASURES = (
    "nsDCG",
    "sDCG",
    "nsDCG(figure='best')",
    "nsDCG(figure='last')",
    "nsDCG(figure='mean')",
    "nsDCG(figure='avgpos')",
)
# Seconds for one plain measure of one query, and for reading one query of a stored view.
_MEASURED, _READ = 0.4e-6, 0.6e-6

Mean = tuple[float | None, int]


def default_measures() -> list[Measure]:
    return [parse_session_measure(name) for name in DEFAULT_MEASURES]


@dataclass(frozen=True)
class JudgedSet:
    """A set's sessions in the order of its file, and their judged view."""

    sessions: list[Session]
    view: JudgedSessions

    @cached_property
    def systems(self) -> list[bytes]:
        """Return the names of the systems in order of first appearance.

        The name is empty if the log names none.
        """
        return list(dict.fromkeys(session.system for session in self.sessions))

    @cached_property
    def system(self) -> Ints:
        """Return the place of each session's system in `systems`; shape (sessions,)."""
        place = {name: index for index, name in enumerate(self.systems)}
        return np.array([place[session.system] for session in self.sessions], np.int64)

    def take(self, chosen: Ints) -> JudgedSet:
        """Return some sessions, in the order named."""
        return JudgedSet(
            [self.sessions[index] for index in chosen.tolist()], self.view.take(chosen)
        )

    def means(self, measure: Measure, values: Floats) -> list[Mean]:
        """Return the mean and the number of sessions with a value for each system."""
        return [measure.aggregate(part) for part in self.by_system(values)]

    def by_system(self, values: Floats) -> list[Floats]:
        """The values of each system's sessions, in their order."""
        return np.split(values[self._order], self._ends)

    @cached_property
    def _order(self) -> Ints:
        """Return the order of the sessions by system."""
        return np.argsort(self.system, kind="stable")

    @cached_property
    def _ends(self) -> Ints:
        """Return where in that order each system ends, except the last one."""
        return np.cumsum(np.bincount(self.system, minlength=len(self.systems)))[:-1]


def pack_sessions(sessions: Iterable[Session]) -> bytes:
    """Return the topics, searchers and systems of the sessions as bytes, and the attributes.

    None of these has a tab or a line end in it.
    """
    lines = [
        b"\t".join(
            (
                session.session_id,
                session.topic_id,
                session.searcher,
                session.system,
                *filter(None, [session.attributes]),
            )
        )
        for session in sessions
    ]

    return zstandard.compress(b"\n".join(lines))


def unpack_sessions(stored: bytes) -> list[Session]:
    lines = zstandard.decompress(stored).split(b"\n")
    return [Session(*line.split(b"\t")) for line in lines if line]


def load_set(evaluation: SessionEvaluation) -> JudgedSet:
    """Return the judged view of an evaluated set.

    If it is damaged or missing, queue the evaluation again and raise StoredValueCorrupt.
    """
    row = SessionView.objects.filter(pk=evaluation.pk).first()
    if row is None or not row.is_sound(evaluation.qrels_id):
        raise give_up_evaluations(SessionEvaluation, [evaluation.pk], "judged view")
    return unpack_set(row)


def check_means(evaluations: Iterable[SessionEvaluation]) -> None:
    """Raise StoredValueCorrupt if the stored means of a set or its systems are damaged."""
    if damaged := [evaluation.pk for evaluation in evaluations if not evaluation.has_sound_means()]:
        raise give_up_evaluations(SessionEvaluation, damaged, "means")


def load_sets(
    evaluations: list[SessionEvaluation],
) -> Iterator[tuple[SessionEvaluation, JudgedSet]]:
    """Yield the judged views of several sets, held one at a time."""
    for evaluation in evaluations:
        keep_going()
        yield evaluation, load_set(evaluation)


def values_of(
    judged: JudgedSet, measures: list[Measure], go_on: Callable[[], None] = keep_going
) -> dict[str, Floats]:
    """Return each session's values by measure.

    `go_on` is called now and then, and raises where nobody wants them any more.
    """
    parts: dict[str, list[Floats]] = {measure.name: [] for measure in measures}
    for view in judged.view.stretches():
        for measure in measures:
            go_on()
            parts[measure.name].append(session_values(view, measure))

    return {
        name: np.concatenate(values) if values else np.zeros(0) for name, values in parts.items()
    }


def work_of(queries: int, measures: Iterable[Measure]) -> float:
    """Return the work of computing measures of this many queries, as a multiple of a plain one."""
    return queries * sum(map(_weight, measures))


def begin_sessions(work: float, pointer: str = "measures", *, read: int = 0) -> None:
    """Begin computing this much work, in addition to reading the views of this many queries.

    Raise StatisticsError for more than a request may compute.
    """
    seconds = _MEASURED * work + _READ * read
    begin(
        seconds,
        "measures of session sets that are not stored",
        "name fewer measures, sets or sessions",
        pointer,
    )


def _weight(measure: Measure) -> float:
    """Return the measured weight of a measure.

    Whole vectors take time by their components, and measures of runs make a ranking first.
    """
    parameters = measure.parameters
    if "of" in parameters:
        return 5.0
    if parameters.get("figure") == "avgpos" or parameters.get("ideal") == "once":
        return max(1.0, (measure.cutoff or 10) / 8)
    return 1.0


def unpack_set(row: SessionView) -> JudgedSet:
    """Return the judged view of a row whose digest was checked."""
    view = JudgedSessions.from_bytes(zstandard.decompress(bytes(row.content)))
    return JudgedSet(unpack_sessions(bytes(row.sessions)), view)
