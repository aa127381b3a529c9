"""What was given out of a campaign and stays as it was: the packets of teams."""

from __future__ import annotations

import hashlib

from django.db import models
from django.utils import timezone

from runs.models.campaigns import Participation, Phase


class Packet(models.Model):
    """The packet of a team as it was first made of an edition of a phase's results; it is never made again.

    An entry that leaves the phase afterwards, or a newer engine, changes later packets alone.
    """

    phase = models.ForeignKey(Phase, on_delete=models.CASCADE, related_name="packets")
    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="packets")
    edition = models.CharField(max_length=64, help_text="the key of the release that it was made of")
    name = models.CharField(max_length=250, help_text="of the file")
    content = models.BinaryField()
    sha256 = models.CharField(max_length=64)
    made_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("phase", "participation", "made_at")
        constraints = (
            models.UniqueConstraint(fields=("phase", "participation", "edition"), name="one_packet_per_edition"),
        )

    def __str__(self) -> str:
        return f"packet of {self.participation} for {self.phase}"

    @property
    def is_sound(self) -> bool:
        """Return whether it is as it was made."""
        return hashlib.sha256(self.content).hexdigest() == self.sha256
