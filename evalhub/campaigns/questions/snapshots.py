"""The snapshot that a request names or makes, and its addresses on this server."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import serializers
from rest_framework.request import Request

from evalhub.campaigns.services.snapshots import CODE, snapshots_seen_by
from runs.errors import Gone, StoredValueCorrupt
from runs.models import Collection, Snapshot
from runs.models.campaigns.campaigns import SLUG_RULE
from runs.models.text import check_line
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
    """Return a snapshot that the user sees, by its SHA-256 or at least the first 20 digits of it.

    Raise StoredValueCorrupt for one that is damaged: it cannot be made again.
    """
    snapshot = None
    if len(code) >= CODE:
        rows = snapshots_seen_by(request.user).filter(sha256__startswith=code)
        snapshot = rows.order_by("created_at", "pk").first()

    if snapshot is None:
        raise Http404(f"there is no snapshot {code[:64]!r}")
    if not snapshot.is_sound:
        raise StoredValueCorrupt(
            f"snapshot {snapshot.code} is damaged; ask the operator for a backup"
        )

    # Nobody is refused here: that an organiser reads values before the release is recorded.
    blind = Collection.objects.filter(blind=True)
    if snapshot.phase_id:
        blind = blind.filter(phases=snapshot.phase_id)
    else:
        blind = blind.filter(phases__campaign=snapshot.campaign_id)

    for collection in blind.distinct():
        sees_scores(request, collection)

    return snapshot


def archive_of(snapshot: Snapshot) -> bytes:
    """Return the archive of a snapshot that the user sees.

    Raise Gone if the snapshot is withdrawn, StoredValueCorrupt if the archive is damaged.
    """
    if snapshot.withdrawn_at:
        message = f"snapshot {snapshot.code} was withdrawn: {snapshot.withdrawn_reason}"
        raise Gone(message, code="snapshot_withdrawn")

    if not snapshot.has_sound_archive:
        raise StoredValueCorrupt(
            f"the archive of snapshot {snapshot.code} is damaged; ask the operator for a backup"
        )

    return bytes(snapshot.archive)


def as_file(snapshot: Snapshot, content: bytes, ending: str, kind: str) -> HttpResponse:
    """Return a response with a form of a snapshot as a file that is named after it."""
    response = HttpResponse(content, content_type=kind)
    name = f"{snapshot.campaign.slug}-s{snapshot.number}-{snapshot.code}.{ending}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    if ending == ARCHIVE:
        response["X-SHA256"] = snapshot.archive_sha256

    return response


def site_of(request: HttpRequest | Request) -> str:
    """Return how addresses of this server begin, by its settings or else by the request."""
    site: str = settings.EVALHUB_URL or request.build_absolute_uri("/").rstrip("/")
    return site
