"""Upgrades of an install that holds something, and workers of the release before them (case F29)."""

from __future__ import annotations

import gzip
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from evalhub.operating.install import NEEDS, newest_migrations
from metrics.models import Comparison
from metrics.services.upkeep.integrity import find_faults
from runs.models import Collection, Install, Team
from tests.conftest import client_of

# The whole database of an install by the last version with 52 and 12 migrations of `runs` and
# `metrics`, as sqlite3's iterdump and pg_dump --inserts write it: Olive's blind collection with a
# run, its evaluation and a comparison.
DATABASES = Path(__file__).parent / "databases"
# Ends of names that depend on the order of the columns.
NUMBERED = re.compile(r"_[0-9a-f]{8}(_.*)?$|^(__unnamed|sqlite_auto|fk_).*")
# SQLite's tables by the statements that made them, of which Django reads columns and constraints
# slowly.
READ: dict[tuple[str, Any], tuple[list[Any], list[Any]]] = {}
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def before_newest() -> list[tuple[str, str]]:
    """What the release before knew: every app's last migration but one."""
    graph = MigrationExecutor(connection).loader.graph
    known = []
    for app, last in newest_migrations():
        own = [node for node in graph.forwards_plan((app, last)) if node[0] == app]
        known.append(own[-2] if len(own) > 1 else own[-1])
    return known


def schema() -> dict[str, Any]:
    """The tables with their columns and constraints."""
    tables = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if connection.vendor == "sqlite":
                cursor.execute(
                    "SELECT sql FROM sqlite_master WHERE tbl_name = %s ORDER BY name", [table]
                )
                written = tuple(cursor.fetchall())
                if (table, written) not in READ:
                    READ[table, written] = described(cursor, table)
                tables[table] = READ[table, written]
            else:
                tables[table] = described(cursor, table)
    return tables


def described(cursor: Any, table: str) -> tuple[list[Any], list[Any]]:
    """The columns and the constraints of a table."""
    look = connection.introspection
    columns = [
        (column.name, column.type_code, column.null_ok)
        for column in look.get_table_description(cursor, table)
    ]
    rules = [
        (NUMBERED.sub("", name), str(rule))
        for name, rule in look.get_constraints(cursor, table).items()
    ]
    return sorted(columns), sorted(rules)


def stored_as_they_are() -> set[tuple[str, str]]:
    """The tables and columns whose long values PostgreSQL does not try to compress."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attrelid::regclass::text, attname FROM pg_attribute WHERE attstorage = 'e'"
            " AND attrelid::regclass::text IN (SELECT tablename FROM pg_tables WHERE schemaname = 'public')"
        )
        return set(cursor.fetchall())


def remove_tables() -> None:
    with connection.cursor() as cursor, connection.constraint_checks_disabled():
        if connection.vendor == "postgresql":
            cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        else:
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f'DROP TABLE "{table}"')


@pytest.fixture
def restored() -> Iterator[None]:
    """Whatever happens, the next test finds the schema of today: SQLite's is copied back."""
    copy = None
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        copy = sqlite3.connect(":memory:")
        connection.connection.backup(copy)
    yield
    if copy:
        copy.backup(connection.connection)
        copy.close()
    else:
        remove_tables()
        call_command("migrate", verbosity=0)


@pytest.fixture
def old_install(restored: None) -> dict[str, Any]:
    """The database of an install that ran the migrations one by one; returns the schema of a new
    one."""
    new = schema()
    remove_tables()
    sql = gzip.decompress((DATABASES / f"{connection.vendor}.sql.gz").read_bytes()).decode()
    with connection.cursor() as cursor, connection.constraint_checks_disabled():
        if connection.vendor == "postgresql":
            cursor.execute(sql)
        else:
            cursor.executescript(sql)
    return new


def fill(apps: Any) -> Any:
    """An owner's collection with an evaluated run, in the models of some release; returns the
    evaluation."""
    user = apps.get_model("runs", "User").objects.create(username="olive")
    team = apps.get_model("runs", "Team").objects.create(
        slug="olive", name="Olive", personal_of=user
    )
    team.members.add(user)
    collection = apps.get_model("runs", "Collection").objects.create(
        slug="old", name="Old", team=team, measures=["AP"]
    )
    qrels = apps.get_model("runs", "Qrels").objects.create(
        collection=collection, version=1, active=True, sha256="0" * 64, size=8, lines=1, judgements=1, topics=1,
        topic_ids=["1"], levels={"1": 1},
    )  # fmt: skip
    run = apps.get_model("runs", "Run").objects.create(
        collection=collection, team=team, tag="old", sha256="1" * 64, size=9, lines=1, documents=1, topics=1,
        tied_documents=0, grouped=True,
    )  # fmt: skip
    return work(apps, run, qrels)


