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
    """Let a label of the run's team name this run. Return the label and whether it is new.

    Raise Conflict (`label_moved`) if it does not name the run `expected`; None expects that the
    label does not exist. A label that names the run already stays as it is. Raise Conflict for a
    withdrawn run, too.
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

            label = Label.objects.select_for_update().filter(**key).first()
            if label and label.run_id == run.pk:
                return label, False

            previous = (label.run_id if label else None) if expected is ANY else expected
            fields = {"run": run, "moved_at": timezone.now(), "moved_by": user}

            if previous is None:
                if label:
                    raise _moved_meanwhile(label)
                label = Label.objects.create(**key, **fields)
            else:
                # One statement decides, whoever else moves it now.
                if not Label.objects.filter(**key, run=previous).update(**fields):
                    raise _moved_meanwhile(label)
                label = Label.objects.get(**key)

            _record_move(label, previous, run.pk, user, note, origin)
    except IntegrityError:
        # Somebody else has created it meanwhile.
        if expected is ANY:
            return move_label(run=run, name=name, user=user, note=note, origin=origin)
        raise _moved_meanwhile(Label.objects.filter(**key).first()) from None

    return label, previous is None


def _moved_meanwhile(label: Label | None) -> Conflict:
    if label is None:
        return Conflict(
            "the label names no run; send expected: null to make it",
            code="label_moved",
            pointer="/expected",
        )

    return Conflict(
        f"label {label.name} of team {label.team} names run {label.run_id} by now; "
        "read it and decide again",
        code="label_moved",
        pointer="/expected",
    )


def delete_label(
    *,
    label: Label,
    user: User | None,
    expected: UUID | None = None,
    note: str = "",
    origin: Origin = SYSTEM,
) -> None:
    """Delete a label; its moves stay. Raise Conflict if it names another run than `expected`."""
    with transaction.atomic():
        current = Label.objects.select_for_update().filter(pk=label.pk).first()
        if current is None:
            return
        if expected not in (None, current.run_id):
            raise _moved_meanwhile(current)

        current.delete()
        _record_move(label, current.run_id, None, user, note, origin)


def drop_labels(*, run: Run, drop: bool, user: User | None, origin: Origin = SYSTEM) -> None:
    """Delete every label of a run that is about to be withdrawn.

    Raise Conflict if it has any, without `drop`.
    """
    labels = list(Label.objects.filter(run=run).select_related("collection", "team"))
    if labels and not drop:
        names = ", ".join(label.name for label in labels)
        raise Conflict(
            f"run {run.tag} is labelled {names}; "
            "move the labels to another run, or delete them, too (drop_labels=true)",
            code="run_is_labelled",
        )

    for label in labels:
        delete_label(label=label, user=user, note="run withdrawn", origin=origin)


def _record_move(
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

    record(
        origin,
        AuditEvent.Action.LABEL_MOVED if after else AuditEvent.Action.LABEL_DELETED,
        label,
        collection=label.collection,
        before={"run": str(before)} if before else {},
        after={"run": str(after)} if after else {},
    )


def labels_of(runs: Iterable[UUID]) -> dict[UUID, list[str]]:
    """Return the names of the labels by run, for runs that have labels."""
    names: dict[UUID, list[str]] = {}
    labels = Label.objects.filter(run__in=list(runs)).order_by("name")
    for run, name in labels.values_list("run_id", "name"):
        names.setdefault(run, []).append(name)
    return names


def find_labelled(*, collection: Collection, reader: Any, text: str, pointer: str = "") -> UUID:
    """Return the run that `label:NAME` or `label:TEAM/NAME` names for this reader.

    Without a team this is a label of the reader's own teams, or else the only one that the reader
    sees. Raise InvalidInput for a label that does not exist (`unknown_label`), or that several
    teams have (`ambiguous_label`).
    """
    slug, _, name = text.removeprefix(PREFIX).rpartition("/")
    visible = (
        Label.objects.visible_to(reader)
        .filter(collection=collection, name=name)
        .select_related("team")
    )

    labels = list(visible.filter(team__slug=slug) if slug else visible.order_by("team__slug"))
    if not slug and len(labels) > 1:
        own = set(Team.objects.of(reader).values_list("pk", flat=True))
        labels = [label for label in labels if label.team_id in own] or labels

    if not labels:
        raise InvalidInput(
            f"there is no {text[:120]} in collection {collection.slug}; "
            "its labels/ lists those that you see",
            code="unknown_label",
            pointer=pointer,
        )

    if len(labels) > 1:
        teams = ", ".join(f"{PREFIX}{label.team.slug}/{name}" for label in labels[:10])
        message = f"several teams have a label {name[:40]!r}; name one of {teams}"
        raise InvalidInput(message, code="ambiguous_label", pointer=pointer)

    return labels[0].run_id
