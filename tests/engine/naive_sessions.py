"""Session measures as loops over one session's documents: slow, plain, and written apart from the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NaiveQuery:
    """A ranking, how far it was looked at (-1 unknown), and the levels of the documents judged for it."""

    documents: Sequence[str]
    scanned: int
    levels: Mapping[str, int]


@dataclass(frozen=True)
class Choice:
    gain: Callable[[int], float]
    depth: int
    b: float
    bq: float | None
    short: str
    dup: str
    scan: str
    form: str = "source"

    def rank_discount(self, rank: int) -> float:
        return (
            math.log(rank + self.b - 1, self.b)
            if self.form == "shifted"
            else 1 + math.log(rank, self.b)
        )

    def query_discount(self, number: int) -> float:
        if self.bq is None:
            return 1.0
        return (
            math.log(number + self.bq - 1, self.bq)
            if self.form == "shifted"
            else 1 + math.log(number, self.bq)
        )


Session = Sequence[NaiveQuery]


def looked_at(query: NaiveQuery, choice: Choice) -> int:
    if choice.scan == "recorded" and query.scanned >= 0:
        return min(query.scanned, choice.depth)
    return choice.depth


def slot_count(query: NaiveQuery, choice: Choice) -> int:
    depth = looked_at(query, choice)
    if choice.short == "pad":
        return depth
    listed = min(len(query.documents), depth)
    return max(listed, int(choice.short[4:])) if choice.short.startswith("min:") else listed


def slot_gains(session: Session, choice: Choice) -> list[list[float]]:
    """The gain in every slot of every query."""
    earlier, gains = set[str](), []
    for query in session:
        row = [0.0] * slot_count(query, choice)
        for place, doc in enumerate(query.documents[: looked_at(query, choice)]):
            if doc in query.levels and not (choice.dup == "first" and doc in earlier):
                row[place] = choice.gain(query.levels[doc])
                earlier.add(doc)
        gains.append(row)
    return gains


def ideal_order(query: NaiveQuery, choice: Choice) -> list[float]:
    return sorted((choice.gain(level) for level in query.levels.values()), reverse=True)


def repeated_ideal(session: Session, choice: Choice) -> list[list[float]]:
    rows = []
    for query in session:
        slots = slot_count(query, choice)
        rows.append((ideal_order(query, choice) + [0.0] * slots)[:slots])
    return rows


def once_ideal(session: Session, choice: Choice) -> list[list[float]]:
    """Each gain in one slot, the best in the slot that counts most; of equal ones, which rounding must not tell apart,
    in the first."""
    rows = [[0.0] * slot_count(query, choice) for query in session]
    weight = {
        (number, place): 1 / choice.rank_discount(place + 1) / choice.query_discount(number + 1)
        for number, row in enumerate(rows)
        for place in range(len(row))
    }
    places = sorted(weight, key=lambda at: (-round(weight[at], 12), at))
    for (number, place), gain in zip(places, ideal_order(session[0], choice), strict=False):
        rows[number][place] = gain
    return rows


def discounted(rows: list[list[float]], choice: Choice) -> list[list[float]]:
    return [
        [
            gain / choice.rank_discount(rank) / choice.query_discount(number)
            for rank, gain in enumerate(row, 1)
        ]
        for number, row in enumerate(rows, 1)
    ]


def cumulated(values: Sequence[float]) -> list[float]:
    return [sum(values[: place + 1]) for place in range(len(values))]


def flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


def vector(session: Session, choice: Choice) -> list[float]:
    return cumulated(flat(discounted(slot_gains(session, choice), choice)))


def ideal_vector(session: Session, choice: Choice, ideal: str) -> list[float]:
    rows = repeated_ideal(session, choice) if ideal == "repeated" else once_ideal(session, choice)
    return cumulated(flat(discounted(rows, choice)))


def share(above: float, below: float) -> float:
    return above / below if below else 0.0


def normalised(session: Session, choice: Choice, ideal: str, norm: str) -> list[float]:
    if norm == "session":
        return [
            share(*pair)
            for pair in zip(
                vector(session, choice), ideal_vector(session, choice, ideal), strict=True
            )
        ]
    values = list[float]()
    best = repeated_ideal(session, choice)
    for row, ideal_row in zip(discounted(slot_gains(session, choice), choice), best, strict=True):
        ideal_dcg = cumulated(
            [gain / choice.rank_discount(rank) for rank, gain in enumerate(ideal_row, 1)]
        )
        values += [share(*pair) for pair in zip(cumulated(row), ideal_dcg, strict=True)]
    return values


def per_query(session: Session, choice: Choice, norm: str | None) -> list[float]:
    """What each query adds, or its share of what its ideal adds."""
    sums = [sum(row) for row in discounted(slot_gains(session, choice), choice)]
    if norm is None:
        return sums
    rows = repeated_ideal(session, choice)
    best = [sum(row) for row in discounted(rows, choice)]
    if norm == "query":
        best = [value * choice.query_discount(number) for number, value in enumerate(best, 1)]
    return [share(*pair) for pair in zip(sums, best, strict=True)]


def figure(
    session: Session, choice: Choice, name: str, ideal: str = "repeated", norm: str | None = None
) -> float:
    """nan where nobody judged the session or, where normalised, nothing could be gained."""
    judged = any(query.levels for query in session)
    gainful = any(sum(row) > 0 for row in repeated_ideal(session, choice))
    if not judged or (norm and not gainful):
        return math.nan
    whole = vector(session, choice) if norm is None else normalised(session, choice, ideal, norm)
    queries = per_query(session, choice, norm)
    if name == "avgpos":
        return sum(whole) / len(whole) if whole else 0.0
    if name == "final":
        return queries[-1] if norm == "query" else whole[-1] if whole else 0.0
    pick = {"first": queries[0], "last": queries[-1], "best": max(queries), "worst": min(queries)}
    return pick.get(name, sum(queries) / len(queries))
