"""Values that are not stored: computed from the judged views, and stored where the collection asks for them."""

from __future__ import annotations

from collections.abc import Iterable

import zstandard
from django.core.cache import cache

from metrics.engine.grammar import Measure
from metrics.engine.judged import JudgedRun
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.values.evaluate import make_vector

Mean = tuple[float | None, int]
_BATCH = 5000
# Judged views are up to a few megabytes each: so many are fetched at once, and unpacked one by one.
_ROWS = 8
_CACHE_SECONDS = 3600


def load_view(evaluation: Evaluation) -> JudgedRun:
    """The judged view of an evaluated run."""
    return _unpack(JudgedView.objects.get(pk=evaluation.pk))


def vectors_of(evaluation_ids: list[int], measures: list[Measure]) -> dict[tuple[int, str], MetricVector]:
    """The values of evaluated runs for each measure by (evaluation, measure), stored or computed and not saved."""
    names = [measure.name for measure in measures]
    rows = MetricVector.objects.filter(evaluation__in=evaluation_ids, measure__in=names)
    found = {(row.evaluation_id, row.measure): row for row in rows}
    missing = {pk: [m for m in measures if (pk, m.name) not in found] for pk in evaluation_ids}
    for pk, view in _views(pk for pk, wanted in missing.items() if wanted):
        found.update({(pk, measure.name): make_vector(pk, measure, view) for measure in missing[pk]})
    return found


def computed_means(evaluation_ids: list[int], measures: list[Measure]) -> dict[int, list[Mean]]:
    """Mean and number of topics for each measure by evaluation, from the judged views, which are held one at a time."""
    return {
        pk: [measure.aggregate(measure.compute(view), view) for measure in measures]
        for pk, view in _views(evaluation_ids)
    }


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
        for row in JudgedView.objects.filter(pk__in=ids[start : start + _BATCH]).iterator(_ROWS):
            yield row.pk, _unpack(row)


def _unpack(row: JudgedView) -> JudgedRun:
    return JudgedRun.from_bytes(zstandard.decompress(bytes(row.content)))
