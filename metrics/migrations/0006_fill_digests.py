"""Give every stored value of an earlier release its digest.

In small transactions, so that nobody who writes waits long, and begun again where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db import migrations

from runs.digests import digest_of_bytes, digest_of_json, digests_of_means, measure_seed

# Bytes that are held at once, and rows.
_BYTES, _ROWS = 8_000_000, 500


def fill(apps: Any, schema_editor: Any) -> None:
    def model(name: str) -> Any:
        return apps.get_model("metrics", name).objects

    views = model("JudgedView").filter(digest=None).select_related("evaluation")
    _fill(views, ("digest",), _digest_view)
    vectors = model("MetricVector").filter(mean_digest=None).select_related("evaluation")
    _fill(vectors, ("digest", "mean_digest"), _digest_vector)
    sets = model("SessionView").filter(digest=None).select_related("evaluation")
    _fill(sets, ("digest",), _digest_set)
    evaluated = model("SessionEvaluation").filter(means_digest=None).exclude(view=None)
    _fill(evaluated, ("means_digest",), _digest_means)
    compared = model("Comparison").filter(content_digest=None).exclude(content=None)
    _fill(compared, ("content_digest",), _digest_result)


def _digest_view(row: Any) -> None:
    row.digest = digest_of_bytes(("view", row.pk, row.evaluation.qrels_id), row.content)


def _digest_vector(row: Any) -> None:
    qrels, seed = row.evaluation.qrels_id, measure_seed(row.measure)
    row.digest = digest_of_bytes(("vector", row.evaluation_id, qrels, row.measure), row.content)
    row.mean_digest = int(digests_of_means([row.evaluation_id], [qrels], [seed], [row.mean], [row.topics])[0])


def _digest_set(row: Any) -> None:
    row.digest = digest_of_bytes(("session view", row.pk, row.evaluation.qrels_id), row.content, row.sessions)


def _digest_means(row: Any) -> None:
    row.means_digest = digest_of_json(("means", row.pk, row.qrels_id), row.means)


def _digest_result(row: Any) -> None:
    row.content_digest = digest_of_bytes(("comparison", row.digest), row.content)


def _fill(rows: Any, names: tuple[str, ...], digest: Callable[[Any], None]) -> None:
    for batch in _batches(rows.order_by("pk")):
        for row in batch:
            digest(row)
        rows.model.objects.bulk_update(batch, names)


def _batches(rows: Any) -> Iterator[list[Any]]:
    """Some rows at a time, in the order of their keys: a query each, so that none is open while others are written."""
    last, number = None, 1
    while batch := list((rows if last is None else rows.filter(pk__gt=last))[:number]):
        yield batch
        last = batch[-1].pk
        largest = max(len(getattr(row, "content", None) or b"") for row in batch)
        number = max(1, min(_ROWS, _BYTES // (largest + 1000)))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("metrics", "0005_digests")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
