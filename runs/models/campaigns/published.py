"""What was given out of a campaign and stays as it was: packets of teams, and snapshots that papers cite."""

from __future__ import annotations

import hashlib

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.campaigns.campaigns import Campaign, Participation, Phase
from runs.models.text import DOI_RULE, DOI_SAID, check_line


class Packet(models.Model):
    """The packet of a team as it was first made of an edition of a phase's results; it is never made again.

    An entry that leaves the phase afterwards, or a newer engine, changes later packets alone.
    """

    phase = models.ForeignKey(Phase, on_delete=models.CASCADE, related_name="packets")
    participation = models.ForeignKey(
        Participation, on_delete=models.CASCADE, related_name="packets"
    )
    edition = models.CharField(
        max_length=64, help_text="the key of the release that it was made of"
    )
    name = models.CharField(max_length=250, help_text="of the file")
    content = models.BinaryField()
    sha256 = models.CharField(max_length=64)
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("phase", "participation", "made_at")
        constraints = (
            models.UniqueConstraint(
                fields=("phase", "participation", "edition"), name="one_packet_per_edition"
            ),
        )

    def __str__(self) -> str:
        return f"packet of {self.participation} for {self.phase}"

    @property
    def is_sound(self) -> bool:
        """Return whether it is as it was made."""
        return hashlib.sha256(self.content).hexdigest() == self.sha256


class Snapshot(models.Model):
    """The results of a phase, or of all phases of a campaign, as a paper cites them. It is never deleted or changed,
    but for its DOI, which is given once, and its withdrawal.

    `manifest` is JSON in its canonical form, `sha256` that of its bytes, `code` the beginning of it
    by which the snapshot is addressed, `archive` a compressed tar file with the manifest and the
    files that it names.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="snapshots")
    phase = models.ForeignKey(
        Phase,
        null=True,
        on_delete=models.PROTECT,
        related_name="snapshots",
        help_text="empty: all phases",
    )
    number = models.PositiveIntegerField(help_text="in its campaign, from 1")
    code = models.CharField(max_length=64, unique=True)
    sha256 = models.CharField(max_length=64, unique=True)
    label = models.CharField(max_length=200, validators=[check_line])
    manifest = models.TextField()
    archive = models.BinaryField()
    archive_bytes = models.BigIntegerField()
    archive_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(editable=False)
    actor = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    supersedes = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="superseded_by"
    )
    withdrawn_at = models.DateTimeField(null=True, editable=False)
    withdrawn_reason = models.CharField(max_length=500, blank=True, validators=[check_line])
    doi = models.CharField(
        max_length=220,
        blank=True,
        validators=[RegexValidator(rf"\A{DOI_RULE}\Z", DOI_SAID)],
    )

    class Meta:
        ordering = ("campaign", "-number")
        constraints = (
            models.UniqueConstraint(fields=("campaign", "number"), name="one_snapshot_per_number"),
            models.CheckConstraint(
                condition=Q(withdrawn_at=None, withdrawn_reason="")
                | (Q(withdrawn_at__isnull=False) & ~Q(withdrawn_reason="")),
                name="a_withdrawn_snapshot_has_a_reason",
            ),
        )

    def __str__(self) -> str:
        return self.code

    @property
    def is_sound(self) -> bool:
        """Return whether its manifest is as it was made."""
        return hashlib.sha256(self.manifest.encode()).hexdigest() == self.sha256

    @property
    def has_sound_archive(self) -> bool:
        return hashlib.sha256(self.archive).hexdigest() == self.archive_sha256
