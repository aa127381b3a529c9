"""Explain the values of runs by parameters that go with a measure, or that were changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.explanation import explaining
from metrics.engine.explanation.explaining import Explanation, explain
from metrics.engine.explanation.matched import untested
from metrics.engine.explanation.settings import Level, Levels, Plain, Range, Setting, encode
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import Caution
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.columns import shown_value
from metrics.services.boards.curves_together import TogetherQuery, chosen_evaluations
from metrics.services.boards.selection import tested_measures
from metrics.services.question import SEED, OneMeasure, Question, nested, parameter
from metrics.services.values.common_values import (
    cautions_of,
    qrels_cautions,
    read_common_values,
    refuse_pooled,
)
from metrics.services.values.effort import check_values, seconds_of_importance
from metrics.services.work import begin
from runs.attention import keep_going
from runs.formats.parameters import Value, flatten
from runs.models import Collection, ParameterKey, Qrels, Run
from runs.services.tracking.parameters import PARAM, is_of_platform

MAX_RUNS = 1_000
NOT_SET, OTHERS = "not set", "other values"
_NAMED, _CUT = 8, 60
_NARROW = (
    "name fewer runs with runs= or filter=, or give parameters that do not matter the role ignored"
)
CHOSEN_RUNS = "chosen_runs"
CHOSEN = (
    "These runs were chosen, not drawn: a value tried with a better model gets the model's credit."
)


@dataclass(frozen=True)
class ImportanceQuery(Question):
    """The measure, the runs, and the seed of everything that is drawn."""

    measure: Measure = parameter(
        OneMeasure(
            "one measure; default: the collection's first with values of topics",
            names=tested_measures,
        )
    )
    chosen: TogetherQuery = nested(TogetherQuery)
    seed: int = parameter(SEED)


@dataclass(frozen=True)
class LevelMean:
    """The runs of one level: what they have in common, how many there are, and their mean."""

    level: Level
    runs: int
    mean: float


@dataclass(frozen=True)
class Associated:
    """A parameter, or several that change together, with epsilon squared, its interval, and p.

    It has the means of its levels in the order of their values.
    """

    setting: Setting
    effect: float
    low: float
    high: float
    p_value: float
    levels: list[LevelMean]


@dataclass(frozen=True)
class Importance:
    """What explains the values of some runs.

    `chosen` is the number of evaluated runs with those without parameters; `topics` are those on
    which all runs have a value, and `means` the means of the runs on these. `ignored` are the
    parameters with that role. `message` says why nothing is associated, and is empty where
    something is.
    """

    query: ImportanceQuery
    qrels: Qrels
    scores: str
    explanation: Explanation
    chosen: int
    topics: int = 0
    means: Floats = field(default_factory=lambda: np.zeros(0))
    ignored: list[str] = field(default_factory=list)
    message: str = ""
    cautions: list[Caution] = field(default_factory=list)

    @property
    def left_out(self) -> list[str]:
        """Return the names of the parameters about which nothing is said."""
        return sorted({*self.ignored, *self.explanation.naming, *self.explanation.rare})

    @cached_property
    def associated(self) -> list[Associated]:
        """Return the examined parameters, the strongest first, or none if none goes with it."""
        associations = self.explanation.associations
        if associations is None:
            return []

        associated = [
            Associated(
                setting=setting,
                effect=float(associations.effect[place]),
                low=float(associations.low[place]),
                high=float(associations.high[place]),
                p_value=float(associations.p_value[place]),
                levels=self._means(self.explanation.levels[place]),
            )
            for place, setting in enumerate(self.explanation.settings)
        ]

        return sorted(associated, key=lambda association: -association.effect)

    def _means(self, levels: Levels) -> list[LevelMean]:
        runs: Ints = np.bincount(levels.codes)
        sums = np.bincount(levels.codes, weights=self.means)
        numbers = zip(levels.labels, runs.tolist(), (sums / runs).tolist(), strict=True)
        return [LevelMean(*numbers_of_level) for numbers_of_level in numbers]


def read_importance(*, collection: Collection, query: ImportanceQuery) -> Importance:
    """Return what explains the values of the chosen runs by a measure.

    Runs without parameters, stale and withdrawn ones are left out.

    Raise StatisticsError for an unknown run, more than MAX_RUNS, fewer than two topics that all
    runs have, a measure without values of topics, and what would take too long.
    """
    refuse_pooled([query.measure])
    qrels, scores = active_qrels(collection), query.chosen.scores or collection.scores
    evaluations = chosen_evaluations(collection=collection, query=query.chosen, most=MAX_RUNS)
    settings_by_evaluation, ignored, partly = _settings_of(collection, evaluations)
    undescribed = len(evaluations) - len(settings_by_evaluation)
    cautions = list(_cautions_of_runs(undescribed, partly, ignored))

    if len(settings_by_evaluation) < explaining.LEAST_RUNS:
        explanation = Explanation(len(settings_by_evaluation), reason=explaining.TOO_FEW_RUNS)
        return Importance(
            query,
            qrels,
            scores,
            explanation,
            len(evaluations),
            ignored=ignored,
            message=message_of(explanation, query),
            cautions=cautions,
        )

    runs = list(settings_by_evaluation.values())
    names = sorted({name for settings in runs for name in settings})
    _begin(len(runs), qrels.topics, names)
    encoded = [encode(name, [settings.get(name) for settings in runs]) for name in names]

    (common,) = read_common_values(list(settings_by_evaluation), [query.measure], qrels)
    explanation = explain(common.values, encoded, seed=query.seed, watch=keep_going)

    return Importance(
        query,
        qrels,
        scores,
        explanation,
        len(evaluations),
        topics=common.topics,
        means=common.values.mean(axis=1),
        ignored=ignored,
        message=message_of(explanation, query),
        cautions=[
            *qrels_cautions([query.measure], qrels),
            *cautions_of([query.measure], common.left_out),
            *few_topics(common.topics),
            *_caution_of_few_topics(common.topics),
            *untested(explanation.changes),
            *_cautions_of_parameters(explanation),
            *cautions,
        ],
    )


def _settings_of(
    collection: Collection, evaluations: Sequence[Evaluation]
) -> tuple[dict[int, dict[str, Value]], list[str], int]:
    """Return the settings of the runs that have any, by evaluation.

    Return also the names of ignored parameters, and how many runs have values that are kept without
    being searched.
    """
    keys = ParameterKey.objects.filter(collection=collection, space=PARAM).order_by()
    roles = dict(keys.values_list("name", "role"))
    runs = Run.objects.filter(pk__in=[evaluation.run_id for evaluation in evaluations]).order_by()
    metadata = dict(runs.values_list("pk", "metadata"))

    settings_by_evaluation, ignored, partly = {}, set(), 0
    for evaluation in evaluations:
        keep_going()
        flat = flatten(metadata[evaluation.run_id])
        settings = {leaf.name: leaf.value for leaf in flat.leaves}
        ignored_names = {name for name in settings if _is_ignored(name, roles)}
        ignored |= ignored_names

        if len(settings) > len(ignored_names):
            settings_by_evaluation[evaluation.pk] = {
                name: value for name, value in settings.items() if name not in ignored_names
            }
            partly += bool(flat.left_out)

    return settings_by_evaluation, sorted(ignored), partly


def _is_ignored(name: str, roles: dict[str, str]) -> bool:
    if name in roles:
        return roles[name] == ParameterKey.Role.IGNORED
    return is_of_platform(name)


def _begin(runs: int, topics: int, names: Sequence[str]) -> None:
    """Declare the work before it begins."""
    check_values(runs, topics, 1)
    seconds = seconds_of_importance(runs, topics, len(names))
    begin(seconds, f"{len(names)} parameters of {runs} runs", _NARROW, "filter")


def message_of(explanation: Explanation, query: ImportanceQuery) -> str:
    """Return why nothing is associated; empty where something is."""
    runs, number = (
        f"{explanation.runs} run{'s' * (explanation.runs != 1)}",
        len(explanation.settings),
    )
    parameters = f"{number} parameters: none goes" if number != 1 else "1 parameter: it does not go"
    measure = query.measure.name
    least = explaining.LEAST_RUNS
    messages = {
        explaining.TOO_FEW_RUNS: f"{runs} with parameters: fewer than {least} say nothing.",
        explaining.NO_PARAMETERS: (
            f"{runs}: no parameter has two values with three runs or more each."
        ),
        explaining.NO_SPREAD: f"{runs}: all have the same mean of {measure}.",
        explaining.NO_ASSOCIATION: f"{runs}, {parameters} with {measure} more than chance would.",
    }
    return messages.get(explanation.reason, "")


def _cautions_of_runs(undescribed: int, partly: int, ignored: Sequence[str]) -> Iterator[Caution]:
    if undescribed:
        message = f"{undescribed} run{'s' * (undescribed > 1)} without parameters left out"
        yield Caution("runs_without_parameters", message)

    if partly:
        message = (
            f"{partly} run{'s have' if partly > 1 else ' has'} values that are kept without "
            "being searched"
        )
        yield Caution("parameters_left_out", f"{message}: in these the runs may differ")

    if ignored:
        yield Caution("ignored", f"left out by the role ignored: {_listed(ignored)}")


def _caution_of_few_topics(topics: int) -> Iterator[Caution]:
    if topics < MIN_TOPICS:
        yield Caution("no_verdict", f"{topics} topics are too few to tell a difference from chance")


def _cautions_of_parameters(explanation: Explanation) -> Iterator[Caution]:
    """Return what a reader needs to know about the parameters."""
    if explanation.associations:
        yield Caution(CHOSEN_RUNS, CHOSEN.rstrip("."))

    for place, other, strength in explanation.linked[:_NAMED]:
        names = f"{explanation.settings[place].name} and {explanation.settings[other].name}"
        message = (
            f"often change together (V = {strength:.2f}): {names}; what goes with one may be "
            "due to the other"
        )
        yield Caution("often_together", message)

    if explanation.naming:
        message = f"left out, because it is different in every run: {_listed(explanation.naming)}"
        yield Caution(
            "different_in_every_run", f"{message}; runs with nothing else changed differ in it"
        )

    if explanation.rare:
        yield Caution(
            "rare_values", f"left out, with too few runs of each value: {_listed(explanation.rare)}"
        )

    if explanation.settings and not explanation.changes:
        reason = f"; {_listed(explanation.rare)} differ most often" if explanation.rare else ""
        message = (
            f"no two runs differ in one parameter alone{reason}: give what does not matter the "
            "role ignored"
        )
        yield Caution("no_pairs", message)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def words_of(parts: Iterable[Plain | Range]) -> str:
    """Return a value, or what the runs of a level have in common, in words."""
    return ", ".join(_words(part) for part in parts)


def words_of_level(level: Level) -> str:
    return OTHERS if level is None else words_of(level)


def _words(part: Plain | Range) -> str:
    if isinstance(part, Range):
        low, high = (shown_value(end) for end in part)
        return low if low == high else f"{low} to {high}"

    text = NOT_SET if part is None else shown_value(part)
    return text[:_CUT] + "…" * (len(text) > _CUT)
