"""Values that are not stored: computed from the judged views, and stored where the collection asks for them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import zstandard
from django.core.cache import cache

from metrics.engine.grammar import Measure
from metrics.engine.judged import JudgedRun
from metrics.engine.ranking import Floats
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.snapshots import after_snapshot
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


def computed_means(evaluation_ids: list[int], measures: list[Measure]) -> dict[tuple[int, str], tuple[Mean, bytes]]:
    """By (evaluation, measure) the mean and which topics it covers, from the judged views, held one at a time."""
    found = {}
    for pk, view in _views(evaluation_ids):
        for measure in measures:
            values = measure.compute(view)
            found[pk, measure.name] = measure.aggregate(values, view), _defined(values)
    return found


def covered_topics(evaluation_ids: list[int], measure: Measure) -> dict[int, bytes]:
    """Which topics have a value, by evaluation: equal for equal topics. Remembered for an hour where not stored."""
    keys = {_cache_key(pk, measure.name, "topics"): pk for pk in evaluation_ids}
    found = {keys[key]: topics for key, topics in cache.get_many(keys).items()}
    missing = [pk for pk in evaluation_ids if pk not in found]
    vectors = vectors_of(missing, [measure]) if missing else {}
    made = {pk: _defined(row.values) for (pk, _), row in vectors.items()}
    # Only what has no key is not stored.
    computed = {_cache_key(pk, name, "topics"): made[pk] for (pk, name), row in vectors.items() if row.pk is None}
    cache.set_many(computed, _CACHE_SECONDS)
    return {**dict.fromkeys(missing, b""), **found, **made}


def _defined(values: Floats) -> bytes:
    return np.packbits(np.logical_not(np.isnan(values))).tobytes()


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
    kept = [row for row in fresh if row.measure in keep]
    if kept:
        after_snapshot(lambda: MetricVector.objects.bulk_create(kept, 500, ignore_conflicts=True))
    new = {(row.evaluation_id, row.measure): (row.mean, row.topics) for row in fresh}
    cache.set_many({_cache_key(*pair): mean for pair, mean in new.items() if pair[1] not in keep}, _CACHE_SECONDS)
    return known | new


def _cache_key(evaluation_id: int, measure: str, what: str = "mean") -> str:
    # Memcached's rules for keys: names hold quotes, commas and brackets, so they go in as hexadecimal.
    return f"{what}:{evaluation_id}:{measure.encode().hex()}"


def _views(evaluation_ids: Iterable[int]) -> Iterable[tuple[int, JudgedRun]]:
    ids = list(evaluation_ids)
    for start in range(0, len(ids), _BATCH):
        for row in JudgedView.objects.filter(pk__in=ids[start : start + _BATCH]).iterator(_ROWS):
            yield row.pk, _unpack(row)


def _unpack(row: JudgedView) -> JudgedRun:
    return JudgedRun.from_bytes(zstandard.decompress(bytes(row.content)))
