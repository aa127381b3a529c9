"""Phases limit the documents of a topic and say how tags are formed."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0038_ids_of_notices'),
    ]

    operations = [
        migrations.AddField(
            model_name='phase',
            name='max_documents',
            field=models.PositiveIntegerField(blank=True, help_text='of a run, for each topic', null=True),
        ),
        migrations.AddField(
            model_name='phase',
            name='naming',
            field=models.CharField(blank=True, db_default='', default='', help_text='the pattern of tags, such as {team}-{run_type}-{priority}', max_length=100),
        ),
        migrations.AddConstraint(
            model_name='phase',
            constraint=models.CheckConstraint(condition=models.Q(('max_documents', None), ('max_documents__gte', 1), _connector='OR'), name='phase_max_documents_positive'),
        ),
    ]
