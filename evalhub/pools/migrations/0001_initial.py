"""The tables of pools, assessors and judgements."""
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import evalhub.pools.models
import runs.models.text
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs', '0054_document_titles'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Assessor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=150, validators=[runs.models.text.check_line])),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assessors', to='runs.collection')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='assessing', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('collection', 'name'),
            },
        ),
        migrations.CreateModel(
            name='Pool',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField(help_text='in its collection, from 1')),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('frozen', 'Frozen')], default='draft', max_length=6)),
                ('recipe', models.JSONField(help_text='the method and its parameters')),
                ('seed', models.BigIntegerField(default=evalhub.pools.models.draw_seed, editable=False)),
                ('topics', models.JSONField(default=list, help_text='rows of topic id and number of documents')),
                ('documents', models.BigIntegerField(help_text='over all topics')),
                ('sha256', models.CharField(help_text='of the file, decompressed', max_length=64)),
                ('size', models.BigIntegerField(help_text='bytes of the file, decompressed')),
                ('excluded', models.JSONField(default=dict, help_text='what it leaves out as judged before')),
                ('note', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_line])),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('frozen_at', models.DateTimeField(editable=False, null=True)),
                ('shown_at', models.DateTimeField(editable=False, help_text='since when all who see the results of the collection see it', null=True)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pools', to='runs.collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('frozen_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('phase', models.ForeignKey(blank=True, help_text='empty: a pool of runs outside of campaigns', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='pools', to='runs.phase')),
            ],
            options={
                'ordering': ('collection', '-number'),
            },
        ),
        migrations.CreateModel(
            name='Judgement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic_id', models.CharField(max_length=1024)),
                ('doc_id', models.CharField(max_length=1024)),
                ('aspect', models.CharField(blank=True, max_length=64, validators=[runs.models.text.check_line])),
                ('level', models.IntegerField()),
                ('round', models.CharField(blank=True, help_text='of judging, such as 0.5: the iteration of a file of judgements', max_length=20, validators=[runs.models.text.check_line])),
                ('seconds', models.FloatField(blank=True, help_text='spent on it', null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                ('note', models.CharField(blank=True, max_length=2000, validators=[runs.models.text.check_text])),
                ('outside', models.BooleanField(default=False, help_text='the document is not in the pool')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('active', models.BooleanField(default=True, help_text='no later row replaces it')),
                ('assessor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judgements', to='pools.assessor')),
                ('recorded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('supersedes', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='superseded_by', to='pools.judgement')),
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judgements', to='pools.pool')),
            ],
            options={
                'ordering': ('pool', 'id'),
            },
        ),
        migrations.CreateModel(
            name='JudgedVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('resolve', models.CharField(help_text='how several levels became one', max_length=20)),
                ('aspect', models.CharField(blank=True, max_length=64)),
                ('provenance', models.JSONField(default=dict, help_text='digests of the pools, counts of the assessors, agreement')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('qrels', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='judged_version', to='runs.qrels')),
                ('pools', models.ManyToManyField(related_name='versions', to='pools.pool')),
            ],
            options={
                'ordering': ('qrels',),
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic_id', models.CharField(max_length=1024)),
                ('primary', models.BooleanField(default=False, help_text='the first assessor of the topic')),
                ('copies', models.PositiveSmallIntegerField(default=1, help_text='how many assessors judge a document of the topic', validators=[django.core.validators.MinValueValidator(1)])),
                ('overlap', models.FloatField(default=1.0, help_text='share of the documents that have more than one assessor, drawn by the seed', validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)])),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('assessor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='pools.assessor')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='pools.pool')),
            ],
            options={
                'ordering': ('pool', 'id'),
            },
        ),
        migrations.CreateModel(
            name='Adjudication',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic_id', models.CharField(max_length=1024)),
                ('doc_id', models.CharField(max_length=1024)),
                ('aspect', models.CharField(blank=True, max_length=64, validators=[runs.models.text.check_line])),
                ('level', models.IntegerField()),
                ('note', models.CharField(blank=True, max_length=2000, validators=[runs.models.text.check_text])),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('active', models.BooleanField(default=True, help_text='no later row replaces it')),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('supersedes', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='superseded_by', to='pools.adjudication')),
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='adjudications', to='pools.pool')),
            ],
            options={
                'ordering': ('pool', 'id'),
            },
        ),
        migrations.CreateModel(
            name='PoolRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.PositiveIntegerField()),
                ('priority', models.IntegerField(null=True)),
                ('depth', models.PositiveIntegerField(help_text='ranks 1 to depth are in the pool', null=True)),
                ('entry', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='pools', to='runs.entry')),
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='contributors', to='pools.pool')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pools', to='runs.run')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.team')),
            ],
            options={
                'ordering': ('pool', 'place'),
            },
        ),
        migrations.AddConstraint(
            model_name='assessor',
            constraint=models.UniqueConstraint(fields=('collection', 'name'), name='one_assessor_per_name'),
        ),
        migrations.AddConstraint(
            model_name='assessor',
            constraint=models.UniqueConstraint(fields=('collection', 'user'), name='one_assessor_per_user'),
        ),
        migrations.AddIndex(
            model_name='pool',
            index=models.Index(fields=['sha256'], name='pools_by_file'),
        ),
        migrations.AddConstraint(
            model_name='pool',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='one_pool_per_number'),
        ),
        migrations.AddConstraint(
            model_name='pool',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('frozen_at', None), ('state', 'draft')), models.Q(('frozen_at__isnull', False), ('state', 'frozen')), _connector='OR'), name='a_frozen_pool_has_a_time'),
        ),
        migrations.AddConstraint(
            model_name='pool',
            constraint=models.CheckConstraint(condition=models.Q(('shown_at', None), ('state', 'frozen'), _connector='OR'), name='a_draft_pool_is_not_shown'),
        ),
        migrations.AddIndex(
            model_name='judgement',
            index=models.Index(condition=models.Q(('active', True)), fields=['pool', 'assessor', 'topic_id'], name='judgements_of_assessor'),
        ),
        migrations.AddConstraint(
            model_name='judgement',
            constraint=models.UniqueConstraint(condition=models.Q(('active', True)), fields=('pool', 'topic_id', 'doc_id', 'assessor', 'aspect'), name='one_active_judgement'),
        ),
        migrations.AddConstraint(
            model_name='judgement',
            constraint=models.CheckConstraint(condition=models.Q(('seconds', None), ('seconds__gte', 0), _connector='OR'), name='seconds_of_judging'),
        ),
        migrations.AddConstraint(
            model_name='judgement',
            constraint=models.CheckConstraint(condition=models.Q(('supersedes', None), models.Q(('supersedes', models.F('id')), _negated=True), _connector='OR'), name='a_judgement_supersedes_another'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('pool', 'assessor', 'topic_id'), name='one_assignment_per_topic'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('primary', True)), fields=('pool', 'topic_id'), name='one_primary_assessor_per_topic'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('copies__gte', 1)), name='a_document_has_copies'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('overlap__gte', 0), ('overlap__lte', 1)), name='overlap_is_a_share'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.UniqueConstraint(condition=models.Q(('active', True)), fields=('pool', 'topic_id', 'doc_id', 'aspect'), name='one_active_adjudication'),
        ),
        migrations.AddConstraint(
            model_name='poolrun',
            constraint=models.UniqueConstraint(fields=('pool', 'place'), name='one_run_per_place_in_a_pool'),
        ),
        migrations.AddConstraint(
            model_name='poolrun',
            constraint=models.UniqueConstraint(fields=('pool', 'run'), name='a_run_contributes_once_to_a_pool'),
        ),
    ]
