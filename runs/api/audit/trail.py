"""The API of the audit trail, which only reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict

from django.db.models import QuerySet
from django.http import Http404

from runs import models
from runs.web.access import managed_collection
from runs.web.fields import JSONObject
from runs.web.filters import AuditFilter
from runs.web.lists import AnswerList
from runs.web.permissions import Access
from runs.web.shapes import shape


class CollectionAudit(TypedDict):
    """An event without the address of its request, which organisers must not see."""

    time: datetime
    action: str
    actor: Annotated[str, "user name; empty for the command line"]
    object_type: str
    object_id: str
    collection: str | None
    before: JSONObject
    after: JSONObject
    request_id: str


class AuditEvent(CollectionAudit):
    token: Annotated[str, "key of the token, never its text"]
    address: str | None


def collection_audit(event: models.AuditEvent) -> CollectionAudit:
    return CollectionAudit(
        time=event.time,
        action=event.action,
        actor=event.actor,
        object_type=event.object_type,
        object_id=event.object_id,
        collection=event.collection.slug if event.collection else None,
        before=event.before,
        after=event.after,
        request_id=event.request_id,
    )


def audit_event(event: models.AuditEvent) -> AuditEvent:
    return AuditEvent(**collection_audit(event), token=event.token, address=event.address)


class AuditList(AnswerList[models.AuditEvent]):
    """Every privileged change, newest first; for staff."""

    access = {"GET": Access.ADMINISTRATORS}
    serializer_class = shape(AuditEvent)
    answer = staticmethod(audit_event)
    filterset_class = AuditFilter
    signed_in = True
    problems = (404,)
    queryset = models.AuditEvent.objects.none()

    def get_queryset(self) -> QuerySet[models.AuditEvent]:
        if not getattr(self.request.user, "is_staff", False):
            raise Http404("not found")
        return models.AuditEvent.objects.select_related("collection")


class CollectionAuditList(AnswerList[models.AuditEvent]):
    """Changes of a collection and its runs, newest first; for its organisers."""

    access = {"GET": Access.ORGANISERS}
    serializer_class = shape(CollectionAudit)
    answer = staticmethod(collection_audit)
    filterset_class = AuditFilter
    signed_in = True
    queryset = models.AuditEvent.objects.none()

    def get_queryset(self) -> QuerySet[models.AuditEvent]:
        collection = managed_collection(self.request, self.kwargs["collection"])
        return models.AuditEvent.objects.filter(collection=collection).select_related("collection")
