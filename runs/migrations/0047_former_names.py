"""Teams that change their name after results were disclosed keep the former one beside it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0046_releases_of_newer_judgements'),
    ]

    operations = [
        migrations.AddField(
            model_name='participation',
            name='former_name',
            field=models.CharField(blank=True, db_default='', default='', help_text='under which results were disclosed to teams', max_length=150),
        ),
    ]
