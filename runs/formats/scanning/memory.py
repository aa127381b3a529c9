"""Settings of the C library's memory: the first use of a page is a fault, which takes longer than to fill it."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache

# The names of GNU's mallopt(3), and of Linux's madvise(2); another C library has its own habits.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_HUGE_PAGES = 14
# The second is the most that GNU's library accepts.
_KEPT, _LARGE = 64 * 1024 * 1024, 32 * 1024 * 1024
# How much the heap grows at once by itself, and how much of it is given large pages, by which
# request.
_STEP, _IN_LARGE_PAGES, _REQUEST = 128 * 1024, 32 * 1024 * 1024, 4 * 1024 * 1024


@cache
def keep_freed_memory() -> None:
    """Keep 64 MB of freed memory for later use, of however much is freed, instead of returning all to the system.

    A piece of a file and its columns are a few arrays of a megabyte, those of judgements some of
    ten. If they are returned to the system and requested again, every page of them causes a fault,
    which takes more than half of the time of a scan.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_TOP_PAD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE)


def use_large_pages() -> None:
    """Use pages of 2 MB for the next 32 MB of this process, which all of its threads share.

    For a process that evaluates a file and ends: it uses most pages of 4 kB once, and their faults
    take a tenth of its time. Where the system is set up without large pages, nothing changes.
    """
    library = ctypes.CDLL(None)
    if not all(hasattr(library, name) for name in ("mallopt", "sbrk", "madvise")):
        return
    library.sbrk.restype = library.malloc.restype = ctypes.c_void_p
    keep_freed_memory()
    library.mallopt(_ARENA_MAX, 1)
    # What is allocated and freed here makes the heap grow, and stays at its end for what comes.
    start = library.sbrk(0)
    library.mallopt(_TOP_PAD, _IN_LARGE_PAGES)
    library.free(ctypes.c_void_p(library.malloc(ctypes.c_size_t(_REQUEST))))
    library.mallopt(_TOP_PAD, _STEP)
    end = library.sbrk(0)
    start += -start % mmap.PAGESIZE
    if start < end:
        library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _HUGE_PAGES)
