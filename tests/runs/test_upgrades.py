"""Upgrades of an install that holds something, and workers of the release before them (case F29)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from metrics.services.upkeep.integrity import find_faults
from runs.models import Collection, Membership, Qrels
from tests.upgrades import newest, upgrades

FIRST = [("runs", "0001_initial"), ("metrics", "0001_initial")]
SUBTOPICS = [("runs", "0005_session_sets")]
# The newest of a release that never heard of the migrations that replace its own.
SINGLE = [("runs", "0036_anonymity"), ("metrics", "0009_broker_trouble")]
# Ends of names that depend on the order of the columns.
NUMBERED = re.compile(r"_[0-9a-f]{8}(_.*)?$|^(__unnamed|sqlite_auto|fk_).*")
# SQLite's tables by the statements that made them, of which Django reads columns and constraints slowly.
READ: dict[tuple[str, Any], tuple[list[Any], list[Any]]] = {}
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def before_newest() -> list[tuple[str, str]]:
    """What the release before knew: every app's last migration but one."""
    graph = upgrades().loader.graph
    known = []
    for app, last in newest():
        own = [node for node in graph.forwards_plan((app, last)) if node[0] == app]
        known.append(own[-2] if len(own) > 1 else own[-1])
    return known


def schema() -> dict[str, Any]:
    """The tables with their columns and constraints."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if connection.vendor == "sqlite":
                cursor.execute(
                    "SELECT sql FROM sqlite_master WHERE tbl_name = %s ORDER BY name", [table]
                )
                written = tuple(cursor.fetchall())
                if (table, written) not in READ:
                    READ[table, written] = described(cursor, table)
                found[table] = READ[table, written]
            else:
                found[table] = described(cursor, table)
    return found


def described(cursor: Any, table: str) -> tuple[list[Any], list[Any]]:
    """The columns and the constraints of a table."""
    look = connection.introspection
    columns = [
        (one.name, one.type_code, one.null_ok) for one in look.get_table_description(cursor, table)
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


@pytest.fixture
def restored() -> Iterator[None]:
    """Whatever happens, the next test finds the schema of today."""
    yield
    executor = upgrades()
    if executor.migration_plan(newest()):
        executor.migrate(newest())


def fill(apps: Any) -> Any:
    """An owner's collection with an evaluated run, in the models of some release; returns the evaluation."""
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


def fill_subtopics(apps: Any) -> None:
    """Judgements of the last version that took every iteration of a topic for a subtopic."""
    team = apps.get_model("runs", "Team").objects.get(slug="olive")
    collection = apps.get_model("runs", "Collection").objects.create(
        slug="subtopics", name="Subtopics", team=team, measures=["AP"]
    )
    found = (
        {"warnings": [], "counts": {"subtopics": 60}},
        {"warnings": [], "counts": {"duplicate_judgement": 1}},
        {},
    )
    for version, warnings in enumerate(found, 1):
        apps.get_model("runs", "Qrels").objects.create(
            collection=collection, version=version, sha256=str(version) * 64, size=8, lines=1, judgements=1, topics=1,
            topic_ids=["1"], levels={"1": 1}, warnings=warnings,
        )  # fmt: skip


def test_every_migration_keeps_what_an_install_holds(restored: None) -> None:
    """Back to the first ones, and to the newest again: to those of an older release one by one, and as the command
    upgrades it from there."""
    new, executor = schema(), upgrades()
    executor.migrate(FIRST)
    evaluation = fill(executor.loader.project_state(FIRST).apps)
    executor = upgrades()
    executor.migrate(SUBTOPICS)
    fill_subtopics(executor.loader.project_state(SUBTOPICS).apps)
    upgrades().migrate(SINGLE)
    MigrationRecorder.Migration.objects.filter(name__startswith="0001_squashed").delete()
    call_command("migrate", verbosity=0)
    assert schema() == new
    if connection.vendor == "postgresql":
        views = {
            ("metrics_judgedview", "content"),
            ("metrics_sessionview", "content"),
            ("metrics_sessionview", "sessions"),
        }
        assert stored_as_they_are() == views | {("metrics_comparison", "content")}
    collection = Collection.objects.get(slug="old")
    (run,) = collection.runs.all()
    assert (run.tag, run.known_documents, collection.blind) == ("old", 0, False)
    (kept,) = run.evaluations.all()
    assert (kept.pk, kept.state, kept.vectors.get().mean) == (evaluation.pk, "evaluated", 0.5)
    sealed = (kept.view, kept.vectors.get())
    assert all(row.digest is not None and row.is_sound(kept.qrels_id) for row in sealed)
    assert kept.qrels.topic_ids_digest == kept.qrels.digest_of_topic_ids(["1"])
    # Who was alone in a team before there were owners owns it.
    assert Membership.objects.filter(team__slug="olive", role="owner").count() == 1
    judged = Qrels.objects.filter(collection__slug="subtopics").order_by("version")
    assert [qrels.iteration for qrels in judged] == ["subtopic", "ignore", "ignore"]
    assert [qrels.has_subtopics for qrels in judged] == [True, False, False]
    assert {finding.code for finding in find_faults(fast=True) if not finding.note} <= {
        "file_missing"
    }


def test_workers_of_the_release_before_go_on_after_a_migration() -> None:
    """They are replaced after the web server: what they read must still be there, what they write be accepted."""
    old = upgrades().loader.project_state(before_newest()).apps
    evaluation = fill(old)
    again = old.get_model("metrics", "Evaluation").objects.select_related(
        "run__collection", "qrels"
    )
    assert again.get(pk=evaluation.pk).run.collection.slug == "old"


def test_the_command_reverses_migrations_and_takes_them_again(restored: None) -> None:
    new = before = schema()
    for app, back_to in (("metrics", "0006"), ("runs", "0043")):
        call_command("migrate", app, back_to, verbosity=0)
        before, older = schema(), before
        assert before != older
    call_command("migrate", verbosity=0)
    assert schema() == new
