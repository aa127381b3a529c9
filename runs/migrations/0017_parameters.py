import django.db.models.deletion
import runs.models.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0016_webhooks'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='costs',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(fields=['object_id', 'id'], name='audit_of_object'),
        ),
        migrations.CreateModel(
            name='ParameterKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('space', models.CharField(choices=[('param', 'Param'), ('cost', 'Cost')], max_length=10)),
                ('name', models.CharField(max_length=200)),
                ('unit', models.CharField(blank=True, max_length=30, validators=[runs.models.text.check_line])),
                ('note', models.CharField(blank=True, max_length=300, validators=[runs.models.text.check_text])),
                ('role', models.CharField(choices=[('setting', 'Setting'), ('ignored', 'Ignored')], default='setting', help_text='whether it says how a run was made', max_length=10)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parameter_keys', to='runs.collection')),
            ],
            options={
                'ordering': ('space', 'name'),
                'constraints': [models.UniqueConstraint(fields=('collection', 'space', 'name'), name='one_key_per_name')],
            },
        ),
        migrations.CreateModel(
            name='ParameterSet',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('digest', models.CharField(db_index=True, help_text='of the parameters without those of the platform', max_length=64)),
                ('left_out', models.PositiveIntegerField(default=0, help_text='values that are kept, not searched')),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='parameter_set', to='runs.run')),
            ],
        ),
        migrations.CreateModel(
            name='Parameter',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('number', models.FloatField(null=True)),
                ('folded', models.CharField(max_length=200, null=True)),
                ('boolean', models.BooleanField(null=True)),
                ('key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parameters', to='runs.parameterkey')),
                ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parameters', to='runs.parameterset')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'key'), name='one_value_per_key'), models.CheckConstraint(condition=models.Q(models.Q(('boolean__isnull', True), ('folded__isnull', True), ('number__isnull', False)), models.Q(('boolean__isnull', True), ('folded__isnull', False), ('number__isnull', True)), models.Q(('boolean__isnull', False), ('folded__isnull', True), ('number__isnull', True)), _connector='OR'), name='one_type_of_value')],
            },
        ),
    ]
