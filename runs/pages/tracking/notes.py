"""The pages of notes about one run, collection or experiment, with a form that writes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.tracking.notes import (
    SUBJECTS,
    NoteAnswer,
    NoteSerializer,
    check_may_write,
    note_answers,
    own_note,
)
from runs.errors import InvalidInput, NotFound
from runs.models import Note, Scope, User
from runs.services.tracking.notes import change_note, delete_note, write_note
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access


@dataclass(frozen=True)
class SubjectPages:
    """The names of two pages of a kind of subject: of its notes, and its own; with their key."""

    notes: str
    own: str
    key: Callable[[Any], Any]

    def notes_address(self, subject: Any) -> str:
        return reverse(self.notes, args=[self.key(subject)])

    def own_address(self, subject: Any) -> str:
        return reverse(self.own, args=[self.key(subject)])


PAGES = {
    "run": SubjectPages("run-notes-page", "run-files-page", lambda run: run.pk),
    "collection": SubjectPages(
        "collection-notes-page", "collection-page", lambda collection: collection.slug
    ),
    "experiment": SubjectPages(
        "experiment-notes-page", "experiment-page", lambda experiment: experiment.pk
    ),
}
_MAX_NOTES = 100


@dataclass(frozen=True)
class ShownNotes:
    """The latest notes about one subject, as a reader sees them; `total` counts all.

    `page` is the address where notes are written, and `back` that of the subject.
    """

    notes: list[NoteAnswer]
    total: int
    page: str
    back: str
    may_write: bool


def shown_notes(user: Any, kind: str, subject: Any, limit: int = _MAX_NOTES) -> ShownNotes:
    """Return the notes about a subject that the user sees."""
    notes = Note.objects.about(subject)
    latest = list(notes.select_related("author")[:limit])
    return ShownNotes(
        notes=note_answers(user, subject, latest),
        total=len(latest) if len(latest) < limit else notes.count(),
        page=PAGES[kind].notes_address(subject),
        back=PAGES[kind].own_address(subject),
        may_write=SUBJECTS[kind].may_write(user, subject),
    )


class NotesPage(FormPage):
    """Read and write the notes about one subject; `edit` is the id of an own note to change."""

    kind: ClassVar[str]
    signed_in = False
    scopes = {"POST": Scope.SUBMIT}
    reads = ("edit",)
    fields = ("action", "note", "text")

    def get(self, request: Request, **key: Any) -> HttpResponse:
        edited = request.query_params.get("edit", "")
        return self._page(request, self.subject(request, **key), edited)

    def post(self, request: Request, **key: Any) -> HttpResponse:
        subject = self.subject(request, **key)
        check_may_write(request.user, self.kind, subject)
        try:
            done = _act(request, subject)
        except (EvalHubError, APIException) as error:
            edited = str(request.data.get("note", ""))
            return self._page(request, subject, edited, refusal_of(error))

        messages.success(request, done)
        pages = PAGES[self.kind]

        # The page of an experiment has the form for a note, too.
        if self.kind == "experiment":
            return redirect_to(request, f"{pages.own_address(subject)}#notes")
        return redirect_to(request, pages.notes_address(subject))

    def subject(self, request: Request, **key: Any) -> Any:
        """Return the subject of the notes, which the reader sees."""
        return SUBJECTS[self.kind].find(request, key[self.kind])

    def _page(
        self, request: Request, subject: Any, edited: str = "", refusal: Refusal | None = None
    ) -> HttpResponse:
        own = Note.objects.about(subject).filter(author=request.user.pk)
        key = _key_in(edited)
        note = own.filter(pk=key).first() if key else None

        fields = {"text": note.text} if note else {}
        if refusal:
            fields = fields_of(request, "text")

        context = {
            "title": getattr(subject, "tag", "") or getattr(subject, "name", "") or str(subject),
            "shown": shown_notes(request.user, self.kind, subject),
            "collection": subject if self.kind == "collection" else None,
            "edited": note,
            "form_values": fields,
        }

        return render_form(request, "runs/notes.html", context, refusal)


class RunNotesPage(NotesPage):
    kind = "run"


class CollectionNotesPage(NotesPage):
    access = {"POST": Access.ORGANISERS}
    kind = "collection"


class ExperimentNotesPage(NotesPage):
    kind = "experiment"


def _act(request: Request, subject: Any) -> str:
    """Do what a form of the page says, and return a sentence about it."""
    action, origin = request.data.get("action"), origin_of(request)
    if action == "delete":
        delete_note(note=_note(request, subject), author=request.user, origin=origin)
        return "Note deleted."

    serializer = NoteSerializer(data=fields_of(request, "text"))
    serializer.is_valid(raise_exception=True)
    text = serializer.validated_data["text"]
    if action == "save":
        change_note(note=_note(request, subject), author=request.user, text=text, origin=origin)
        return "Note saved."

    if action != "write":
        raise InvalidInput("press one of the buttons", pointer="/action")
    write_note(subject=subject, author=cast(User, request.user), text=text, origin=origin)
    return "Note added."


def _note(request: Request, subject: Any) -> Note:
    key = _key_in(str(request.data.get("note", "")))
    note = own_note(request, key) if key else None
    if note is None or note.subject != subject:
        raise NotFound("there is no such note here")
    return note


def _key_in(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
