"""The times of phases: when one closes for a team, its state, and times as organisers write them."""

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
    """Return when a phase closes for a team: the phase's time, or a later one of an extension for all or for it."""
    own = participation.pk if participation else None
    later = [
        one.new
        for one in phase.extensions.all()
        if one.participation_id is None or one.participation_id == own
    ]

    return max([phase.closes_at, *later])


def phase_state(phase: Phase, participation: Participation | None, now: datetime) -> PhaseState:
    """Return the state of a phase for a team, or for those without one. Intervals are half-open: at the instant of
    `closes_at` the phase is late or closed.

    Nothing has to run for a phase to open or close: this is a function of the clock, the phase and
    its extensions.
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
    later = [one.new for one in phase.extensions.all()]
    return max([phase.closes_at, phase.late_closes_at or phase.closes_at, *later])


def read_zone(text: str) -> str:
    """Return the IANA name of a zone; AoE is anywhere on earth. Raise InvalidInput for an unknown one."""
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
    """Return the instant that a text means: ISO 8601 with an offset, or a day alone, which stands for its first instant
    in the zone, or with `ends` for the instant at which it is over there.

    Raise InvalidInput, which names the field, for anything else.
    """
    given, pointer = text.strip(), f"/{name}"
    try:
        if _DAY.fullmatch(given):
            day = date.fromisoformat(given) + timedelta(days=ends)
            return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)

        found = parse_datetime(given)
        if found and found.tzinfo:
            return found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name}: {given[:40]!r} is not a time of the calendar", pointer=pointer
        ) from error

    message = (
        f"{name}: write 2027-06-01T12:00:00Z, with its offset, or a day such as 2027-05-31 with "
        "a zone"
    )
    raise InvalidInput(message, code="bad_time", pointer=pointer)
