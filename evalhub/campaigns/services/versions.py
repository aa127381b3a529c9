"""The entries of a phase at one moment under one version of judgements, for packets and snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from evalhub.campaigns.services.phase_times import last_closing_time
from runs.models import Disclosure, Phase, Qrels, Release
from runs.services import clock


@dataclass(frozen=True)
class Edition:
    """The results of a phase as an audience got them at one moment.

    `name` is unique in the phase and empty for a draft, which may still change; `before` is the
    edition that this one supersedes. `official` has the ids of the entries on the official
    leaderboard at that moment, or is None if they are not known.
    """

    phase: Phase
    qrels: Qrels
    audience: Disclosure
    at: datetime
    name: str
    before: Edition | None = None
    official: tuple[str, ...] | None = None

    @property
    def as_of(self) -> datetime | None:
        """Return the moment whose entries it has; None for those of now."""
        return self.at if self.official is not None else None

    @property
    def whole(self) -> bool:
        """Return whether its readers may see the values of all runs."""
        return self.audience >= Disclosure.PARTICIPANTS

    @property
    def description(self) -> str:
        """Return when and to whom it was given out, and its judgements."""
        at = self.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        judged = f"version {self.qrels.version} of the judgements, SHA-256 {self.qrels.sha256}"
        if not self.name:
            return f"A draft, not released, by {judged}"

        return f"Released to {self.audience.label} at {at}, by {judged}"


def latest_release(phase: Phase) -> Edition | None:
    """Return the latest release of a phase's results, with those that it supersedes, or None."""
    edition: Edition | None = None
    for release in (
        Release.objects.filter(phase=phase, done_at__isnull=False)
        .select_related("qrels")
        .order_by("done_at")
    ):
        if release.qrels is not None and release.done_at is not None:
            audience, official = Disclosure(release.audience), tuple(release.official)
            edition = Edition(
                phase, release.qrels, audience, release.done_at, str(release.pk), edition, official
            )

    return edition


def edition_of(phase: Phase, active: Qrels, *, sees_all: bool) -> Edition:
    """Return the latest edition of a phase's results.

    It is the last release, or results that the disclosure of the collection opened since. Before
    that, and while the phase goes on, it is a draft of what this reader may see.
    """
    audience, released = phase.collection.disclosure, latest_release(phase)
    if audience == Disclosure.ORGANISERS or clock.database_now() < last_closing_time(phase):
        readers = Disclosure.PARTICIPANTS if sees_all else Disclosure.TEAMS
        return Edition(phase, active, readers, active.created_at, "")
    if released and released.audience >= audience:
        return released

    return Edition(
        phase, active, audience, active.created_at, f"{audience.label}-v{active.version}", released
    )
