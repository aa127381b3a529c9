"""Room for the frames of Python's calls.

Python keeps the frames of a thread's calls in chunks of 16 kB and gives a chunk back to the system when its first frame
ends. Where a chunk ends in the middle of a loop of calls, each call asks the system for memory and gives it back: a
third of the time of a request that is read from the database, whenever calls happen to be as deep as that. Python 3.14
and the last releases of 3.13 keep one chunk (https://github.com/python/cpython/issues/142183); before them this module
helps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
# Words of 8 bytes, a little more than half a megabyte: a chunk is the next power of two, and what is left of it takes
# the frames of thousands of calls. Memory that nothing touches is none.
_WORDS = 66_000


def call_with_room(function: Callable[[], Result]) -> Result:
    """Call a function; the frames of all that it calls are in one chunk."""
    return function()


call_with_room.__code__ = call_with_room.__code__.replace(co_stacksize=_WORDS)
