"""Sessions of several systems: their design, and their values in the form of the tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.sessions.blocks import Session
from metrics.engine.significance.pairs import Matrix

# The most pairs of systems that are crossed one by one, and their sessions in total, for less than
# a second.
_MOST_PAIRS, _MOST_SESSIONS = 300, 10_000_000

Design = Literal["crossed", "paired", "latin_square", "two_way", "unpaired"]


@dataclass(frozen=True)
class Factors:
    """Topic, searcher and system of every session, as indices into their names.

    Shapes: `topic`, `searcher` and `system` have one entry per session, -1 where the file has none.
    Names are in the order of their first appearance.
    """

    topics: list[bytes]
    searchers: list[bytes]
    systems: list[bytes]
    topic: Ints
    searcher: Ints
    system: Ints

    @classmethod
    def of(cls, sessions: Iterable[Session]) -> Self:
        all_sessions = list(sessions)
        columns = [
            _numbered([getattr(session, name) for session in all_sessions])
            for name in ("topic_id", "searcher", "system")
        ]
        (topics, topic), (searchers, searcher), (systems, system) = columns

        return cls(topics, searchers, systems, topic, searcher, system)

    def take(self, sessions: Ints) -> Self:
        """Return the factors of some sessions; names keep their indices."""
        return type(self)(
            self.topics, self.searchers, self.systems,
            self.topic[sessions], self.searcher[sessions], self.system[sessions],
        )  # fmt: skip


@dataclass(frozen=True)
class PairedValues:
    """Values in the form of a test of paired runs: `values` (systems, cells), without NaN.

    `topic` and `searcher` have one entry per cell; searcher is -1 where cells are topics.
    """

    values: Matrix
    topic: Ints
    searcher: Ints


@dataclass(frozen=True)
class Crossing:
    """The `sessions` of a crossed analysis: all searchers have all systems, or each has one system;
    topics likewise.

    `searchers` and `topics` are the numbers taken, `searchers_left_out` and `topics_left_out` the
    others. `fewest` is the smaller number of both, counted for each system where they have one;
    `fewest_are` says which."""

    sessions: Ints
    searchers_cross: bool
    topics_cross: bool
    searchers: int
    topics: int
    searchers_left_out: int
    topics_left_out: int
    fewest: int
    fewest_are: str


def crossing_of(values: Floats, factors: Factors) -> Crossing:
    """Return the sessions with a value that a crossed analysis takes.

    Where most searchers have all systems, or most have one, those that do not are left out; topics
    likewise. Raise StatisticsError where neither holds for most, where too few are left, or where
    searchers have one topic each or topics one searcher each.
    """
    taken = np.flatnonzero(~np.isnan(values) & (factors.system >= 0))
    units = {"searcher": factors.searcher, "topic": factors.topic}
    if min(unit[taken].min(initial=0) for unit in units.values()) < 0:
        raise _not_crossed("it needs the topic and the searcher of every session")

    # To leave out a searcher can leave a topic without some system, and the other way round.
    total = {name: len(np.unique(unit[taken])) for name, unit in units.items()}
    crosses: dict[str, bool] = {}
    previous = len(taken) + 1
    while len(taken) < previous:
        previous = len(taken)
        for name, unit in units.items():
            crosses[name], rows = _uses(
                unit[taken], factors.system[taken], len(factors.systems), name
            )
            taken = taken[rows]

    cells = len(np.unique(factors.topic[taken] * len(factors.searchers) + factors.searcher[taken]))
    remaining = {name: len(np.unique(unit[taken])) for name, unit in units.items()}
    for name, other in (("searcher", "topic"), ("topic", "searcher")):
        if cells == remaining[name]:
            raise _not_crossed(f"no {name} has several {other}s")

    fewest = []
    for name, unit in units.items():
        of_system = [
            len(np.unique(unit[taken[factors.system[taken] == system]]))
            for system in range(len(factors.systems))
        ]
        fewest.append((min(of_system), f"{name}s" if crosses[name] else f"{name}s of a system"))

    number, noun = min(fewest)
    return Crossing(
        sessions=taken,
        searchers_cross=crosses["searcher"],
        topics_cross=crosses["topic"],
        searchers=remaining["searcher"],
        topics=remaining["topic"],
        searchers_left_out=total["searcher"] - remaining["searcher"],
        topics_left_out=total["topic"] - remaining["topic"],
        fewest=number,
        fewest_are=noun,
    )


def crossings_of(values: Floats, factors: Factors, first: Ints, second: Ints) -> list[Crossing]:
    """Return the crossing of all systems or, if there is none, that of each pair.

    Raise StatisticsError if a pair has none either, or there are too many pairs.
    """
    try:
        return [crossing_of(values, factors)]
    except StatisticsError:
        if (
            len(factors.systems) == 2
            or len(first) > _MOST_PAIRS
            or len(values) * len(first) > _MOST_SESSIONS
        ):
            raise

    crossings = []
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        sessions = np.flatnonzero((factors.system == a) | (factors.system == b))
        part = replace(
            factors.take(sessions),
            systems=[factors.systems[a], factors.systems[b]],
            system=(factors.system[sessions] == b) * 1,
        )
        crossing = crossing_of(values[sessions], part)
        crossings.append(replace(crossing, sessions=sessions[crossing.sessions]))

    return crossings


def recognise(factors: Factors) -> Design:
    """Return the design of the sessions of two systems or more, whether or not they can be crossed.

    'paired': every searcher who searched a topic used every system on it. 'latin_square': every
    searcher searched every topic once, the systems balanced over searchers and over topics.
    'two_way': every topic was searched with every system, whoever did it. 'unpaired': anything
    else.
    """
    if (factors.searcher >= 0).all() and len(factors.system):
        if _filled(_counts(factors, ("topic", "searcher"), "system")):
            return "paired"
        if _is_latin_square(factors):
            return "latin_square"

    return "two_way" if _filled(_counts(factors, ("topic",), "system")) else "unpaired"


def paired_values(values: Floats, factors: Factors) -> PairedValues:
    """Return values paired by topic and searcher: the cells in which every system has a value, the
    mean of its sessions."""
    return _paired(values, factors, factors.searcher)


def topic_values(values: Floats, factors: Factors) -> PairedValues:
    """Return values paired by topic: the mean of each system's sessions, where every system has
    some."""
    return _paired(values, factors, np.full(len(values), -1, np.int64))


def samples(values: Floats, factors: Factors) -> list[Floats]:
    """Return the values of each system's sessions, in order, without those that have none."""
    defined = ~np.isnan(values)
    return [values[defined & (factors.system == system)] for system in range(len(factors.systems))]


