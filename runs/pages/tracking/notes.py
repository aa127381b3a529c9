"""The pages of notes: those about one run, collection or experiment, with a form that writes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
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
from runs.web.forms import FormPage, Refusal, fields_of, refusal_of, see
from runs.web.origin import origin_of
from runs.web.permissions import Access

# By kind of subject: the page of its notes, its own page, and what their addresses name it by.
PAGES: dict[str, tuple[str, str, Callable[[Any], list[Any]]]] = {
    "run": ("run-notes-page", "run-page", lambda run: [run.pk]),
    "collection": (
        "collection-notes-page",
        "collection-page",
        lambda collection: [collection.slug],
    ),
    "experiment": ("experiment-notes-page", "experiment-page", lambda experiment: [experiment.pk]),
}
_LATEST = 100


@dataclass(frozen=True)
class ShownNotes:
    """The latest notes about one subject, as a reader sees them; `total` counts all. `page` is where notes are written,
    and `back` the page of the subject."""

    notes: list[NoteAnswer]
    total: int
    page: str
    back: str
    may_write: bool


def shown_notes(user: Any, kind: str, subject: Any, limit: int = _LATEST) -> ShownNotes:
    """Return the notes about a subject that the user sees."""
    found = Note.objects.about(subject)
    rows = list(found.select_related("author")[:limit])
    total = len(rows) if len(rows) < limit else found.count()
    notes_page, own_page, key_of = PAGES[kind]
    key = key_of(subject)
    return ShownNotes(
        notes=note_answers(user, subject, rows),
        total=total,
        page=reverse(notes_page, args=key),
        back=reverse(own_page, args=key),
        may_write=SUBJECTS[kind].may_write(user, subject),
    )


class NotesPage(FormPage):
    """Read and write the notes about one subject; `edit` is the id of a note of the reader's to change."""

    kind: ClassVar[str]
    signed_in = False
    scopes = {"POST": Scope.SUBMIT}
    reads = ("edit",)
    fields = ("action", "note", "text")

    def get(self, request: Request, **key: Any) -> HttpResponse:
        return self._page(
            request, self.subject(request, **key), request.query_params.get("edit", "")
        )

    def post(self, request: Request, **key: Any) -> HttpResponse:
        subject = self.subject(request, **key)
        check_may_write(request.user, self.kind, subject)
        try:
            done = _act(request, subject)
        except (EvalHubError, APIException) as error:
            return self._page(
                request, subject, str(request.data.get("note", "")), refusal_of(error)
            )
        messages.success(request._request, done)
        notes_page, own_page, key_of = PAGES[self.kind]
        # The page of an experiment has the form for a note, too.
        after = (
            f"{reverse(own_page, args=key_of(subject))}#notes" if self.kind == "experiment" else ""
        )
        return see(request, after or reverse(notes_page, args=key_of(subject)))

    def subject(self, request: Request, **key: Any) -> Any:
        """Return what the notes are about, which the reader sees."""
        return SUBJECTS[self.kind].find(request, key[self.kind])

    def _page(
        self, request: Request, subject: Any, edit: str = "", refused: Refusal | None = None
    ) -> HttpResponse:
        shown = shown_notes(request.user, self.kind, subject)
        own = Note.objects.about(subject).filter(author=request.user.pk)
        key = _key_in(edit)
        edited = own.filter(pk=key).first() if key else None
        given = fields_of(request, "text") if refused else {"text": edited.text} if edited else {}
        context = {
            "title": getattr(subject, "tag", "") or getattr(subject, "name", "") or str(subject),
            "shown": shown,
            "collection": subject if self.kind == "collection" else None,
            "edited": edited,
            "given": given,
            "refused": refused,
            "wrong": refused.fields if refused else {},
        }
        return render(
            request._request, "runs/notes.html", context, status=refused.status if refused else 200
        )


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
    found = own_note(request, key) if key else None
    if found is None or found.subject != subject:
        raise NotFound("there is no such note here")
    return found


def _key_in(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
