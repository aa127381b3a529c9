import django.db.models.deletion
import django.utils.timezone
import runs.models.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0020_invitation_links'),
    ]

    operations = [
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=40)),
                ('moved_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='runs.collection')),
                ('moved_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='runs.run')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='runs.team')),
            ],
            options={
                'ordering': ('collection', 'name', 'team'),
                'constraints': [models.UniqueConstraint(fields=('collection', 'team', 'name'), name='one_label_per_name')],
            },
        ),
        migrations.CreateModel(
            name='LabelMove',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=40)),
                ('at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('note', models.CharField(blank=True, max_length=300, validators=[runs.models.text.check_text])),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='label_moves', to='runs.collection')),
                ('from_run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.team')),
                ('to_run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
            ],
            options={
                'ordering': ('-at', '-id'),
                'indexes': [models.Index(fields=['collection', 'team', 'name', '-at', '-id'], name='moves_of_label')],
                'constraints': [models.CheckConstraint(condition=models.Q(('from_run__isnull', False), ('to_run__isnull', False), _connector='OR'), name='label_moved_somewhere')],
            },
        ),
    ]
