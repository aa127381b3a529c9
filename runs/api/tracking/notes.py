"""The API of notes: dated texts about runs, collections and experiments.

A new kind of subject needs a column in `runs.models.tracking.notes`, a line in SUBJECTS there and
here, a subclass of NoteList here, and in `runs/pages/tracking/notes.py` a line in PAGES and a
subclass of NotesPage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypedDict, cast
from uuid import UUID

from django.db import models
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.errors import NotAllowed
from runs.models import Collection, Note, Run, Scope, Team, User
from runs.models.text import check_text
from runs.services.tracking.experiments import may_change
from runs.services.tracking.notes import change_note, delete_note, write_note
from runs.web import idempotency
from runs.web.access import visible_collection, visible_experiment, visible_run
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import shape


def _may_write_of_run(user: Any, run: Any) -> bool:
    return user.is_authenticated and Run.objects.owned_by(user).filter(pk=run.pk).exists()


def _may_write_of_collection(user: Any, collection: Any) -> bool:
    return Collection.objects.managed_by(user).filter(pk=collection.pk).exists()


@dataclass(frozen=True)
class Subject:
    """One kind of subject of notes: how a request finds it, and who may write about it."""

    find: Callable[[HttpRequest | Request, Any], models.Model]
    may_write: Callable[[Any, Any], bool]


SUBJECTS = {
    "run": Subject(visible_run, _may_write_of_run),
    "collection": Subject(visible_collection, _may_write_of_collection),
    "experiment": Subject(
        visible_experiment, lambda user, experiment: may_change(experiment, user)
    ),
}


class NoteAnswer(TypedDict):
    id: UUID
    text: str
    author: Annotated[
        str | None, "user name; null for readers outside the team, and for an account that is gone"
    ]
    own: Annotated[bool, "whether the caller wrote it, and so may change and delete it"]
    created_at: datetime
    edited_at: Annotated[datetime | None, "null for a text that was never changed"]


class NoteSerializer(KnownFields, serializers.Serializer[Any]):
    """The text of a note."""

    answered = NoteAnswer
    text = serializers.CharField(max_length=10_000, validators=[check_text])


def note_answers(user: Any, subject: Any, notes: Iterable[Note]) -> list[NoteAnswer]:
    """Return notes about one subject as the reader sees them."""
    notes = list(notes)
    if not notes:
        return []

    # Names of authors are for the subject's team and the organisers of its collection.
    names_shown = Team.objects.visible_to(user).filter(pk=subject.team_id).exists()
    collection = getattr(subject, "collection_id", None)
    if collection is not None and not names_shown:
        names_shown = Collection.objects.managed_by(user).filter(pk=collection).exists()

    answers = []
    for note in notes:
        own = user.pk is not None and note.author_id == user.pk
        answers.append(
            NoteAnswer(
                id=note.pk,
                text=note.text,
                author=note.author.username if note.author and (names_shown or own) else None,
                own=own,
                created_at=note.created_at,
                edited_at=note.edited_at,
            )
        )

    return answers


def check_may_write(user: Any, kind: str, subject: Any) -> None:
    """Raise NotAllowed unless the user may write notes about this."""
    if not SUBJECTS[kind].may_write(user, subject):
        raise NotAllowed(f"only those who may change this {kind} write notes about it")


def own_note(request: HttpRequest | Request, pk: UUID) -> Note:
    """Return a visible note about a subject that the user may still write about."""
    notes = Note.objects.visible_to(request.user).select_related(*SUBJECTS, "author")
    note = notes.filter(pk=pk).first()
    if note is None:
        raise Http404(f"there is no note {pk}")
    check_may_write(request.user, note.kind, note.subject)

    return note


def _may_write_again(request: Request, body: Any, **key: Any) -> bool:
    visible = Note.objects.visible_to(request.user)
    return visible.filter(pk=body["id"], author=request.user.pk).exists()


class NoteList(AnswerList[Note]):
    """The notes about one subject, latest first; POST writes one."""

    kind: ClassVar[str]
    serializer_class = shape(NoteAnswer)
    scopes = {"POST": Scope.SUBMIT}
    queryset = Note.objects.none()

    def subject(self) -> Any:
        return SUBJECTS[self.kind].find(self.request, self.kwargs[self.kind])

    def get_queryset(self) -> QuerySet[Note]:
        self.about = self.subject()
        return Note.objects.about(self.about).select_related("author")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(note_answers(request.user, self.about, page))

    @extend_schema(
        request=NoteSerializer,
        responses={201: shape(NoteAnswer)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_write_again)
    def post(self, request: Request, **key: Any) -> Response:
        subject = self.subject()
        check_may_write(request.user, self.kind, subject)
        serializer = NoteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)

        def response(note: Note) -> Response:
            (data,) = note_answers(request.user, subject, [note])
            return Response(data, status.HTTP_201_CREATED)

        note = write_note(
            subject=subject,
            author=cast(User, request.user),
            text=serializer.validated_data["text"],
            origin=origin_of(request),
            accept=lambda note: idempotency.remember(request, lambda: response(note)),
        )

        return response(note)


class RunNotes(NoteList):
    """The notes about a run, latest first; POST adds one, which members of its team may."""

    kind = "run"


class CollectionNotes(NoteList):
    """The notes about a collection, latest first; POST adds one, which its organisers may."""

    access = {"POST": Access.ORGANISERS}
    kind = "collection"


class ExperimentNotes(NoteList):
    """The notes about an experiment, latest first; POST adds one, which whoever may change it may
    do."""

    kind = "experiment"


class NoteDetail(APIView):
    """One note; PATCH changes its text, DELETE deletes it. Its author alone may."""

    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}
    access = {"PATCH": Access.AUTHOR}

    @extend_schema(request=NoteSerializer, responses=shape(NoteAnswer))
    def patch(self, request: Request, note: UUID) -> Response:
        own = own_note(request, note)
        serializer = NoteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        text, origin = serializer.validated_data["text"], origin_of(request)
        updated = change_note(note=own, author=request.user, text=text, origin=origin)

        return Response(note_answers(request.user, own.subject, [updated])[0])

    @extend_schema(responses={204: None})
    def delete(self, request: Request, note: UUID) -> Response:
        delete_note(note=own_note(request, note), author=request.user, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