def work(apps: Any, run: Any, qrels: Any) -> Any:
    """What a worker writes."""
    models = {
        name: apps.get_model("metrics", name)
        for name in ("Evaluation", "JudgedView", "MetricVector")
    }
    evaluation = models["Evaluation"].objects.create(
        run_id=run.pk, qrels_id=qrels.pk, scores="float64"
    )
    models["JudgedView"].objects.create(evaluation=evaluation, content=b"")
    values = {"mean": 0.5, "topics": 1, "content": b"\0" * 8}
    models["MetricVector"].objects.create(evaluation=evaluation, measure="AP", **values)
    models["Evaluation"].objects.filter(pk=evaluation.pk).update(
        state="evaluated", since=timezone.now(), seconds=0.1
    )
    return evaluation


def test_every_migration_keeps_what_an_install_holds(old_install: dict[str, Any]) -> None:
    call_command("migrate", verbosity=0)
    assert schema() == old_install
    if connection.vendor == "postgresql":
        views = {
            ("metrics_judgedview", "content"),
            ("metrics_sessionview", "content"),
            ("metrics_sessionview", "sessions"),
            ("metrics_storedcurves", "means"),
            ("metrics_storedcurves", "content"),
            ("metrics_storedsessioncurves", "content"),
        }
        assert stored_as_they_are() == views | {("metrics_comparison", "content")}
    applied = MigrationRecorder(connection).applied_migrations()
    assert newest_migrations() <= applied.keys()

    (run,) = Collection.objects.get(slug="old").runs.all()
    assert (run.tag, run.metadata) == ("old", {"model": "BM25", "k1": 0.9})
    (evaluation,) = run.evaluations.all()
    assert (evaluation.state, evaluation.vectors.get().mean) == ("evaluated", 0.5)
    assert bytes(evaluation.view.content) == bytes(range(256))
    assert bytes(Comparison.objects.get().content or b"") == b"\x01\x00'"
    assert Install.objects.get().needs == list(NEEDS)
    # The files and the result of the comparison are made up.
    faults = {finding.code for finding in find_faults(fast=True) if not finding.note}
    assert faults == {"file_missing", "comparison_digest"}

    # New rows get numbers of their own, and the database still guards what is shown.
    team = Team.objects.get(slug="olive")
    assert Collection.objects.create(slug="new", name="New", team=team, measures=[]).pk == 2
    (owner,) = team.members.all()
    assert client_of(owner).get("/api/v1/collections/old/").json()["blind"]


def test_a_database_between_two_releases_is_refused(old_install: dict[str, Any]) -> None:
    """It misses some of the migrations that one of today replaces."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("metrics", "0012_store_compressed_as_it_is")
    before = schema()
    for command in (["migrate"], ["migrate", "metrics"], ["fsck"]):
        with pytest.raises(
            CommandError, match=r"metrics\.0012_store.* is missing.*Install EvalHub"
        ):
            call_command(*command)
    assert schema() == before


def test_workers_of_the_release_before_go_on_after_a_migration() -> None:
    """They are replaced after the web server: what they read must still be there, what they write
    be accepted."""
    old = MigrationExecutor(connection).loader.project_state(before_newest()).apps
    evaluation = fill(old)
    again = old.get_model("metrics", "Evaluation").objects.select_related(
        "run__collection", "qrels"
    )
    assert again.get(pk=evaluation.pk).run.collection.slug == "old"


def test_the_command_reverses_every_migration(restored: None) -> None:
    """Those of all our apps, which depend on `runs`; nothing stays that a new set-up would meet."""
    call_command("migrate", "runs", "zero", verbosity=0)
    applied = {app for app, _ in MigrationRecorder(connection).applied_migrations()}
    assert applied == {"contenttypes", "auth", "sessions"}
    with connection.cursor() as cursor:
        assert not [
            table
            for table in connection.introspection.table_names(cursor)
            if not table.startswith(("auth_", "django_"))
        ]
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            if connection.vendor == "sqlite"
            else "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        )
        assert not cursor.fetchall()
