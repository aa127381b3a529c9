"""Recognise an unchanged leaderboard of ten thousand runs from an index alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0049_plural_of_entries'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['collection', 'team', 'deleted_at', 'created_at', 'system', 'version', 'versioned_at'], name='runs_of_board'),
        ),
    ]
