"""Entries are called so in the administration."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0048_citations'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='entry',
            options={'ordering': ('phase', 'number'), 'verbose_name_plural': 'entries'},
        ),
    ]
