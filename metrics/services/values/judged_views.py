"""Values that are not stored, computed from the judged views."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
import zstandard
from django.core.cache import cache
from django.db.models import F, QuerySet

from metrics.engine import ENGINE_VERSION
from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.depth import judged_depth
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.external import is_external
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.queue.damage import give_up_evaluations
from metrics.services.snapshots import once_in_snapshot
from metrics.services.values.effort import begin_values, begin_vectors, sizes_of_views
from metrics.services.values.evaluate import make_vector
from metrics.services.values.replicates import mean_over, mean_vector, of_replicates
from metrics.services.values.sampled import check_suits
from metrics.services.values.table_vectors import table_vectors, without_external
from runs.attention import keep_going
from runs.digests import digest_of_depth, digest_of_vector, digests_of_means
from runs.models import Qrels, Run
from runs.services.audit.reading import after_snapshot
from runs.services.submissions.replicates import check_has_file

Mean = tuple[float | None, int]
# The names of damaged objects in errors.
VIEW = "judged view"
_QRELS = F("evaluation__qrels_id")
_NAMED = 5
_BATCH = 5000
# Judged views have up to a few megabytes: this many are fetched at once, and unpacked one by one.
_ROWS = 8
# The runs of equal means that are looked at for equal rankings.
_ALIKE = 20
_CACHE_SECONDS = 3_600
_DEPTH = ("judged_depth", "depth_digest")
_log = logging.getLogger(__name__)


def load_view(evaluation: Evaluation) -> JudgedRun:
    """Return the judged view of an evaluation; StoredValueCorrupt if it is damaged or missing."""
    ((_, _, view),) = views_of([evaluation.pk])
    return view


def vectors_of(
    evaluation_ids: list[int], measures: list[Measure]
) -> dict[tuple[int, str], MetricVector]:
    """Return the values of runs by (evaluation, measure), stored or computed and not saved.

    Damaged values are computed as well, and replaced where they are stored.
    """
    begin_vectors(len(evaluation_ids) * len(measures))
    names = [measure.name for measure in measures]
    stored = MetricVector.objects.filter(evaluation__in=evaluation_ids, measure__in=names)
    rows = list(stored.annotate(qrels_key=_QRELS))

    digests = digests_of_means(
        [row.evaluation_id for row in rows],
        [row.qrels_key for row in rows],
        [row.measure for row in rows],
        [row.mean for row in rows],
        [row.topics for row in rows],
    )

    vectors: dict[tuple[int, str], MetricVector] = {}
    damaged = set()
    for row, digest in zip(rows, digests.tolist(), strict=True):
        key = row.evaluation_id, row.measure
        if row.mean_digest in (None, digest) and row.digest in (
            None,
            digest_of_vector(row.evaluation_id, row.qrels_key, row.measure, row.content),
        ):
            vectors[key] = row
        else:
            damaged.add(key)

    missing = {pk: [m for m in measures if (pk, m.name) not in vectors] for pk in evaluation_ids}
    return vectors | _make_vectors(missing, damaged)


def _make_vectors(
    missing: dict[int, list[Measure]], damaged: set[tuple[int, str]]
) -> dict[tuple[int, str], MetricVector]:
    """Compute the measures that evaluations lack, and replace those that are damaged."""
    _check_engine(damaged)
    vectors = table_vectors(missing)
    missing = {pk: without_external(measures) for pk, measures in missing.items()}
    vectors |= _mean_vectors(missing)
    replace_vectors([row for key, row in vectors.items() if key in damaged])

    missing = {
        pk: [measure for measure in measures if (pk, measure.name) not in vectors]
        for pk, measures in missing.items()
    }
    begin_values(missing)

    for pk, qrels, view in views_of(pk for pk, lacking in missing.items() if lacking):
        fresh = [make_vector(pk, measure, view) for measure in _watched(missing[pk])]
        replace_vectors([row.seal(qrels) for row in fresh if (pk, row.measure) in damaged])
        vectors.update({(pk, row.measure): row for row in fresh})

    return vectors


def _mean_vectors(
    missing: Mapping[int, list[Measure]],
) -> dict[tuple[int, str], MetricVector]:
    """Return the vectors of runs with replicates, sealed and not saved."""
    means = _means_among(pk for pk, measures in missing.items() if measures)
    vectors = {}
    for pk, replicates in means.items():
        theirs = vectors_of(replicates, missing[pk])
        qrels = Evaluation.objects.values_list("qrels", flat=True).get(pk=pk)
        for measure in missing[pk]:
            rows = [theirs[replicate, measure.name] for replicate in replicates]
            vectors[pk, measure.name] = mean_vector(pk, measure, rows).seal(qrels)

    return vectors


def _means_among(evaluation_ids: Iterable[int]) -> dict[int, list[int]]:
    """Return the evaluations of replicates, by that of their run, of those that are means."""
    keys = list(evaluation_ids)
    if not keys:
        return {}

    # A mean has no judged view, and the sizes of views are read for nearly every question anyway.
    sizes = sizes_of_views(keys)
    without_view = [pk for pk in keys if pk not in sizes]
    return of_replicates(without_view) if without_view else {}


def matrix_of(
    evaluation_ids: list[int],
    measure: Measure,
    qrels: Qrels,
    computing: frozenset[str] = frozenset(),
) -> tuple[Matrix, dict[int, Mean]]:
    """Return one measure's values, shape (evaluations, topics), and its means."""
    return matrices_of(evaluation_ids, [measure], qrels, computing)[0]


