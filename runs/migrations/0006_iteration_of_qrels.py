"""What the iteration column of judgements is taken for; so far every iteration of a topic was one of its subtopics."""

from typing import Any

from django.db import migrations, models


def keep_subtopics(apps: Any, schema_editor: Any) -> None:
    """Leave the values of what is stored as they are."""
    qrels = apps.get_model("runs", "Qrels").objects.using(schema_editor.connection.alias)
    qrels.filter(warnings__counts__has_key="subtopics").update(iteration="subtopic")


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_session_sets")]

    operations = [
        migrations.AddField(
            model_name="qrels",
            name="iteration",
            field=models.CharField(
                choices=[("subtopic", "Subtopic"), ("round", "Round"), ("ignore", "Ignore")],
                db_default="ignore",
                default="ignore",
                help_text="what the file's second column is taken for: subtopics, rounds of judging, or nothing",
                max_length=10,
            ),
        ),
        migrations.RunPython(keep_subtopics, migrations.RunPython.noop),
    ]
