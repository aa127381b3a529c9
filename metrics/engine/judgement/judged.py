"""JudgedRun: the sparse judged view of a run, the input of every measure."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.compiled.packing import FIRST, pack, unpack
from metrics.engine.compiled.row_columns import COLUMNS, grow, shrink
from metrics.engine.compiled.running import place, running_sum
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.sampling import Sampling
from metrics.engine.judgement.subtopics import Coverage, Subtopics

_T = TypeVar("_T")


def sum_by_topic(topic: Ints, values: Floats, n_topics: int) -> Floats:
    """Return values summed per topic in the order of the rows; shape (topics,)."""
    return np.bincount(topic, values, n_topics).astype(np.float64, copy=False)


def _groups(topic: Ints, key: Ints) -> tuple[Ints, Ints]:
    """Return first row and size of each stretch of rows with the same topic and key."""
    new = np.ones(len(topic), np.bool_)
    new[1:] = (topic[1:] != topic[:-1]) | (key[1:] != key[:-1])
    starts = np.flatnonzero(new)
    return starts, np.diff(np.append(starts, len(topic)))


@dataclass(frozen=True)
class RecallBase:
    """The number of documents of each topic at each level: rows sorted by topic, then by level
    descending.

    Shapes: `topic`, `level`, `counts` have one entry per (topic, level) that occurs, so a huge
    level needs no memory.
    """

    topic: Ints
    level: Ints
    counts: Ints
    n_topics: int

    @classmethod
    def of(cls, topics: Ints, levels: Ints, n_topics: int) -> Self:
        top = int(levels.max(initial=0))
        width = top - int(levels.min(initial=0)) + 1
        if width * n_topics <= 4 * len(levels):
            # With few levels, which is the rule, counting takes less time than sorting. It is done
            # in place: an array for each step would take half as long again.
            cell = topics * width
            cell += top
            cell -= levels
            every = np.bincount(cell)
            cells = np.flatnonzero(every)
            return cls(cells // width, top - cells % width, every[cells], n_topics)

        order = np.lexsort((-levels, topics))
        topics, levels = topics[order], levels[order]
        starts, sizes = _groups(topics, levels)
        return cls(topics[starts], levels[starts], sizes, n_topics)

    def sum_where(self, chosen: Flags) -> Ints:
        """Return the number of documents per topic over the chosen rows; shape (topics,)."""
        return np.bincount(self.topic[chosen], self.counts[chosen], self.n_topics).astype(np.int64)

    @cached_property
    def _memo(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a value that depends on the judgements alone, computed once for all runs by the
        same ones."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: _T = self._memo[key]
        return value


@dataclass(frozen=True)
class Known:
    """What the user of a run knew and expected before the search.

    Shapes: `rows` says of each row of the judged run whether its document was known; `base` counts
    the known judged documents, retrieved or not; `expected` has one number of relevant documents
    per topic, 0 where none was given.
    """

    rows: Flags
    base: RecallBase
    expected: Ints


@dataclass(frozen=True)
class RankedGains:
    """Documents with a gain, sorted by topic and rank, which the measures of cumulated gain sum."""

    topic: Ints
    rank: Ints
    gain: Floats
    n_topics: int

    def within(self, cutoff: int | None) -> Self:
        """Return the documents at ranks 1..cutoff."""
        if cutoff is None or self.rank.max(initial=0) <= cutoff:
            return self
        rows = np.flatnonzero(self.rank <= cutoff)
        return replace(self, topic=self.topic[rows], rank=self.rank[rows], gain=self.gain[rows])

    def sum(self, discount: Floats | None = None) -> Floats:
        """Return the sum of gain / discount per topic, added in rank order; shape (topics,)."""
        return sum_by_topic(
            self.topic, self.gain if discount is None else self.gain / discount, self.n_topics
        )

    def count(self) -> Ints:
        """Return the number of documents with a gain per topic; shape (topics,)."""
        return np.bincount(self.topic, minlength=self.n_topics)

    def cumulated(self, discount: Floats | None = None) -> Self:
        """Return the same ranks, each with the sum of gain / discount down to it."""
        values = self.gain if discount is None else self.gain / discount
        return replace(self, gain=running_sum(self.topic, values))

    def reached(self, topic: Ints, rank: Ints) -> Floats:
        """Return for a cumulated vector the sum down to each given (topic, rank), listed or not;
        one entry for each."""
        width = max(self.rank.max(initial=0), rank.max(initial=0)) + 1
        row = (
            np.searchsorted(self.topic * width + self.rank, topic * width + rank, side="right") - 1
        )
        same_topic = np.append(self.topic, -1)[row] == topic

        return np.where(same_topic, np.append(self.gain, 0.0)[row], 0.0)


@dataclass(frozen=True)
class Relevant:
    """The relevant documents a run retrieved; `ordinal` numbers them from 1 within their
    topic, in the order of rank."""

    topic: Ints
    rank: Ints
    ordinal: Ints
    n_topics: int

    def count(self, cutoff: int | Ints | None = None) -> Ints:
        """Return the number of relevant documents retrieved per topic, within one cutoff or one per
        topic; shape (topics,)."""
        if cutoff is None:
            return np.bincount(self.topic, minlength=self.n_topics)
        limit = cutoff[self.topic] if isinstance(cutoff, np.ndarray) else cutoff
        return np.bincount(self.topic[np.flatnonzero(self.rank <= limit)], minlength=self.n_topics)


@dataclass(frozen=True)
class JudgedRun:
    """The judged part of a run. Topics are in the qrels' order; rows are sorted by topic and rank.

    Shapes: one entry per retrieved judged document in `topic`, `rank` (1-based), `level`,
    `judgement` (row of the qrels), `score`, `tie_first` and `tie_size` (first rank and size of the
    group of equal scores); one entry per topic in `num_ret` and `squared_scores` (NaN where the
    scores of documents left out are not known). `known` is None if the run came without known
    documents, `subtopics` if every topic has one iteration only, `sampling` unless the judged
    documents are a sample. A run that is not `ranked` has values from tables alone: it has no
    ranking, which is something else than one without documents.
    """

    topic: Ints
    rank: Ints
    level: Ints
    judgement: Ints
    score: Floats
    tie_first: Ints
    tie_size: Ints
    num_ret: Ints
    squared_scores: Floats
    recall_base: RecallBase
    known: Known | None = None
    subtopics: Subtopics | None = None
    sampling: Sampling | None = None
    ranked: bool = True

    @property
    def n_topics(self) -> int:
        return self.recall_base.n_topics

    @cached_property
    def _memo(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a value that several measures or curves derive from the run, computed by the first
        of them."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: _T = self._memo[key]
        return value

    @cached_property
    def condensed(self) -> Self:
        """Return the condensed list, without documents that are unjudged or judged at a level below
        0; the rest moves up (trec_eval -J, judged_only=True).

        Documents in a stratum that were not drawn stay: estimates count them.
        """
        judged = self.level >= 0
        if self.sampling and self.sampling.strata:
            judged = np.ones_like(judged)

        topic = self.topic[judged]
        num_ret = np.bincount(topic, minlength=self.n_topics)
        first = np.searchsorted(topic, np.arange(self.n_topics))
        rank = np.arange(len(topic)) - first[topic] + 1
        starts, sizes = _groups(topic, self.tie_first[judged])

        return replace(
            self,
            topic=topic,
            rank=rank,
            level=self.level[judged],
            judgement=self.judgement[judged],
            score=self.score[judged],
            tie_first=np.repeat(rank[starts], sizes),
            tie_size=np.repeat(sizes, sizes),
            num_ret=num_ret,
            squared_scores=np.where(num_ret == self.num_ret, self.squared_scores, np.nan),
            known=self.known and replace(self.known, rows=self.known.rows[judged]),
            sampling=self.sampling and self.sampling.take(judged),
        )

    def truncated(self, depth: int) -> Self:
        """Return only the first `depth` ranks (trec_eval -M)."""
        within = self.rank <= depth
        tie_first = self.tie_first[within]
        return replace(
            self,
            topic=self.topic[within],
            rank=self.rank[within],
            level=self.level[within],
            judgement=self.judgement[within],
            score=self.score[within],
            tie_first=tie_first,
            tie_size=np.minimum(self.tie_size[within], depth + 1 - tie_first),
            num_ret=np.minimum(self.num_ret, depth),
            squared_scores=np.where(self.num_ret <= depth, self.squared_scores, np.nan),
            known=self.known and replace(self.known, rows=self.known.rows[within]),
            sampling=self.sampling and self.sampling.take(within),
        )

    def without(self, left_out: Flags, base: RecallBase) -> Self:
        """Return the run as if these judgements had not been made: their documents are unjudged.

        `left_out` has one entry for each row of the qrels, `base` counts the others. Nothing is
        said of documents that the user knew. Raise MeasureError for sampled judgements: what is
        left of a sample has other probabilities.
        """
        if self.sampling:
            message = "judgements cannot be left out of sampled ones: the others have other rates"
            raise MeasureError(message, code="sampled_judgements")

        judged = np.logical_not(left_out[self.judgement])
        return replace(
            self,
            topic=self.topic[judged],
            rank=self.rank[judged],
            level=self.level[judged],
            judgement=self.judgement[judged],
            score=self.score[judged],
            tie_first=self.tie_first[judged],
            tie_size=self.tie_size[judged],
            recall_base=base,
            known=None,
            subtopics=self.subtopics and self.subtopics.without(left_out),
        )

    def of_level(self, level: int) -> Self:
        """Return the run with documents of this level as relevant ones, at level 1, and all others
        at 0."""
        return self.once(("of level", level), lambda: self._of_level(level))

    def _of_level(self, level: int) -> Self:
        def binary(levels: Ints) -> Ints:
            return np.where(levels < 0, levels, levels == level)

        def binary_base(base: RecallBase) -> RecallBase:
            levels = binary(base.level)
            order = np.lexsort((-levels, base.topic))
            return RecallBase(base.topic[order], levels[order], base.counts[order], base.n_topics)

        known = self.known and replace(self.known, base=binary_base(self.known.base))
        return replace(
            self, level=binary(self.level), recall_base=binary_base(self.recall_base), known=known
        )

    def of_topics(self, chosen: Flags) -> Self:
        """Return the run with empty recall bases for the other topics, which then count in no sum
        over topics."""
        base = self.recall_base
        rows = chosen[base.topic]
        return replace(
            self,
            recall_base=RecallBase(
                base.topic[rows], base.level[rows], base.counts[rows], base.n_topics
            ),
        )

    def num_rel(self, rel: int = 1) -> Ints:
        """Return the size of the recall base per topic; shape (topics,)."""
        return self.once(
            ("num_rel", rel), lambda: self.recall_base.sum_where(self.recall_base.level >= rel)
        )

    def relevant(self, rel: int = 1) -> Relevant:
        """Return the retrieved documents of level `rel` or more."""
        return self.once(("relevant", rel), lambda: self._relevant(rel))

    def _at_least(self, level: int) -> Ints:
        """Return the rows of this level or more, computed once, by number, because indexing by
        number is faster than by flag."""
        return self.once(("at least", level), lambda: np.flatnonzero(self.level >= level))

    def _relevant(self, rel: int) -> Relevant:
        chosen = self._at_least(rel)
        topic = self.topic[chosen]
        first = np.searchsorted(topic, np.arange(self.n_topics))
        ordinal = np.arange(len(topic)) - first[topic] + 1

        return Relevant(topic, self.rank[chosen], ordinal, self.n_topics)

    def num_nonrel(self, rel: int = 1) -> Ints:
        """Return the number of documents judged non-relevant per topic, retrieved or not; shape
        (topics,)."""
        level = self.recall_base.level
        return self.recall_base.sum_where((level >= 0) & (level < rel))

    def nonrelevant(self, rel: int = 1) -> Flags:
        """Return which of the rows are judged non-relevant; a level below 0 is not a judgement."""
        return (self.level >= 0) & (self.level < rel)

    def count_above(self, chosen: Flags, rel: int = 1) -> Ints:
        """Return how many of the chosen rows are above each relevant document; one entry per row of
        `relevant(rel)`."""
        first = np.searchsorted(self.topic, np.arange(self.n_topics))
        before = np.append(0, np.cumsum(chosen))
        above: Ints = (before[:-1] - before[first[self.topic]])[self.level >= rel]
        return above

    def gains(self, gains: GainMap) -> RankedGains:
        """Return the retrieved documents with a gain above 0."""
        return self.once(("gains", gains), lambda: self._gains(gains))

    def _gains(self, gains: GainMap) -> RankedGains:
        rows = self._at_least(gains.lowest)
        gain = gains.of(self.level[rows])
        chosen = np.flatnonzero(gain > 0)
        rows = rows[chosen]

        return RankedGains(self.topic[rows], self.rank[rows], gain[chosen], self.n_topics)

    def ideal_gains(self, gains: GainMap) -> RankedGains:
        """Return the ideal ranking: every judged document with a gain, in descending order of
        gain."""
        base = self.recall_base
        return base.once(("ideal", gains), lambda: best_order(base, gains))

    def retrieved_ideal_gains(self, gains: GainMap) -> RankedGains:
        """Return the best order of the documents that the run retrieved."""
        return self.once(
            ("retrieved ideal", gains), lambda: best_order(self._retrieved_base, gains)
        )

    @cached_property
    def _retrieved_base(self) -> RecallBase:
        return RecallBase.of(self.topic, self.level, self.n_topics)

    def coverage(self, rel: int = 1) -> Coverage:
        """Return the subtopics that the retrieved documents are relevant to."""
        return self.once(("coverage", rel), lambda: self._coverage(rel))

    def _coverage(self, rel: int) -> Coverage:
        if self.subtopics:
            return self.subtopics.coverage(self.judgement, self.rank, rel, self.n_topics)

        relevant, size = self.relevant(rel), self.num_rel(rel)
        return Coverage(
            relevant.topic,
            relevant.rank,
            relevant.ordinal - 1,
            size[relevant.topic],
            np.minimum(size, 1),
        )

    def ideal_coverage(self, rel: int, alpha: float, depth: int) -> Coverage:
        """Return the subtopics that the greedy ideal ranking is relevant to, down to `depth`."""
        return self.once(
            ("ideal coverage", rel, alpha, depth), lambda: self._ideal_coverage(rel, alpha, depth)
        )

    def _ideal_coverage(self, rel: int, alpha: float, depth: int) -> Coverage:
        if self.subtopics:
            return self.subtopics.ideal(rel, alpha, depth, self.n_topics)

        size = self.num_rel(rel)
        topic = np.repeat(np.arange(self.n_topics), np.minimum(size, depth))
        earlier = place(topic)
        return Coverage(topic, earlier + 1, earlier, size[topic], np.minimum(size, 1))

    def to_bytes(self) -> bytes:
        """Return a compact form to store; `from_bytes` gives an equal JudgedRun back."""
        return pack({"n_topics": self.n_topics}, self._arrays())

    def _arrays(self) -> list[tuple[str, Any]]:
        parts = list(shrink({name: getattr(self, name) for name in COLUMNS}, self.n_topics).items())
        parts += [(name, getattr(self, name)) for name in _TOPICS]
        parts += _named("base", self.recall_base, _BASE)
        if self.known:
            parts += [("known_rows", self.known.rows), ("known_expected", self.known.expected)]
            parts += _named("known", self.known.base, _BASE)

        if self.subtopics:
            parts += _named("subtopics", self.subtopics, _SUBTOPICS)
        if self.sampling:
            parts += _named("sampling", self.sampling, _SAMPLING)
            parts.append(("sampling_strata", np.array([self.sampling.strata], np.int8)))
        if not self.ranked:
            parts.append(("ranked", np.zeros(1, np.int8)))
        return parts

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Return the JudgedRun that `to_bytes` wrote. Raise ValueError if the bytes are of a later
        version."""
        header, arrays = unpack(stored, "judged view")
        # In the first format rows have all of their columns.
        if header["format"] != FIRST:
            arrays |= grow(arrays)

        n_topics, known, subtopics, sampling = header["n_topics"], None, None, None
        recall_base = _take_base(arrays, "base", n_topics)
        if "known_rows" in arrays:
            rows, expected = arrays.pop("known_rows") > 0, arrays.pop("known_expected")
            known = Known(rows, _take_base(arrays, "known", n_topics), expected)

        if "subtopics_topic" in arrays:
            subtopics = Subtopics(*_take(arrays, "subtopics", _SUBTOPICS))
        if "sampling_rows" in arrays:
            strata = arrays.pop("sampling_strata")
            columns = {name: arrays.pop(f"sampling_{name}") for name in _SAMPLING}
            sampling = Sampling(**columns, strata=bool(strata[0]))

        ranked = arrays.pop("ranked", None) is None
        return cls(
            **arrays,
            ranked=ranked,
            recall_base=recall_base,
            known=known,
            subtopics=subtopics,
            sampling=sampling,
        )


