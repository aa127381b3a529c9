import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import runs.models.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0026_experiments'),
    ]

    operations = [
        migrations.CreateModel(
            name='System',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.CharField(max_length=54, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9][A-Za-z0-9._-]{0,53}\\Z', "a system has 1 to 54 letters, digits, '.', '_' and '-', and begins with a letter or digit")])),
                ('name', models.CharField(blank=True, max_length=200, validators=[runs.models.text.check_line])),
                ('description', models.TextField(blank=True, max_length=20000, validators=[runs.models.text.check_text])),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='systems', to='runs.team')),
            ],
            options={
                'ordering': ('slug', 'team'),
                'constraints': [models.UniqueConstraint(fields=('team', 'slug'), name='one_system_per_slug')],
            },
        ),
        migrations.AddField(
            model_name='run',
            name='system',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.system'),
        ),
        migrations.AddField(
            model_name='run',
            name='version',
            field=models.PositiveIntegerField(blank=True, help_text='of its system in its collection, from 1; kept when the run is withdrawn', null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='versioned_at',
            field=models.DateTimeField(editable=False, help_text='when it became this version', null=True),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(fields=('system', 'collection', 'version'), name='one_run_per_version'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('system__isnull', True), ('version__isnull', True)) | models.Q(('system__isnull', False), ('version__isnull', False)), name='version_of_a_system'),
        ),
    ]
