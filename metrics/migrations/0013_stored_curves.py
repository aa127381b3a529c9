"""Store the curves of each evaluated run and session set, and let workers add vectors of changed measures."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


def store_as_it_is(apps, schema_editor):
    """Keep PostgreSQL from trying to compress what is compressed already."""
    if schema_editor.connection.vendor == 'postgresql':
        for table, column in (('storedcurves', 'means'), ('storedcurves', 'content'), ('storedsessioncurves', 'content')):
            schema_editor.execute(f'ALTER TABLE metrics_{table} ALTER COLUMN {column} SET STORAGE EXTERNAL')


class Migration(migrations.Migration):

    dependencies = [
        ('metrics', '0001_squashed_0012'),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredCurves',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('measure', models.CharField(max_length=200)),
                ('depth', models.IntegerField()),
                ('means', models.BinaryField(help_text='float64 by curve and rank')),
                ('content', models.BinaryField(help_text='gains by topic and rank, compressed')),
                ('digest', models.BigIntegerField(help_text='of the depth, the means and the content')),
                ('evaluation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='curves', to='metrics.evaluation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('evaluation', 'measure'), name='one_set_of_curves_per_measure')],
            },
        ),
        migrations.CreateModel(
            name='StoredSessionCurves',
            fields=[
                ('evaluation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='curves', serialize=False, to='metrics.sessionevaluation')),
                ('content', models.BinaryField(help_text='compressed')),
                ('digest', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='VectorUpdate',
            fields=[
                ('since', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('lease_token', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('dispatched_at', models.DateTimeField(null=True)),
                ('not_before', models.DateTimeField(null=True)),
                ('error_code', models.CharField(blank=True, max_length=50)),
                ('error_message', models.TextField(blank=True)),
                ('traceback', models.TextField(blank=True, help_text='for administrators only')),
                ('seconds', models.FloatField(null=True)),
                ('qrels', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='vector_update', serialize=False, to='runs.qrels')),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('computing', 'Computing'), ('computed', 'Computed'), ('failed', 'Failed')], default='queued', max_length=12)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state__in', ('queued', 'computing'))), fields=['state', 'created_at'], name='vector_updates_queue')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'computing')), models.Q(models.Q(('state', 'computing'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_computing')],
            },
        ),
        migrations.RunPython(store_as_it_is, migrations.RunPython.noop),
    ]
