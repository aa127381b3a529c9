"""Columns: the values of a run under trec_eval's names, averaged as trec_eval averages them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic
from metrics.engine.measures.grammar import MIN_GEOMETRIC, Measure, trec_eval_measure
from metrics.engine.trec_eval.requests import Request
from metrics.engine.trec_eval.table import Figure, Takes, Version

Value = float | int | str | None
Scale = Mapping[tuple[bytes, str], tuple[float, float]]
_PERSISTENCE = 0.9
_ROUNDINGS: dict[Version, str] = {"10": "10", "9.0.8": "9"}
# trec_eval -Z prints this for a topic without a mean and deviation.
NO_SCALE = -1_000_000.0
# For a topic without an answer, trec_eval 10 -c ranks one unjudged document. It hides that in these
# names, and leaves it in if parameters follow them.
_CLEARED = ("num_ret", "utility", "rbp_resid")
_CLEARED_PREFIX = "unj"


@dataclass(frozen=True)
class Settings:
    """trec_eval's options: -l level, -M depth, -J judged_only, -c complete, -N documents."""

    version: Version = "10"
    level: int = 1
    depth: int | None = None
    judged_only: bool = False
    complete: bool = False
    documents: int = 0


@dataclass(frozen=True)
class Column:
    """A measure of a run: a value for each topic with a line, None if undefined, and the figure."""

    name: str
    values: Sequence[Value] | None
    figure: Value
    has_figure: bool = True
    # How many topics of the figure have a value, and how many have none for each reason.
    defined: int = 0
    undefined: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """A judged run with the settings of trec_eval."""

    view: JudgedRun
    topic_ids: list[bytes]
    tag: str
    settings: Settings
    scale: Scale | None = None

    @cached_property
    def answered(self) -> Flags:
        return self.view.num_ret > 0

    @cached_property
    def topics(self) -> Ints:
        """Return the topics that have lines and are summed, in the order of their ids' bytes."""
        every = self.settings.complete and self.settings.version == "10"
        order = sorted(range(len(self.topic_ids)), key=self.topic_ids.__getitem__)
        return np.array([topic for topic in order if every or self.answered[topic]], np.int64)

    @cached_property
    def n_topics(self) -> int:
        """Return the number of topics of a mean."""
        return len(self.topic_ids) if self.settings.complete else len(self.topics)

    @cached_property
    def cut(self) -> JudgedRun:
        """Return the run after -M and -J."""
        return self._cut(self.view)

    @cached_property
    def filled(self) -> JudgedRun:
        """Return the run with one unjudged document instead of a missing answer."""
        return self._cut(replace(self.view, num_ret=np.maximum(self.view.num_ret, 1)))

    def _cut(self, view: JudgedRun) -> JudgedRun:
        view = view if self.settings.depth is None else view.truncated(self.settings.depth)
        return view.condensed if self.settings.judged_only else view

    def scaled(self, name: str, values: Floats) -> Floats:
        """Return values as deviations from the topics' means in `scale` (-Z); same shape."""
        if self.scale is None:
            return values

        scale = [
            self.scale.get((self.topic_ids[topic], name), (np.nan, 1.0))
            for topic in self.topics.tolist()
        ]
        mean, deviation = np.array(scale).reshape(-1, 2).T
        at_mean = (deviation == 0) & (values == mean)
        scaled = (values - mean) / np.where(
            deviation == 0, np.where(at_mean, 1.0, np.nan), deviation
        )

        return np.where(np.isnan(scaled), NO_SCALE, scaled)


def columns(
    answers: Answers, requests: Sequence[Request], measures: Sequence[Measure]
) -> list[Column]:
    """Return trec_eval's measures in its order, then the others under their canonical names."""
    of_trec_eval = [column for request in requests for column in _columns(answers, request)]
    return of_trec_eval + [_own(answers, measure) for measure in measures]


def _columns(answers: Answers, request: Request) -> list[Column]:
    entry = request.entry
    if entry.figure is Figure.TAG:
        return [Column(entry.name, None, answers.tag)]
    if entry.name == "relstring":
        return [_relstring(answers, request)]

    compute = _SPECIAL.get(entry.name, _values)
    return [
        _column(answers, request, name, values)
        for name, values in zip(request.names, compute(answers, request), strict=True)
    ]


def _column(answers: Answers, request: Request, name: str, values: Floats) -> Column:
    entry = request.entry
    if name in _CLEARED or name.startswith(_CLEARED_PREFIX):
        values = np.where(answers.answered, values, 0.0)
    values = values[answers.topics]
    if entry.figure is Figure.GEOMETRIC:
        values = np.log(np.maximum(values, MIN_GEOMETRIC))

    values = answers.scaled(name, values)
    figure = _FIGURES[entry.figure](answers, values)
    whole = entry.whole and answers.scale is None
    lines = values.astype(np.int64).tolist() if whole else values.tolist()
    return Column(name, lines if entry.by_topic else None, int(figure) if whole else figure)


