"""Replicates: runs of one system that differ by seed, fold or index.

They belong to a run without a file, which has the name of the system. Its values are the means
over its replicates for each topic (metrics/services/values/replicates.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from runs import hooks
from runs.errors import Conflict, InvalidInput, NotFound
from runs.models import AuditEvent, Collection, Label, Run
from runs.models.submissions.runs import SYSTEM_RULE
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.submissions.submissions import withdraw
from runs.services.tracking.experiments import replace_run
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

    Raise InvalidInput for a bad name, and Conflict if the name is the tag of another run with a file.
    """
    if not re.fullmatch(SYSTEM_RULE, name):
        raise InvalidInput(REPLICATE_RULE_MESSAGE, code="invalid", pointer="/replicate")

    others = Run.objects.exclude(pk=run.pk)
    replicated: Run | None = others.filter(
        collection=run.collection_id, team=run.team_id, tag=name, deleted_at=None
    ).first()
    if replicated and not replicated.has_replicates:
        raise Conflict(
            f"{name!r} is the tag of a single run of team {run.team}; make it a replicate of this "
            f"name (PATCH runs/{replicated.pk}/ with replicate), or choose another name",
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
        created_at=timezone.now(),
    )
    replicated.save(force_insert=True)
    store_parameters(run.collection, [replicated])
    after = {"team": run.team.slug, "tag": name}
    record(
        origin, AuditEvent.Action.RUN_SUBMITTED, replicated, collection=run.collection, after=after
    )
    return replicated


def keep_common_metadata(replicate: Run) -> None:
    """Take out of the metadata of its run what a new replicate has not as the others have it.

    Values of the run that the others do not share were set on the run itself, and stay.
    """
    replicated = replicate.replicate_of
    if replicated is None:
        return

    live = live_replicates(replicated).exclude(pk=replicate.pk)
    others = list(live.values_list("metadata", flat=True))

    def is_of_others(name: str, value: Any) -> bool:
        return bool(others) and all(name in other and other[name] == value for other in others)

    common = {
        name: value
        for name, value in replicated.metadata.items()
        if not is_of_others(name, value)
        or (name in replicate.metadata and replicate.metadata[name] == value)
    }
    if common != replicated.metadata:
        replicated.metadata = common
        Run.objects.filter(pk=replicated.pk).update(metadata=common)
        store_parameters(replicate.collection, [replicated])


def change_replicate(
    *, run: Run, name: str | None, renew: Callable[[Run], object], origin: Origin = SYSTEM
) -> None:
    """Make a stored run a replicate of this name, or without a name a single run again.

    The caller has locked its row. If the name is its own tag, it is called after the replicates. In
    experiments its row takes its place. A row that loses its last replicate is withdrawn, and the
    run takes its place there.
    `renew` is called in the same transaction for each row with other replicates than before.

    Raise the errors of `join_replicates`, and Conflict for a run that has replicates, is a version
    of a system, is labelled or is entered in a phase, and for a labelled row that would go.
    """
    previous = run.replicate_of
    if run.replicate == name:
        return

    before = _place_of(run)
    with transaction.atomic():
        # As whoever withdraws the last replicate does, and then as a submission does.
        if previous:
            rows = Run.objects.select_for_update(no_key=True).filter(pk=previous.pk)
            rows.values_list("pk").first()
        collections = Collection.objects.select_for_update().filter(pk=run.collection_id)
        collections.values_list("pk").first()

        run.replicate_of = None
        if name:
            _check_may_join(run)
            if run.tag == name:
                # Before the row takes it.
                run.tag = tag_of(name, next_number(run, name))
                Run.objects.filter(pk=run.pk).update(tag=run.tag)
            join_replicates(run, name, keep_tag=True, origin=origin)

        Run.objects.filter(pk=run.pk).update(replicate_of=run.replicate_of)
        after = _place_of(run)
        action = AuditEvent.Action.RUN_CHANGED
        record(origin, action, run, collection=run.collection, before=before, after=after)

        if run.replicate_of:
            keep_common_metadata(run)
            replace_run(run=run, by=run.replicate_of, origin=origin)
            renew(run.replicate_of)

        if previous and live_replicates(previous).exists():
            renew(previous)
        elif previous:
            _check_unlabelled(previous, f"it would go with its last replicate {run.tag}")
            replace_run(run=previous, by=run.replicate_of or run, origin=origin)
            withdraw(submission=previous, cancel=renew, origin=origin)


def _check_may_join(run: Run) -> None:
    """Raise Conflict for a stored run that cannot become a replicate."""
    if run.has_replicates:
        message = f"run {run.tag} has replicates of its own; name these, one by one"
        raise Conflict(message, code="conflict", pointer="/replicate")
    if run.system:
        message = (
            f"run {run.tag} is version {run.version} of system {run.system}, and a replicate has "
            "no version; take it out of the system first"
        )
        raise Conflict(message, code="conflict", pointer="/replicate")

    _check_unlabelled(run, "leaderboards would no longer show it")
    hooks.before_joining.send(Run, run=run)


def _check_unlabelled(run: Run, why: str) -> None:
    names = Label.objects.filter(run=run).order_by("name").values_list("name", flat=True)
    if names:
        message = (
            f"run {run.tag} is labelled {', '.join(names)}, and {why}; move the labels to another "
            "run, or delete them, first"
        )
        raise Conflict(message, code="run_is_labelled", pointer="/replicate")


def _place_of(run: Run) -> dict[str, Any]:
    """Return the tag and the name of the replicates of a run, for the audit trail."""
    return {"tag": run.tag, "replicate": run.replicate}
