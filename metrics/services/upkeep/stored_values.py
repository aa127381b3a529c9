"""Check stored values against their sources: digests, vectors, means, topic ids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from django.db import OperationalError, transaction
from django.db.models import Model

from metrics.engine import ENGINE_VERSION
from metrics.engine.arrays import Floats
from metrics.engine.curve.gain_curves import GainCurves
from metrics.engine.errors import EvalHubError
from metrics.engine.judgement.depth import judged_depth
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.external import PREFIX
from metrics.engine.measures.grammar import parse_measure
from metrics.models import (
    EVALUATIONS,
    Comparison,
    Evaluation,
    EvaluationQuerySet,
    JudgedView,
    MetricVector,
    SessionEvaluation,
    SessionView,
    StoredCurves,
    StoredSessionCurves,
)
from metrics.services.queue.damage import give_up_evaluations
from metrics.services.queue.lifecycle import queue_again
from metrics.services.sessions.curves import arrays_of, stored_curves
from metrics.services.sessions.judged_sets import JudgedSet, default_measures, unpack_set, values_of
from metrics.services.upkeep.findings import Finding
from metrics.services.values.curves import renew_curves
from metrics.services.values.evaluate import make_vector, unpack_curves
from metrics.services.values.judged_views import replace_vectors, unpack_view
from metrics.services.values.table_vectors import (
    lock_measures,
    store_table_vectors,
    table_vectors,
)
from runs.errors import StoredValueCorrupt
from runs.models import ExternalMeasure, Qrels, TableValues
from runs.services.collections.qrels import load_judgements

# Another processor may compute another last digit.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_READ = ("engine_version", "qrels_id", "run", "judged_depth")
_BROKEN = (StoredValueCorrupt, OperationalError)


def find_in_topic_ids() -> Iterator[Finding]:
    """Check that the topic ids of judgements are those of their file, in its order."""
    for qrels in (
        Qrels.objects.select_related("collection").defer("topic_ids", "warnings").iterator(50)
    ):
        try:
            stored = qrels.topic_ids
        except _BROKEN:
            stored = None

        try:
            judgements = load_judgements(qrels)
        except EvalHubError:
            # The damaged file has its own finding.
            topic_ids = stored
        else:
            topic_ids = [topic_id.decode() for topic_id in judgements.topic_ids]

        if stored is None or stored != topic_ids:
            text = (
                f"the topic ids of judgements {qrels} are damaged; --repair reads them again "
                "from their file"
            )
            digest = qrels.digest_of_topic_ids(topic_ids)
            values = {"topic_ids": topic_ids, "topic_ids_digest": digest}
            repair = (
                partial(Qrels.objects.filter(pk=qrels.pk).update, **values) if topic_ids else None
            )
            yield Finding("qrels_topics_altered", text, repair)


def find_in_vectors() -> Iterator[Finding]:
    """Check that every vector and mean is unchanged, and equal to what this engine computes.

    It computes them from the judged view.
    """
    for evaluation in Evaluation.objects.evaluated().select_related("run").only(*_READ):
        current, view = evaluation.engine_version == ENGINE_VERSION, None
        row_of_view = JudgedView.objects.filter(pk=evaluation.pk).first() if current else None
        if row_of_view and is_whole(row_of_view, evaluation.qrels_id):
            view = unpack_view(row_of_view)
            if evaluation.judged_depth not in (None, judged_depth(view)):
                text = (
                    f"the judged depth of run {evaluation.run_id} is damaged; --repair computes "
                    "it again"
                )
                reset_depth = partial(
                    Evaluation.objects.filter(pk=evaluation.pk).update, judged_depth=None
                )
                yield Finding("depth_altered", text, reset_depth)

        # Those of tables are not computed from the view.
        vectors = MetricVector.objects.filter(evaluation=evaluation.pk)
        for vector in vectors.exclude(measure__startswith=PREFIX):
            sound = vector.is_sound(evaluation.qrels_id)
            text = f"{vector.measure} of run {evaluation.run_id} is damaged"

            if view is None:
                if not sound:
                    remove_run = partial(give_up_evaluations, Evaluation, [evaluation.pk], "values")
                    yield Finding(
                        "vector_altered",
                        f"{text}; --repair removes the run from the leaderboards",
                        remove_run,
                    )

                continue

            fresh = make_vector(evaluation.pk, parse_measure(vector.measure), view).seal(
                evaluation.qrels_id
            )
            if not (sound and _is_same(vector, fresh)):
                repair = partial(replace_vectors, [fresh])
                yield Finding(
                    "vector_altered",
                    f"{text}; --repair computes it again from the judged view",
                    repair,
                )

        for row in StoredCurves.objects.filter(evaluation=evaluation.pk):
            if not (
                row.is_sound(evaluation.qrels_id)
                and (view is None or _are_computed_curves(row, view))
            ):
                text = (
                    f"the curves of run {evaluation.run_id} are damaged; --repair stores them again"
                )
                yield Finding("curves_altered", text, partial(_renew_curves, evaluation, view))


def find_in_value_tables() -> Iterator[Finding]:
    """Check that the values of tables are unchanged, and that every evaluation has them."""
    rows = TableValues.objects.select_related("measure__collection").order_by("pk")
    for row in rows.iterator(50):
        if not row.is_sound():
            text = (
                f"the values of {row.measure} of run {row.run_id} are damaged; upload a table with "
                "them again"
            )
            yield Finding("table_altered", text)
            continue

        measure = row.measure.measure
        evaluations = Evaluation.objects.evaluated().filter(
            run=row.run_id, qrels__collection=row.measure.collection
        )
        expected = table_vectors({pk: [measure] for pk in evaluations.values_list("pk", flat=True)})
        stored = {
            (vector.evaluation_id, vector.measure): vector
            for vector in MetricVector.objects.filter(
                evaluation__in=evaluations, measure=measure.name
            )
        }
        if any(not _is_stored(vector, stored.get(key)) for key, vector in expected.items()):
            text = (
                f"the vectors of {measure.name} of run {row.run_id} differ from its tables; "
                "--repair makes them again"
            )
            repair = partial(_store_table_vectors, evaluations, row.measure)
            yield Finding("vector_altered", text, repair)


def _is_stored(vector: MetricVector, stored: MetricVector | None) -> bool:
    """Return whether a vector is stored as it is, with its digests."""
    columns = ("mean", "topics", "digest", "mean_digest")
    return (
        stored is not None
        and bytes(stored.content) == bytes(vector.content)
        and all(getattr(stored, name) == getattr(vector, name) for name in columns)
    )


def _store_table_vectors(evaluations: EvaluationQuerySet, measure: ExternalMeasure) -> None:
    with transaction.atomic():
        lock_measures([measure.collection_id])
        store_table_vectors(evaluations, [measure])


def _are_computed_curves(row: StoredCurves, view: JudgedRun) -> bool:
    """Return whether stored curves are those that this engine computes from the judged view."""
    stored = unpack_curves(row)
    fresh = GainCurves.of(view, stored.measure, stored.depth)
    return _close(stored.means, fresh.means) and stored.to_bytes() == fresh.to_bytes()


def _renew_curves(evaluation: Evaluation, view: JudgedRun | None) -> None:
    """Store the curves of an evaluation again.

    There are none where its judged view is damaged or of another engine.
    """
    if view is None:
        StoredCurves.objects.filter(evaluation=evaluation.pk).delete()
    else:
        renew_curves(
            Evaluation.objects.select_related("run__collection").get(pk=evaluation.pk), view
        )


def is_whole(row: JudgedView | SessionView, qrels: int | None) -> bool:
    """Return whether a judged view has its digest and can be unpacked."""
    try:
        if isinstance(row, SessionView):
            return row.is_sound(qrels) and bool(unpack_set(row))
        return qrels is not None and row.is_sound(qrels) and bool(unpack_view(row))
    except Exception:
        return False


def _is_same(vector: MetricVector, fresh: MetricVector) -> bool:
    if len(vector.content) != len(fresh.content) or vector.topics != fresh.topics:
        return False
    means = [np.nan if row.mean is None else row.mean for row in (vector, fresh)]
    return _close(vector.values, fresh.values) and _close(np.array(means[:1]), np.array(means[1:]))


def _close(a: Floats, b: Floats) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)


def find_in_session_means() -> Iterator[Finding]:
    """Check that stored means and curves of a session set are unchanged and still computed so.

    This engine computes them from its judged view.
    """

    evaluations = (
        SessionEvaluation.objects.evaluated().filter(engine_version=ENGINE_VERSION).defer("means")
    )
    for evaluation in evaluations.iterator(50):
        row_of_view = SessionView.objects.filter(pk=evaluation.pk).first()
        try:
            is_sound = evaluation.has_sound_means()
            if is_sound and row_of_view and is_whole(row_of_view, evaluation.qrels_id):
                judged = unpack_set(row_of_view)
                is_sound = _are_means(judged, evaluation.means)
                for row in StoredSessionCurves.objects.filter(pk=evaluation.pk):
                    is_sound &= row.is_sound(evaluation.qrels_id) and _are_session_curves(
                        row, judged
                    )
        except OperationalError:
            is_sound = False

        if not is_sound:
            text = (
                f"the means or curves of session set {evaluation.session_set_id} are damaged; "
                "--repair evaluates it again"
            )
            yield Finding("session_means_altered", text, partial(_evaluate_again, evaluation.pk))


def _are_means(judged: JudgedSet, means: dict[str, Any]) -> bool:
    if means.get("systems") != [name.decode() for name in judged.systems]:
        return False

    measures = [measure for measure in default_measures() if measure.name in means["values"]]
    values = values_of(judged, measures)
    for measure in measures:
        means_of_systems = judged.means(measure, values[measure.name])

        stored, expected = (
            np.array(pairs, np.float64)
            for pairs in (means["values"][measure.name], means_of_systems)
        )
        if not _close(stored, expected):
            return False

    return True


def _are_session_curves(row: StoredSessionCurves, judged: JudgedSet) -> bool:
    stored, computed = arrays_of(row), arrays_of(stored_curves(row.evaluation_id, judged))
    return stored.keys() == computed.keys() and all(
        _close(stored[name], computed[name]) for name in computed
    )


def _evaluate_again(pk: int) -> None:
    rows = SessionEvaluation.objects.filter(pk=pk)
    # A value that is not text would stop the worker that reads the row.
    rows.update(means={}, means_digest=None)
    queue_again(rows)


def find_unsealed() -> Iterator[Finding]:
    """Yield values without a digest, stored by a worker of an earlier release.

    They were just compared with their view.
    """

    kinds: tuple[tuple[type[Model], str, str], ...] = (
        (JudgedView, "digest", "evaluation__qrels_id"),
        (MetricVector, "mean_digest", "evaluation__qrels_id"),
        (SessionView, "digest", "evaluation__qrels_id"),
    )
    for kind, column, qrels in kinds:
        rows = kind._default_manager.filter(**{column: None})
        if count := rows.count():
            text = (
                f"{count} of {kind._meta.verbose_name_plural} have no digest; --repair gives "
                "them theirs"
            )
            yield Finding("digest_missing", text, partial(_seal, rows, qrels), note=True)

    means = SessionEvaluation.objects.evaluated().filter(means_digest=None).exclude(means={})
    results = Comparison.objects.filter(content_digest=None).exclude(content=None)
    if count := means.count() + results.count():
        text = (
            f"{count} means of session sets and results of comparisons have no digest; --repair "
            "gives them theirs"
        )
        yield Finding("digest_missing", text, partial(_seal_others, means, results), note=True)

    for evaluations in EVALUATIONS.values():
        unsealed = evaluations.OF.objects.filter(digest=None)
        unbound = evaluations.objects.evaluated().filter(judged_files="")
        # Means over replicates are of no file.
        unbound = unbound.exclude(**{f"{evaluations.OF.KEY}__sha256": ""})
        if count := unsealed.count() + unbound.count():
            noun = evaluations.OF.noun()
            text = (
                f"{count} {noun}s and evaluations of {noun}s are not bound to their files; "
                "--repair binds them"
            )
            yield Finding("digest_missing", text, partial(_bind, unsealed, unbound), note=True)


def _seal(rows: Any, qrels: str) -> None:
    for pk, version in rows.values_list("pk", qrels).iterator(500):
        row = rows.model._default_manager.get(pk=pk).seal(version)
        row.save(
            update_fields=[
                field.name for field in row._meta.concrete_fields if "digest" in field.name
            ]
        )


def _seal_others(means: Any, results: Any) -> None:
    for evaluation in means.iterator(50):
        digest = evaluation.digest_of_means(evaluation.means)
        SessionEvaluation.objects.filter(pk=evaluation.pk).update(means_digest=digest)

    for stored in results.iterator(1):
        digest = stored.digest_of_content(stored.digest, stored.content)
        Comparison.objects.filter(pk=stored.pk).update(content_digest=digest)


def _bind(submissions: Any, evaluations: Any) -> None:
    for submission in submissions.iterator(500):
        submissions.filter(pk=submission.pk).update(digest=submission.digest_of_sealed())

    for evaluation in evaluations.select_related(evaluations.model.OF.KEY).iterator(500):
        evaluations.filter(pk=evaluation.pk).update(
            judged_files="".join(evaluation.submission.files)
        )
