from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0018_fill_parameters'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='parameter',
            index=models.Index(condition=models.Q(('number__isnull', False)), fields=['key', 'number', 'owner'], name='numbers_of_key'),
        ),
        migrations.AddIndex(
            model_name='parameter',
            index=models.Index(condition=models.Q(('folded__isnull', False)), fields=['key', 'folded', 'owner'], name='texts_of_key'),
        ),
        migrations.AddIndex(
            model_name='parameter',
            index=models.Index(condition=models.Q(('boolean__isnull', False)), fields=['key', 'boolean', 'owner'], name='booleans_of_key'),
        ),
    ]
