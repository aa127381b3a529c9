import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0027_systems'),
    ]

    operations = [
        migrations.CreateModel(
            name='RunLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('code', 'Code'), ('model', 'Model'), ('paper', 'Paper'), ('data', 'Data')], max_length=10)),
                ('url', models.CharField(max_length=2000)),
                ('commit', models.CharField(blank=True, max_length=64)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='runs.run')),
            ],
            options={
                'ordering': ('run', 'position', 'id'),
            },
        ),
        migrations.CreateModel(
            name='RunParent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('parent_name', models.CharField(help_text='team/tag of the parent when the edge was made', max_length=200)),
                ('relation', models.CharField(choices=[('reranked', 'Reranked'), ('fused', 'Fused'), ('trained', 'Trained'), ('expanded', 'Expanded'), ('derived', 'Derived')], default='derived', max_length=10)),
                ('weight', models.FloatField(null=True)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('child', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parent_edges', to='runs.run')),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='child_edges', to='runs.run')),
            ],
            options={
                'ordering': ('child', 'position', 'id'),
                'constraints': [models.UniqueConstraint(fields=('child', 'parent', 'relation'), name='one_edge_per_relation'), models.CheckConstraint(condition=models.Q(('child', models.F('parent')), _negated=True), name='no_run_is_its_own_parent')],
            },
        ),
    ]
