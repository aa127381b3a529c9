"""Extensions say whether organisers had read values of the entries."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0039_rules_of_tags_and_documents'),
    ]

    operations = [
        migrations.AddField(
            model_name='extension',
            name='values_seen_since',
            field=models.DateTimeField(editable=False, help_text='when an organiser first read values of its entries, if before', null=True),
        ),
    ]
