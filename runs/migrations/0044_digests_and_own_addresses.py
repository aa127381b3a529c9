"""Mails of no campaign confirm addresses, and organisers are told of the entries of a day."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0043_freeze_board_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='mail',
            name='address',
            field=models.EmailField(blank=True, db_default='', default='', help_text='one that is to be confirmed', max_length=254),
        ),
        migrations.AlterField(
            model_name='mail',
            name='campaign',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='mails', to='runs.campaign'),
        ),
        migrations.AlterField(
            model_name='phasemoment',
            name='kind',
            field=models.CharField(choices=[('opened', 'Opened'), ('closing_72', 'Closing 72'), ('closing_24', 'Closing 24'), ('closing_2', 'Closing 2'), ('closed', 'Closed'), ('waiting', 'Waiting'), ('digest', 'Digest')], max_length=10),
        ),
    ]
