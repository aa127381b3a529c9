"""The packets of all teams of a phase in one zip file, which is written while it is sent."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence

from evalhub.campaigns.exports.packet import make_packet, member_of
from evalhub.campaigns.services.packets import check_evaluated, keep_packet, kept_packet
from evalhub.campaigns.services.results import (
    OwnResults,
    PhaseValues,
    own_results,
    read_own_results,
    read_phase_values,
)
from evalhub.campaigns.services.versions import Edition
from metrics.services.boards.official_entries import seen_while_frozen
from metrics.services.snapshots import read_in_snapshot
from runs.models import Entry, Packet, Participation, Phase
from runs.services import clock

# The seconds that a packet takes, to know the work of a request.
SECONDS = 0.5


def new_packet(
    edition: Edition, participation: Participation, values: PhaseValues | None = None
) -> Packet:
    """Make the packet of a team in an edition, of the values of the phase if these are read, and keep it.

    Raise Conflict while an entry of the phase waits for its evaluation.
    """
    check_evaluated(edition.phase, edition.qrels)

    def read() -> OwnResults:
        if values is not None:
            return own_results(values, participation, edition.as_of)

        return read_own_results(
            phase=edition.phase,
            participation=participation,
            qrels=edition.qrels,
            sees_all=edition.whole,
            as_of=edition.as_of,
            names_at=edition.as_of,
        )

    fresh = make_packet(edition, read_in_snapshot(read))

    return keep_packet(
        edition, participation, name=fresh.name, content=fresh.content, sha256=fresh.sha256
    )


def teams_with_packets(phase: Phase) -> list[Participation]:
    """Return the teams with an entry of a phase that takes part, by their short names."""
    entries = Entry.objects.filter(phase=phase, state=Entry.State.ENTERED).order_by()
    teams = phase.campaign.participations.filter(pk__in=entries.values("participation"))
    return list(teams.select_related("team", "campaign").order_by("team__slug"))


def packets_archive(edition: Edition, teams: Sequence[Participation]) -> Iterator[bytes]:
    """Yield a zip file with the packet of each team and `SHA256SUMS`, a packet at a time."""
    written, sums = _Written(), []
    values: PhaseValues | None = None
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for participation in teams:
            packet = kept_packet(edition, participation)
            if packet is None:
                values = values or _common_values(edition)
                packet = new_packet(edition, participation, values)

            archive.writestr(member_of(packet.name, edition.at), bytes(packet.content))
            sums.append(f"{packet.sha256}  {packet.name}\n")
            yield written.take()

        archive.writestr(member_of("SHA256SUMS", edition.at), "".join(sums))

    yield written.take()


def _common_values(edition: Edition) -> PhaseValues | None:
    """Return the values of an edition for all teams, or None while these see different entries."""
    phase = edition.phase
    if not edition.whole and seen_while_frozen(phase, None, clock.database_now()):
        return None

    def read() -> PhaseValues:
        return read_phase_values(
            phase=phase, qrels=edition.qrels, sees_all=edition.whole, as_of=edition.as_of
        )

    return read_in_snapshot(read)


class _Written:
    """What zipfile wrote since it was taken. It cannot be sought, which zipfile allows for."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, content: bytes) -> int:
        self._parts.append(bytes(content))
        return len(content)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        return content
