"""The clock of campaigns: the state of a phase at every instant that matters, and the times that organisers write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from evalhub.campaigns.services.phase_times import (
    closing_time,
    phase_state,
    read_time,
    read_zone,
)
from runs.errors import InvalidInput
from runs.models import Extension, Participation, Phase
from runs.services.clock import database_now

OPENS = datetime(2027, 4, 1, 12, tzinfo=UTC)
CLOSES, LATE, EXTENDED = (
    OPENS + timedelta(days=60),
    OPENS + timedelta(days=67),
    OPENS + timedelta(days=62),
)
TICK = timedelta(microseconds=1)


def make_phase(extensions: list[Extension] | None = None, **fields: object) -> Phase:
    """A phase that no database has, with these extensions."""
    phase = Phase(**{"opens_at": OPENS, "closes_at": CLOSES, "late_closes_at": LATE, **fields})
    phase._prefetched_objects_cache = {"extensions": extensions or []}  # type: ignore[attr-defined]
    return phase


class Extensions(list[Extension]):
    """As the manager of a phase has them."""

    def all(self) -> list[Extension]:
        return self


@pytest.fixture(autouse=True)
def extensions_as_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    extensions = property(lambda phase: Extensions(phase._prefetched_objects_cache["extensions"]))
    monkeypatch.setattr(Phase, "extensions", extensions)


def around(phase: Phase, team: Participation | None, instant: datetime) -> list[str]:
    return [str(phase_state(phase, team, instant + step)) for step in (-TICK, 0 * TICK, TICK)]


def test_a_phase_changes_exactly_at_its_instants() -> None:
    phase = make_phase()
    assert around(phase, None, OPENS) == ["planned", "open", "open"]
    assert around(phase, None, CLOSES) == ["open", "late", "late"]
    assert around(phase, None, LATE) == ["late", "closed", "closed"]
    without = make_phase(late_closes_at=None)
    assert around(without, None, CLOSES) == ["open", "closed", "closed"]


def test_an_extension_of_one_team_is_that_teams_alone() -> None:
    ours, theirs = Participation(pk=1), Participation(pk=2)
    phase = make_phase([Extension(participation_id=1, old=CLOSES, new=EXTENDED)])
    assert around(phase, ours, CLOSES) == ["open"] * 3
    assert around(phase, ours, EXTENDED) == ["open", "late", "late"]
    assert around(phase, theirs, CLOSES) == around(phase, None, CLOSES) == ["open", "late", "late"]
    beyond = make_phase([Extension(participation_id=1, old=CLOSES, new=LATE + TICK)])
    assert around(beyond, ours, LATE) == ["open", "open", "closed"]


def test_a_pause_begins_at_its_instant_and_the_clock_goes_on() -> None:
    pause = OPENS + timedelta(days=1)
    phase = make_phase(paused_at=pause)
    assert around(phase, None, pause) == ["open", "paused", "paused"]
    assert around(phase, None, CLOSES) == ["paused", "late", "late"]


@given(
    st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.integers(-50, 50)), max_size=4),
    st.integers(-70, 70),
)
def test_a_team_never_closes_before_the_others(
    extensions: list[tuple[int | None, int]], days: int
) -> None:
    rows = [
        Extension(participation_id=of, old=CLOSES, new=CLOSES + timedelta(days=n))
        for of, n in extensions
    ]
    phase, now = make_phase(rows), CLOSES + timedelta(days=days)
    assert closing_time(phase, Participation(pk=1)) >= closing_time(phase, None) >= phase.closes_at
    if phase_state(phase, None, now) == "open":
        assert phase_state(phase, Participation(pk=1), now) == "open"


def test_a_day_alone_is_read_in_its_zone() -> None:
    assert read_time("2027-05-31", read_zone("AoE"), name="closes_at", ends=True) == datetime(
        2027, 6, 1, 12, tzinfo=UTC
    )
    assert read_time("2027-05-31", "UTC", name="opens_at") == datetime(2027, 5, 31, tzinfo=UTC)
    # The clocks of Lisbon go forward on this day: it has 23 hours.
    first, last = (
        read_time("2027-03-28", "Europe/Lisbon", name="x", ends=ends) for ends in (False, True)
    )
    assert last - first == timedelta(hours=23)
    assert read_time("2027-06-01T14:00:00+02:00", "Etc/GMT+12", name="x") == datetime(
        2027, 6, 1, 12, tzinfo=UTC
    )


@pytest.mark.parametrize(
    "text", ["", "2027-06-01T12:00:00", "tomorrow", "2027-02-30", "2027-13-01T00:00Z", "9999-12-31"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_time(text, "Etc/GMT+12", name="closes_at", ends=True)
    assert refusal.value.pointer == "/closes_at"


@pytest.mark.parametrize("text", ["Mars/Olympus", "../etc/passwd", "x" * 65, "Europe", "/etc"])
def test_other_zones_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_zone(text)


@pytest.mark.django_db
def test_the_database_has_the_clock() -> None:
    first, second = database_now(), database_now()
    assert first <= second
    if connection.vendor == "sqlite":
        assert abs(first - timezone.now()) < timedelta(seconds=5)
