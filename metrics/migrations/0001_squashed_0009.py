"""The tables of a new database; one of an earlier version has them by the migrations that this one replaces."""

from django.db import migrations, models
import django.db.models.deletion
import django.utils.timezone
import uuid

from runs.migrations._together import CreateTogether


class Migration(migrations.Migration):
    replaces = [
        ('metrics', '0001_initial'),
        ('metrics', '0002_dispatcher_rounds'),
        ('metrics', '0003_comparisons'),
        ('metrics', '0004_session_evaluations'),
        ('metrics', '0005_digests'),
        ('metrics', '0006_fill_digests'),
        ('metrics', '0007_judged_files'),
        ('metrics', '0008_fill_judged_files'),
        ('metrics', '0009_broker_trouble'),
    ]

    dependencies = [
        ('runs', '0012_install'),
    ]

    operations = [
        CreateTogether([
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
                    ('scores', models.CharField(choices=[('float64', 'Float64'), ('float32', 'Float32')], max_length=10)),
                    ('topics_answered', models.IntegerField(null=True)),
                ],
            ),
            migrations.CreateModel(
                name='MetricVector',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('measure', models.CharField(max_length=200)),
                    ('mean', models.FloatField(help_text='over the topics with a value; the sum for counts', null=True)),
                    ('topics', models.IntegerField(help_text='topics with a value')),
                    ('content', models.BinaryField()),
                    ('digest', models.BigIntegerField(help_text='of the values', null=True)),
                    ('mean_digest', models.BigIntegerField(help_text='of the mean and its topics', null=True)),
                ],
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
                    ('judged_by', models.CharField(choices=[('topic', 'Topic'), ('session', 'Session'), ('query', 'Query'), ('own', 'Own')], max_length=10)),
                    ('sessions_judged', models.IntegerField(null=True)),
                    ('means', models.JSONField(default=dict)),
                    ('means_digest', models.BigIntegerField(null=True)),
                ],
            ),
            migrations.AddField(
                model_name='comparison',
                name='qrels',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons', to='runs.qrels'),
            ),
            migrations.CreateModel(
                name='JudgedView',
                fields=[
                    ('evaluation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='view', serialize=False, to='metrics.evaluation')),
                    ('content', models.BinaryField()),
                    ('digest', models.BigIntegerField(null=True)),
                ],
            ),
            migrations.AddField(
                model_name='evaluation',
                name='qrels',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs.qrels'),
            ),
            migrations.AddField(
                model_name='evaluation',
                name='run',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs.run'),
            ),
            migrations.AddField(
                model_name='metricvector',
                name='evaluation',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='vectors', to='metrics.evaluation'),
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
            migrations.AddField(
                model_name='sessionevaluation',
                name='qrels',
                field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='session_evaluations', to='runs.qrels'),
            ),
            migrations.AddField(
                model_name='sessionevaluation',
                name='session_set',
                field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs.sessionset'),
            ),
            migrations.AddIndex(
                model_name='comparison',
                index=models.Index(condition=models.Q(('state__in', ('queued', 'comparing'))), fields=['state', 'created_at'], name='comparisons_queue'),
            ),
            migrations.AddConstraint(
                model_name='comparison',
                constraint=models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'comparing')), models.Q(models.Q(('state', 'comparing'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_comparing'),
            ),
            migrations.AddConstraint(
                model_name='comparison',
                constraint=models.CheckConstraint(condition=models.Q(models.Q(('content__isnull', False), ('state', 'compared')), models.Q(models.Q(('state', 'compared'), _negated=True), ('content', None)), _connector='OR'), name='content_exactly_when_compared'),
            ),
            migrations.AddIndex(
                model_name='evaluation',
                index=models.Index(condition=models.Q(('state__in', ('queued', 'evaluating'))), fields=['state', 'created_at'], name='queue'),
            ),
            migrations.AddIndex(
                model_name='evaluation',
                index=models.Index(fields=['state', 'error_code', 'attempts', 'seconds'], name='figures'),
            ),
            migrations.AddConstraint(
                model_name='evaluation',
                constraint=models.UniqueConstraint(fields=('qrels', 'scores', 'engine_version', 'run'), name='one_evaluation_per_identity'),
            ),
            migrations.AddConstraint(
                model_name='evaluation',
                constraint=models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'evaluating')), models.Q(models.Q(('state', 'evaluating'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_evaluating'),
            ),
            migrations.AddIndex(
                model_name='metricvector',
                index=models.Index(fields=['measure', 'evaluation', 'mean', 'topics', 'mean_digest'], name='means_and_digests'),
            ),
            migrations.AddConstraint(
                model_name='metricvector',
                constraint=models.UniqueConstraint(fields=('evaluation', 'measure'), name='one_vector_per_measure'),
            ),
            migrations.AddIndex(
                model_name='sessionevaluation',
                index=models.Index(condition=models.Q(('state__in', ('queued', 'evaluating'))), fields=['state', 'created_at'], name='sessions_queue'),
            ),
            migrations.AddConstraint(
                model_name='sessionevaluation',
                constraint=models.UniqueConstraint(condition=models.Q(('qrels__isnull', False)), fields=('qrels', 'judged_by', 'engine_version', 'session_set'), name='one_session_evaluation_per_identity'),
            ),
            migrations.AddConstraint(
                model_name='sessionevaluation',
                constraint=models.UniqueConstraint(condition=models.Q(('qrels', None)), fields=('session_set', 'engine_version'), name='one_evaluation_by_own_judgements'),
            ),
            migrations.AddConstraint(
                model_name='sessionevaluation',
                constraint=models.CheckConstraint(condition=models.Q(models.Q(('judged_by', 'own'), ('qrels', None)), models.Q(models.Q(('judged_by', 'own'), _negated=True), ('qrels__isnull', False)), _connector='OR'), name='qrels_unless_own_judgements'),
            ),
            migrations.AddConstraint(
                model_name='sessionevaluation',
                constraint=models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'evaluating')), models.Q(models.Q(('state', 'evaluating'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_evaluating_sessions'),
            ),
        ]),
    ]
