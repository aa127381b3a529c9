"""What pages say of phases: their states, their times in words, and their extensions in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.utils import formats

from evalhub.campaigns.services.phase_times import ANYWHERE, PhaseState, closing_time, phase_state
from evalhub.campaigns.services.phases import late_notice, visible_extensions
from runs.models import Campaign, Extension, Participation, Phase

_NEXT = {PhaseState.PLANNED: "opens in", PhaseState.OPEN: "closes in", PhaseState.PAUSED: "closes in",
         PhaseState.LATE: "takes late runs for"}  # fmt: skip


@dataclass(frozen=True)
class ShownTime:
    """An instant in words: in the zone in which it was meant, and in UTC."""

    at: datetime
    meant: str
    utc: str


@dataclass(frozen=True)
class ShownPhase:
    """A phase as the team of the reader sees it.

    `until` is when its state changes by the clock, `next` what happens then, and `left` in how
    long; all are empty where nothing will happen. Each extension has its old and new time, its
    notice, and its team, which is empty for all teams.
    """

    phase: Phase
    state: PhaseState
    opens: ShownTime
    closes: ShownTime
    late: ShownTime | None
    extended: bool
    until: datetime | None
    next: str
    left: str
    extensions: list[tuple[Extension, ShownTime, ShownTime, str, str]]


def shown_time(at: datetime, zone: str, *, ends: bool = False) -> ShownTime:
    """Return an instant in words. Where it is midnight, an end is that of the day before."""
    local = at.astimezone(ZoneInfo(zone))
    place = "anywhere on earth" if zone == ANYWHERE else zone.replace("_", " ")
    if ends and local.time() == time():
        meant = f"end of {formats.date_format(local - timedelta(days=1), 'j M Y')}"
    elif local.time() == time():
        meant = f"start of {formats.date_format(local, 'j M Y')}"
    else:
        meant = formats.date_format(local, "j M Y, H:i:s" if local.second else "j M Y, H:i")

    return ShownTime(at, f"{meant}, {place}", f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


def shown_phase(
    phase: Phase, own: Participation | None, now: datetime, *, organiser: bool = False
) -> ShownPhase:
    """Return what is shown of a phase, which is fetched as for `visible_extensions`."""
    state, closes_at = phase_state(phase, own, now), closing_time(phase, own)
    until = {
        PhaseState.PLANNED: phase.opens_at, PhaseState.OPEN: closes_at, PhaseState.PAUSED: closes_at,
        PhaseState.LATE: phase.late_closes_at,
    }.get(state)  # fmt: skip
    extensions = []

    for extension, team in visible_extensions(phase, own, organiser):
        old, new = (shown_time(at, phase.zone, ends=True) for at in (extension.old, extension.new))
        extensions.append((extension, old, new, late_notice(extension), team.name if team else ""))

    return ShownPhase(
        phase=phase,
        state=state,
        opens=shown_time(phase.opens_at, phase.zone),
        closes=shown_time(closes_at, phase.zone, ends=True),
        late=shown_time(phase.late_closes_at, phase.zone, ends=True)
        if phase.late_closes_at
        else None,
        extended=closes_at > phase.closes_at,
        until=until,
        next=_NEXT.get(state, ""),
        left=length_of(until - now) if until else "",
        extensions=extensions,
    )


def shown_phases(
    campaign: Campaign, own: Participation | None, now: datetime, *, organiser: bool = False
) -> list[ShownPhase]:
    """Return what is shown of the phases of a campaign, in two queries."""
    rows = campaign.phases.select_related("collection", "campaign").prefetch_related(
        "extensions__participation__team"
    )
    return [shown_phase(phase, own, now, organiser=organiser) for phase in rows]


def length_of(span: timedelta) -> str:
    """Return a length of time in its two largest units."""
    seconds = max(0, int(span.total_seconds()))
    parts = [
        (seconds // 86400, "day"),
        (seconds // 3600 % 24, "hour"),
        (seconds // 60 % 60, "minute"),
    ]

    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)

    words = [f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts[:2] if number]

    return " ".join(words) if words else "less than a minute"


@dataclass(frozen=True)
class Lane:
    """A phase on a time line of width 1000: where it opens, closes and ends for late runs."""

    shown: ShownPhase
    left: float
    width: float
    late: float

    @property
    def late_from(self) -> float:
        return round(self.left + self.width, 1)


def time_line(phases: Sequence[ShownPhase], now: datetime) -> tuple[list[Lane], float]:
    """Return the lanes of a time line and the place of now on it."""
    if not phases:
        return [], 0.0

    ends = [shown.late.at if shown.late else shown.closes.at for shown in phases]
    first, last = min([now, *(shown.opens.at for shown in phases)]), max([now, *ends])
    seconds = (last - first).total_seconds() or 1.0

    def place(at: datetime) -> float:
        return round(1000 * (at - first).total_seconds() / seconds, 1)

    lanes = [
        Lane(shown, place(shown.opens.at), max(2.0, round(place(shown.closes.at) - place(shown.opens.at), 1)),
             round(place(shown.late.at) - place(shown.closes.at), 1) if shown.late else 0.0)
        for shown in phases
    ]  # fmt: skip

    return lanes, place(now)
