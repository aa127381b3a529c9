"""Campaigns say whom citations of their snapshots name, and what these belong to."""

import django.core.validators
import runs.models.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0047_former_names'),
    ]

    operations = [
        migrations.AddField(
            model_name='campaign',
            name='citation_authors',
            field=models.CharField(blank=True, db_default='', help_text='whom citations of its snapshots name, as in: Lima, Ana; Kim, Bo. Empty: its team', max_length=1000, validators=[runs.models.text.check_line]),
        ),
        migrations.AddField(
            model_name='campaign',
            name='judgements_doi',
            field=models.CharField(blank=True, db_default='', help_text='of the judgements, published elsewhere', max_length=220, validators=[django.core.validators.RegexValidator('\\A10\\.[0-9]{4,9}/[^\\s<>\\"\\\\{}]{1,200}\\Z', 'write it as 10.5281/zenodo.1234567')]),
        ),
        migrations.AddField(
            model_name='campaign',
            name='paper_doi',
            field=models.CharField(blank=True, db_default='', help_text='of its overview paper', max_length=220, validators=[django.core.validators.RegexValidator('\\A10\\.[0-9]{4,9}/[^\\s<>\\"\\\\{}]{1,200}\\Z', 'write it as 10.5281/zenodo.1234567')]),
        ),
    ]
