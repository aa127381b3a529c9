"""The times of phases: when they close for a team, their state, and reading written times."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from django.utils.dateparse import parse_datetime

from runs.errors import InvalidInput
from runs.models import Participation, Phase

# The zone in which a day ends last: midnight anywhere on earth. Its sign is that of POSIX.
ANYWHERE = "Etc/GMT+12"
_SHORT = {"aoe": ANYWHERE, "utc": "UTC", "": "UTC"}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class PhaseState(StrEnum):
    PLANNED = "planned"
    OPEN = "open"
    PAUSED = "paused"
    LATE = "late"
    CLOSED = "closed"


def closing_time(phase: Phase, participation: Participation | None) -> datetime:
    """Return when a phase closes for a team, extensions for all and for this team included."""
    own = participation.pk if participation else None
    later = [
        extension.new
        for extension in phase.extensions.all()
        if extension.participation_id is None or extension.participation_id == own
    ]

    return max([phase.closes_at, *later])


def phase_state(phase: Phase, participation: Participation | None, now: datetime) -> PhaseState:
    """Return the state of a phase for a team, or for readers without a team.

    Intervals are half-open: at the instant of `closes_at` the phase is late or closed. The state
    depends only on the clock, the phase and its extensions: no process has to open or close it.
    """
    closes_at = closing_time(phase, participation)
    if now < phase.opens_at:
        return PhaseState.PLANNED
    if now < closes_at:
        paused = phase.paused_at is not None and phase.paused_at <= now
        return PhaseState.PAUSED if paused else PhaseState.OPEN
    if phase.late_closes_at and now < phase.late_closes_at:
        return PhaseState.LATE

    return PhaseState.CLOSED


def last_closing_time(phase: Phase) -> datetime:
    """Return when a phase has closed for every team, late entries included."""
    later = [extension.new for extension in phase.extensions.all()]
    return max([phase.closes_at, phase.late_closes_at or phase.closes_at, *later])


def read_zone(text: str) -> str:
    """Return the IANA name of a zone, which may be written as AoE (anywhere on earth).

    Raise InvalidInput for an unknown zone.
    """
    name = _SHORT.get(text.strip().lower(), text.strip())
    try:
        if len(name) > 64 or not re.fullmatch(r"[A-Za-z0-9_+/-]+", name):
            raise ValueError(name)

        ZoneInfo(name)
    except (ValueError, KeyError, OSError) as error:
        message = f"unknown zone {text[:40]!r}; write AoE, UTC, or a name such as Europe/Lisbon"
        raise InvalidInput(message, code="unknown_zone", pointer="/zone") from error

    return name


def read_time(text: str, zone: str, *, name: str, ends: bool = False) -> datetime:
    """Return the instant of a text: ISO 8601 with an offset, or a day in the zone.

    A day means its first instant, or with `ends` the instant at which it is over. Raise
    InvalidInput, with the name of the field, for anything else.
    """
    stripped, pointer = text.strip(), f"/{name}"
    try:
        if _DAY.fullmatch(stripped):
            day = date.fromisoformat(stripped) + timedelta(days=ends)
            return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)

        instant = parse_datetime(stripped)
        if instant and instant.tzinfo:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name}: {stripped[:40]!r} is not a time of the calendar", pointer=pointer
        ) from error

    message = (
        f"{name}: write 2027-06-01T12:00:00Z, with its offset, or a day such as 2027-05-31 with "
        "a zone"
    )
    raise InvalidInput(message, code="bad_time", pointer=pointer)