def matrices_of(
    evaluation_ids: list[int],
    measures: list[Measure],
    qrels: Qrels,
    computing: frozenset[str] = frozenset(),
) -> list[tuple[Matrix, dict[int, Mean]]]:
    """Return the same of several measures.

    What is stored is read in one query, without an object for each row; the rest is computed as by
    `vectors_of`. Measures that workers are `computing` are read only: a row that is missing is NaN.
    """
    check_suits(measures, qrels)
    begin_vectors(len(evaluation_ids) * len(measures))
    columns = ("measure", "evaluation_id", "content", "digest", "mean", "topics", "mean_digest")
    names = [measure.name for measure in measures]
    stored: dict[str, list[Any]] = {name: [] for name in names}
    rows = MetricVector.objects.filter(evaluation__in=evaluation_ids, measure__in=names)
    for name, *row in rows.values_list(*columns):
        stored[name].append(row)

    vectors: dict[tuple[int, str], Floats] = {}
    means: dict[tuple[int, str], Mean] = {}
    damaged = set()
    for name, entries in stored.items():
        keys, _, _, averages, counts, _ = zip(*entries, strict=True) if entries else ((),) * 6
        expected = digests_of_means(keys, qrels.pk, name, averages, counts).tolist()
        for entry, expected_mean in zip(entries, expected, strict=True):
            pk, content, digest, mean, topics, mean_digest = entry
            sound = mean_digest in (None, expected_mean) and digest in (
                None,
                digest_of_vector(pk, qrels.pk, name, content),
            )
            if sound:
                vectors[pk, name] = np.frombuffer(content, np.dtype("<f8"))
                means[pk, name] = mean, topics
            else:
                damaged.add((pk, name))

    missing: dict[int, list[Measure]] = {pk: [] for pk in evaluation_ids}
    for pk, measure in product(evaluation_ids, measures):
        key = pk, measure.name
        if key in vectors:
            continue
        if measure.name in computing and key not in damaged:
            vectors[key], means[key] = np.full(qrels.topics, np.nan), (None, 0)
        else:
            missing[pk].append(measure)

    for key, vector in _make_vectors(missing, damaged).items():
        vectors[key], means[key] = vector.values, (vector.mean, vector.topics)

    none = np.zeros((0, qrels.topics))
    return [
        (
            np.vstack([vectors[pk, name] for pk in evaluation_ids]) if evaluation_ids else none,
            {pk: means[pk, name] for pk in evaluation_ids},
        )
        for name in names
    ]


def condensed_matrix(evaluation_ids: list[int], measure: Measure) -> Matrix:
    """Return one measure's values on judged documents alone, shape (evaluations, topics).

    They are those of `judged_only=True`, also of measures without this parameter. Nothing is
    stored.
    """
    means = _means_among(evaluation_ids)
    keys = [key for pk in evaluation_ids for key in means.get(pk, [pk])]
    begin_values({pk: [measure] for pk in keys})
    values = {pk: measure.compute(view.condensed) for pk, _, view in views_of(dict.fromkeys(keys))}
    return np.vstack(
        [mean_over([values[key] for key in means.get(pk, [pk])]) for pk in evaluation_ids]
    )


