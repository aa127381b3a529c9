"""Let PostgreSQL store as it is what is compressed already: it would try to compress it again."""

from django.db import migrations

COMPRESSED = [('judgedview', 'content'), ('sessionview', 'content'), ('sessionview', 'sessions'), ('comparison', 'content')]


def set_storage(apps, schema_editor, storage):
    if schema_editor.connection.vendor != 'postgresql':
        return
    quote = schema_editor.quote_name
    for name, field in COMPRESSED:
        model = apps.get_model('metrics', name)
        column = model._meta.get_field(field).column
        schema_editor.execute(
            f'ALTER TABLE {quote(model._meta.db_table)} ALTER COLUMN {quote(column)} SET STORAGE {storage}'
        )


def forwards(apps, schema_editor):
    set_storage(apps, schema_editor, 'EXTERNAL')


def backwards(apps, schema_editor):
    set_storage(apps, schema_editor, 'EXTENDED')


class Migration(migrations.Migration):

    dependencies = [
        ('metrics', '0011_index_boards'),
    ]

    operations = [
        migrations.RunPython(forwards, backwards),
    ]
