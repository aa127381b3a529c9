"""Give the topic ids of every version of judgements of an earlier release their digest."""

from __future__ import annotations

from typing import Any

from django.db import migrations

from runs.digests import digest_of_json


def fill(apps: Any, schema_editor: Any) -> None:
    qrels = apps.get_model("runs", "Qrels").objects
    for row in qrels.filter(topic_ids_digest=None).defer("warnings").iterator(50):
        digest = digest_of_json((row.collection_id, row.version, row.sha256), row.topic_ids)
        qrels.filter(pk=row.pk).update(topic_ids_digest=digest)


class Migration(migrations.Migration):
    dependencies = [("runs", "0010_digest_of_topic_ids")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
