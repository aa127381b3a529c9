"""Write, change and delete notes about runs, collections and experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import models, transaction
from django.utils import timezone

from runs.errors import Conflict, NotAllowed
from runs.models import AuditEvent, Collection, Note, User
from runs.models.accounts.accounts import is_staff
from runs.models.tracking.notes import subject_name
from runs.services.audit.trail import SYSTEM, Origin, record

# Notes about one subject.
MAX_NOTES = 1_000
_Action = AuditEvent.Action


def write_note(
    *,
    subject: models.Model,
    author: User,
    text: str,
    origin: Origin = SYSTEM,
    accept: Callable[[Note], object] | None = None,
) -> Note:
    """Return a new note. The caller has checked that the author may write about the subject.

    `accept` is called with it in the same transaction. Raise Conflict (`too_many_notes`) if the
    subject has as many notes as it may.
    """
    with transaction.atomic():
        if Note.objects.about(subject).count() >= MAX_NOTES:
            message = f"there are {MAX_NOTES:,} notes about this already; delete one first"
            raise Conflict(message, code="too_many_notes")

        note = Note.objects.create(**{subject_name(subject): subject}, author=author, text=text)
        record(
            origin, _Action.NOTE_WRITTEN, note, collection=collection_of(note), after={"text": text}
        )

        if accept:
            accept(note)

    return note


def change_note(*, note: Note, author: Any, text: str, origin: Origin = SYSTEM) -> Note:
    """Change the text of a note and set the time. Raise NotAllowed for anybody but its author."""
    with transaction.atomic():
        current = _of_author(note, author)
        if text != current.text:
            before, current.text, current.edited_at = current.text, text, timezone.now()
            current.save(update_fields=["text", "edited_at"])
            details = {"before": {"text": before}, "after": {"text": text}}
            record(
                origin, _Action.NOTE_CHANGED, current, collection=collection_of(current), **details
            )

    return current


def delete_note(*, note: Note, author: Any, origin: Origin = SYSTEM) -> None:
    """Delete a note. Raise NotAllowed for anybody but its author and staff."""
    with transaction.atomic():
        current = _of_author(note, author, staff=True)
        record(
            origin,
            _Action.NOTE_DELETED,
            current,
            collection=collection_of(current),
            before={"text": current.text},
        )
        current.delete()


def collection_of(note: Note) -> Collection | None:
    """Return the collection in which a note's events are recorded.

    Return None for a note about an experiment, which may have runs of several collections.
    """
    subject = note.subject
    return subject if isinstance(subject, Collection) else getattr(subject, "collection", None)


def _of_author(note: Note, author: Any, *, staff: bool = False) -> Note:
    """Return the note as it is now, locked. Raise NotAllowed for anybody but its author.

    With `staff`, return it to staff too.
    """
    current = Note.objects.select_for_update(of=("self",)).filter(pk=note.pk).first()
    if current is None:
        raise Conflict("this note was deleted meanwhile", code="conflict")
    if current.author_id != author.pk and not (staff and is_staff(author)):
        raise NotAllowed("only its author may change or delete a note")

    return current