def replace_vectors(rows: list[MetricVector]) -> None:
    """Replace damaged values, unless a worker has done so meanwhile."""

    def replace() -> None:
        for row in rows:
            columns = ("mean", "topics", "content", "digest", "mean_digest")
            stored = MetricVector.objects.filter(evaluation=row.evaluation_id, measure=row.measure)
            stored.update(**{name: getattr(row, name) for name in columns})

    if rows:
        after_snapshot(replace)


def _check_engine(damaged: Iterable[tuple[int, str]]) -> None:
    """Raise StoredValueCorrupt if another engine version computed a damaged value.

    This one would compute its own.
    """
    pks = {pk for pk, name in damaged if not is_external(name)}
    if pks:
        _log.error("stored values are damaged, and computed again: %s", sorted(damaged)[:_NAMED])
        foreign = Evaluation.objects.filter(pk__in=pks).exclude(engine_version=ENGINE_VERSION)
        if ids := list(foreign.values_list("pk", flat=True)):
            raise give_up_evaluations(Evaluation, ids, "values")


def computed_means(
    evaluation_ids: list[int], measures: list[Measure]
) -> dict[tuple[int, str], tuple[Mean, bytes]]:
    """Return means with the topics that they cover by (evaluation, measure), from judged views.

    Views are held one at a time.
    """
    means = {
        key: ((row.mean, row.topics), _defined(row.values))
        for key, row in _mean_vectors(dict.fromkeys(evaluation_ids, measures)).items()
    }
    others = [pk for pk in evaluation_ids if (pk, measures[0].name) not in means]
    begin_values(dict.fromkeys(others, measures))
    for pk, _, view in views_of(others):
        for measure in _watched(measures):
            values = measure.compute(view)
            means[pk, measure.name] = measure.aggregate(values, view), _defined(values)

    return means


def covered_topics(evaluation_ids: list[int], measure: Measure) -> dict[int, bytes]:
    """Return which topics have a value, by evaluation, as bytes that are equal for equal topics.

    Cached for an hour if the values are not stored.
    """
    keys = {_cache_key(pk, measure.key, "topics"): pk for pk in evaluation_ids}
    cached = {keys[key]: topics for key, topics in cache.get_many(keys).items()}
    missing = [pk for pk in evaluation_ids if pk not in cached]
    vectors = vectors_of(missing, [measure]) if missing else {}
    topics_of = {pk: _defined(row.values) for (pk, _), row in vectors.items()}

    # A row without a key is not stored.
    computed = {
        _cache_key(pk, measure.key, "topics"): topics_of[pk]
        for (pk, _), row in vectors.items()
        if row.pk is None
    }
    cache.set_many(computed, _CACHE_SECONDS)

    return {**dict.fromkeys(missing, b""), **cached, **topics_of}


def _defined(values: Floats) -> bytes:
    return np.packbits(np.logical_not(np.isnan(values))).tobytes()


def means_of(
    evaluation_ids: list[int],
    measures: list[Measure],
    qrels: int | None = None,
    computing: frozenset[str] = frozenset(),
) -> dict[tuple[int, str], Mean]:
    """Return the mean and the number of topics by (evaluation, measure).

    Missing values are computed and cached for an hour, never stored: workers store those of the
    collection's measures, and reading an odd measure must not fill the database. Damaged values are
    replaced. `qrels` is the version of judgements if all evaluations have the same one. Measures
    that workers are `computing` are read only: what is missing of them has no mean.
    """
    names = [measure.name for measure in measures]
    rows = MetricVector.objects.filter(evaluation__in=evaluation_ids, measure__in=names)
    means, damaged = sound_means(rows, qrels)
    _check_engine(damaged)

    missing = [
        (pk, name)
        for pk in evaluation_ids
        for name in names
        if (pk, name) not in means and (name not in computing or (pk, name) in damaged)
    ]

    if missing:
        by_name = {measure.name: measure for measure in measures}
        means.update(_compute_means(missing, by_name, damaged))

    return means


