import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0001_squashed_0052'),
    ]

    operations = [
        migrations.CreateModel(
            name='RevisionPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changes', models.BigIntegerField()),
                ('others', models.BigIntegerField()),
                ('collection', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='revision_parts', to='runs.collection')),
            ],
        ),
    ]
