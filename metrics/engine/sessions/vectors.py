"""Session vectors: the cumulated discounted gains of a session's queries, and of the ideal ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.running import place, running_sum
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import sum_by_topic
from metrics.engine.measures.ratio import ratio
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.settings import Ideal, Norm, Setting
from metrics.engine.sessions.slots import gains_of, slots_of

Matrix = npt.NDArray[np.float64]
# Components in memory at once.
_COMPONENTS_AT_ONCE = 1 << 18
# Weights that agree in so many digits are equal: they are products of rounded logarithms.
_DIGITS = 12


@dataclass(frozen=True)
class SessionVectors:
    """A cumulated vector for every session, one after another in `values`.

    `starts` has one entry per session and one more. A session without judgements has a vector of
    zeros, like one without gains: the view distinguishes them.
    """

    values: Floats
    starts: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Return the number of components of each vector; shape (sessions,)."""
        return np.diff(self.starts)

    def of(self, session: int) -> Floats:
        """Return the vector of a session."""
        return self.values[self.starts[session] : self.starts[session + 1]]

    def matrix(self, width: int) -> Matrix:
        """Return all vectors, constant after their last component; shape (sessions, width)."""
        index = self.starts[:-1, None] + np.minimum(np.arange(width), self.sizes[:, None] - 1)
        return np.where(self.sizes[:, None] > 0, np.append(self.values, 0.0)[index], 0.0)

    def last(self) -> Floats:
        """Return the last component of each vector, 0 of an empty one; shape (sessions,)."""
        return np.where(self.sizes > 0, np.append(self.values, 0.0)[self.starts[1:] - 1], 0.0)

    def mean(self) -> Floats:
        """Return the mean of each vector's components, 0 of an empty one; shape (sessions,)."""
        session = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return ratio(np.bincount(session, self.values, len(self.sizes)), self.sizes)


def contributions(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the gain of each query: the last component of sDCG(q); shape (queries,)."""
    gains = gains_of(view, setting)
    dcg = sum_by_topic(gains.query, gains.gain * setting.rank_weight(gains.rank), view.n_queries)
    return dcg * query_weights(view, setting)


def ideal_contributions(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the gain of the single-query ideal in the slots of each query, 0 without a judged
    topic; shape (queries,)."""
    best = view.ideal_gains(setting.gains)
    dcg = best.cumulated(1.0 / setting.rank_weight(best.rank))
    reached = dcg.reached(view.topic, slots_of(view, setting).count)
    return reached * query_weights(view, setting)


def session_vectors(view: JudgedSessions, setting: Setting) -> SessionVectors:
    """Return the cumulated sDCG vectors."""
    return _cumulated(view, setting, _actual(view, setting))


def ideal_vectors(
    view: JudgedSessions, setting: Setting, ideal: Ideal = "repeated"
) -> SessionVectors:
    """Return the cumulated vectors of the ideal sessions, with the queries and slots of the actual.

    'repeated' puts the single-query ideal into every query's slots, as the source does. 'once' puts
    each document into one slot only, the best where a gain counts most: no session gains more that
    gains from each document once.
    """
    values = _repeated(view, setting) if ideal == "repeated" else _once(view, setting)
    return _cumulated(view, setting, values)


def normalised_vectors(
    view: JudgedSessions, setting: Setting, ideal: Ideal = "repeated", norm: Norm = "session"
) -> SessionVectors:
    """Return the nsDCG vectors; 0 where the ideal has gained nothing yet.

    norm='session' divides the session's cumulated vector by the ideal session's, component by
    component; norm='query' divides each query's discounted vector by the single-query ideal, which
    is not discounted by the query's position, and puts the results one after another.
    norm='average' is about averages; a single session is its own.
    """
    if norm == "query":
        slots = slots_of(view, setting)
        gained = running_sum(slots.query, _actual(view, setting))
        ideal_gained = running_sum(slots.query, _repeated(view, undiscounted(setting)))
        return SessionVectors(ratio(gained, ideal_gained), slots.starts)

    actual, best = session_vectors(view, setting), ideal_vectors(view, setting, ideal)
    return SessionVectors(ratio(actual.values, best.values), actual.starts)


def stretches(view: JudgedSessions, setting: Setting) -> Iterator[JudgedSessions]:
    """Yield the sessions in stretches, each with vectors that fit into memory."""
    starts, begin = slots_of(view, setting).starts, 0
    if starts[-1] <= _COMPONENTS_AT_ONCE:
        yield view
        return

    while begin < view.n_sessions:
        end = max(
            begin + 1,
            int(np.searchsorted(starts, starts[begin] + _COMPONENTS_AT_ONCE, side="right")) - 1,
        )
        yield view.take(np.arange(begin, end))
        begin = end


def _cumulated(view: JudgedSessions, setting: Setting, values: Floats) -> SessionVectors:
    slots = slots_of(view, setting)
    return SessionVectors(running_sum(slots.session, values), slots.starts)


def _actual(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the discounted gain of every slot."""
    slots, gains = slots_of(view, setting), gains_of(view, setting)
    weight = setting.rank_weight(gains.rank) * query_weights(view, setting)[gains.query]
    values = np.zeros(len(slots.query))
    values[slots.first[gains.query] + gains.rank - 1] = gains.gain * weight
    return values


def _repeated(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the discounted gain of every slot, with the single-query ideal in each query."""
    slots = slots_of(view, setting)
    return _ideal_gain(view, setting, view.topic[slots.query], slots.rank - 1) * _weights(
        view, setting
    )


def _once(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the discounted gain of every slot, with each document once. Among slots with
    equal weights the first one has the better document."""
    if (view.session_topic == -2).any():
        message = (
            "ideal='once' needs one set of judgements for a session: by topic or by session, not "
            "by query"
        )
        raise MeasureError(message, code="bad_parameter")

    slots, weights = slots_of(view, setting), _weights(view, setting)
    order = np.lexsort((-np.round(weights, _DIGITS), slots.session))
    values = np.empty(len(weights))
    topic = view.session_topic[slots.session]
    values[order] = _ideal_gain(view, setting, topic, place(slots.session)) * weights[order]

    return values


def undiscounted(setting: Setting) -> Setting:
    """Return the setting under which all queries count alike."""
    return replace(setting, bq=None, half_life=None)


def query_weights(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the weight of each query by its place and time; shape (queries,)."""
    weight = setting.query_weight(view.number)
    if setting.half_life is None:
        return weight
    return weight * np.exp2(-view.elapsed / setting.half_life)


def _weights(view: JudgedSessions, setting: Setting) -> Floats:
    slots = slots_of(view, setting)
    return setting.rank_weight(slots.rank) * query_weights(view, setting)[slots.query]


def _ideal_gain(view: JudgedSessions, setting: Setting, topic: Ints, above: Ints) -> Floats:
    """Return the gain of the document below `above` others in the ideal ranking of a topic."""
    best = view.ideal_gains(setting.gains)
    size = np.append(best.count(), 0)
    start = np.cumsum(size) - size
    exists = above < size[topic]
    gain: Floats = np.append(best.gain, 0.0)[np.where(exists, start[topic] + above, -1)]

    return gain
