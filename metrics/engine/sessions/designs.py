"""Sessions of several systems made ready for a test: which design they have, and the values as the
tests want them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.sessions.blocks import Session
from metrics.engine.significance.pairs import Matrix

# Pairs of systems that are crossed one by one, and their sessions in total: both take less than a
# second.
_MOST_PAIRS, _MOST_SESSIONS = 300, 10_000_000

Design = Literal["crossed", "paired", "latin_square", "two_way", "unpaired"]


@dataclass(frozen=True)
class Factors:
    """Topic, searcher and system of every session, as indices into their names, in order of first
    appearance.

    Shapes: `topic`, `searcher` and `system` have one entry per session; an index of -1 stands where
    the file says nothing.
    """

    topics: list[bytes]
    searchers: list[bytes]
    systems: list[bytes]
    topic: Ints
    searcher: Ints
    system: Ints

    @classmethod
    def of(cls, sessions: Iterable[Session]) -> Self:
        kept = list(sessions)
        parts = [
            _numbered([getattr(one, name) for one in kept])
            for name in ("topic_id", "searcher", "system")
        ]
        (topics, topic), (searchers, searcher), (systems, system) = parts

        return cls(topics, searchers, systems, topic, searcher, system)

    def take(self, sessions: Ints) -> Self:
        """Return the factors of some sessions; names keep their indices."""
        return type(self)(
            self.topics, self.searchers, self.systems,
            self.topic[sessions], self.searcher[sessions], self.system[sessions],
        )  # fmt: skip


@dataclass(frozen=True)
class PairedValues:
    """Values ready for a test of paired runs: `values` (systems, cells), NaN nowhere; the cells in
    order.

    `topic` and `searcher` have one entry per cell; searcher is -1 where cells are topics.
    """

    values: Matrix
    topic: Ints
    searcher: Ints


@dataclass(frozen=True)
class Crossing:
    """What a crossed analysis takes: `sessions`, in which every searcher has all systems or every
    one a single system, and so every topic.

    `searchers` and `topics` are those taken, `searchers_left_out` and `topics_left_out` the others.
    `fewest` is the smaller number of both, counted for each system where they have one;
    `fewest_are` says of which.
    """

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
    taking = np.flatnonzero(~np.isnan(values) & (factors.system >= 0))
    units = {"searcher": factors.searcher, "topic": factors.topic}
    if min(unit[taking].min(initial=0) for unit in units.values()) < 0:
        raise _not_crossed("it needs the topic and the searcher of every session")

    whole = {name: len(np.unique(unit[taking])) for name, unit in units.items()}
    crosses: dict[str, bool] = {}
    before = len(taking) + 1
    while len(taking) < before:
        before = len(taking)
        for name, unit in units.items():
            crosses[name], kept = _uses(
                unit[taking], factors.system[taking], len(factors.systems), name
            )
            taking = taking[kept]

    cells = len(
        np.unique(factors.topic[taking] * len(factors.searchers) + factors.searcher[taking])
    )
    left = {name: len(np.unique(unit[taking])) for name, unit in units.items()}
    for name, other in (("searcher", "topic"), ("topic", "searcher")):
        if cells == left[name]:
            raise _not_crossed(f"no {name} has several {other}s")

    fewest = []
    for name, unit in units.items():
        of_system = [
            len(np.unique(unit[taking[factors.system[taking] == i]]))
            for i in range(len(factors.systems))
        ]
        fewest.append((min(of_system), f"{name}s" if crosses[name] else f"{name}s of a system"))

    return Crossing(
        taking, crosses["searcher"], crosses["topic"], left["searcher"], left["topic"],
        whole["searcher"] - left["searcher"], whole["topic"] - left["topic"], *min(fewest),
    )  # fmt: skip


def crossings_of(values: Floats, factors: Factors, first: Ints, second: Ints) -> list[Crossing]:
    """Return what a crossed analysis of all systems takes; where there is none, what that of each
    pair takes.

    Raise StatisticsError where some pair has none either, or there are too many.
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

    found = []
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        own = np.flatnonzero((factors.system == i) | (factors.system == j))
        part = replace(
            factors.take(own),
            systems=[factors.systems[i], factors.systems[j]],
            system=(factors.system[own] == j) * 1,
        )
        crossing = crossing_of(values[own], part)
        found.append(replace(crossing, sessions=own[crossing.sessions]))

    return found


