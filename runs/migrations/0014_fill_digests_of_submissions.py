"""Give every run and session set of an earlier release its digest, in small transactions."""

from __future__ import annotations

from typing import Any

from django.db import migrations

from runs.digests import digest_of_bytes

# As the models name them, in the order in which they are digested.
_COMMON = ("sha256", "size", "documents", "topics", "grouped")
_SEALED = {
    "Run": ("run", *_COMMON, "lines", "tied_documents", "known_sha256", "known_documents"),
    "SessionSet": (
        "session_set", *_COMMON, "format", "sessions", "queries", "empty_queries", "searchers", "judged_documents",
    ),
}  # fmt: skip
_ROWS = 500


def fill(apps: Any, schema_editor: Any) -> None:
    for model, (key, *names) in _SEALED.items():
        rows = apps.get_model("runs", model).objects
        # A query each, so that none is open while others are written.
        while batch := list(rows.filter(digest=None).only("pk", *names)[:_ROWS]):
            for row in batch:
                row.digest = digest_of_bytes((key, row.pk, *(getattr(row, name) for name in names)))
            rows.bulk_update(batch, ("digest",))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0013_digests_of_submissions")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
