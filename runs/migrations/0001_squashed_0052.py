"""The tables of users, teams, collections, submissions, experiments and campaigns."""

import django.contrib.auth.validators
import django.core.serializers.json
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import runs.models.accounts.accounts
import runs.models.campaigns.campaigns
import runs.models.collections.collections
import runs.models.sharing.saved_views
import runs.models.text
import uuid
from django.conf import settings
from django.db import migrations, models

# 3 is public, as runs.models.collections.disclosure has it. A table that SQLite makes anew loses its triggers: a later migration that
# changes a column of this table makes this one again, and tests/campaigns/test_disclosure.py says when it is forgotten.
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


def create_tables(apps, schema_editor):
    """Create every table with its columns, constraints and indexes.

    Django's operations would make the classes of all models anew for each of them, and take three times as long.
    """
    for model in apps.get_app_config('runs').get_models():
        schema_editor.create_model(model)


def drop_tables(apps, schema_editor):
    for model in reversed(list(apps.get_app_config('runs').get_models())):
        schema_editor.delete_model(model)


# Each with all that it has today, as makemigrations writes it.
MODELS = [
    migrations.CreateModel(
        name='User',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('password', models.CharField(max_length=128, verbose_name='password')),
            ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
            ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
            ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
            ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
            ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
            ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
            ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
            ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
            ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
            ('sessions_ended', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='how often all sessions were ended')),
            ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
            ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
        ],
        options={
            'verbose_name': 'user',
            'verbose_name_plural': 'users',
            'abstract': False,
        },
        managers=[
            ('objects', runs.models.accounts.accounts.PersonManager()),
        ],
    ),
    migrations.CreateModel(
        name='Team',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('slug', models.SlugField(max_length=64, unique=True)),
            ('name', models.CharField(max_length=150, validators=[runs.models.text.check_line])),
            ('personal_of', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='personal_team', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('members', models.ManyToManyField(through='runs.Membership', to=settings.AUTH_USER_MODEL)),
        ],
        options={
            'ordering': ('slug',),
        },
    ),
    migrations.CreateModel(
        name='Membership',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='runs.team')),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ('role', models.CharField(choices=[('owner', 'Owner'), ('member', 'Member')], default='member', max_length=10)),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('team', 'user'), name='one_membership_per_team')],
        },
    ),
    migrations.CreateModel(
        name='Invitation',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='runs.team')),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to=settings.AUTH_USER_MODEL)),
            ('role', models.CharField(choices=[('owner', 'Owner'), ('member', 'Member')], default='member', max_length=10)),
            ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('participation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='runs.participation')),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('team', 'user'), name='one_invitation_per_team')],
        },
    ),
    migrations.CreateModel(
        name='InvitationLink',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='runs.team')),
            ('key', models.CharField(editable=False, max_length=8, unique=True)),
            ('digest', models.CharField(editable=False, max_length=64)),
            ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('expires_at', models.DateTimeField()),
            ('participation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='links', to='runs.participation')),
        ],
        options={
            'ordering': ('-created_at', '-id'),
        },
    ),
    migrations.CreateModel(
        name='ApiToken',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
            ('name', models.CharField(max_length=100, validators=[runs.models.text.check_line])),
            ('key', models.CharField(editable=False, max_length=8, unique=True)),
            ('digest', models.CharField(editable=False, max_length=64)),
            ('scopes', models.JSONField(default=runs.models.accounts.accounts.default_scopes)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('expires_at', models.DateTimeField(blank=True, null=True)),
            ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ('maker', models.ForeignKey(editable=False, help_text='the token used', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='made', to='runs.apitoken')),
        ],
        options={
            'ordering': ('-created_at', '-id'),
        },
    ),
    migrations.CreateModel(
        name='RememberedAnswer',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('key', models.CharField(max_length=255)),
            ('digest', models.CharField(help_text='SHA-256 of the method, address, fields and files', max_length=64)),
            ('status', models.PositiveSmallIntegerField()),
            ('location', models.CharField(blank=True, max_length=2000)),
            ('body', models.JSONField()),
            ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='one_answer_per_key')],
        },
    ),
    migrations.CreateModel(
        name='Collection',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('slug', models.CharField(max_length=64, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z0-9][a-z0-9_-]*\\Z', "use lower-case letters, digits, '_' and '-'")])),
            ('name', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
            ('description', models.TextField(blank=True, max_length=20000, validators=[runs.models.text.check_text])),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='collections', to='runs.team')),
            ('visibility', models.CharField(choices=[('public', 'Public'), ('team', 'Team'), ('private', 'Private')], default='public', max_length=10)),
            ('blind', models.BooleanField(default=False, help_text='not everybody sees what depends on the judgements')),
            ('shown_to', models.PositiveSmallIntegerField(choices=[(0, 'organisers'), (1, 'teams'), (2, 'participants')], db_default=0, default=0, editable=False, help_text='who sees results while it is blind')),
            ('released_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ('veiled_until', models.DateTimeField(editable=False, help_text='until then its general addresses would show hidden names of teams', null=True)),
            ('daily_submissions', models.PositiveIntegerField(blank=True, help_text='submissions of a team per day (UTC)', null=True, validators=[django.core.validators.MinValueValidator(1)])),
            ('simulated', models.BooleanField(default=False, help_text='simulated data; labelled as such wherever it is listed')),
            ('documents', models.BigIntegerField(blank=True, help_text='number of documents in the corpus', null=True, validators=[django.core.validators.MinValueValidator(1)])),
            ('level_labels', models.JSONField(blank=True, default=dict, help_text='what the levels mean: {"0": "not relevant"}', validators=[runs.models.collections.collections.check_labels])),
            ('document_url', models.CharField(blank=True, db_default='', default='', help_text='where a document can be read, with {doc_id} for its id: https://example.org/documents/{doc_id}', max_length=500, validators=[runs.models.collections.collections.check_document_url])),
            ('measures', models.JSONField(default=runs.models.collections.collections.default_measures, help_text='computed for every run')),
            ('scores', models.CharField(choices=[('float64', 'Float64'), ('float32', 'Float32')], default='float64', max_length=10)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('slug',),
            'constraints': [models.CheckConstraint(condition=models.Q(('blind', False), ('released_at', None), _connector='OR'), name='never_blind_again'), models.CheckConstraint(condition=models.Q(('shown_to__lt', 3)), name='public_is_not_blind')],
        },
    ),
    migrations.CreateModel(
        name='Topic',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='topics', to='runs.collection')),
            ('topic_id', models.CharField(max_length=1024)),
            ('position', models.IntegerField()),
            ('title', models.TextField(blank=True)),
            ('fields', models.JSONField(blank=True, default=dict)),
        ],
        options={
            'ordering': ('collection', 'position'),
            'constraints': [models.UniqueConstraint(fields=('collection', 'topic_id'), name='one_topic_per_id')],
        },
    ),
    migrations.CreateModel(
        name='Qrels',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='qrels', to='runs.collection')),
            ('version', models.PositiveIntegerField()),
            ('active', models.BooleanField(default=False)),
            ('sha256', models.CharField(max_length=64)),
            ('keyed_by', models.CharField(choices=[('topic', 'Topic'), ('query', 'Query')], db_default='topic', default='topic', help_text="whether the file's second column is an iteration, or the number of a session's query", max_length=10)),
            ('iteration', models.CharField(choices=[('subtopic', 'Subtopic'), ('round', 'Round'), ('ignore', 'Ignore')], db_default='ignore', default='ignore', help_text="what the file's second column is taken for: subtopics, rounds of judging, or nothing", max_length=10)),
            ('size', models.BigIntegerField(help_text='bytes, decompressed')),
            ('lines', models.BigIntegerField()),
            ('judgements', models.BigIntegerField()),
            ('topics', models.IntegerField()),
            ('topic_ids', models.JSONField(help_text='in the order of every stored vector')),
            ('topic_ids_digest', models.BigIntegerField(editable=False, null=True)),
            ('levels', models.JSONField(help_text='number of judgements at each level')),
            ('warnings', models.JSONField(default=dict)),
            ('note', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_text])),
            ('reduced_from', models.ForeignKey(editable=False, help_text='the version with all topics, if this one is without those that phases exclude', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='reduced', to='runs.qrels')),
            ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'verbose_name_plural': 'qrels',
            'ordering': ('collection', '-version'),
            'constraints': [models.UniqueConstraint(fields=('collection', 'version'), name='one_qrels_per_version'), models.UniqueConstraint(condition=models.Q(('active', True)), fields=('collection',), name='one_active_qrels')],
        },
    ),
    migrations.CreateModel(
        name='System',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='systems', to='runs.team')),
            ('slug', models.CharField(max_length=54, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9][A-Za-z0-9._-]{0,53}\\Z', "a system has 1 to 54 letters, digits, '.', '_' and '-', and begins with a letter or digit")])),
            ('name', models.CharField(blank=True, max_length=200, validators=[runs.models.text.check_line])),
            ('description', models.TextField(blank=True, max_length=20000, validators=[runs.models.text.check_text])),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('slug', 'team'),
            'constraints': [models.UniqueConstraint(fields=('team', 'slug'), name='one_system_per_slug')],
        },
    ),
    migrations.CreateModel(
        name='Run',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('submitted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('tag', models.CharField(max_length=64)),
            ('description', models.TextField(blank=True, max_length=20000, validators=[runs.models.text.check_text])),
            ('metadata', models.JSONField(blank=True, default=dict)),
            ('sha256', models.CharField(db_index=True, help_text='of the decompressed file', max_length=64)),
            ('size', models.BigIntegerField(help_text='bytes, decompressed')),
            ('documents', models.BigIntegerField()),
            ('topics', models.IntegerField()),
            ('warnings', models.JSONField(default=dict)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ('digest', models.BigIntegerField(editable=False, help_text='of what its files are and hold', null=True)),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.collection')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.team')),
            ('ir_metadata', models.JSONField(blank=True, null=True)),
            ('costs', models.JSONField(blank=True, db_default={}, default=dict)),
            ('lines', models.BigIntegerField()),
            ('tied_documents', models.BigIntegerField()),
            ('grouped', models.BooleanField(help_text='whether the file lists each topic in one piece')),
            ('known_sha256', models.CharField(blank=True, help_text='of the file of known documents, empty where none came with the run', max_length=64)),
            ('known_documents', models.IntegerField(default=0)),
            ('known_warnings', models.JSONField(blank=True, default=dict)),
            ('system', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.system')),
            ('version', models.PositiveIntegerField(blank=True, help_text='of its system in its collection, from 1; kept when the run is withdrawn', null=True)),
            ('versioned_at', models.DateTimeField(editable=False, help_text='when it became this version', null=True)),
            ('removal_reason', models.CharField(blank=True, db_default='', default='', editable=False, help_text='why organisers took it out of its collection', max_length=500, validators=[runs.models.text.check_line])),
        ],
        options={
            'ordering': ('-created_at', 'id'),
            'abstract': False,
            'indexes': [models.Index(fields=['collection', '-created_at', 'id'], name='runs_by_date'), models.Index(fields=['collection', 'team', 'deleted_at', 'created_at', 'system', 'version', 'versioned_at'], name='runs_of_board')],
            'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at', None)), fields=('collection', 'team', 'tag'), name='one_run_per_tag'), models.UniqueConstraint(fields=('system', 'collection', 'version'), name='one_run_per_version'), models.CheckConstraint(condition=models.Q(models.Q(('system__isnull', True), ('version__isnull', True)), models.Q(('system__isnull', False), ('version__isnull', False)), _connector='OR'), name='version_of_a_system')],
        },
    ),
    migrations.CreateModel(
        name='Artifact',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='runs.run')),
            ('name', models.CharField(max_length=200)),
            ('sha256', models.CharField(db_index=True, help_text='of the file as it was sent', max_length=64)),
            ('size', models.BigIntegerField(help_text='bytes')),
            ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
        ],
        options={
            'ordering': ('name', 'id'),
            'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at', None)), fields=('run', 'name'), name='one_artifact_per_name')],
        },
    ),
    migrations.CreateModel(
        name='AuditEvent',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('time', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('actor', models.CharField(blank=True, help_text='user name; empty for the command line', max_length=150)),
            ('actor_key', models.BigIntegerField(null=True)),
            ('token', models.CharField(blank=True, help_text='key of the token, never its text', max_length=8)),
            ('action', models.CharField(max_length=30)),
            ('object_type', models.CharField(max_length=30)),
            ('object_id', models.CharField(max_length=200)),
            ('collection', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='audit_events', to='runs.collection')),
            ('before', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('after', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
            ('request_id', models.CharField(blank=True, max_length=64)),
            ('address', models.GenericIPAddressField(null=True)),
        ],
        options={
            'ordering': ('-time', '-id'),
            'indexes': [models.Index(fields=['-time', '-id'], name='audit_by_time'), models.Index(fields=['collection', '-time', '-id'], name='audit_of_collection'), models.Index(fields=['object_id', 'id'], name='audit_of_object')],
        },
    ),
    migrations.CreateModel(
        name='Campaign',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('slug', models.CharField(max_length=64, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z0-9][a-z0-9_-]{0,63}\\Z', "use lower-case letters, digits, '_' and '-'")])),
            ('name', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='campaigns', to='runs.team')),
            ('summary', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_line])),
            ('guidelines', models.TextField(blank=True, max_length=50000, validators=[runs.models.text.check_text])),
            ('contact', models.CharField(blank=True, max_length=254, validators=[django.core.validators.EmailValidator()])),
            ('licence', models.CharField(blank=True, db_default='', help_text='SPDX identifier of the licence of its snapshots, such as CC-BY-4.0', max_length=64, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9][A-Za-z0-9.+-]*\\Z', 'write the SPDX identifier of a licence, such as CC-BY-4.0: letters, digits, dots, hyphens and plus signs')])),
            ('rights', models.CharField(blank=True, db_default='', help_text='who has which rights in its snapshots, in words', max_length=500, validators=[runs.models.text.check_line])),
            ('citation_authors', models.CharField(blank=True, db_default='', help_text='whom citations of its snapshots name, as in: Lima, Ana; Kim, Bo. Empty: its team', max_length=1000, validators=[runs.models.text.check_line])),
            ('paper_doi', models.CharField(blank=True, db_default='', help_text='of its overview paper', max_length=220, validators=[django.core.validators.RegexValidator('\\A10\\.[0-9]{4,9}/[^\\s<>\\"\\\\{}]{1,200}\\Z', 'write it as 10.5281/zenodo.1234567')])),
            ('judgements_doi', models.CharField(blank=True, db_default='', help_text='of the judgements, published elsewhere', max_length=220, validators=[django.core.validators.RegexValidator('\\A10\\.[0-9]{4,9}/[^\\s<>\\"\\\\{}]{1,200}\\Z', 'write it as 10.5281/zenodo.1234567')])),
            ('state', models.CharField(choices=[('draft', 'Draft'), ('published', 'Published'), ('archived', 'Archived')], default='draft', max_length=10)),
            ('registration', models.CharField(choices=[('open', 'Open'), ('approval', 'Approval'), ('closed', 'Closed')], default='approval', max_length=10)),
            ('registration_closes_at', models.DateTimeField(blank=True, null=True)),
            ('roster_closes_at', models.DateTimeField(blank=True, help_text='when teams can no longer change; empty: as the first evaluation phase closes', null=True)),
            ('max_team_size', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)])),
            ('tag_scope', models.CharField(choices=[('team', 'Team'), ('campaign', 'Campaign')], default='campaign', max_length=10)),
            ('anonymous_until', models.DateTimeField(blank=True, help_text='until then teams have pseudonyms', null=True)),
            ('names', models.CharField(choices=[('shown', 'Shown'), ('hidden_until_release', 'Hidden Until Release')], db_default='shown', default='shown', help_text='whether teams have pseudonyms until results are released to participants', max_length=20)),
            ('seed', models.BigIntegerField(db_default=0, default=runs.models.campaigns.campaigns._draw_seed, editable=False, help_text='of the pseudonyms; secret')),
            ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('-created_at', 'slug'),
            'constraints': [models.CheckConstraint(condition=models.Q(('max_team_size', None), ('max_team_size__gte', 1), _connector='OR'), name='teams_of_a_campaign_have_members')],
        },
    ),
    migrations.CreateModel(
        name='Phase',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='phases', to='runs.campaign')),
            ('slug', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('\\A[a-z0-9][a-z0-9_-]{0,63}\\Z', "use lower-case letters, digits, '_' and '-'")])),
            ('name', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
            ('description', models.TextField(blank=True, max_length=20000, validators=[runs.models.text.check_text])),
            ('place', models.PositiveIntegerField(default=0)),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='phases', to='runs.collection')),
            ('kind', models.CharField(choices=[('training', 'Training'), ('development', 'Development'), ('evaluation', 'Evaluation'), ('afterwards', 'Afterwards')], default='evaluation', max_length=12)),
            ('opens_at', models.DateTimeField()),
            ('closes_at', models.DateTimeField()),
            ('late_closes_at', models.DateTimeField(blank=True, null=True)),
            ('zone', models.CharField(default='UTC', max_length=64)),
            ('paused_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ('paused_reason', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_line])),
            ('measures', models.JSONField(blank=True, default=list, help_text='the first one is the primary one')),
            ('slots', models.PositiveIntegerField(blank=True, help_text='entries of a team at a time', null=True)),
            ('attempts_daily', models.PositiveIntegerField(blank=True, help_text='entries of a team per day (UTC)', null=True)),
            ('attempts_total', models.PositiveIntegerField(blank=True, null=True)),
            ('run_types', models.JSONField(blank=True, default=list, help_text='a list of {key, label}; empty: not asked')),
            ('form', models.JSONField(blank=True, default=list, help_text='the fields that an entry answers')),
            ('feedback', models.CharField(choices=[('none', 'None'), ('own', 'Own'), ('board', 'Board')], db_default='none', default='none', help_text='what teams see at once: nothing, their own values, or the leaderboard too', max_length=5)),
            ('freeze_board_at', models.DateTimeField(blank=True, help_text='teams see no later entry of others on the leaderboard before a release', null=True)),
            ('selection', models.CharField(choices=[('all', 'All'), ('best', 'Best'), ('latest', 'Latest'), ('chosen', 'Chosen')], db_default='all', default='all', help_text='which entries of a team stand on the official leaderboard', max_length=6)),
            ('chosen_max', models.PositiveIntegerField(db_default=1, default=1, help_text='entries that a team may choose')),
            ('must_answer_all', models.BooleanField(default=False, help_text='refuse a run without an answer to a topic')),
            ('max_documents', models.PositiveIntegerField(blank=True, help_text='of a run, for each topic', null=True)),
            ('naming', models.CharField(blank=True, db_default='', default='', help_text='the pattern of tags, such as {team}-{run_type}-{priority}', max_length=100)),
            ('excluded_topics', models.JSONField(blank=True, editable=False, help_text='that do not count, and why', null=True)),
            ('excluded_reason', models.CharField(blank=True, db_default='', default='', editable=False, max_length=500)),
        ],
        options={
            'ordering': ('campaign', 'place', 'opens_at', 'id'),
            'indexes': [models.Index(fields=['collection', 'kind', 'opens_at'], name='phases_of_collection')],
            'constraints': [models.UniqueConstraint(fields=('campaign', 'slug'), name='one_phase_per_slug'), models.CheckConstraint(condition=models.Q(('opens_at__lt', models.F('closes_at'))), name='phase_opens_before_it_closes'), models.CheckConstraint(condition=models.Q(('late_closes_at', None), ('late_closes_at__gte', models.F('closes_at')), _connector='OR'), name='phase_ends_late_after_it_closes'), models.CheckConstraint(condition=models.Q(('slots', None), ('slots__gte', 1), _connector='OR'), name='phase_slots_positive'), models.CheckConstraint(condition=models.Q(('attempts_daily', None), ('attempts_daily__gte', 1), _connector='OR'), name='phase_attempts_daily_positive'), models.CheckConstraint(condition=models.Q(('attempts_total', None), ('attempts_total__gte', 1), _connector='OR'), name='phase_attempts_total_positive'), models.CheckConstraint(condition=models.Q(('chosen_max', None), ('chosen_max__gte', 1), _connector='OR'), name='phase_chosen_max_positive'), models.CheckConstraint(condition=models.Q(('max_documents', None), ('max_documents__gte', 1), _connector='OR'), name='phase_max_documents_positive'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'evaluation'), _negated=True), ('feedback', 'none'), _connector='OR'), name='no_feedback_in_an_evaluation')],
        },
    ),
    migrations.CreateModel(
        name='Participation',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='participations', to='runs.campaign')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='participations', to='runs.team')),
            ('state', models.CharField(choices=[('requested', 'Requested'), ('accepted', 'Accepted'), ('declined', 'Declined'), ('withdrawn', 'Withdrawn'), ('removed', 'Removed')], default='requested', max_length=10)),
            ('name', models.CharField(help_text='as it is shown', max_length=150, validators=[runs.models.text.check_line])),
            ('former_name', models.CharField(blank=True, db_default='', default='', help_text='under which results were disclosed to teams', max_length=150)),
            ('affiliation', models.CharField(blank=True, max_length=300, validators=[runs.models.text.check_line])),
            ('requested_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('accepted_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ('pseudonym', models.PositiveIntegerField(editable=False, help_text='drawn when the team is accepted', null=True)),
            ('anonymous_until', models.DateTimeField(blank=True, help_text='empty: as in its campaign', null=True)),
            ('prolonged', models.BooleanField(db_default=False, default=False, editable=False)),
        ],
        options={
            'ordering': ('campaign', 'requested_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('campaign', 'team'), name='one_participation_per_team'), models.UniqueConstraint(fields=('campaign', 'pseudonym'), name='one_pseudonym_per_team')],
        },
    ),
    migrations.CreateModel(
        name='CampaignMember',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='runs.campaign')),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='campaign_memberships', to=settings.AUTH_USER_MODEL)),
            ('participation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='runs.participation')),
            ('joined_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('left_at', models.DateTimeField(blank=True, editable=False, null=True)),
        ],
        options={
            'ordering': ('joined_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('campaign', 'user'), name='one_team_per_person')],
        },
    ),
    migrations.CreateModel(
        name='Agreement',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='agreements', to='runs.campaign')),
            ('title', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
            ('text', models.TextField(max_length=50000, validators=[runs.models.text.check_text])),
            ('sha256', models.CharField(max_length=64)),
            ('required_of', models.CharField(choices=[('each_member', 'Each Member'), ('one_owner', 'One Owner')], default='each_member', max_length=12)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('created_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('campaign', 'sha256'), name='one_agreement_per_text')],
        },
    ),
    migrations.CreateModel(
        name='Signature',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('agreement', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signatures', to='runs.agreement')),
            ('user', models.ForeignKey(null=True, on_delete=runs.models.campaigns.campaigns.forget_name, related_name='signatures', to=settings.AUTH_USER_MODEL)),
            ('participation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signatures', to='runs.participation')),
            ('typed_name', models.CharField(max_length=150, validators=[runs.models.text.check_line])),
            ('signed_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('signed_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('agreement', 'user'), name='one_signature_per_person')],
        },
    ),
    migrations.CreateModel(
        name='Extension',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('phase', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='extensions', to='runs.phase')),
            ('participation', models.ForeignKey(help_text='empty: all', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='extensions', to='runs.participation')),
            ('old', models.DateTimeField()),
            ('new', models.DateTimeField()),
            ('old_late', models.DateTimeField(editable=False, help_text='the end of late entries, if it moved with the phase', null=True)),
            ('reason', models.CharField(max_length=500, validators=[runs.models.text.check_line])),
            ('announced_at', models.DateTimeField(default=django.utils.timezone.now)),
            ('values_seen_since', models.DateTimeField(editable=False, help_text='when an organiser first read values of its entries, if before', null=True)),
            ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
        ],
        options={
            'ordering': ('announced_at', 'id'),
            'constraints': [models.CheckConstraint(condition=models.Q(('new__gt', models.F('old'))), name='an_extension_is_later')],
        },
    ),
    migrations.CreateModel(
        name='Entry',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('phase', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='runs.phase')),
            ('participation', models.ForeignKey(help_text='empty: the organisers', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='runs.participation')),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='runs.run')),
            ('number', models.PositiveIntegerField(help_text='in its phase, from 1')),
            ('entered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('arrived_at', models.DateTimeField()),
            ('late', models.BooleanField(default=False)),
            ('role', models.CharField(choices=[('competing', 'Competing'), ('baseline', 'Baseline'), ('out_of_competition', 'Out Of Competition')], default='competing', max_length=20)),
            ('label', models.CharField(blank=True, help_text='of a baseline', max_length=100, validators=[runs.models.text.check_line])),
            ('run_type', models.CharField(blank=True, max_length=31)),
            ('priority', models.IntegerField(null=True)),
            ('answers', models.JSONField(blank=True, default=dict)),
            ('chosen', models.BooleanField(db_default=False, default=False, help_text='by its team, for the official leaderboard')),
            ('published', models.BooleanField(db_default=False, default=False, help_text='of a phase afterwards: by its team, for all who see the leaderboard')),
            ('state', models.CharField(choices=[('entered', 'Entered'), ('withdrawn', 'Withdrawn'), ('disqualified', 'Disqualified')], default='entered', max_length=12)),
            ('state_reason', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_line])),
            ('state_changed_at', models.DateTimeField(null=True)),
        ],
        options={
            'verbose_name_plural': 'entries',
            'ordering': ('phase', 'number'),
            'constraints': [models.UniqueConstraint(fields=('phase', 'run'), name='one_entry_per_run'), models.UniqueConstraint(fields=('phase', 'number'), name='one_entry_per_number'), models.UniqueConstraint(condition=models.Q(('state', 'entered')), fields=('phase', 'participation', 'priority'), name='one_entry_per_priority'), models.CheckConstraint(condition=models.Q(models.Q(('role', 'competing'), _negated=True), ('participation__isnull', False), _connector='OR'), name='a_team_competes'), models.CheckConstraint(condition=models.Q(('state', 'entered'), ('priority', None), _connector='OR'), name='only_entered_runs_have_priorities')],
        },
    ),
    migrations.CreateModel(
        name='Experiment',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='runs.team')),
            ('slug', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('\\A[a-z0-9][a-z0-9_-]{0,63}\\Z', "use lower-case letters, digits, '_' and '-'")])),
            ('name', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
            ('goal', models.TextField(blank=True, max_length=10000, validators=[runs.models.text.check_text])),
            ('visibility', models.CharField(choices=[('team', 'Team'), ('collection', 'Collection')], default='team', max_length=10)),
            ('baseline', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
            ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('runs', models.ManyToManyField(related_name='experiments', through='runs.ExperimentRun', to='runs.run')),
        ],
        options={
            'ordering': ('-created_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('team', 'slug'), name='one_experiment_per_slug')],
        },
    ),
    migrations.CreateModel(
        name='ExperimentRun',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pairs', to='runs.experiment')),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
            ('added_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('added_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('added_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('experiment', 'run'), name='one_run_per_experiment')],
        },
    ),
    migrations.CreateModel(
        name='Install',
        fields=[
            ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
            ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
            ('needs', models.JSONField(default=list, editable=False, help_text='migrations that code must know to work with it')),
            ('key_check', models.CharField(blank=True, editable=False, help_text='tells a changed secret key', max_length=64)),
        ],
        options={
            'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_install')],
        },
    ),
    migrations.CreateModel(
        name='Label',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='runs.collection')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='runs.team')),
            ('name', models.CharField(max_length=40)),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='runs.run')),
            ('moved_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('moved_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
        ],
        options={
            'ordering': ('collection', 'name', 'team'),
            'constraints': [models.UniqueConstraint(fields=('collection', 'team', 'name'), name='one_label_per_name')],
        },
    ),
    migrations.CreateModel(
        name='LabelMove',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='label_moves', to='runs.collection')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.team')),
            ('name', models.CharField(max_length=40)),
            ('from_run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
            ('to_run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.run')),
            ('at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('note', models.CharField(blank=True, max_length=300, validators=[runs.models.text.check_text])),
        ],
        options={
            'ordering': ('-at', '-id'),
            'indexes': [models.Index(fields=['collection', 'team', 'name', '-at', '-id'], name='moves_of_label')],
            'constraints': [models.CheckConstraint(condition=models.Q(('from_run__isnull', False), ('to_run__isnull', False), _connector='OR'), name='label_moved_somewhere')],
        },
    ),
    migrations.CreateModel(
        name='QuotaCounter',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quota_counters', to='runs.collection')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quota_counters', to='runs.team')),
            ('day', models.DateField()),
            ('used', models.PositiveIntegerField(default=0)),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('collection', 'team', 'day'), name='one_quota_per_day')],
        },
    ),
    migrations.CreateModel(
        name='RateCounter',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('key', models.CharField(max_length=100)),
            ('minute', models.BigIntegerField()),
            ('used', models.PositiveIntegerField(default=0)),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('minute', 'key'), name='one_rate_per_minute')],
        },
    ),
    migrations.CreateModel(
        name='RunParent',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('child', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parent_edges', to='runs.run')),
            ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='child_edges', to='runs.run')),
            ('parent_name', models.CharField(help_text='team/tag of the parent when the edge was made', max_length=200)),
            ('relation', models.CharField(choices=[('reranked', 'Reranked'), ('fused', 'Fused'), ('trained', 'Trained'), ('expanded', 'Expanded'), ('derived', 'Derived')], default='derived', max_length=10)),
            ('weight', models.FloatField(null=True)),
            ('position', models.PositiveSmallIntegerField(default=0)),
        ],
        options={
            'ordering': ('child', 'position', 'id'),
            'constraints': [models.UniqueConstraint(fields=('child', 'parent', 'relation'), name='one_edge_per_relation'), models.CheckConstraint(condition=models.Q(('child', models.F('parent')), _negated=True), name='no_run_is_its_own_parent')],
        },
    ),
    migrations.CreateModel(
        name='RunLink',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='runs.run')),
            ('kind', models.CharField(choices=[('code', 'Code'), ('model', 'Model'), ('paper', 'Paper'), ('data', 'Data')], max_length=10)),
            ('url', models.CharField(max_length=2000)),
            ('commit', models.CharField(blank=True, max_length=64)),
            ('title', models.CharField(blank=True, max_length=200)),
            ('position', models.PositiveSmallIntegerField(default=0)),
        ],
        options={
            'ordering': ('run', 'position', 'id'),
        },
    ),
    migrations.CreateModel(
        name='Mail',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('campaign', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='mails', to='runs.campaign')),
            ('event', models.CharField(max_length=30)),
            ('recipient', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mails', to=settings.AUTH_USER_MODEL)),
            ('address', models.EmailField(blank=True, db_default='', default='', help_text='one that is to be confirmed', max_length=254)),
            ('subject', models.CharField(max_length=300)),
            ('text', models.TextField()),
            ('state', models.CharField(choices=[('due', 'Due'), ('sending', 'Sending'), ('sent', 'Sent'), ('given_up', 'Given Up'), ('not_set_up', 'Not Set Up'), ('no_address', 'No Address')], default='due', max_length=10)),
            ('attempts', models.PositiveSmallIntegerField(default=0)),
            ('next_at', models.DateTimeField(default=django.utils.timezone.now)),
            ('lease_token', models.UUIDField(null=True)),
            ('lease_until', models.DateTimeField(null=True)),
            ('last_error', models.CharField(blank=True, max_length=200)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('ended_at', models.DateTimeField(null=True)),
        ],
        options={
            'ordering': ('-created_at', 'id'),
            'indexes': [models.Index(condition=models.Q(('state', 'due')), fields=['next_at'], name='due_mails'), models.Index(fields=['campaign', '-created_at', 'id'], name='mails_of_a_campaign'), models.Index(fields=['created_at'], name='mails_by_age')],
            'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'sending')), models.Q(models.Q(('state', 'sending'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='mail_is_leased_while_it_is_sent')],
        },
    ),
    migrations.CreateModel(
        name='CampaignNotice',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='runs.campaign')),
            ('title', models.CharField(max_length=200, validators=[runs.models.text.check_line, django.core.validators.MinLengthValidator(1)])),
            ('text', models.TextField(max_length=20000, validators=[runs.models.text.check_text])),
            ('audience', models.CharField(choices=[('teams', 'Teams'), ('public', 'Public')], default='teams', max_length=6)),
            ('posted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('posted_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('-posted_at', 'id'),
        },
    ),
    migrations.CreateModel(
        name='PhaseMoment',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('phase', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='moments', to='runs.phase')),
            ('kind', models.CharField(choices=[('opened', 'Opened'), ('closing_72', 'Closing 72'), ('closing_24', 'Closing 24'), ('closing_2', 'Closing 2'), ('closed', 'Closed'), ('waiting', 'Waiting'), ('digest', 'Digest')], max_length=10)),
            ('of', models.DateTimeField(help_text='the opening, or the closing that it belongs to')),
            ('noted_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('noted_at', 'id'),
            'constraints': [models.UniqueConstraint(fields=('phase', 'kind', 'of'), name='one_moment_of_a_kind')],
        },
    ),
    migrations.CreateModel(
        name='Note',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='runs.run')),
            ('collection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='runs.collection')),
            ('experiment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='runs.experiment')),
            ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('text', models.TextField(max_length=10000, validators=[runs.models.text.check_text])),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('edited_at', models.DateTimeField(editable=False, null=True)),
        ],
        options={
            'ordering': ('-created_at', '-id'),
            'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('collection__isnull', True), ('experiment__isnull', True), ('run__isnull', False)), models.Q(('collection__isnull', False), ('experiment__isnull', True), ('run__isnull', True)), models.Q(('collection__isnull', True), ('experiment__isnull', False), ('run__isnull', True)), _connector='OR'), name='note_about_one_subject')],
        },
    ),
    migrations.CreateModel(
        name='ParameterKey',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parameter_keys', to='runs.collection')),
            ('space', models.CharField(choices=[('param', 'Param'), ('cost', 'Cost')], max_length=10)),
            ('name', models.CharField(max_length=200)),
            ('unit', models.CharField(blank=True, max_length=30, validators=[runs.models.text.check_line])),
            ('note', models.CharField(blank=True, max_length=300, validators=[runs.models.text.check_text])),
            ('role', models.CharField(choices=[('setting', 'Setting'), ('ignored', 'Ignored')], default='setting', help_text='whether it says how a run was made', max_length=10)),
        ],
        options={
            'ordering': ('space', 'name'),
            'constraints': [models.UniqueConstraint(fields=('collection', 'space', 'name'), name='one_key_per_name')],
        },
    ),
    migrations.CreateModel(
        name='ParameterSet',
        fields=[
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
            ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='parameter_set', to='runs.run')),
            ('digest', models.CharField(db_index=True, help_text='of the parameters without those of the platform', max_length=64)),
            ('left_out', models.PositiveIntegerField(default=0, help_text='values that are kept, not searched')),
        ],
    ),
    migrations.CreateModel(
        name='Parameter',
        fields=[
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
            ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parameters', to='runs.parameterset')),
            ('key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parameters', to='runs.parameterkey')),
            ('number', models.FloatField(null=True)),
            ('folded', models.CharField(max_length=200, null=True)),
            ('boolean', models.BooleanField(null=True)),
        ],
        options={
            'indexes': [models.Index(condition=models.Q(('number__isnull', False)), fields=['key', 'number', 'owner'], name='numbers_of_key'), models.Index(condition=models.Q(('folded__isnull', False)), fields=['key', 'folded', 'owner'], name='texts_of_key'), models.Index(condition=models.Q(('boolean__isnull', False)), fields=['key', 'boolean', 'owner'], name='booleans_of_key')],
            'constraints': [models.UniqueConstraint(fields=('owner', 'key'), name='one_value_per_key'), models.CheckConstraint(condition=models.Q(models.Q(('boolean__isnull', True), ('folded__isnull', True), ('number__isnull', False)), models.Q(('boolean__isnull', True), ('folded__isnull', False), ('number__isnull', True)), models.Q(('boolean__isnull', False), ('folded__isnull', True), ('number__isnull', True)), _connector='OR'), name='one_type_of_value')],
        },
    ),
    migrations.CreateModel(
        name='Packet',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('phase', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='packets', to='runs.phase')),
            ('participation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='packets', to='runs.participation')),
            ('edition', models.CharField(help_text='the key of the release that it was made of', max_length=64)),
            ('name', models.CharField(help_text='of the file', max_length=250)),
            ('content', models.BinaryField()),
            ('sha256', models.CharField(max_length=64)),
            ('made_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('phase', 'participation', 'made_at'),
            'constraints': [models.UniqueConstraint(fields=('phase', 'participation', 'edition'), name='one_packet_per_edition')],
        },
    ),
    migrations.CreateModel(
        name='Snapshot',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='snapshots', to='runs.campaign')),
            ('phase', models.ForeignKey(help_text='empty: all phases', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='snapshots', to='runs.phase')),
            ('number', models.PositiveIntegerField(help_text='in its campaign, from 1')),
            ('code', models.CharField(max_length=64, unique=True)),
            ('sha256', models.CharField(max_length=64, unique=True)),
            ('label', models.CharField(max_length=200, validators=[runs.models.text.check_line])),
            ('manifest', models.TextField()),
            ('archive', models.BinaryField()),
            ('archive_bytes', models.BigIntegerField()),
            ('archive_sha256', models.CharField(max_length=64)),
            ('created_at', models.DateTimeField(editable=False)),
            ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('supersedes', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='superseded_by', to='runs.snapshot')),
            ('withdrawn_at', models.DateTimeField(editable=False, null=True)),
            ('withdrawn_reason', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_line])),
            ('doi', models.CharField(blank=True, max_length=220, validators=[django.core.validators.RegexValidator('\\A10\\.[0-9]{4,9}/[^\\s<>\\"\\\\{}]{1,200}\\Z', 'write it as 10.5281/zenodo.1234567')])),
        ],
        options={
            'ordering': ('campaign', '-number'),
            'constraints': [models.UniqueConstraint(fields=('campaign', 'number'), name='one_snapshot_per_number'), models.CheckConstraint(condition=models.Q(models.Q(('withdrawn_at', None), ('withdrawn_reason', '')), models.Q(('withdrawn_at__isnull', False), models.Q(('withdrawn_reason', ''), _negated=True)), _connector='OR'), name='a_withdrawn_snapshot_has_a_reason')],
        },
    ),
    migrations.CreateModel(
        name='Release',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('phase', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='releases', to='runs.phase')),
            ('audience', models.PositiveSmallIntegerField(choices=[(1, 'teams'), (2, 'participants'), (3, 'public')])),
            ('planned_at', models.DateTimeField(blank=True, help_text='empty: when an organiser does it', null=True)),
            ('done_at', models.DateTimeField(blank=True, null=True)),
            ('cancelled_at', models.DateTimeField(blank=True, null=True)),
            ('qrels', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='releases', to='runs.qrels')),
            ('with_run_files', models.BooleanField(default=False, help_text='whether its audience may download the runs')),
            ('note', models.CharField(blank=True, max_length=500, validators=[runs.models.text.check_line])),
            ('official', models.JSONField(blank=True, default=list)),
            ('planned_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('phase', 'audience', 'created_at'),
            'indexes': [models.Index(condition=models.Q(('cancelled_at', None), ('done_at', None)), fields=['planned_at'], name='planned_releases')],
            'constraints': [models.UniqueConstraint(condition=models.Q(('cancelled_at', None), ('done_at', None)), fields=('phase', 'audience'), name='one_planned_release_per_audience'), models.CheckConstraint(condition=models.Q(('done_at', None), ('cancelled_at', None), _connector='OR'), name='what_is_done_is_not_cancelled')],
        },
    ),
    migrations.CreateModel(
        name='View',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('code', models.CharField(default=runs.models.sharing.saved_views.new_code, editable=False, max_length=10, unique=True)),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='views', to='runs.collection')),
            ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='views', to=settings.AUTH_USER_MODEL)),
            ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='views', to='runs.team')),
            ('scope', models.CharField(choices=[('me', 'Me'), ('team', 'Team'), ('collection', 'Collection')], default='me', max_length=10)),
            ('name', models.CharField(max_length=100, validators=[runs.models.text.check_line])),
            ('query', models.CharField(blank=True, max_length=4000)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('changed_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('collection', 'name', 'code'),
            'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('scope', 'team'), ('team__isnull', False)), models.Q(models.Q(('scope', 'team'), _negated=True), ('team', None)), _connector='OR'), name='view_of_a_team_has_one')],
        },
    ),
    migrations.CreateModel(
        name='SessionSet',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('submitted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('tag', models.CharField(max_length=64)),
            ('description', models.TextField(blank=True, max_length=20000, validators=[runs.models.text.check_text])),
            ('metadata', models.JSONField(blank=True, default=dict)),
            ('sha256', models.CharField(db_index=True, help_text='of the decompressed file', max_length=64)),
            ('size', models.BigIntegerField(help_text='bytes, decompressed')),
            ('documents', models.BigIntegerField()),
            ('topics', models.IntegerField()),
            ('warnings', models.JSONField(default=dict)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('deleted_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ('digest', models.BigIntegerField(editable=False, help_text='of what its files are and hold', null=True)),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='session_sets', to='runs.collection')),
            ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='session_sets', to='runs.team')),
            ('judged_by', models.CharField(choices=[('topic', 'Topic'), ('session', 'Session'), ('query', 'Query'), ('own', 'Own')], default='topic', max_length=10)),
            ('format', models.CharField(max_length=20)),
            ('grouped', models.BooleanField(help_text='whether the file lists each session in one piece')),
            ('sessions', models.IntegerField()),
            ('queries', models.IntegerField()),
            ('empty_queries', models.IntegerField(help_text='queries that returned nothing')),
            ('searchers', models.IntegerField(help_text='0 where the log names none')),
            ('systems', models.JSONField(help_text='names in order of first appearance; none where the log names none')),
            ('judged_documents', models.BigIntegerField(help_text='judgements that the searchers wrote into the log')),
        ],
        options={
            'ordering': ('-created_at', 'id'),
            'abstract': False,
            'indexes': [models.Index(fields=['collection', '-created_at', 'id'], name='session_sets_by_date')],
            'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at', None)), fields=('collection', 'team', 'tag'), name='one_session_set_per_tag')],
        },
    ),
    migrations.CreateModel(
        name='ShareLink',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('key', models.CharField(editable=False, max_length=8, unique=True)),
            ('digest', models.CharField(editable=False, max_length=64)),
            ('kind', models.CharField(choices=[('leaderboard', 'Leaderboard'), ('comparison', 'Comparison'), ('run', 'Run')], max_length=12)),
            ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to='runs.collection')),
            ('target', models.CharField(blank=True, max_length=36)),
            ('query', models.CharField(blank=True, max_length=10000)),
            ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('expires_at', models.DateTimeField()),
            ('revoked_at', models.DateTimeField(editable=False, null=True)),
            ('opened', models.PositiveIntegerField(default=0, editable=False)),
            ('last_opened_on', models.DateField(editable=False, null=True)),
        ],
        options={
            'ordering': ('-created_at', '-id'),
        },
    ),
    migrations.CreateModel(
        name='Webhook',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='runs.team')),
            ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='runs.collection')),
            ('url', models.CharField(max_length=2000)),
            ('events', models.JSONField(default=list)),
            ('format', models.CharField(choices=[('standard', 'Standard'), ('slack', 'Slack')], default='standard', max_length=10)),
            ('secret_sealed', models.CharField(blank=True, max_length=200)),
            ('previous_secret_sealed', models.CharField(blank=True, max_length=200)),
            ('previous_until', models.DateTimeField(null=True)),
            ('enabled', models.BooleanField(default=True)),
            ('disabled_reason', models.CharField(blank=True, choices=[('gone', 'its receiver answered that it is gone (410)'), ('failing', 'nothing was delivered for five days'), ('secret_unreadable', 'its secret was sealed with another secret key of the server'), ('collection_moved', 'the collection belongs to another team now')], max_length=20)),
            ('failing_since', models.DateTimeField(null=True)),
            ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
        ],
        options={
            'ordering': ('created_at', 'id'),
            'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('collection__isnull', False), ('team', None)), models.Q(('collection', None), ('team__isnull', False)), _connector='OR'), name='webhook_of_a_team_or_a_collection')],
        },
    ),
    migrations.CreateModel(
        name='Delivery',
        fields=[
            ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
            ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.webhook')),
            ('event', models.CharField(max_length=30)),
            ('body', models.TextField(help_text='the JSON that is sent, byte by byte')),
            ('state', models.CharField(choices=[('due', 'Due'), ('sending', 'Sending'), ('delivered', 'Delivered'), ('given_up', 'Given Up')], default='due', max_length=10)),
            ('attempts', models.PositiveSmallIntegerField(default=0)),
            ('next_at', models.DateTimeField(default=django.utils.timezone.now)),
            ('lease_token', models.UUIDField(null=True)),
            ('lease_until', models.DateTimeField(null=True)),
            ('last_status', models.PositiveSmallIntegerField(null=True)),
            ('last_error', models.CharField(blank=True, max_length=30)),
            ('request_id', models.CharField(blank=True, help_text='of the request that caused the event', max_length=64)),
            ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ('ended_at', models.DateTimeField(null=True)),
        ],
        options={
            'ordering': ('-created_at', 'id'),
            'indexes': [models.Index(condition=models.Q(('state', 'due')), fields=['webhook', 'next_at'], name='due_deliveries'), models.Index(fields=['webhook', '-created_at', 'id'], name='deliveries_of_a_webhook'), models.Index(fields=['created_at'], name='deliveries_by_age')],
            'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'sending')), fields=('webhook',), name='one_delivery_at_a_time_per_webhook'), models.CheckConstraint(condition=models.Q(models.Q(('lease_token__isnull', False), ('lease_until__isnull', False), ('state', 'sending')), models.Q(models.Q(('state', 'sending'), _negated=True), ('lease_token', None), ('lease_until', None)), _connector='OR'), name='lease_exactly_while_sending')],
        },
    ),
    migrations.CreateModel(
        name='UnannouncedEvaluations',
        fields=[
            ('qrels', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='runs.qrels')),
            ('since', models.DateTimeField(default=django.utils.timezone.now)),
        ],
    ),
]


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('runs', '0001_initial'),
        ('runs', '0001_squashed_0044'),
        ('runs', '0002_known_documents'),
        ('runs', '0003_security'),
        ('runs', '0004_remembered_answers'),
        ('runs', '0005_session_sets'),
        ('runs', '0006_iteration_of_qrels'),
        ('runs', '0007_invitations'),
        ('runs', '0008_makers_of_tokens'),
        ('runs', '0009_sessions_of_users'),
        ('runs', '0010_digest_of_topic_ids'),
        ('runs', '0011_fill_digests'),
        ('runs', '0012_install'),
        ('runs', '0013_digests_of_submissions'),
        ('runs', '0014_fill_digests_of_submissions'),
        ('runs', '0015_checked_texts'),
        ('runs', '0016_webhooks'),
        ('runs', '0017_parameters'),
        ('runs', '0018_fill_parameters'),
        ('runs', '0019_index_parameters'),
        ('runs', '0020_invitation_links'),
        ('runs', '0021_labels'),
        ('runs', '0022_saved_views'),
        ('runs', '0023_share_links'),
        ('runs', '0024_artifacts'),
        ('runs', '0025_document_url'),
        ('runs', '0026_experiments'),
        ('runs', '0027_systems'),
        ('runs', '0028_lineage'),
        ('runs', '0029_campaigns'),
        ('runs', '0030_disclosure'),
        ('runs', '0031_phase_feedback'),
        ('runs', '0032_packets'),
        ('runs', '0033_releases'),
        ('runs', '0034_snapshots'),
        ('runs', '0035_participation_invitations'),
        ('runs', '0036_anonymity'),
        ('runs', '0037_mail_and_notices'),
        ('runs', '0038_ids_of_notices'),
        ('runs', '0039_rules_of_tags_and_documents'),
        ('runs', '0040_readings_before_extensions'),
        ('runs', '0041_published_entries'),
        ('runs', '0042_excluded_topics'),
        ('runs', '0043_freeze_board_at'),
        ('runs', '0044_digests_and_own_addresses'),
        ('runs', '0045_licence_of_snapshots'),
        ('runs', '0046_releases_of_newer_judgements'),
        ('runs', '0047_former_names'),
        ('runs', '0048_citations'),
        ('runs', '0049_plural_of_entries'),
        ('runs', '0050_index_boards'),
        ('runs', '0051_removed_runs'),
        ('runs', '0052_cancelled_extensions'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=MODELS),
        migrations.RunPython(create_tables, drop_tables),
        migrations.RunPython(make_trigger, drop_trigger),
    ]
