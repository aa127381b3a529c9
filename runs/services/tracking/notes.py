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

# About one subject.
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
    """Return a new note. The caller has checked that the author may write about the subject. `accept` is called with it
    in the same transaction.

    Raise Conflict (`too_many_notes`) where there are as many as a subject has.
    """
    with transaction.atomic():
        if Note.objects.about(subject).count() >= MAX_NOTES:
            message = f"there are {MAX_NOTES:,} notes about this already; delete one first"
            raise Conflict(message, code="too_many_notes")
        made = Note.objects.create(**{subject_name(subject): subject}, author=author, text=text)
        record(
            origin, _Action.NOTE_WRITTEN, made, collection=collection_of(made), after={"text": text}
        )
        if accept:
            accept(made)
    return made


def change_note(*, note: Note, author: Any, text: str, origin: Origin = SYSTEM) -> Note:
    """Change the text of a note, and note when. Raise NotAllowed for anybody but its author."""
    with transaction.atomic():
        found = _of_author(note, author)
        if text != found.text:
            before, found.text, found.edited_at = found.text, text, timezone.now()
            found.save(update_fields=["text", "edited_at"])
            told = {"before": {"text": before}, "after": {"text": text}}
            record(origin, _Action.NOTE_CHANGED, found, collection=collection_of(found), **told)
    return found


def delete_note(*, note: Note, author: Any, origin: Origin = SYSTEM) -> None:
    """Delete a note. Raise NotAllowed for anybody but its author and staff."""
    with transaction.atomic():
        found = _of_author(note, author, staff=True)
        record(
            origin,
            _Action.NOTE_DELETED,
            found,
            collection=collection_of(found),
            before={"text": found.text},
        )
        found.delete()


def collection_of(note: Note) -> Collection | None:
    """Return the collection whose organisers read the events of a note; None where it is about several, or none."""
    subject = note.subject
    return subject if isinstance(subject, Collection) else getattr(subject, "collection", None)


def _of_author(note: Note, author: Any, *, staff: bool = False) -> Note:
    """Return the note as it is now, which nobody else changes meanwhile. `staff`: to staff too."""
    found = Note.objects.select_for_update(of=("self",)).filter(pk=note.pk).first()
    if found is None:
        raise Conflict("this note was deleted meanwhile", code="conflict")
    if found.author_id != author.pk and not (staff and is_staff(author)):
        raise NotAllowed("only its author may change or delete a note")
    return found
