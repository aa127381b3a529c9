"""The audit trail: who did what, when and through what. Rows are added and never changed."""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils import timezone

from runs.models.checked import StoredJSON
from runs.models.collections.collections import Collection


class Immutable(TypeError):
    """A row of the audit trail was to be changed or deleted."""


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def update(self, **changes: Any) -> NoReturn:
        raise Immutable("the audit trail cannot be changed")

    def delete(self) -> NoReturn:
        raise Immutable("the audit trail cannot be deleted")


class AuditEvent(models.Model):
    """One privileged change, written in the transaction that makes it.

    Actor and object are kept as text: an account that goes leaves no gap, and nothing that goes
    changes a row here.
    """

    class Action(models.TextChoices):
        COLLECTION_CREATED = "collection.created"
        COLLECTION_CHANGED = "collection.changed"
        COLLECTION_DISCLOSED = "collection.disclosed"
        COLLECTION_RELEASED = "collection.released"
        COLLECTION_DELETED = "collection.deleted"
        TOPICS_REPLACED = "topics.replaced"
        TOPIC_ATTRIBUTES_REPLACED = "topic_attributes.replaced"
        TOPIC_ATTRIBUTES_DELETED = "topic_attributes.deleted"
        DOCUMENTS_REPLACED = "documents.replaced"
        DOCUMENTS_DELETED = "documents.deleted"
        QRELS_UPLOADED = "qrels.uploaded"
        QRELS_ACTIVATED = "qrels.activated"
        QRELS_READ = "qrels.read"
        RUN_SUBMITTED = "run.submitted"
        RUN_CHANGED = "run.changed"
        RUN_DELETED = "run.deleted"
        RUN_RESTORED = "run.restored"
        ARTIFACT_ATTACHED = "artifact.attached"
        ARTIFACT_DELETED = "artifact.deleted"
        PARAMETER_CHANGED = "parameter.changed"
        LABEL_MOVED = "label.moved"
        LABEL_DELETED = "label.deleted"
        VIEW_CREATED = "view.created"
        VIEW_CHANGED = "view.changed"
        VIEW_DELETED = "view.deleted"
        SHARE_CREATED = "share.created"
        SHARE_REVOKED = "share.revoked"
        EXPERIMENT_CREATED = "experiment.created"
        EXPERIMENT_CHANGED = "experiment.changed"
        EXPERIMENT_DELETED = "experiment.deleted"
        NOTE_WRITTEN = "note.written"
        NOTE_CHANGED = "note.changed"
        NOTE_DELETED = "note.deleted"
        SYSTEM_CREATED = "system.created"
        SYSTEM_CHANGED = "system.changed"
        CAMPAIGN_CREATED = "campaign.created"
        CAMPAIGN_CHANGED = "campaign.changed"
        CAMPAIGN_PUBLISHED = "campaign.published"
        CAMPAIGN_ARCHIVED = "campaign.archived"
        CAMPAIGN_DELETED = "campaign.deleted"
        PHASE_CREATED = "phase.created"
        PHASE_CHANGED = "phase.changed"
        PHASE_EXTENDED = "phase.extended"
        PHASE_EXTENSION_CANCELLED = "phase.extension_cancelled"
        PHASE_PAUSED = "phase.paused"
        PHASE_RESUMED = "phase.resumed"
        AGREEMENT_MADE = "agreement.made"
        AGREEMENT_SIGNED = "agreement.signed"
        PARTICIPATION_REQUESTED = "participation.requested"
        PARTICIPATION_CHANGED = "participation.changed"
        PARTICIPANT_JOINED = "participant.joined"
        PARTICIPANT_LEFT = "participant.left"
        ENTRY_MADE = "entry.made"
        ENTRY_CHANGED = "entry.changed"
        ENTRY_WITHDRAWN = "entry.withdrawn"
        ENTRY_RESTORED = "entry.restored"
        ENTRY_DISQUALIFIED = "entry.disqualified"
        RELEASE_PLANNED = "release.planned"
        RELEASE_CANCELLED = "release.cancelled"
        RELEASE_DONE = "release.done"
        MEASURE_DECLARED = "measure.declared"
        MEASURE_CHANGED = "measure.changed"
        MEASURE_DELETED = "measure.deleted"
        TABLE_UPLOADED = "table.uploaded"
        VALUES_READ = "values.read"
        SNAPSHOT_MADE = "snapshot.made"
        SNAPSHOT_CHANGED = "snapshot.changed"
        SNAPSHOT_WITHDRAWN = "snapshot.withdrawn"
        NOTICE_POSTED = "notice.posted"
        POOL_MADE = "pool.made"
        POOL_FROZEN = "pool.frozen"
        POOL_CHANGED = "pool.changed"
        POOL_DELETED = "pool.deleted"
        POOL_ASSIGNED = "pool.assigned"
        POOL_UNASSIGNED = "pool.unassigned"
        POOL_JUDGED = "pool.judged"
        POOL_ADJUDICATED = "pool.adjudicated"
        SUITE_CREATED = "suite.created"
        SUITE_VERSION_CREATED = "suite.version_created"
        SUITE_DELETED = "suite.deleted"
        SESSION_SET_SUBMITTED = "session_set.submitted"
        SESSION_SET_CHANGED = "session_set.changed"
        SESSION_SET_DELETED = "session_set.deleted"
        SESSION_SET_RESTORED = "session_set.restored"
        EVALUATION_REPEATED = "evaluation.repeated"
        COMPARISON_REPEATED = "comparison.repeated"
        COMPARISON_CANCELLED = "comparison.cancelled"
        TEAM_CREATED = "team.created"
        TEAM_CHANGED = "team.changed"
        TEAM_DELETED = "team.deleted"
        INVITATION_MADE = "invitation.made"
        INVITATION_ENDED = "invitation.ended"
        MEMBER_ADDED = "member.added"
        MEMBER_CHANGED = "member.changed"
        MEMBER_REMOVED = "member.removed"
        TOKEN_CREATED = "token.created"  # noqa: S105
        TOKEN_CHANGED = "token.changed"  # noqa: S105
        TOKEN_REVOKED = "token.revoked"  # noqa: S105
        WEBHOOK_CREATED = "webhook.created"
        WEBHOOK_CHANGED = "webhook.changed"
        WEBHOOK_DISABLED = "webhook.disabled"
        WEBHOOK_SECRET_CHANGED = "webhook.secret_changed"  # noqa: S105
        WEBHOOK_DELETED = "webhook.deleted"
        USER_CREATED = "user.created"
        USER_CHANGED = "user.changed"
        USER_DELETED = "user.deleted"
        PROVIDER_LINKED = "provider.linked"
        PROVIDER_UNLINKED = "provider.unlinked"

    time = models.DateTimeField(default=timezone.now, editable=False)
    actor = models.CharField(
        max_length=150, blank=True, help_text="user name; empty for the command line"
    )
    actor_key = models.BigIntegerField(null=True)
    token = models.CharField(max_length=8, blank=True, help_text="key of the token, never its text")
    action = models.CharField(max_length=30)
    object_type = models.CharField(max_length=30)
    object_id = models.CharField(max_length=200)
    collection = models.ForeignKey(
        Collection,
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="audit_events",
    )
    before = StoredJSON(default=dict, encoder=DjangoJSONEncoder)
    after = StoredJSON(default=dict, encoder=DjangoJSONEncoder)
    request_id = models.CharField(max_length=64, blank=True)
    address = models.GenericIPAddressField(null=True)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        ordering = ("-time", "-id")
        indexes = (
            models.Index(fields=("-time", "-id"), name="audit_by_time"),
            models.Index(fields=("collection", "-time", "-id"), name="audit_of_collection"),
            models.Index(fields=("object_id", "id"), name="audit_of_object"),
        )

    def __str__(self) -> str:
        actor = self.actor or "the command line"
        return f"{self.time:%Y-%m-%d %H:%M:%S} {self.action} {self.object_id} by {actor}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a new row. Raise Immutable for an existing one."""
        if not self._state.adding:
            raise Immutable("the audit trail cannot be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Immutable("the audit trail cannot be deleted")
