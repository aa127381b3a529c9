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
class LocalTime:
    """An instant in words: in the zone in which it was meant, and in UTC."""

    at: datetime
    local: str
    utc: str


@dataclass(frozen=True)
class PhaseSummary:
    """A phase as the team of the reader sees it.

    `until` is when its state changes by the clock, `next` what happens then, and `time_left` in how
    long; all are empty where nothing will happen. Each extension has its old and new time, its
    notice, and its team, which is empty for all teams.
    """

    phase: Phase
    state: PhaseState
    opens: LocalTime
    closes: LocalTime
    late: LocalTime | None
    extended: bool
    until: datetime | None
    next: str
    time_left: str
    extensions: list[tuple[Extension, LocalTime, LocalTime, str, str]]


def local_time(at: datetime, zone: str, *, ends: bool = False) -> LocalTime:
    """Return an instant in words. Where it is midnight, an end is that of the day before."""
    local = at.astimezone(ZoneInfo(zone))
    place = "anywhere on earth" if zone == ANYWHERE else zone.replace("_", " ")
    if ends and local.time() == time():
        text = f"end of {formats.date_format(local - timedelta(days=1), 'j M Y')}"
    elif local.time() == time():
        text = f"start of {formats.date_format(local, 'j M Y')}"
    else:
        text = formats.date_format(local, "j M Y, H:i:s" if local.second else "j M Y, H:i")

    return LocalTime(at, f"{text}, {place}", f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


def summarise_phase(
    phase: Phase, own: Participation | None, now: datetime, *, organiser: bool = False
) -> PhaseSummary:
    """Return what is summary of a phase, which is fetched as for `visible_extensions`."""
    state, closes_at = phase_state(phase, own, now), closing_time(phase, own)
    until = {
        PhaseState.PLANNED: phase.opens_at, PhaseState.OPEN: closes_at, PhaseState.PAUSED: closes_at,
        PhaseState.LATE: phase.late_closes_at,
    }.get(state)  # fmt: skip
    extensions = []

    for extension, team in visible_extensions(phase, own, organiser):
        old, new = (local_time(at, phase.zone, ends=True) for at in (extension.old, extension.new))
        extensions.append((extension, old, new, late_notice(extension), team.name if team else ""))

    return PhaseSummary(
        phase=phase,
        state=state,
        opens=local_time(phase.opens_at, phase.zone),
        closes=local_time(closes_at, phase.zone, ends=True),
        late=local_time(phase.late_closes_at, phase.zone, ends=True)
        if phase.late_closes_at
        else None,
        extended=closes_at > phase.closes_at,
        until=until,
        next=_NEXT.get(state, ""),
        time_left=length_of(until - now) if until else "",
        extensions=extensions,
    )


def summarise_phases(
    campaign: Campaign, own: Participation | None, now: datetime, *, organiser: bool = False
) -> list[PhaseSummary]:
    """Return what is summary of the phases of a campaign, in two queries."""
    rows = campaign.phases.select_related("collection", "campaign").prefetch_related(
        "extensions__participation__team"
    )
    return [summarise_phase(phase, own, now, organiser=organiser) for phase in rows]


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

    summary: PhaseSummary
    left: float
    width: float
    late: float

    @property
    def late_from(self) -> float:
        return round(self.left + self.width, 1)


def time_line(phases: Sequence[PhaseSummary], now: datetime) -> tuple[list[Lane], float]:
    """Return the lanes of a time line and the place of now on it."""
    if not phases:
        return [], 0.0

    ends = [summary.late.at if summary.late else summary.closes.at for summary in phases]
    first, last = min([now, *(summary.opens.at for summary in phases)]), max([now, *ends])
    seconds = (last - first).total_seconds() or 1.0

    def place(at: datetime) -> float:
        return round(1000 * (at - first).total_seconds() / seconds, 1)

    lanes = [
        Lane(summary, place(summary.opens.at), max(2.0, round(place(summary.closes.at) - place(summary.opens.at), 1)),
             round(place(summary.late.at) - place(summary.closes.at), 1) if summary.late else 0.0)
        for summary in phases
    ]  # fmt: skip

    return lanes, place(now)