def stored_means(
    rows: QuerySet[MetricVector], measure: str, qrels: int
) -> tuple[Ints, Floats, Ints]:
    """Return the evaluations, means and numbers of topics of stored means of one measure.

    A mean is NaN where there is none; damaged ones are left out.
    """
    read = list(rows.values_list("evaluation_id", "mean", "topics", "mean_digest"))
    if not read:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)

    pks, averages, counts, digests = zip(*read, strict=True)
    expected = digests_of_means(pks, qrels, measure, averages, counts).tolist()
    keys = np.array(pks, np.int64)
    means = np.array(averages, np.float64)
    topics = np.array(counts, np.int64)

    if expected == list(digests):
        return keys, means, topics
    sound = [stored in (None, digest) for stored, digest in zip(digests, expected, strict=True)]
    return keys[sound], means[sound], topics[sound]


def sound_means(
    rows: QuerySet[MetricVector], qrels: int | None = None
) -> tuple[dict[tuple[int, str], Mean], set[tuple[int, str]]]:
    """Return stored means by (evaluation, measure), and which of them are damaged and left out.

    If all evaluations have one version of judgements, `qrels` saves reading every evaluation.
    """
    columns = ("evaluation_id", "measure", "mean", "topics", "mean_digest")
    read = list(rows.values_list(*columns, *(() if qrels else ("evaluation__qrels_id",))))
    if not read:
        return {}, set()

    pks, names, means, topics, digests, *versions = zip(*read, strict=True)
    stored = dict(zip(zip(pks, names, strict=True), zip(means, topics, strict=True), strict=True))
    expected = digests_of_means(pks, qrels or versions[0], names, means, topics).tolist()
    if tuple(expected) == digests:
        return stored, set()

    damaged = {
        pair
        for pair, digest, expected_digest in zip(stored, digests, expected, strict=True)
        if digest not in (None, expected_digest)
    }
    return {pair: mean for pair, mean in stored.items() if pair not in damaged}, damaged


def _compute_means(
    pairs: list[tuple[int, str]],
    measures: dict[str, Measure],
    damaged: set[tuple[int, str]],
) -> dict[tuple[int, str], Mean]:
    external: dict[int, list[Measure]] = {}
    for pk, name in pairs:
        if measures[name].is_external:
            external.setdefault(pk, []).append(measures[name])

    vectors = table_vectors(external)
    others: dict[int, list[Measure]] = {}
    for pk, name in pairs:
        if not measures[name].is_external:
            others.setdefault(pk, []).append(measures[name])

    vectors |= _mean_vectors(others)
    replace_vectors([row for key, row in vectors.items() if key in damaged])
    pairs = [pair for pair in pairs if pair not in vectors]
    keys = {_cache_key(pk, name): (pk, name) for pk, name in pairs}
    cached: dict[tuple[int, str], Mean] = {
        keys[key]: mean for key, mean in cache.get_many(keys).items()
    }

    missing: dict[int, list[Measure]] = {}
    for pk, name in pairs:
        if (pk, name) not in cached:
            missing.setdefault(pk, []).append(measures[name])

    begin_values(missing)
    fresh = [
        make_vector(pk, measure, view).seal(qrels)
        for pk, qrels, view in views_of(missing)
        for measure in _watched(missing[pk])
    ]
    replace_vectors([row for row in fresh if (row.evaluation_id, row.measure) in damaged])

    computed = {(row.evaluation_id, row.measure): (row.mean, row.topics) for row in fresh}
    to_cache = {_cache_key(*pair): mean for pair, mean in computed.items() if pair not in damaged}
    cache.set_many(to_cache, _CACHE_SECONDS)

    return cached | computed | {key: (row.mean, row.topics) for key, row in vectors.items()}


