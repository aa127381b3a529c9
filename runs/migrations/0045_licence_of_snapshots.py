"""Campaigns name the licence of their snapshots."""

import django.core.validators
import runs.models.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0044_digests_and_own_addresses'),
    ]

    operations = [
        migrations.AddField(
            model_name='campaign',
            name='licence',
            field=models.CharField(blank=True, db_default='', help_text='SPDX identifier of the licence of its snapshots, such as CC-BY-4.0', max_length=64, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9][A-Za-z0-9.+-]*\\Z', 'write the SPDX identifier of a licence, such as CC-BY-4.0: letters, digits, dots, hyphens and plus signs')]),
        ),
        migrations.AddField(
            model_name='campaign',
            name='rights',
            field=models.CharField(blank=True, db_default='', help_text='who has which rights in its snapshots, in words', max_length=500, validators=[runs.models.text.check_line]),
        ),
    ]
