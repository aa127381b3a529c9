"""Compare how runs were made: parameters that differ, are shared, or changed from a baseline.

Only runs that the reader sees are compared, by their metadata alone: no judgement has a part in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.columns import shown_value
from metrics.services.boards.matching import matching_runs
from metrics.services.values.judged_views import Mean, means_of
from runs.errors import InvalidInput
from runs.formats.parameters import Value, flatten
from runs.models import Collection, ParameterKey, Run
from runs.services.tracking.parameters import PARAM

MIN_RUNS, MAX_RUNS = 2, 200
# The limits of one comparison: values, parameters times runs, and the characters of its texts.
MAX_VALUES, MAX_CHARACTERS = 100_000, 2_000_000
# Numbers are equal that agree in as many digits; whole ones are compared exactly.
_DIGITS, _EXACT = 12, 10**15
# In place of a value.
NOT_SET = "not set"
_BOUNDS = f"configurations of {MIN_RUNS} to {MAX_RUNS} runs are compared"
_LONG = ("warnings", "known_warnings", "ir_metadata", "description", "costs")


@dataclass(frozen=True)
class ComparedParameter:
    """A parameter with its value in each run, None where it is not set.

    It has what organisers say of it.
    """

    name: str
    values: tuple[Value | None, ...]
    unit: str = ""
    note: str = ""
    ignored: bool = False

    @cached_property
    def kinds(self) -> tuple[Hashable, ...]:
        """Return for each run what equal values have in common."""
        return tuple(map(identity_of, self.values))

    @property
    def differs(self) -> bool:
        return len(set(self.kinds)) > 1


@dataclass(frozen=True)
class Change:
    """A parameter that differs from the baseline's: its value `before` and `after`.

    It is None where it is not set.
    """

    name: str
    before: Value | None
    after: Value | None
    unit: str = ""

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class Configurations:
    """Runs with the values of all their parameters, by name; a baseline is the first of the runs.

    `ignored` are those which do not say how a run was made, whether they differ or not. `left_out`
    counts the values of each run that are kept without being searched, and so are not compared.
    """

    runs: list[Run]
    baseline: Run | None
    differ: list[ComparedParameter]
    same: list[ComparedParameter]
    ignored: list[ComparedParameter]
    left_out: list[int]

    @property
    def compared(self) -> int:
        return len(self.differ) + len(self.same)

    def changes(self, place: int) -> list[Change]:
        """Return what changed in the run at this place since the first one."""
        return [
            Change(compared.name, compared.values[0], compared.values[place], compared.unit)
            for compared in self.differ
            if compared.kinds[0] != compared.kinds[place]
        ]


def identity_of(value: Value | None) -> Hashable:
    """Return what equal values have in common.

    Nothing is converted, so that 1, "1" and true differ.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("boolean", value)

    whole = int(value) if value == int(value) else None
    return (
        "number",
        whole if whole is not None and abs(whole) < _EXACT else f"{value:.{_DIGITS}g}",
    )


def typed_text(value: Value) -> str:
    """Return a value as a text that no value of another type has.

    Texts that look like one are in quotes.
    """
    text = shown_value(value)
    if not isinstance(value, str):
        return text

    try:
        float(text)
    except ValueError:
        return f'"{text}"' if text.strip() in ("", "true", "false", NOT_SET) else text

    return f'"{text}"'


def read_configurations(
    *,
    collection: Collection,
    reader: Any,
    runs: Sequence[str] = (),
    filter: str = "",
    baseline: str | None = None,
) -> Configurations:
    """Return the configurations of the named runs, or of those that a filter selects.

    By default they are those of all runs.

    Raise InvalidInput for fewer than 2 runs or more than 200, for one that the reader does not see,
    and for more values than one comparison has; and what `matching_runs` raises.
    """
    chosen = _choose_runs(collection, reader, runs, filter, baseline)
    flat = [flatten(run.metadata) for run in chosen]
    values = [{leaf.name: leaf.value for leaf in metadata.leaves} for metadata in flat]
    names = sorted(set().union(*values))
    _check_size(len(chosen), len(names), values)
    keys = ParameterKey.objects.filter(collection=collection, space=PARAM)
    descriptions = {
        name: description
        for name, *description in keys.order_by().values_list("name", "unit", "note", "role")
    }
    plain = ("", "", ParameterKey.Role.SETTING)

    parameters = []
    for name in names:
        unit, note, role = descriptions.get(name, plain)
        values_of_runs = tuple(values_of_run.get(name) for values_of_run in values)
        parameters.append(
            ComparedParameter(name, values_of_runs, unit, note, role == ParameterKey.Role.IGNORED)
        )

    settings = [parameter for parameter in parameters if not parameter.ignored]
    return Configurations(
        chosen,
        chosen[0] if baseline else None,
        [setting for setting in settings if setting.differs],
        [setting for setting in settings if not setting.differs],
        [parameter for parameter in parameters if parameter.ignored],
        [len(metadata.left_out) for metadata in flat],
    )


