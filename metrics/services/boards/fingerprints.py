"""Fingerprints: the few stored values that determine an answer. Equal fingerprints mean equal answers.

Every change of an evaluation sets its `since`. Runs and judgements are only added or removed, never changed. The
counts, sums of keys and latest changes of each group of evaluations therefore reflect every change of a leaderboard,
and reading them takes less time than computing the answer.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db.models import Count, Max, Model, OuterRef, QuerySet, Subquery, Sum

from metrics.engine import ENGINE_VERSION
from metrics.models import Comparison, Evaluation
from metrics.services.boards.asked import AskedBoard, BoardQuery, active_qrels
from metrics.services.boards.filter import asks_for
from metrics.services.boards.groups import read_groups, read_parameter_sets
from metrics.services.snapshots import once_until_changed
from runs.models import (
    Artifact,
    Collection,
    Label,
    ParameterKey,
    Qrels,
    Run,
    SessionSet,
    Topic,
    View,
)

Fingerprint = tuple[Any, ...]
_PACKAGES = ("evalhub", "runs", "metrics")
# What computes, draws and writes answers: an older or newer one may do it otherwise, or not read what is kept.
_LIBRARIES = (
    "django",
    "djangorestframework",
    "numpy",
    "scipy",
    "numba",
    "altair",
    "vl-convert-python",
    "markdown-it-py",
)
# Style sheets and scripts too: their names on a page contain a digest of their content.
_CODE = ("*.py", "*.html", "*.css", "*.js", "*.svg")


def of_boards(collection: Collection) -> Fingerprint:
    """Return the fingerprint of all results of the collection's evaluated runs: one query for the judgements, one for
    the runs."""
    groups = read_groups(collection.pk)
    return (
        _code(),
        _row(collection),
        collection.veiled,
        _of_active(collection),
        groups.entries,
        groups,
    )


def _of_active(collection: Collection) -> Fingerprint:
    """Return the fingerprint of the active version and of the labels."""
    active: list[Fingerprint] = once_until_changed(
        ("active", collection.pk), lambda: list(_active(collection.pk))
    )
    if active:
        return active[0]
    return tuple(collection.labels.aggregate(Count("pk"), Max("moved_at")).values())


def _active(collection: int) -> QuerySet[Any, Any]:
    labels = Label.objects.filter(collection=OuterRef("collection")).order_by().values("collection")
    active = Qrels.objects.filter(collection=collection, active=True).order_by()
    found = active.annotate(
        labels=Subquery(labels.annotate(n=Count("pk")).values("n")),
        moved=Subquery(labels.annotate(n=Max("moved_at")).values("n")),
    )
    return found.values_list("pk", "version", "labels", "moved")


def of_filter(collection: Collection, query: BoardQuery) -> Fingerprint:
    """Return the fingerprint of the rows that a filter shows, and of columns and their order. Descriptions and
    parameters change without a change of an evaluation, and `own` depends on the reader."""
    columns = (*of_parameters(collection), query.columns) if query.columns or query.arrange else ()
    if query.filter is None:
        return columns
    names = AskedBoard(collection, active_qrels(collection), query).shown_names
    return (
        hashlib.sha256("".join(names).encode()).hexdigest(),
        query.reader.pk if asks_for(query.filter, "own") else None,
        *columns,
    )


def of_parameters(collection: Collection) -> Fingerprint:
    """Return the fingerprint of all parameters."""
    return read_parameter_sets(collection.pk)


def of_views(collection: Collection) -> Fingerprint:
    """Return the fingerprint of the saved views of a leaderboard."""
    saved = View.objects.filter(collection=collection).order_by()
    return tuple(saved.aggregate(Count("pk"), Max("pk"), Max("changed_at")).values())


def of_artifacts(run: Run) -> Fingerprint:
    """Return the fingerprint of the files beside a run."""
    found = Artifact.objects.filter(run=run, deleted_at=None).order_by()
    return tuple(found.aggregate(Count("pk"), Max("pk"), Sum("pk")).values())


def of_described(collection: Collection) -> Fingerprint:
    """Return the fingerprint of what organisers say of parameters and costs."""
    keys = ParameterKey.objects.filter(collection=collection).order_by("pk")
    described = keys.exclude(unit="", note="", role=ParameterKey.Role.SETTING)
    return tuple(described.values_list("pk", "unit", "note", "role"))


def of_judgements(collection: Collection) -> Fingerprint | None:
    """Return the fingerprint of the active version."""
    return (
        Qrels.objects.filter(collection=collection, active=True)
        .order_by()
        .values_list("pk", "version")
        .first()
    )


def of_all_judgements(collection: Collection) -> Fingerprint:
    """Return the fingerprint of all versions and of which one is active: versions are added, never changed."""
    counted = collection.qrels.aggregate(Count("pk"), Max("pk"))
    return _code(), _row(collection), tuple(counted.values()), of_judgements(collection)


def of_topics(collection: Collection) -> Fingerprint:
    """Return the fingerprint of the listed topics, which are replaced together by rows with other keys."""
    counted = collection.topics.aggregate(Count("pk"), Max("pk"))
    return tuple(counted.values())


def of_listed(collection: Collection) -> Fingerprint:
    """Return the fingerprint of the topics and of the number of session sets, in one query."""
    topics = Topic.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    sets = (
        SessionSet.objects.filter(collection=OuterRef("pk"), deleted_at=None)
        .order_by()
        .values("collection")
    )
    counted = Collection.objects.filter(pk=collection.pk).annotate(
        listed=Subquery(topics.annotate(n=Count("pk")).values("n")),
        last=Subquery(topics.annotate(n=Max("pk")).values("n")),
        sets=Subquery(sets.annotate(n=Count("pk")).values("n")),
    )
    return tuple(counted.values_list("listed", "last", "sets"))


def of_comparisons(collection: Collection) -> Fingerprint | None:
    """Return the fingerprint of the stored comparisons, or None while one is in progress, because its progress changes
    without any request."""
    stored = Comparison.objects.filter(qrels__collection=collection).order_by()
    groups = stored.values_list("state").annotate(Count("pk"), Max("since"))
    states = sorted(groups, key=repr)
    under_way = (Comparison.State.QUEUED, Comparison.State.COMPARING)
    return None if any(state in under_way for state, *_ in states) else tuple(states)


def of_run(run: Run) -> Fingerprint:
    """Return the fingerprint of all results of one run, whose collection and team are already loaded."""
    moves = Evaluation.objects.filter(run=run).order_by("pk")
    states = moves.values_list(
        "pk", "qrels__active", "state", "since", "attempts", "error_code", "error_message"
    )
    return _code(), _row(run), _row(run.collection), _row(run.team), tuple(states)


def of_notes(run: Run) -> Fingerprint:
    """Return the fingerprint of the notes about a run."""
    latest = Max("created_at"), Max("edited_at")
    return tuple(run.notes.order_by().aggregate(Count("pk"), *latest, Count("author")).values())


def of_code() -> Fingerprint:
    """Return the fingerprint of answers that depend on nothing stored."""
    return (_code(),)


def _row(row: Model) -> Fingerprint:
    return tuple(getattr(row, field.attname) for field in row._meta.concrete_fields)


@functools.cache
def _code() -> str:
    """Return a digest of code, templates, static files and the releases of libraries: others may answer the same
    request differently."""
    digest = hashlib.sha256(
        f"{ENGINE_VERSION} {sys.version} {[version(name) for name in _LIBRARIES]}".encode()
    )
    for package in _PACKAGES:
        folder = Path(apps.get_app_config(package).path)
        for path in sorted(path for pattern in _CODE for path in folder.rglob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()
