"""The API of the audit trail: it is read here and nowhere changed."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import generics

from runs.api.access import managed_collection
from runs.api.filters import AuditFilter
from runs.api.serializers import AuditEventSerializer, CollectionAuditSerializer
from runs.models import AuditEvent


class AuditList(generics.ListAPIView[AuditEvent]):
    """Every privileged change, newest first; for staff."""

    serializer_class = AuditEventSerializer
    filterset_class = AuditFilter
    signed_in = True
    queryset = AuditEvent.objects.none()

    def get_queryset(self) -> QuerySet[AuditEvent]:
        if not getattr(self.request.user, "is_staff", False):
            raise Http404("not found")
        return AuditEvent.objects.select_related("collection")


class CollectionAuditList(generics.ListAPIView[AuditEvent]):
    """What was changed of a collection and its runs, newest first; for its organisers."""

    serializer_class = CollectionAuditSerializer
    filterset_class = AuditFilter
    signed_in = True
    queryset = AuditEvent.objects.none()

    def get_queryset(self) -> QuerySet[AuditEvent]:
        if getattr(self, "swagger_fake_view", False):
            return AuditEvent.objects.none()
        found = managed_collection(self.request, self.kwargs["collection"])
        return AuditEvent.objects.filter(collection=found).select_related("collection")
