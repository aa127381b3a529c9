"""Calls at every depth find room for their frames."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable

from evalhub.frames import call_with_room

CALLS = 1_000


def do_nothing() -> None:
    """A call."""


def call_from_every_depth(depth: int = 300) -> None:
    """A loop of calls at each of so many depths: at one of them a chunk of frames ends, without room."""
    for _ in range(CALLS):
        do_nothing()
    if depth:
        call_from_every_depth(depth - 1)


def faults_of_a_thread(function: Callable[[], None]) -> int:
    """How often a new thread that calls a function touches memory that it did not have."""
    found: list[int] = []

    def count() -> None:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        function()
        found.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    return found[0]


def test_calls_with_room_ask_for_no_memory_again_and_again() -> None:
    """Without room each call at the end of a chunk does, unless Python keeps one."""
    call_from_every_depth()
    assert faults_of_a_thread(lambda: call_with_room(call_from_every_depth)) < CALLS / 2
    assert call_with_room(lambda: 5) == 5
