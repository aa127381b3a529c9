import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0053_collection_revision"),
    ]

    operations = [
        migrations.CreateModel(
            name="DocumentTitle",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("doc_id", models.CharField(max_length=1024)),
                ("title", models.TextField(blank=True)),
                ("snippet", models.TextField(blank=True)),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="document_titles",
                        to="runs.collection",
                    ),
                ),
            ],
            options={
                "ordering": ("collection", "doc_id"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("collection", "doc_id"), name="one_title_per_document"
                    )
                ],
            },
        ),
    ]
