"""The results of a phase can be released again, by newer judgements: to an audience one release is planned, not done."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0045_licence_of_snapshots'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='release',
            name='one_release_per_audience',
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.UniqueConstraint(condition=models.Q(('cancelled_at', None), ('done_at', None)), fields=('phase', 'audience'), name='one_planned_release_per_audience'),
        ),
    ]
