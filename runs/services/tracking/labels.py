"""Move labels from run to run, delete them, and find the runs that they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.errors import Conflict, InvalidInput
from runs.models import AuditEvent, Collection, Label, LabelMove, Run, Team, User
from runs.services.audit.trail import SYSTEM, Origin, record

PREFIX = "label:"
# Names no run: moves a label from whatever it names.
ANY: Any = object()


def move_label(
    *,
    run: Run,
    name: str,
    user: User | None,
    expected: UUID | None = ANY,
    note: str = "",
    origin: Origin = SYSTEM,
) -> tuple[Label, bool]:
    """Let a label of the run's team name this run. Return it and whether it is new.

    Raise Conflict (`label_moved`) if it does not name the run `expected`, None standing for a label
    that is not there yet. A label that names the run already is left as it is. Raise Conflict, too,
    for a withdrawn run.
    """
    key = {"collection": run.collection, "team": run.team, "name": name}
    try:
        with transaction.atomic():
            # Whoever withdraws the run waits, or has withdrawn it.
            if not Run.objects.select_for_update().filter(pk=run.pk, deleted_at=None).exists():
                raise Conflict(
                    f"run {run.tag} was withdrawn; restore it first",
                    code="conflict",
                    pointer="/run",
                )
            present = Label.objects.select_for_update().filter(**key).first()
            if present and present.run_id == run.pk:
                return present, False
            before = (present.run_id if present else None) if expected is ANY else expected
            moved = {"run": run, "moved_at": timezone.now(), "moved_by": user}
            if before is None:
                if present:
                    raise _moved(present)
                made = Label.objects.create(**key, **moved)
            else:
                # One statement decides, whoever else moves it now.
                if not Label.objects.filter(**key, run=before).update(**moved):
                    raise _moved(present)
                made = Label.objects.get(**key)
            _append(made, before, run.pk, user, note, origin)
    except IntegrityError:
        # Somebody else has made it meanwhile.
        if expected is ANY:
            return move_label(run=run, name=name, user=user, note=note, origin=origin)
        raise _moved(Label.objects.filter(**key).first()) from None
    return made, before is None


def _moved(present: Label | None) -> Conflict:
    if present is None:
        return Conflict(
            "the label names no run; send expected: null to make it",
            code="label_moved",
            pointer="/expected",
        )
    message = f"label {present.name} of team {present.team} names run {present.run_id} by now; read it and decide again"
    return Conflict(message, code="label_moved", pointer="/expected")


def delete_label(
    *,
    label: Label,
    user: User | None,
    expected: UUID | None = None,
    note: str = "",
    origin: Origin = SYSTEM,
) -> None:
    """Delete a label; its moves stay. Raise Conflict if it names another run than `expected`, where that is given."""
    with transaction.atomic():
        present = Label.objects.select_for_update().filter(pk=label.pk).first()
        if present is None:
            return
        if expected not in (None, present.run_id):
            raise _moved(present)
        present.delete()
        _append(label, present.run_id, None, user, note, origin)


def drop_labels(*, run: Run, drop: bool, user: User | None, origin: Origin = SYSTEM) -> None:
    """Delete every label of a run that is about to be withdrawn. Raise Conflict if it has any and they are not to be
    dropped."""
    labels = list(Label.objects.filter(run=run).select_related("collection", "team"))
    if labels and not drop:
        names = ", ".join(label.name for label in labels)
        instead = "move the labels to another run, or delete them, too (drop_labels=true)"
        raise Conflict(f"run {run.tag} is labelled {names}; {instead}", code="run_is_labelled")
    for label in labels:
        delete_label(label=label, user=user, note="run withdrawn", origin=origin)


def _append(
    label: Label,
    before: UUID | None,
    after: UUID | None,
    user: User | None,
    note: str,
    origin: Origin,
) -> None:
    """Record a move, in its transaction."""
    LabelMove.objects.create(
        collection=label.collection,
        team=label.team,
        name=label.name,
        from_run_id=before,
        to_run_id=after,
        by=user,
        note=note,
    )
    action = AuditEvent.Action.LABEL_MOVED if after else AuditEvent.Action.LABEL_DELETED
    told = [{"run": str(run)} if run else {} for run in (before, after)]
    record(origin, action, label, collection=label.collection, before=told[0], after=told[1])


def labels_of(runs: Iterable[UUID]) -> dict[UUID, list[str]]:
    """Return the names of each run's labels; none for a run without."""
    found: dict[UUID, list[str]] = {}
    for run, name in (
        Label.objects.filter(run__in=list(runs)).order_by("name").values_list("run_id", "name")
    ):
        found.setdefault(run, []).append(name)
    return found


def find_labelled(*, collection: Collection, reader: Any, text: str, pointer: str = "") -> UUID:
    """Return the run that `label:NAME` or `label:TEAM/NAME` names for this reader.

    Without a team a label of the reader's own teams is meant, or else the only one that the reader
    sees. Raise InvalidInput for a label that is not there (`unknown_label`), or that several teams
    have (`ambiguous_label`).
    """
    slug, _, name = text.removeprefix(PREFIX).rpartition("/")
    seen = (
        Label.objects.visible_to(reader)
        .filter(collection=collection, name=name)
        .select_related("team")
    )
    found = list(seen.filter(team__slug=slug) if slug else seen.order_by("team__slug"))
    if not slug and len(found) > 1:
        own = set(Team.objects.of(reader).values_list("pk", flat=True))
        found = [label for label in found if label.team_id in own] or found
    if not found:
        message = f"there is no {text[:120]} in collection {collection.slug}; its labels/ lists those that you see"
        raise InvalidInput(message, code="unknown_label", pointer=pointer)
    if len(found) > 1:
        teams = ", ".join(f"{PREFIX}{label.team.slug}/{name}" for label in found[:10])
        message = f"several teams have a label {name[:40]!r}; name one of {teams}"
        raise InvalidInput(message, code="ambiguous_label", pointer=pointer)
    return found[0].run_id
