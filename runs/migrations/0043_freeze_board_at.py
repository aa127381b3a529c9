"""Leaderboards of phases can be frozen before the end."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0042_excluded_topics'),
    ]

    operations = [
        migrations.AddField(
            model_name='phase',
            name='freeze_board_at',
            field=models.DateTimeField(blank=True, help_text='teams see no later entry of others on the leaderboard before a release', null=True),
        ),
    ]
