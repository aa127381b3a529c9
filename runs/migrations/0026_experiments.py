import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import runs.models.text
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0025_document_url'),
    ]

    operations = [
        migrations.CreateModel(
            name='Experiment',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('slug', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('\\A[a-z0-9][a-z0-9_-]{0,63}\\Z', "use lower-case letters, digits, '_' and '-'")])),
                ('name', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
                ('goal', models.TextField(blank=True, max_length=10000, validators=[runs.models.text.check_text])),
                ('visibility', models.CharField(choices=[('team', 'Team'), ('collection', 'Collection')], default='team', max_length=10)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('baseline', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='runs.team')),
            ],
            options={
                'ordering': ('-created_at', 'id'),
            },
        ),
        migrations.CreateModel(
            name='ExperimentRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('added_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pairs', to='runs.experiment')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
            ],
            options={
                'ordering': ('added_at', 'id'),
                'constraints': [models.UniqueConstraint(fields=('experiment', 'run'), name='one_run_per_experiment')],
            },
        ),
        migrations.AddField(
            model_name='experiment',
            name='runs',
            field=models.ManyToManyField(related_name='experiments', through='runs.ExperimentRun', to='runs.run'),
        ),
        migrations.AddConstraint(
            model_name='experiment',
            constraint=models.UniqueConstraint(fields=('team', 'slug'), name='one_experiment_per_slug'),
        ),
        migrations.CreateModel(
            name='Note',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('text', models.TextField(max_length=10000, validators=[runs.models.text.check_text])),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('edited_at', models.DateTimeField(editable=False, null=True)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('collection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='runs.collection')),
                ('experiment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='runs.experiment')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='runs.run')),
            ],
            options={
                'ordering': ('-created_at', '-id'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('collection__isnull', True), ('experiment__isnull', True), ('run__isnull', False)), models.Q(('collection__isnull', False), ('experiment__isnull', True), ('run__isnull', True)), models.Q(('collection__isnull', True), ('experiment__isnull', False), ('run__isnull', True)), _connector='OR'), name='note_about_one_subject')],
            },
        ),
    ]
