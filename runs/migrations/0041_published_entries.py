"""Teams publish entries of phases that come afterwards."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0040_readings_before_extensions'),
    ]

    operations = [
        migrations.AddField(
            model_name='entry',
            name='published',
            field=models.BooleanField(db_default=False, default=False, help_text='of a phase afterwards: by its team, for all who see the leaderboard'),
        ),
    ]
