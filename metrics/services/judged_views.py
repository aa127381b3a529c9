"""Values that are not stored: computed from the judged views, and stored where the collection asks for them."""

from __future__ import annotations

from collections.abc import Iterable

import zstandard
from django.core.cache import cache

from metrics.engine.grammar import Measure
from metrics.engine.judged import JudgedRun
from metrics.engine.ranking import Floats
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.evaluate import make_vector

Mean = tuple[float | None, int]
_BATCH = 200
_CACHE_SECONDS = 3600


def load_view(evaluation: Evaluation) -> JudgedRun:
    """The judged view of an evaluated run."""
    return _unpack(JudgedView.objects.get(pk=evaluation.pk))


def vectors_of(evaluation: Evaluation, measures: list[Measure]) -> dict[str, Floats]:
    """Values of one evaluated run for each measure, stored or computed; shape (topics,) each."""
    names = [measure.name for measure in measures]
    found = {vector.measure: vector.values for vector in evaluation.vectors.filter(measure__in=names)}
    missing = [measure for measure in measures if measure.name not in found]
    if missing:
        view = load_view(evaluation)
        found.update({measure.name: measure.compute(view) for measure in missing})
    return {name: found[name] for name in names}


def stored_vectors(evaluations: list[Evaluation], measure: Measure) -> dict[int, Floats]:
    """One measure's values for many evaluated runs, by evaluation."""
    ids = [evaluation.pk for evaluation in evaluations]
    rows = MetricVector.objects.filter(evaluation__in=ids, measure=measure.name)
    found = {row.evaluation_id: row.values for row in rows}
    missing = [pk for pk in ids if pk not in found]
    for view_of, view in _views(missing):
        found[view_of] = measure.compute(view)
    return found


def means_of(evaluation_ids: list[int], measures: list[Measure], keep: set[str]) -> dict[tuple[int, str], Mean]:
    """Mean and number of topics by (evaluation, measure).

    What is not stored is computed; it is stored when its measure is in `keep` (the collection's own measures), else
    remembered for an hour, so that reading an odd measure never fills the database.
    """
    names = [measure.name for measure in measures]
    rows = MetricVector.objects.filter(evaluation__in=evaluation_ids, measure__in=names)
    means: dict[tuple[int, str], Mean] = {
        (pk, name): (mean, topics) for pk, name, mean, topics in
        rows.values_list("evaluation_id", "measure", "mean", "topics")
    }  # fmt: skip
    wanted = [(pk, name) for pk in evaluation_ids for name in names if (pk, name) not in means]
    if wanted:
        means.update(_computed(wanted, {measure.name: measure for measure in measures}, keep))
    return means


def _computed(
    wanted: list[tuple[int, str]], measures: dict[str, Measure], keep: set[str]
) -> dict[tuple[int, str], Mean]:
    keys = {_cache_key(pk, name): (pk, name) for pk, name in wanted}
    known: dict[tuple[int, str], Mean] = {keys[key]: mean for key, mean in cache.get_many(keys).items()}
    missing: dict[int, list[Measure]] = {}
    for pk, name in wanted:
        if (pk, name) not in known:
            missing.setdefault(pk, []).append(measures[name])
    fresh = [make_vector(pk, measure, view) for pk, view in _views(missing) for measure in missing[pk]]
    MetricVector.objects.bulk_create([row for row in fresh if row.measure in keep], 500, ignore_conflicts=True)
    new = {(row.evaluation_id, row.measure): (row.mean, row.topics) for row in fresh}
    cache.set_many({_cache_key(*pair): mean for pair, mean in new.items() if pair[1] not in keep}, _CACHE_SECONDS)
    return known | new


def _cache_key(evaluation_id: int, measure: str) -> str:
    # Memcached's rules for keys: names hold quotes, commas and brackets, so they go in as hexadecimal.
    return f"mean:{evaluation_id}:{measure.encode().hex()}"


def _views(evaluation_ids: Iterable[int]) -> Iterable[tuple[int, JudgedRun]]:
    ids = list(evaluation_ids)
    for start in range(0, len(ids), _BATCH):
        for row in JudgedView.objects.filter(pk__in=ids[start : start + _BATCH]):
            yield row.pk, _unpack(row)


def _unpack(row: JudgedView) -> JudgedRun:
    return JudgedRun.from_bytes(zstandard.decompress(bytes(row.content)))
