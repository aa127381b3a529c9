"""Keep the packets of teams as they were made."""

from __future__ import annotations

from django.db.models import Q

from metrics.models import Evaluation
from metrics.services.campaigns.editions import Edition
from runs.errors import Conflict, StoredValueCorrupt
from runs.models import Disclosure, Entry, Packet, Participation, Phase, Qrels
from runs.services.campaigns import clock

# States in which an evaluation stays until somebody requests it again.
_SETTLED = (Evaluation.State.EVALUATED, Evaluation.State.FAILED)


def edition_of(phase: Phase, qrels: Qrels, *, sees_all: bool) -> Edition:
    """Return the latest edition of a phase's results; before there is one, and while the phase goes on, a draft of what
    this reader may see."""
    audience = phase.collection.disclosure
    if audience == Disclosure.ORGANISERS or clock.database_now() < clock.last_closing_time(phase):
        return Edition(phase, qrels, Disclosure.PARTICIPANTS if sees_all else Disclosure.TEAMS, qrels.created_at, "")
    return Edition(phase, qrels, audience, qrels.created_at, f"{audience.label}-v{qrels.version}")


def kept_packet(edition: Edition, participation: Participation) -> Packet | None:
    """Return the packet that was made of this edition; None if there is none, or for a draft, which is not kept.

    Raise StoredValueCorrupt for one that is damaged: it cannot be made again as it was.
    """
    rows = Packet.objects.filter(phase=edition.phase, participation=participation, edition=edition.name)
    found = rows.first() if edition.name else None
    if found is not None and not found.is_sound:
        raise StoredValueCorrupt(f"the packet of team {participation.team} is damaged; ask the operator for a backup")
    return found


def keep_packet(edition: Edition, participation: Participation, *, name: str, content: bytes, sha256: str) -> Packet:
    """Keep a packet as that of its edition. Return the one that was kept first if there is one meanwhile."""
    made = {"name": name, "content": content, "sha256": sha256}
    if not edition.name:
        return Packet(phase=edition.phase, participation=participation, **made)
    key = {"phase": edition.phase, "participation": participation, "edition": edition.name}
    return Packet.objects.get_or_create(**key, defaults=made)[0]


def check_evaluated(phase: Phase, qrels: Qrels) -> None:
    """Raise Conflict (`evaluations_running`) while an entry of the phase waits for its evaluation."""
    entries = phase.entries.filter(state=Entry.State.ENTERED)
    settled = Evaluation.objects.filter(run__entries__in=entries, state__in=_SETTLED)
    settled = settled.counting(Q(qrels=qrels), phase.collection.scores)
    waiting = entries.exclude(run__in=settled.values("run")).count()
    if waiting:
        message = f"{waiting} entries of phase {phase.slug} are still being evaluated; ask again when they are"
        raise Conflict(message, code="evaluations_running")
