"""Notices get ids that do not count. No version was released with the others, so that none are kept."""

import uuid

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import runs.models.text


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0037_mail_and_notices'),
    ]

    operations = [
        migrations.DeleteModel(name='CampaignNotice'),
        migrations.CreateModel(
            name='CampaignNotice',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('title', models.CharField(max_length=200, validators=[runs.models.text.check_line, django.core.validators.MinLengthValidator(1)])),
                ('text', models.TextField(max_length=20000, validators=[runs.models.text.check_text])),
                ('audience', models.CharField(choices=[('teams', 'Teams'), ('public', 'Public')], default='teams', max_length=6)),
                ('posted_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='runs.campaign')),
                ('posted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-posted_at', 'id'),
            },
        ),
    ]