def _values(answers: Answers, request: Request) -> list[Floats]:
    """Return the values of each line of a request; shape (topics,) each."""
    entry, settings = request.entry, answers.settings
    parameters: dict[str, Any] = {
        "rounding": _ROUNDINGS[settings.version],
        "documents": settings.documents,
    }
    parameters |= dict(zip(entry.sets, request.numbers, strict=True)) if entry.sets else {}

    if entry.takes is not Takes.PAIRS:
        parameters["rel"] = settings.level
    if request.gains is not None:
        parameters["gains"] = request.gains

    if entry.named and request.numbers:
        parameters[entry.named] = request.numbers[0]
    cutoffs = request.numbers if entry.takes in (Takes.DEPTHS, Takes.SHARES) else (None,)
    return [
        trec_eval_measure(entry.name, cutoff, parameters).compute(answers.filled)
        for cutoff in cutoffs
    ]


def _average_of_points(answers: Answers, request: Request) -> list[Floats]:
    """Return interpolated precision at the requested points, summed from the last one as trec_eval
    does."""
    parameters = {"rel": answers.settings.level, "rounding": _ROUNDINGS[answers.settings.version]}
    total = np.zeros(len(answers.topic_ids))
    for point in reversed(request.numbers):
        total += trec_eval_measure("iprec_at_recall", point, parameters).compute(answers.filled)
    return [total / len(request.numbers)]


def _residual(answers: Answers, request: Request) -> list[Floats]:
    """Return the worth of the unjudged ranks, added up as in trec_eval: if every retrieved document
    is judged, it leaves out the ranks beyond the ranking."""
    view, p = answers.filled, request.numbers[0] if request.numbers else _PERSISTENCE
    worth = np.cumprod(np.append(1.0, np.full(view.num_ret.max(initial=0), p)))
    topic = np.repeat(np.arange(view.n_topics), view.num_ret)
    first = np.cumsum(view.num_ret) - view.num_ret
    unjudged = np.ones(len(topic), np.bool_)
    unjudged[(first[view.topic] + view.rank - 1)[view.level >= 0]] = False
    topic, rank = topic[unjudged], (np.arange(len(unjudged)) - first[topic])[unjudged]
    inside = sum_by_topic(topic, worth[rank], view.n_topics)

    return [np.where(inside > 0, worth[view.num_ret] + (1 - p) * inside, 0.0)]


def _ndcg_at_levels(answers: Answers, request: Request) -> list[Floats]:
    """Return 0 for topics without a relevant document at -l, though some may have a gain."""
    (values,) = _values(answers, request)
    return [np.where(answers.filled.num_rel(answers.settings.level) > 0, values, 0.0)]


_SPECIAL: dict[str, Callable[[Answers, Request], list[Floats]]] = {
    "11pt_avg": _average_of_points,
    "rbp_resid": _residual,
    "Rndcg": _ndcg_at_levels,
}


def _total(values: Floats) -> float:
    """Return the sum in the order of the topics, as trec_eval adds: its last bit can matter."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def _mean(answers: Answers, values: Floats) -> float:
    return _total(values) / answers.n_topics


def _sum(answers: Answers, values: Floats) -> float:
    return _total(values)


def _geometric(answers: Answers, values: Floats) -> float:
    missing = answers.n_topics - len(values)
    return float(np.exp((_total(values) + missing * np.log(MIN_GEOMETRIC)) / answers.n_topics))


def _topics(answers: Answers, values: Floats) -> float:
    return float(answers.n_topics)


def _recall_base(answers: Answers, values: Floats) -> float:
    """Return the size of the recall base; trec_eval -c counts level 1 and above, whatever -l is."""
    return float(answers.view.num_rel(1).sum()) if answers.settings.complete else _total(values)


_FIGURES: dict[Figure, Callable[[Answers, Floats], float]] = {
    Figure.MEAN: _mean,
    Figure.SUM: _sum,
    Figure.GEOMETRIC: _geometric,
    Figure.TOPICS: _topics,
    Figure.RECALL_BASE: _recall_base,
}


def _relstring(answers: Answers, request: Request) -> Column:
    """Return the levels of the first documents as a string: '-' for one outside the qrels, '.' for
    a level below 0."""
    (name,), view = request.names, answers.filled
    sizes = np.minimum(view.num_ret, max(int(request.numbers[0]), 0))
    ends = np.cumsum(sizes)
    letters = np.full(int(ends[-1]), ord("-"), np.uint8)
    rows = view.rank <= sizes[view.topic]
    positions, level = (ends - sizes)[view.topic[rows]] + view.rank[rows] - 1, view.level[rows]
    letters[positions] = np.where(
        level < 0, ord("."), np.where(level > 9, ord(">"), ord("0") + level)
    )
    text = letters.tobytes().decode("ascii")
    strings = [
        text[end - size : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
    ]

    cleared = name == request.entry.name
    topics = answers.topics.tolist()
    return Column(
        name,
        [strings[topic] if answers.answered[topic] or not cleared else "" for topic in topics],
        None,
        False,
    )


def _own(answers: Answers, measure: Measure) -> Column:
    """Return a measure of the grammar, averaged over the same topics; a topic without a value has
    no line."""
    complete = answers.settings.complete
    topics = np.arange(answers.view.n_topics) if complete else answers.topics
    values = measure.compute(answers.cut)

    # A ratio over all topics takes the ideals from the run, without those of other topics.
    run = answers.cut if complete else answers.cut.of_topics(answers.answered)
    figure, defined = measure.aggregate(values[topics], run)
    reasons = measure.why_undefined(answers.cut, values)
    undefined = Counter(reason for topic in topics.tolist() if (reason := reasons[topic]))
    lines = [None if math.isnan(value) else value for value in values[answers.topics].tolist()]

    return Column(measure.name, lines, figure, defined=defined, undefined=undefined)
