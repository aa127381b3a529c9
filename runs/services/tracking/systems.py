"""Systems: named sequences of a team's runs.

A run becomes a version when it is submitted, or later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Max
from django.utils import timezone

from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Run, System, Team
from runs.models.submissions.runs import SYSTEM_RULE
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.tracking.edits import Changed, changes_between

_STEM = re.compile(rf"({SYSTEM_RULE})-v[0-9]+")
_MOST = 54
MAX_VERSIONS = 1_000


def stem_of(tag: str) -> str:
    """Return the system that a tag names: splade for splade and splade-v4."""
    versioned = _STEM.fullmatch(tag)
    return versioned[1] if versioned else tag.lstrip("._-")[:_MOST] or "run"


def tag_of(slug: str, version: int) -> str:
    """Return the default tag of a version."""
    return f"{slug}-v{version}"


def next_version(*, collection: Collection, team: Team, slug: str) -> int:
    """Return the number of a system's next version in a collection; withdrawn versions count."""
    versions = Run.objects.filter(system__team=team, system__slug=slug, collection=collection)
    return (versions.aggregate(last=Max("version"))["last"] or 0) + 1


def create_system(
    *, team: Team, slug: str, name: str = "", description: str = "", origin: Origin = SYSTEM
) -> System:
    """Return a new system without versions.

    Raise Conflict (`slug_taken`) if the team has it already.
    """
    try:
        with transaction.atomic():
            system = System.objects.create(team=team, slug=slug, name=name, description=description)
            record(origin, AuditEvent.Action.SYSTEM_CREATED, system, after={"name": name})
            return system
    except IntegrityError:
        raise Conflict(
            f"team {team} has a system {slug!r} already", code="slug_taken", pointer="/slug"
        ) from None


def change_system(*, system: System, changes: Mapping[str, Any], origin: Origin = SYSTEM) -> None:
    """Change the name or the description of a system, which the caller has locked."""
    with transaction.atomic():
        before, after = changed(system, changes)
        for name, value in after.items():
            setattr(system, name, value)

        if after:
            system.save(update_fields=list(after))
            record(origin, AuditEvent.Action.SYSTEM_CHANGED, system, before=before, after=after)


def join_system(
    run: Run, slug: str, *, previous: Run | None, keep_tag: bool, origin: Origin = SYSTEM
) -> None:
    """Make an unsaved run the next version of a system, which is created if it is new.

    Call this in the transaction that stores the run, with its collection locked. `previous`
    becomes the version before it, unless it is a version already. Without `keep_tag` the run gets
    the tag of its version; raise Conflict (`tag_taken`) if another run has it.
    """
    system, is_new = System.objects.get_or_create(team=run.team, slug=slug)
    if is_new:
        record(origin, AuditEvent.Action.SYSTEM_CREATED, system, after={"name": ""})

    if previous and previous.system_id is None:
        _make_version(previous, system, origin)

    run.system, run.versioned_at = system, timezone.now()
    run.version = next_version(collection=run.collection, team=run.team, slug=slug)
    if keep_tag:
        return

    run.tag = tag_of(slug, run.version)
    if Run.objects.filter(
        collection=run.collection, team=run.team, tag=run.tag, deleted_at=None
    ).exists():
        raise Conflict(
            f"the next version of {slug} would be {run.tag!r}, which another run is called; "
            "send a tag",
            code="tag_taken",
            pointer="/tag",
        )


def add_versions(*, system: System, runs: Iterable[Run], origin: Origin = SYSTEM) -> None:
    """Make runs of the system's team its next versions, in the order of their submission.

    Versions of it stay as they are. Raise Conflict, naming the run, for one of another system.
    """
    with transaction.atomic():
        for run in _locked(runs):
            if run.replicate_of_id:
                raise Conflict(
                    f"run {run.tag} is a replicate, which has no version; add its run "
                    f"{run.replicate_of}, or make it a single run first",
                    code="conflict",
                    pointer="/add",
                )
            if run.system_id is None:
                _make_version(run, system, origin)
            elif run.system_id != system.pk:
                raise Conflict(
                    f"run {run.tag} is version {run.version} of system {run.system}; "
                    "take it out there first",
                    code="conflict",
                    pointer="/add",
                )


def remove_versions(*, system: System, runs: Iterable[Run], origin: Origin = SYSTEM) -> None:
    """Take runs out of a system; the remaining versions keep their numbers.

    Runs that are not versions of it stay as they are.
    """
    with transaction.atomic():
        for run in _locked(runs):
            if run.system_id == system.pk:
                before = {"system": str(system), "version": run.version}
                Run.objects.filter(pk=run.pk).update(system=None, version=None, versioned_at=None)
                record(
                    origin,
                    AuditEvent.Action.RUN_CHANGED,
                    run,
                    collection=run.collection,
                    before=before,
                )


def _locked(runs: Iterable[Run]) -> list[Run]:
    """Return runs as they are now, in the order of their submission.

    Their collections are locked, so that nobody else numbers versions meanwhile.
    """
    requested = list(runs)
    collections = Collection.objects.filter(
        pk__in={run.collection_id for run in requested}
    ).order_by("pk")
    list(collections.select_for_update().values_list("pk"))
    current = Run.objects.filter(pk__in=[run.pk for run in requested]).select_related(
        "collection", "team", "system__team"
    )

    return list(current.order_by("created_at", "pk"))


def _make_version(run: Run, system: System, origin: Origin) -> None:
    number = next_version(collection=run.collection, team=system.team, slug=system.slug)
    Run.objects.filter(pk=run.pk).update(system=system, version=number, versioned_at=timezone.now())
    after = {"system": str(system), "version": number}
    record(origin, AuditEvent.Action.RUN_CHANGED, run, collection=run.collection, after=after)


def version_with_files(run: Run, slug: str) -> Run | None:
    """Return the latest live version of a system in the collection that has the files of a run."""
    versions = Run.objects.filter(
        system__team=run.team,
        system__slug=slug,
        collection=run.collection,
        deleted_at=None,
        sha256=run.sha256,
        known_sha256=run.known_sha256,
    )
    return versions.select_related("system").order_by("-version").first()


@dataclass(frozen=True)
class Version:
    """A version of a system, and the changes since the previous version that the reader sees."""

    run: Run
    changed: list[Changed]


@dataclass(frozen=True)
class InCollection:
    """The number of versions that a reader sees in a collection, and the number of the last one."""

    collection: Collection
    versions: int
    last: int


def collections_of(system: System, reader: Any) -> list[InCollection]:
    """Return the collections in which the reader sees versions of a system.

    The collection of the newest version comes first.
    """
    visible = Run.objects.visible_to(reader).filter(system=system).order_by().values("collection")
    counts = visible.annotate(
        versions=Count("pk"), last=Max("version"), newest=Max("created_at")
    ).order_by("-newest")
    rows = list(counts.values_list("collection", "versions", "last"))
    collections = Collection.objects.select_related("team").in_bulk([pk for pk, _, _ in rows])

    return [InCollection(collections[pk], versions, last) for pk, versions, last in rows]


def versions_of(system: System, collection: Collection, reader: Any) -> list[Version]:
    """Return the last 1,000 versions in a collection that the reader sees, oldest first."""
    visible = Run.objects.visible_to(reader).filter(system=system, collection=collection)
    rows = visible.select_related("team", "collection").defer(
        "warnings", "known_warnings", "ir_metadata"
    )
    runs = list(rows.order_by("-version")[:MAX_VERSIONS])[::-1]

    return [
        Version(run, changes_between(previous, run) if previous else [])
        for previous, run in zip([None, *runs], runs, strict=False)
    ]
