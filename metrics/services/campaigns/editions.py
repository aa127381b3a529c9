"""What a packet or snapshot is made of: the entries of a phase at one moment, under one version of judgements."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from runs.models import Disclosure, Phase, Qrels


@dataclass(frozen=True)
class Edition:
    """Results of a phase as they were given out to an audience at one moment. `name` is a key that no other edition of
    the phase has, empty for a draft, which may still change; `before` is the one that it supersedes."""

    phase: Phase
    qrels: Qrels
    audience: Disclosure
    at: datetime
    name: str
    before: Edition | None = None

    @property
    def whole(self) -> bool:
        """Return whether its readers may see the values of all runs."""
        return self.audience >= Disclosure.PARTICIPANTS

    @property
    def said(self) -> str:
        """Return when and to whom it was given out, and its judgements."""
        at = self.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        judged = f"version {self.qrels.version} of the judgements, SHA-256 {self.qrels.sha256}"
        if not self.name:
            return f"A draft, not released, by {judged}"
        return f"Released to {self.audience.label} at {at}, by {judged}"
