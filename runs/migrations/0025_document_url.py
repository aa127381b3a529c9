import runs.models.collections
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0024_artifacts"),
    ]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="document_url",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="where a document can be read, with {doc_id} for its id: https://example.org/documents/{doc_id}",
                max_length=500,
                validators=[runs.models.collections.check_document_url],
            ),
        ),
    ]
