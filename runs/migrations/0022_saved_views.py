import django.db.models.deletion
import django.utils.timezone
import runs.models.saved_views
import runs.models.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0021_labels'),
    ]

    operations = [
        migrations.CreateModel(
            name='View',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(default=runs.models.saved_views.new_code, editable=False, max_length=10, unique=True)),
                ('scope', models.CharField(choices=[('me', 'Me'), ('team', 'Team'), ('collection', 'Collection')], default='me', max_length=10)),
                ('name', models.CharField(max_length=100, validators=[runs.models.text.check_line])),
                ('query', models.CharField(blank=True, max_length=4000)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('changed_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='views', to='runs.collection')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='views', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='views', to='runs.team')),
            ],
            options={
                'ordering': ('collection', 'name', 'code'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('scope', 'team'), ('team__isnull', False)), models.Q(models.Q(('scope', 'team'), _negated=True), ('team', None)), _connector='OR'), name='view_of_a_team_has_one')],
            },
        ),
    ]
