"""Settings of the C library's memory, for fewer page faults.

The first use of a page is a fault, which takes longer than filling the page.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import cache

# Options of GNU's mallopt(3), and of Linux's madvise(2); other C libraries ignore them.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_HUGE_PAGES = 14
# Bytes that are kept, and the largest threshold that GNU's library accepts.
_KEPT_BYTES, _LARGE = 64 * 1024 * 1024, 32 * 1024 * 1024
# By how much the heap grows usually, how much of it gets large pages, and the request for that.
_STEP, _IN_LARGE_PAGES, _REQUEST = 128 * 1024, 32 * 1024 * 1024, 4 * 1024 * 1024


@cache
def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory for later use, instead of returning it to the system.

    A piece of a file and its columns are a few arrays of a megabyte, those of judgements some of
    ten. If they are returned to the system and requested again, every page of them causes a fault,
    which takes more than half of the time of a scan.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_TOP_PAD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGE)


def use_large_pages() -> None:
    """Use pages of 2 MB for the next 32 MB of this process, which all of its threads share.

    This is for a process that evaluates a file and ends: it uses most pages of 4 kB once, and their
    faults take a tenth of its time. It has no effect on a system without large pages.
    """
    library = ctypes.CDLL(None)
    if not all(hasattr(library, name) for name in ("mallopt", "sbrk", "madvise")):
        return

    library.sbrk.restype = library.malloc.restype = ctypes.c_void_p
    keep_freed_memory()
    library.mallopt(_ARENA_MAX, 1)

    # Allocating and freeing this makes the heap grow; the space at its end is used later.
    start = library.sbrk(0)
    library.mallopt(_TOP_PAD, _IN_LARGE_PAGES)
    library.free(ctypes.c_void_p(library.malloc(ctypes.c_size_t(_REQUEST))))
    library.mallopt(_TOP_PAD, _STEP)
    end = library.sbrk(0)
    start += -start % mmap.PAGESIZE
    if start < end:
        library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _HUGE_PAGES)
