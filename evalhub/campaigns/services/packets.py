"""Keep the packets of teams as they were made."""

from __future__ import annotations

from evalhub.campaigns.services.releasing import count_running
from evalhub.campaigns.services.versions import Edition
from runs.errors import Conflict, StoredValueCorrupt
from runs.models import Packet, Participation, Phase, Qrels


def kept_packet(edition: Edition, participation: Participation) -> Packet | None:
    """Return the packet of this edition, or None if there is none. Packets of drafts are not kept.

    Raise StoredValueCorrupt for one that is damaged: it cannot be made again as it was.
    """
    rows = Packet.objects.filter(
        phase=edition.phase, participation=participation, edition=edition.name
    )
    packet = rows.first() if edition.name else None
    if packet is not None and not packet.is_sound:
        raise StoredValueCorrupt(
            f"the packet of team {participation.team} is damaged; ask the operator for a backup"
        )

    return packet


def keep_packet(
    edition: Edition, participation: Participation, *, name: str, content: bytes, sha256: str
) -> Packet:
    """Keep a packet for its edition. Return the first one if another was kept meanwhile."""
    fields = {"name": name, "content": content, "sha256": sha256}
    if not edition.name:
        return Packet(phase=edition.phase, participation=participation, **fields)

    key = {"phase": edition.phase, "participation": participation, "edition": edition.name}

    return Packet.objects.get_or_create(**key, defaults=fields)[0]


def check_evaluated(phase: Phase, qrels: Qrels) -> None:
    """Raise Conflict (`evaluations_running`) while an entry of the phase waits for its evaluation."""
    if waiting := count_running(phase, qrels):
        message = (
            f"{waiting:,} entries of phase {phase.slug} are still being evaluated; ask again "
            "when they are"
        )
        raise Conflict(message, code="evaluations_running")