def recognise(factors: Factors) -> Design:
    """Return the design of the sessions of two systems or more, whether or not they can be crossed.

    'paired': every searcher who searched a topic used every system on it. 'latin_square': every
    searcher searched every topic once, the systems balanced over searchers and over topics.
    'two_way': every topic was searched with every system, whoever did it. 'unpaired': anything
    else.
    """
    if (factors.searcher >= 0).all() and len(factors.system):
        with_searcher = _filled(_counts(factors, ("topic", "searcher"), "system"))
        if with_searcher:
            return "paired"
        if _is_latin_square(factors):
            return "latin_square"

    return "two_way" if _filled(_counts(factors, ("topic",), "system")) else "unpaired"


def paired_values(values: Floats, factors: Factors) -> PairedValues:
    """Values paired by (topic, searcher): cells in which every system has a value; several sessions
    are averaged."""
    return _paired(values, factors, factors.searcher)


def topic_values(values: Floats, factors: Factors) -> PairedValues:
    """Values paired by topic: the mean of each system's sessions on a topic, where every system has
    one."""
    return _paired(values, factors, np.full(len(values), -1, np.int64))


def samples(values: Floats, factors: Factors) -> list[Floats]:
    """Return the values of each system's sessions, in their order, those without a value left
    out."""
    defined = ~np.isnan(values)
    return [values[defined & (factors.system == system)] for system in range(len(factors.systems))]


def _uses(unit: Ints, system: Ints, systems: int, name: str) -> tuple[bool, Flags]:
    """Return whether most searchers, or topics, have all systems, not one, and which sessions are
    of those."""
    names, at = np.unique(unit, return_inverse=True)
    used = np.zeros((len(names), systems), np.bool_)
    used[at.ravel(), system] = True
    number = used.sum(axis=1)
    every, one = number == systems, number == 1
    if max(every.sum(), one.sum()) * 2 <= len(names):
        raise _not_crossed(f"most {name}s have neither all systems nor one each")

    crosses = bool(every.sum() > one.sum())
    kept = every if crosses else one
    if used[kept].sum(axis=0).min(initial=len(names)) < (3 if crosses else 2):
        raise _not_crossed(f"it needs {'3' if crosses else '2'} {name}s or more of each system")
    return crosses, kept[at.ravel()]


def _not_crossed(why: str) -> StatisticsError:
    return StatisticsError(
        f"the sessions allow no crossed analysis: {why}", code="not_crossed", pointer="design"
    )


def _numbered(names: list[bytes]) -> tuple[list[bytes], Ints]:
    index = {
        name: place for place, name in enumerate(dict.fromkeys(name for name in names if name))
    }
    return list(index), np.array([index.get(name, -1) for name in names], np.int64)


def _counts(factors: Factors, rows: tuple[str, ...], columns: str) -> Ints:
    """Return how many sessions each combination has: rows those that occur, columns all of the
    other factor's."""
    keys = np.stack([getattr(factors, name) for name in rows], axis=1)
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    column: Ints = getattr(factors, columns)
    wide = int(column.max(initial=-1)) + 1
    known = column >= 0
    size = len(cells) * wide

    return np.bincount(cell.ravel()[known] * wide + column[known], minlength=size).reshape(
        len(cells), wide
    )


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
    taking = np.flatnonzero(~np.isnan(values) & (factors.system >= 0) & (factors.topic >= 0))
    keys = np.stack([factors.topic[taking], searcher[taking]], axis=1)
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    systems = len(factors.systems)
    at = factors.system[taking] * len(cells) + cell.ravel()
    count = np.bincount(at, minlength=systems * len(cells)).reshape(systems, len(cells))
    total = np.bincount(at, values[taking], systems * len(cells)).reshape(systems, len(cells))
    full = (count > 0).all(axis=0)

    return PairedValues(total[:, full] / count[:, full], cells[full, 0], cells[full, 1])
