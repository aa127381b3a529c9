"""Replicates: runs of one system that differ by seed, fold or index.

They belong to a run without a file, which has the name of the system. Its values are the means
over its replicates for each topic (metrics/services/values/replicates.py).
"""

from __future__ import annotations

import re

from django.db.models import QuerySet

from runs.errors import Conflict, InvalidInput, NotFound
from runs.models import AuditEvent, Run
from runs.models.submissions.runs import SYSTEM_RULE
from runs.services.audit.trail import Origin, record
from runs.services.tracking.parameters import store_parameters

# Of one run. Every mean reads the values of all of them.
MAX_REPLICATES = 100
REPLICATE_RULE_MESSAGE = (
    "the name of replicates has 1 to 54 letters, digits, '.', '_' and '-', and begins with a letter "
    "or digit"
)


def check_has_file(run: Run) -> None:
    """Raise NotFound for a run with replicates, which has neither file nor ranking of its own."""
    if run.has_replicates:
        raise NotFound(
            f"{run.tag} has no ranking of its own: its values are the means over its replicates; "
            "choose one of these",
            code="has_replicates",
        )


def tag_of(name: str, number: int) -> str:
    """Return the default tag of a replicate, counted from 1."""
    return f"{name}-r{number}"


def next_number(run: Run, name: str) -> int:
    """Return the number that the next replicate has in its tag."""
    tags = Run.objects.filter(
        collection=run.collection_id, team=run.team_id, tag__startswith=f"{name}-r"
    )
    numbers = [
        int(match[1])
        for tag in tags.values_list("tag", flat=True)
        if (match := re.fullmatch(rf"{re.escape(name)}-r([0-9]{{1,9}})", tag))
    ]
    return max(numbers, default=0) + 1


def find_replicated(run: Run, name: str) -> Run | None:
    """Return the run of the team's replicates of this name in the collection of `run`.

    Raise InvalidInput for a bad name, and Conflict if the name is the tag of a run with a file.
    """
    if not re.fullmatch(SYSTEM_RULE, name):
        raise InvalidInput(REPLICATE_RULE_MESSAGE, code="invalid", pointer="/replicate")

    replicated: Run | None = Run.objects.filter(
        collection=run.collection_id, team=run.team_id, tag=name, deleted_at=None
    ).first()
    if replicated and not replicated.has_replicates:
        raise Conflict(
            f"{name!r} is the tag of a single run of team {run.team}; choose another name for "
            "replicates, or withdraw it first",
            code="tag_taken",
            pointer="/replicate",
        )

    return replicated


def replicate_with_files(run: Run, name: str) -> Run | None:
    """Return the replicate of this name that has the files of `run`, or None."""
    replicated = find_replicated(run, name)
    if replicated is None:
        return None
    same_files = live_replicates(replicated).filter(
        sha256=run.sha256, known_sha256=run.known_sha256
    )
    existing: Run | None = same_files.order_by("created_at").first()
    return existing


def live_replicates(replicated: Run) -> QuerySet[Run]:
    """Return the replicates of a run that are not withdrawn, in the order of submission."""
    return replicated.replicates.filter(deleted_at=None).order_by("created_at", "pk")


def join_replicates(run: Run, name: str, *, keep_tag: bool, origin: Origin) -> None:
    """Make an unsaved run a replicate, of a run that is stored if it is the first one.

    Call this in the transaction that stores the run, with its collection locked. Without `keep_tag`
    it is named after the replicates. Raise the errors of `find_replicated`, and Conflict for a tag
    that is the name, or beyond MAX_REPLICATES.
    """
    if keep_tag and run.tag == name:
        raise Conflict(
            f"the tag of a replicate differs from the name of its replicates, {name!r}; leave the "
            f"tag out to call it {tag_of(name, 1)}",
            code="tag_taken",
            pointer="/tag",
        )

    replicated = find_replicated(run, name)
    if replicated is None:
        replicated = _store_replicated(run, name, origin)
    elif live_replicates(replicated).count() >= MAX_REPLICATES:
        message = f"{name} has {MAX_REPLICATES} replicates, the most that a run can have"
        raise Conflict(message, code="too_many_replicates", pointer="/replicate")

    run.replicate_of = replicated
    if not keep_tag:
        run.tag = tag_of(name, next_number(run, name))


def _store_replicated(run: Run, name: str, origin: Origin) -> Run:
    replicated = Run(
        collection=run.collection,
        team=run.team,
        submitted_by=run.submitted_by,
        tag=name,
        metadata=run.metadata,
        sha256="",
        size=0,
        lines=0,
        documents=0,
        topics=0,
        tied_documents=0,
        grouped=True,
        created_at=run.created_at,
    )
    replicated.save(force_insert=True)
    store_parameters(run.collection, [replicated])
    after = {"team": run.team.slug, "tag": name}
    record(
        origin, AuditEvent.Action.RUN_SUBMITTED, replicated, collection=run.collection, after=after
    )
    return replicated


def keep_common_metadata(replicate: Run) -> None:
    """Leave to the run of a new replicate what the metadata of both have alike."""
    replicated = replicate.replicate_of
    if replicated is None:
        return

    common = {
        name: value
        for name, value in replicated.metadata.items()
        if name in replicate.metadata and replicate.metadata[name] == value
    }
    if common != replicated.metadata:
        replicated.metadata = common
        Run.objects.filter(pk=replicated.pk).update(metadata=common)
        store_parameters(replicate.collection, [replicated])