def _choose_runs(
    collection: Collection, reader: Any, runs: Sequence[str], filter: str, baseline: str | None
) -> list[Run]:
    """Return the runs, the baseline first: the others in the order named, or of submission."""
    visible = (
        Run.objects.visible_to(reader)
        .filter(collection=collection)
        .select_related("team")
        .defer(*_LONG)
    )

    chosen = _find_runs(visible, [baseline] if baseline else [], collection, "baseline")
    if runs:
        named = [run for run in dict.fromkeys(runs) if run != baseline]
        if len(chosen) + len(named) > MAX_RUNS:
            raise InvalidInput(
                f"{len(chosen) + len(named)} runs; {_BOUNDS}", code="too_many_runs", pointer="runs"
            )
        chosen += _find_runs(visible, named, collection, "runs")
    else:
        matched = matching_runs(collection, filter, reader, visible).exclude(
            pk__in=[run.pk for run in chosen]
        )
        chosen += matched.order_by("created_at", "pk")[: MAX_RUNS + 1 - len(chosen)]

        if len(chosen) > MAX_RUNS:
            message = (
                f"more than {MAX_RUNS} runs; name some with runs=, or select fewer with filter="
            )
            raise InvalidInput(message, code="too_many_runs", pointer="filter")

    if len(chosen) < MIN_RUNS:
        message = f"{len(chosen) or 'no'} run{'s' * (len(chosen) != 1)}; {_BOUNDS}"
        raise InvalidInput(message, code="too_few_runs", pointer="runs" if runs else "filter")
    return chosen


def _find_runs(visible: Any, names: list[str], collection: Collection, pointer: str) -> list[Run]:
    runs: dict[UUID, Run] = {run.pk: run for run in visible.filter(pk__in=names)} if names else {}
    missing = [name for name in names if UUID(name) not in runs]
    if missing:
        message = f"run {missing[0]} is not in collection {collection.slug}, or is withdrawn"
        raise InvalidInput(message, code="unknown_run", pointer=pointer)
    return [runs[UUID(name)] for name in names]


def _check_size(runs: int, names: int, values: Iterable[dict[str, Value]]) -> None:
    """Raise InvalidInput for more values or longer texts than one comparison has."""
    if runs * names > MAX_VALUES:
        message = (
            f"{names:,} parameters of {runs} runs; at most {MAX_VALUES:,} values are compared: "
            "name fewer runs"
        )
        raise InvalidInput(message, code="too_many_values", pointer="runs")

    characters = sum(
        len(value) for settings in values for value in settings.values() if isinstance(value, str)
    )
    if characters > MAX_CHARACTERS:
        message = (
            f"texts of {characters:,} characters; at most {MAX_CHARACTERS:,} are compared: name "
            "fewer runs"
        )
        raise InvalidInput(message, code="too_many_values", pointer="runs")


@dataclass(frozen=True)
class RunMeans:
    """The means of runs under a measure, by run, with the number of judged topics."""

    measure: Measure
    topics: int
    means: dict[UUID, Mean]


def read_means(*, collection: Collection, runs: list[UUID]) -> RunMeans | None:
    """Return the means of these runs under the collection's first measure, None without any.

    The caller has checked that the reader may see them.
    """
    qrels = collection.active_qrels
    if qrels is None:
        return None

    measure = collection.measure(collection.measures[0])
    current = Evaluation.objects.current(qrels, collection.scores).evaluated().filter(run__in=runs)
    run_of = dict(current.order_by().values_list("pk", "run_id"))
    means = means_of(list(run_of), [measure], qrels.pk) if run_of else {}

    return RunMeans(measure, qrels.topics, {run_of[pk]: mean for (pk, _), mean in means.items()})


def best_first(configurations: Configurations, means: RunMeans | None) -> list[int]:
    """Return the places of the runs: the baseline first, then the best.

    Without means they keep their order.
    """
    places = list(range(len(configurations.runs)))
    if means is None:
        return places

    value = {pk: mean for pk, (mean, _) in means.means.items()}
    sign = 1 if means.measure.definition.lower_is_better else -1

    def sort_key(place: int) -> tuple[bool, bool, float]:
        run = configurations.runs[place]
        mean = value.get(run.pk)
        return run is not configurations.baseline, mean is None, sign * (mean or 0.0)

    return sorted(places, key=sort_key)
