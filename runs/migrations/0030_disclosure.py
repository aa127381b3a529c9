"""Who sees results of a blind collection besides its organisers, which the database lets only grow."""

from django.db import migrations, models

# 3 is public, as runs.models.disclosure has it. A table that SQLite makes anew loses its triggers: a later migration
# that changes a column of this table makes this one again, and tests/campaigns/test_disclosure.py says when it is forgotten.
SMALLER = """
    (CASE WHEN NEW.blind THEN NEW.shown_to ELSE 3 END) < (CASE WHEN OLD.blind THEN OLD.shown_to ELSE 3 END)
    AND (OLD.blind OR OLD.released_at IS NOT NULL)
"""
POSTGRESQL = f"""
    CREATE FUNCTION runs_disclosure_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the disclosure of a collection only grows' USING ERRCODE = 'check_violation';
    END $$;
    CREATE TRIGGER disclosure_only_grows BEFORE UPDATE ON runs_collection FOR EACH ROW
    WHEN ({SMALLER}) EXECUTE FUNCTION runs_disclosure_only_grows();
"""
SQLITE = f"""
    CREATE TRIGGER disclosure_only_grows BEFORE UPDATE ON runs_collection WHEN {SMALLER}
    BEGIN SELECT RAISE(ABORT, 'the disclosure of a collection only grows'); END;
"""
DROP_POSTGRESQL = """
    DROP TRIGGER IF EXISTS disclosure_only_grows ON runs_collection;
    DROP FUNCTION IF EXISTS runs_disclosure_only_grows();
"""


def make_trigger(apps, schema_editor):
    sql = POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE
    schema_editor.execute(sql, params=None)


def drop_trigger(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    schema_editor.execute(DROP_POSTGRESQL if postgresql else "DROP TRIGGER IF EXISTS disclosure_only_grows", params=None)


class Migration(migrations.Migration):
    dependencies = [("runs", "0029_campaigns")]

    operations = [
        migrations.AlterField(
            model_name="collection",
            name="blind",
            field=models.BooleanField(default=False, help_text="not everybody sees what depends on the judgements"),
        ),
        migrations.AddField(
            model_name="collection",
            name="shown_to",
            field=models.PositiveSmallIntegerField(
                choices=[(0, "organisers"), (1, "teams"), (2, "participants")],
                db_default=0,
                default=0,
                editable=False,
                help_text="who sees results while it is blind",
            ),
        ),
        migrations.AddConstraint(
            model_name="collection",
            constraint=models.CheckConstraint(condition=models.Q(("shown_to__lt", 3)), name="public_is_not_blind"),
        ),
        migrations.RunPython(make_trigger, drop_trigger),
    ]
