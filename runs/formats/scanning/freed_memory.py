"""Keep freed memory in the C library: files are read piece by piece, each in the place of the last."""

from __future__ import annotations

import ctypes
from functools import cache

# The names of GNU's mallopt(3); another C library has its own habits.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGE = 64 * 1024 * 1024, 8 * 1024 * 1024


@cache
def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory for later use instead of returning it to the system.

    A piece of a file and its columns are a few arrays of a megabyte. If they are returned to the system and requested
    again, every page of them causes a fault, which takes more than half of the time of a scan.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE)