# The columns of a view's topics, and those of its parts.
_TOPICS = ("num_ret", "squared_scores")
_BASE = ("topic", "level", "counts")
_SUBTOPICS = ("topic", "judgement", "subtopic", "level")
_SAMPLING = ("rows", "topic", "probability", "cell_group", "cell_level", "cell_count")


def _named(name: str, part: Any, columns: tuple[str, ...]) -> list[tuple[str, Any]]:
    return [(f"{name}_{column}", getattr(part, column)) for column in columns]


def _take(arrays: dict[str, Any], name: str, columns: tuple[str, ...]) -> list[Any]:
    """Remove the arrays that `_named` named, and return them."""
    return [arrays.pop(f"{name}_{column}") for column in columns]


def _take_base(arrays: dict[str, Any], name: str, n_topics: int) -> RecallBase:
    topic, level, counts = _take(arrays, name, _BASE)
    return RecallBase(topic, level, counts, n_topics)


def best_order(base: RecallBase, gains: GainMap) -> RankedGains:
    """Return the ideal ranking of every topic: all its documents with a gain, in descending order
    of gain."""
    gain = gains.of(base.level)
    order = np.lexsort((-gain, base.topic))
    order = order[gain[order] > 0]
    topic = np.repeat(base.topic[order], base.counts[order])
    first = np.searchsorted(topic, np.arange(base.n_topics))
    rank = np.arange(len(topic)) - first[topic] + 1

    return RankedGains(topic, rank, np.repeat(gain[order], base.counts[order]), base.n_topics)
