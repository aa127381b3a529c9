"""Store the curves of each evaluated run and session set."""

import django.db.models.deletion
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
        migrations.RunPython(store_as_it_is, migrations.RunPython.noop),
    ]
