"""The snapshot that a request names or asks for, and the addresses that it has here."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import serializers
from rest_framework.request import Request

from runs.errors import Gone, StoredValueCorrupt
from runs.models import Collection, Snapshot
from runs.models.campaigns import SLUG_RULE
from runs.models.text import check_line
from runs.services.campaigns.snapshots import CODE, snapshots_seen_by
from runs.web.access import sees_scores
from runs.web.parameters import KnownFields

# The ending of an archive, and its content type.
ARCHIVE, ARCHIVE_TYPE = "tar.zst", "application/zstd"


class SnapshotSerializer(KnownFields, serializers.Serializer[Any]):
    """A snapshot to make."""

    phase = serializers.RegexField(
        rf"\A{SLUG_RULE}\Z",
        required=False,
        allow_null=True,
        default=None,
        help_text="default: all phases",
    )
    label = serializers.CharField(  # type: ignore[assignment]
        max_length=200, validators=[check_line], default="results"
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="say what it would have, and make nothing"
    )


def visible_snapshot(request: HttpRequest | Request, code: str) -> Snapshot:
    """Return a snapshot that the user sees, by its SHA-256 or at least the first 20 characters of it.

    Raise StoredValueCorrupt for one that is damaged: it cannot be made again.
    """
    rows = (
        snapshots_seen_by(request.user).filter(sha256__startswith=code)
        if len(code) >= CODE
        else None
    )
    found = None if rows is None else rows.order_by("created_at", "pk").first()
    if found is None:
        raise Http404(f"there is no snapshot {code[:64]!r}")
    if not found.is_sound:
        raise StoredValueCorrupt(f"snapshot {found.code} is damaged; ask the operator for a backup")
    of = {"phases": found.phase_id} if found.phase_id else {"phases__campaign": found.campaign_id}
    # Nobody is refused here: that an organiser reads values before the release is recorded.
    for collection in Collection.objects.filter(**of, blind=True).distinct():
        sees_scores(request, collection)
    return found


def archive_of(snapshot: Snapshot) -> bytes:
    """Return the archive of a snapshot that `visible_snapshot` found. Raise Gone if the snapshot is withdrawn, and
    StoredValueCorrupt for an archive that is damaged."""
    if snapshot.withdrawn_at:
        message = f"snapshot {snapshot.code} was withdrawn: {snapshot.withdrawn_reason}"
        raise Gone(message, code="snapshot_withdrawn")
    if not snapshot.has_sound_archive:
        raise StoredValueCorrupt(
            f"the archive of snapshot {snapshot.code} is damaged; ask the operator for a backup"
        )
    return bytes(snapshot.archive)


def as_file(snapshot: Snapshot, content: bytes, ending: str, kind: str) -> HttpResponse:
    """Answer with a form of a snapshot as a file that is named after it."""
    answer = HttpResponse(content, content_type=kind)
    name = f"{snapshot.campaign.slug}-s{snapshot.number}-{snapshot.code}.{ending}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    if ending == ARCHIVE:
        answer["X-SHA256"] = snapshot.archive_sha256
    return answer


def site_of(request: HttpRequest | Request) -> str:
    """Return how addresses of this server begin: as the operator says, or as the request did."""
    site: str = settings.EVALHUB_URL or request.build_absolute_uri("/").rstrip("/")
    return site
