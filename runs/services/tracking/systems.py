"""Systems: named sequences of a team's runs. A run becomes a version where it is submitted, or later."""

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
    """Return the tag that a version has where none is given."""
    return f"{slug}-v{version}"


def next_version(*, collection: Collection, team: Team, slug: str) -> int:
    """Return the number after the last version of a system in a collection, withdrawn ones included."""
    versions = Run.objects.filter(system__team=team, system__slug=slug, collection=collection)
    return (versions.aggregate(last=Max("version"))["last"] or 0) + 1


def create_system(
    *, team: Team, slug: str, name: str = "", description: str = "", origin: Origin = SYSTEM
) -> System:
    """Create a system without versions. Raise Conflict (`slug_taken`) if the team has it already."""
    try:
        with transaction.atomic():
            made = System.objects.create(team=team, slug=slug, name=name, description=description)
            record(origin, AuditEvent.Action.SYSTEM_CREATED, made, after={"name": name})
            return made
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
    made: Run, slug: str, *, before: Run | None, named: bool, origin: Origin = SYSTEM
) -> None:
    """Let a run that is about to be stored be the next version of a system, which is made if it is new; call it in the
    transaction that stores the run and has locked its collection.

    `before`, if it is no version yet, becomes the one before it. A run that is not `named` gets the
    tag of its version; raise Conflict (`tag_taken`) if another run has it.
    """
    system, new = System.objects.get_or_create(team=made.team, slug=slug)
    if new:
        record(origin, AuditEvent.Action.SYSTEM_CREATED, system, after={"name": ""})
    if before and before.system_id is None:
        _number(before, system, origin)
    made.system, made.versioned_at = system, timezone.now()
    made.version = next_version(collection=made.collection, team=made.team, slug=slug)
    if named:
        return
    made.tag = tag_of(slug, made.version)
    if Run.objects.filter(
        collection=made.collection, team=made.team, tag=made.tag, deleted_at=None
    ).exists():
        message = f"the next version of {slug} would be {made.tag!r}, which another run is called; send a tag"
        raise Conflict(message, code="tag_taken", pointer="/tag")


def add_versions(*, system: System, runs: Iterable[Run], origin: Origin = SYSTEM) -> None:
    """Let runs of the system's team be its next versions, in the order of their submission. One that is a version of it
    already stays as it is. Raise Conflict, naming the run, for one of another system."""
    with transaction.atomic():
        for run in _locked(runs):
            if run.system_id is None:
                _number(run, system, origin)
            elif run.system_id != system.pk:
                message = f"run {run.tag} is version {run.version} of system {run.system}; take it out there first"
                raise Conflict(message, code="conflict", pointer="/add")


def remove_versions(*, system: System, runs: Iterable[Run], origin: Origin = SYSTEM) -> None:
    """Take runs out of a system; those that are no versions of it stay as they are. The others keep their numbers."""
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
    """Lock the collections of runs, whose versions nobody else numbers meanwhile; return the runs as they are now, by
    the time of their submission."""
    named = list(runs)
    collections = Collection.objects.filter(pk__in={run.collection_id for run in named}).order_by(
        "pk"
    )
    list(collections.select_for_update().values_list("pk"))
    found = Run.objects.filter(pk__in=[run.pk for run in named]).select_related(
        "collection", "team", "system__team"
    )
    return list(found.order_by("created_at", "pk"))


def _number(run: Run, system: System, origin: Origin) -> None:
    number = next_version(collection=run.collection, team=system.team, slug=system.slug)
    Run.objects.filter(pk=run.pk).update(system=system, version=number, versioned_at=timezone.now())
    after = {"system": str(system), "version": number}
    record(origin, AuditEvent.Action.RUN_CHANGED, run, collection=run.collection, after=after)


def version_with_files(made: Run, slug: str) -> Run | None:
    """Return the latest live version of a system in the collection that has the files of a run."""
    versions = Run.objects.filter(
        system__team=made.team, system__slug=slug, collection=made.collection, deleted_at=None, sha256=made.sha256,
        known_sha256=made.known_sha256,
    )  # fmt: skip
    return versions.select_related("system").order_by("-version").first()


@dataclass(frozen=True)
class Version:
    """A version of a system, and what changed since the one before it, of those that the reader sees."""

    run: Run
    changed: list[Changed]


@dataclass(frozen=True)
class InCollection:
    """How many versions of a system a reader sees in a collection, and the number of the last one."""

    collection: Collection
    versions: int
    last: int


def collections_of(system: System, reader: Any) -> list[InCollection]:
    """Return the collections in which the reader sees versions of a system, that of the newest one first."""
    seen = Run.objects.visible_to(reader).filter(system=system).order_by().values("collection")
    counted = seen.annotate(
        versions=Count("pk"), last=Max("version"), newest=Max("created_at")
    ).order_by("-newest")
    found = list(counted.values_list("collection", "versions", "last"))
    known = Collection.objects.select_related("team").in_bulk([pk for pk, _, _ in found])
    return [InCollection(known[pk], versions, last) for pk, versions, last in found]


def versions_of(system: System, collection: Collection, reader: Any) -> list[Version]:
    """Return the versions of a system in a collection that the reader sees, the last 1,000, from the first on."""
    seen = Run.objects.visible_to(reader).filter(system=system, collection=collection)
    shown = seen.select_related("team", "collection").defer(
        "warnings", "known_warnings", "ir_metadata"
    )
    runs = list(shown.order_by("-version")[:MAX_VERSIONS])[::-1]
    return [
        Version(run, changes_between(before, run) if before else [])
        for before, run in zip([None, *runs], runs, strict=False)
    ]
