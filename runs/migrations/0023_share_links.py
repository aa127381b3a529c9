import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0022_saved_views'),
    ]

    operations = [
        migrations.CreateModel(
            name='ShareLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(editable=False, max_length=8, unique=True)),
                ('digest', models.CharField(editable=False, max_length=64)),
                ('kind', models.CharField(choices=[('leaderboard', 'Leaderboard'), ('comparison', 'Comparison'), ('run', 'Run')], max_length=12)),
                ('target', models.CharField(blank=True, max_length=36)),
                ('query', models.CharField(blank=True, max_length=10000)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('opened', models.PositiveIntegerField(default=0, editable=False)),
                ('last_opened_on', models.DateField(editable=False, null=True)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to='runs.collection')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at', '-id'),
            },
        ),
    ]
