"""The tables of evaluations, comparisons and their values."""

import django.db.models.deletion
import django.utils.timezone
import uuid
from django.db import migrations, models

# PostgreSQL would try to compress these again.
COMPRESSED = [('judgedview', 'content'), ('sessionview', 'content'), ('sessionview', 'sessions'), ('comparison', 'content')]


def store_compressed_as_it_is(apps, schema_editor):
    if schema_editor.connection.vendor != 'postgresql':
        return
    quote = schema_editor.quote_name
    for name, field in COMPRESSED:
        model = apps.get_model('metrics', name)
        column = model._meta.get_field(field).column
        schema_editor.execute(
            f'ALTER TABLE {quote(model._meta.db_table)} ALTER COLUMN {quote(column)} SET STORAGE EXTERNAL'
        )


def create_tables(apps, schema_editor):
    """Create every table with its columns, constraints and indexes.

    Django's operations would make the classes of all models anew for each of them, and take three times as long.
    """
    for model in apps.get_app_config('metrics').get_models():
        schema_editor.create_model(model)


def drop_tables(apps, schema_editor):
    for model in reversed(list(apps.get_app_config('metrics').get_models())):
        schema_editor.delete_model(model)


# Each with all that it has today, as makemigrations writes it.
MODELS = [
    migrations.CreateModel(
        name='Evaluation',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
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
            ('engine_version', models.CharField(default='1', max_length=20)),
            ('state', models.CharField(choices=[('queued', 'Queued'), ('evaluating', 'Evaluating'), ('evaluated', 'Evaluated'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=12)),
            ('judged_files', models.CharField(blank=True, db_default='', editable=False, max_length=128)),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs.run')),
            ('qrels', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs.qrels')),
            ('scores', models.CharField(choices=[('float64', 'Float64'), ('float32', 'Float32')], max_length=10)),
            ('topics_answered', models.IntegerField(null=True)),
            ('judged_depth', models.IntegerField(help_text='every document of the ranks 1 to this one is judged', null=True)),
            ('depth_digest', models.BigIntegerField(null=True)),
        ],
        options={
            'indexes': [models.Index(condition=models.Q(('state__in', ('queued', 'evaluating'))), fields=['state', 'created_at'], name='queue'), models.Index(fields=['state', 'error_code', 'attempts', 'seconds'], name='figures'), models.Index(fields=['qrels', 'scores', 'engine_version', 'state', 'since', 'id'], name='states_of_board')],
            'constraints': [models.UniqueConstraint(fields=('qrels', 'scores', 'engine_version', 'run'), name='one_evaluation_per_identity'), models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'evaluating')), models.Q(models.Q(('state', 'evaluating'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_evaluating')],
        },
    ),
    migrations.CreateModel(
        name='JudgedView',
        fields=[
            ('evaluation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='view', serialize=False, to='metrics.evaluation')),
            ('content', models.BinaryField()),
            ('digest', models.BigIntegerField(null=True)),
        ],
    ),
    migrations.CreateModel(
        name='MetricVector',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('evaluation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='vectors', to='metrics.evaluation')),
            ('measure', models.CharField(max_length=200)),
            ('mean', models.FloatField(help_text='over the topics with a value; the sum for counts', null=True)),
            ('topics', models.IntegerField(help_text='topics with a value')),
            ('content', models.BinaryField()),
            ('digest', models.BigIntegerField(help_text='of the values', null=True)),
            ('mean_digest', models.BigIntegerField(help_text='of the mean and its topics', null=True)),
        ],
        options={
            'indexes': [models.Index(fields=['measure', 'evaluation', 'mean', 'topics', 'mean_digest'], name='means_and_digests')],
            'constraints': [models.UniqueConstraint(fields=('evaluation', 'measure'), name='one_vector_per_measure')],
        },
    ),
    migrations.CreateModel(
        name='SessionEvaluation',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
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
            ('engine_version', models.CharField(default='1', max_length=20)),
            ('state', models.CharField(choices=[('queued', 'Queued'), ('evaluating', 'Evaluating'), ('evaluated', 'Evaluated'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=12)),
            ('judged_files', models.CharField(blank=True, db_default='', editable=False, max_length=128)),
            ('session_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs.sessionset')),
            ('qrels', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='session_evaluations', to='runs.qrels')),
            ('judged_by', models.CharField(choices=[('topic', 'Topic'), ('session', 'Session'), ('query', 'Query'), ('own', 'Own')], max_length=10)),
            ('sessions_judged', models.IntegerField(null=True)),
            ('means', models.JSONField(default=dict)),
            ('means_digest', models.BigIntegerField(null=True)),
        ],
        options={
            'indexes': [models.Index(condition=models.Q(('state__in', ('queued', 'evaluating'))), fields=['state', 'created_at'], name='sessions_queue')],
            'constraints': [models.UniqueConstraint(condition=models.Q(('qrels__isnull', False)), fields=('qrels', 'judged_by', 'engine_version', 'session_set'), name='one_session_evaluation_per_identity'), models.UniqueConstraint(condition=models.Q(('qrels', None)), fields=('session_set', 'engine_version'), name='one_evaluation_by_own_judgements'), models.CheckConstraint(condition=models.Q(models.Q(('judged_by', 'own'), ('qrels', None)), models.Q(models.Q(('judged_by', 'own'), _negated=True), ('qrels__isnull', False)), _connector='OR'), name='qrels_unless_own_judgements'), models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'evaluating')), models.Q(models.Q(('state', 'evaluating'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_evaluating_sessions')],
        },
    ),
    migrations.CreateModel(
        name='SessionView',
        fields=[
            ('evaluation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='view', serialize=False, to='metrics.sessionevaluation')),
            ('content', models.BinaryField()),
            ('sessions', models.BinaryField(help_text='a line for each session: id, topic, searcher, system')),
            ('digest', models.BigIntegerField(help_text='of both', null=True)),
        ],
    ),
    migrations.CreateModel(
        name='Comparison',
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
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('qrels', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons', to='runs.qrels')),
            ('scores', models.CharField(choices=[('float64', 'Float64'), ('float32', 'Float32')], max_length=10)),
            ('engine_version', models.CharField(default='1', max_length=20)),
            ('digest', models.CharField(help_text='SHA-256 of the query', max_length=64, unique=True)),
            ('query', models.JSONField()),
            ('state', models.CharField(choices=[('queued', 'Queued'), ('comparing', 'Comparing'), ('compared', 'Compared'), ('failed', 'Failed')], default='queued', max_length=12)),
            ('progress', models.FloatField(default=0.0, help_text='share of the work that is done')),
            ('content', models.BinaryField(help_text='the result, compressed', null=True)),
            ('content_digest', models.BigIntegerField(null=True)),
            ('size', models.BigIntegerField(default=0, help_text='bytes of the result')),
            ('read_at', models.DateTimeField(default=django.utils.timezone.now, help_text='day of the last request')),
        ],
        options={
            'indexes': [models.Index(condition=models.Q(('state__in', ('queued', 'comparing'))), fields=['state', 'created_at'], name='comparisons_queue')],
            'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'comparing')), models.Q(models.Q(('state', 'comparing'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_comparing'), models.CheckConstraint(condition=models.Q(models.Q(('content__isnull', False), ('state', 'compared')), models.Q(models.Q(('state', 'compared'), _negated=True), ('content', None)), _connector='OR'), name='content_exactly_when_compared')],
        },
    ),
    migrations.CreateModel(
        name='DispatcherRound',
        fields=[
            ('worker', models.CharField(max_length=200, primary_key=True, serialize=False)),
            ('at', models.DateTimeField()),
            ('failed', models.BigIntegerField(default=0, help_text='rounds that failed since the worker started')),
            ('trouble', models.CharField(blank=True, db_default='', help_text='why it cannot send, as a code', max_length=30)),
        ],
    ),
]


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('metrics', '0001_initial'),
        ('metrics', '0001_squashed_0009'),
        ('metrics', '0002_dispatcher_rounds'),
        ('metrics', '0003_comparisons'),
        ('metrics', '0004_session_evaluations'),
        ('metrics', '0005_digests'),
        ('metrics', '0006_fill_digests'),
        ('metrics', '0007_judged_files'),
        ('metrics', '0008_fill_judged_files'),
        ('metrics', '0009_broker_trouble'),
        ('metrics', '0010_judged_depth'),
        ('metrics', '0011_index_boards'),
        ('metrics', '0012_store_compressed_as_it_is'),
    ]

    dependencies = [
        ('runs', '0001_squashed_0052'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=MODELS),
        migrations.RunPython(create_tables, drop_tables),
        migrations.RunPython(store_compressed_as_it_is, migrations.RunPython.noop),
    ]