def _uses(unit: Ints, system: Ints, systems: int, name: str) -> tuple[bool, Flags]:
    """Return whether most searchers (or topics) have all systems rather than one, and which
    sessions are of those."""
    units, index = np.unique(unit, return_inverse=True)
    uses = np.zeros((len(units), systems), np.bool_)
    uses[index.ravel(), system] = True
    number = uses.sum(axis=1)
    has_all, has_one = number == systems, number == 1
    if max(has_all.sum(), has_one.sum()) * 2 <= len(units):
        raise _not_crossed(f"most {name}s have neither all systems nor one each")

    crosses = bool(has_all.sum() > has_one.sum())
    chosen = has_all if crosses else has_one
    if uses[chosen].sum(axis=0).min(initial=len(units)) < (3 if crosses else 2):
        raise _not_crossed(f"it needs {'3' if crosses else '2'} {name}s or more of each system")
    return crosses, chosen[index.ravel()]


def _not_crossed(reason: str) -> StatisticsError:
    return StatisticsError(
        f"the sessions allow no crossed analysis: {reason}", code="not_crossed", pointer="design"
    )


def _numbered(names: list[bytes]) -> tuple[list[bytes], Ints]:
    index = {
        name: place for place, name in enumerate(dict.fromkeys(name for name in names if name))
    }
    return list(index), np.array([index.get(name, -1) for name in names], np.int64)


def _counts(factors: Factors, rows: tuple[str, ...], columns: str) -> Ints:
    """Return the number of sessions of each combination: a row for each combination of `rows` that
    occurs, a column for each value of `columns`."""
    keys = np.stack([getattr(factors, name) for name in rows], axis=1)
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    column: Ints = getattr(factors, columns)
    n_columns = int(column.max(initial=-1)) + 1
    has_column = column >= 0
    size = len(cells) * n_columns

    return np.bincount(
        cell.ravel()[has_column] * n_columns + column[has_column], minlength=size
    ).reshape(len(cells), n_columns)


def _filled(counts: Ints) -> bool:
    occurring = counts[:, counts.sum(axis=0) > 0]
    return bool(occurring.shape[1] > 1 and (occurring > 0).all())


def _is_latin_square(factors: Factors) -> bool:
    cells = _counts(factors, ("searcher",), "topic")
    balanced = (_counts(factors, ("searcher",), "system"), _counts(factors, ("topic",), "system"))
    once = bool((cells[:, cells.sum(axis=0) > 0] == 1).all()) and (factors.system >= 0).all()
    return bool(once) and all(_even(counts[:, counts.sum(axis=0) > 0]) for counts in balanced)


def _even(counts: Ints) -> bool:
    return bool(counts.shape[1] > 1 and (counts == counts.flat[0]).all())


def _paired(values: Floats, factors: Factors, searcher: Ints) -> PairedValues:
    taken = np.flatnonzero(~np.isnan(values) & (factors.system >= 0) & (factors.topic >= 0))
    keys = np.stack([factors.topic[taken], searcher[taken]], axis=1)
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    systems = len(factors.systems)
    index = factors.system[taken] * len(cells) + cell.ravel()
    count = np.bincount(index, minlength=systems * len(cells)).reshape(systems, len(cells))
    total = np.bincount(index, values[taken], systems * len(cells)).reshape(systems, len(cells))
    full = (count > 0).all(axis=0)

    return PairedValues(total[:, full] / count[:, full], cells[full, 0], cells[full, 1])
