"""Phases exclude topics, and versions of judgements are without them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0041_published_entries'),
    ]

    operations = [
        migrations.AddField(
            model_name='phase',
            name='excluded_reason',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=500),
        ),
        migrations.AddField(
            model_name='phase',
            name='excluded_topics',
            field=models.JSONField(blank=True, editable=False, help_text='that do not count, and why', null=True),
        ),
        migrations.AddField(
            model_name='qrels',
            name='reduced_from',
            field=models.ForeignKey(editable=False, help_text='the version with all topics, if this one is without those that phases exclude', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='reduced', to='runs.qrels'),
        ),
    ]
