"""Extensions keep the end of late entries, so that they can be cancelled."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0051_removed_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='extension',
            name='old_late',
            field=models.DateTimeField(editable=False, help_text='the end of late entries, if it moved with the phase', null=True),
        ),
    ]
