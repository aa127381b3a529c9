"""Organisers take runs out of their collections, and say why."""

import runs.models.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0050_index_boards'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='removal_reason',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='why organisers took it out of its collection', max_length=500, validators=[runs.models.text.check_line]),
        ),
    ]