def depths_of(evaluation_ids: list[int]) -> dict[int, int]:
    """Return how deep each evaluated run is judged without a gap.

    What an earlier release did not store, or is damaged, is computed from its judged view and
    stored.
    """
    rows = Evaluation.objects.filter(pk__in=evaluation_ids).values_list(
        "pk", "qrels", "judged_files", *_DEPTH
    )
    depths = dict[int, int]()
    files = {pk: (qrels, judged_files) for pk, qrels, judged_files, *_ in rows}

    for pk, qrels, judged_files, depth, digest in rows:
        if depth is not None and digest == digest_of_depth(pk, qrels, judged_files, depth):
            depths[pk] = depth

    computed = {
        pk: judged_depth(view)
        for pk, _, view in views_of(pk for pk in evaluation_ids if pk not in depths)
    }

    def store() -> None:
        for pk, depth in computed.items():
            qrels, judged_files = files[pk]
            sealed = {
                "judged_depth": depth,
                "depth_digest": digest_of_depth(pk, qrels, judged_files, depth),
            }
            Evaluation.objects.filter(pk=pk, judged_files=judged_files).update(**sealed)

    if computed:
        after_snapshot(store)

    return depths | computed


def _cache_key(evaluation_id: int, measure: str, part: str = "mean") -> str:
    # Memcached restricts keys, and names contain quotes, commas and brackets, so they are written
    # as hexadecimal.
    return f"{part}:{evaluation_id}:{measure.encode().hex()}"


def _watched(measures: list[Measure]) -> Iterable[Measure]:
    """Yield the measures one by one, as long as the client waits for them."""
    for measure in measures:
        keep_going()
        yield measure


def views_of(evaluation_ids: Iterable[int]) -> Iterable[tuple[int, int, JudgedRun]]:
    """Yield evaluation, version of judgements and view, one at a time.

    Raise StoredValueCorrupt at the end if any are damaged or missing.
    """
    ids = list(evaluation_ids)
    if len(ids) == 1:
        # Several parts of a page read the same run.
        yield from once_in_snapshot(("view", *ids), lambda: list(_read_views(ids)))
    else:
        yield from _read_views(ids)


def _read_views(ids: list[int]) -> Iterable[tuple[int, int, JudgedRun]]:
    damaged = set(ids)
    for start in range(0, len(ids), _BATCH):
        rows = JudgedView.objects.filter(pk__in=ids[start : start + _BATCH])
        rows = rows.annotate(qrels_key=_QRELS)
        for row in rows.iterator(_ROWS):
            if row.is_sound(row.qrels_key):
                damaged.remove(row.pk)
                yield row.pk, row.qrels_key, unpack_view(row)

    if damaged:
        means = Evaluation.objects.filter(pk__in=damaged, run__sha256="").select_related("run")
        for mean in means[:1]:
            check_has_file(mean.run)
        raise give_up_evaluations(Evaluation, sorted(damaged), VIEW)


def unpack_view(row: JudgedView) -> JudgedRun:
    """Return the judged view of a row whose digest was checked."""
    return JudgedRun.from_bytes(zstandard.decompress(bytes(row.content)))


def runs_ranked_alike(evaluation: Evaluation, reader: Any) -> list[Run]:
    """Return other runs that the reader sees with the same judged documents at the same ranks.

    Their values are those of the run, under these judgements. Raise StoredValueCorrupt if the
    view of the run is damaged.
    """
    if not evaluation.run.has_ranking:
        return []

    # Views are large: only those of runs with the same length and mean are read.
    same = Evaluation.objects.current(evaluation.qrels, evaluation.scores).evaluated()
    same = same.exclude(pk=evaluation.pk).filter(run__documents=evaluation.run.documents)
    first = evaluation.vectors.order_by("measure").first()
    if first:
        same = same.filter(vectors__measure=first.measure, vectors__mean=first.mean)

    seen = Run.objects.visible_to(reader).filter(collection=evaluation.run.collection_id)
    keys = list(same.filter(run__in=seen).order_by("pk").values_list("pk", flat=True)[:_ALIKE])
    if not keys:
        return []

    own = load_view(evaluation)
    rows = JudgedView.objects.filter(pk__in=keys).annotate(qrels_key=_QRELS)
    alike = [
        row.pk
        for row in rows.iterator(_ROWS)
        if row.is_sound(row.qrels_key) and _ranked_alike(own, unpack_view(row))
    ]

    return list(Run.objects.filter(evaluations__in=alike).select_related("team").order_by("tag"))


def _ranked_alike(view: JudgedRun, other: JudgedRun) -> bool:
    return all(
        np.array_equal(getattr(view, column), getattr(other, column))
        for column in ("topic", "rank", "judgement", "num_ret")
    )
