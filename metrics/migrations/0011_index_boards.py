"""Recognise an unchanged leaderboard of ten thousand runs from an index alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('metrics', '0010_judged_depth'),
        ('runs', '0050_index_boards'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['qrels', 'scores', 'engine_version', 'state', 'since', 'id'], name='states_of_board'),
        ),
    ]
