"""Add the keys of the attributes of a collection's topics."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0062_sampling")]

    operations = [
        # Of collections that there are the keys stay null: they may have attributes.
        migrations.AddField(
            model_name="collection",
            name="attribute_keys",
            field=models.JSONField(
                editable=False, help_text="the keys of the attributes of its topics", null=True
            ),
        ),
        # The default is Django's alone. On SQLite a change of it would make the table anew, without
        # the trigger that keeps disclosures.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="collection",
                    name="attribute_keys",
                    field=models.JSONField(
                        default=list,
                        editable=False,
                        help_text="the keys of the attributes of its topics",
                        null=True,
                    ),
                ),
            ],
        ),
    ]
