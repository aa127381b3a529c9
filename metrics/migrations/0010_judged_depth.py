"""Store how deep each run is judged."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('metrics', '0009_broker_trouble'),
    ]

    operations = [
        migrations.AddField(
            model_name='evaluation',
            name='depth_digest',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='evaluation',
            name='judged_depth',
            field=models.IntegerField(help_text='every document of the ranks 1 to this one is judged', null=True),
        ),
    ]
