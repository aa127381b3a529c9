"""Add replicates of runs."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0063_attribute_keys")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="replicate_of",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="the run without a file whose values are the means of its replicates",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="replicates",
                to="runs.run",
            ),
        ),
    ]
