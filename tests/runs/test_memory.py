"""What a command asks of the C library: large pages, and one heap for all threads."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from runs.formats.scanning.memory import use_large_pages

ROOT = Path(__file__).resolve().parent.parent.parent
# Pages that may be large have the flag "hg"; a thread with a heap of its own would have it in
# memory without a name.
_ASKED = """
import ctypes, threading
from runs.formats.scanning.memory import use_large_pages
use_large_pages()
def allocate():
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    print(library.malloc(ctypes.c_size_t(4 * 1024 * 1024)) + 2 * 1024 * 1024)
allocate()
thread = threading.Thread(target=allocate)
thread.start()
thread.join()
print(open("/proc/self/smaps").read())
"""
# With the number of arrays of 4 MB; a curve of 250 topics has ten.
_SERVED = """
import resource, sys
import numpy as np
from evalhub import cli

def served(argv):
    faults = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        [np.ones(500_000) for _ in range(arrays)]
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    print(faults[0], max(faults[1:]))

arrays = int(sys.argv[1])
sys.modules["served"] = sys.modules["__main__"]
cli._SERVICE = "served:served"
sys.argv = ["evalhub", "worker"]
cli.main()
"""


def _mappings(smaps: str) -> list[tuple[range, set[str]]]:
    """Return the places of every mapping, and its flags."""
    mappings: list[tuple[range, set[str]]] = []
    places = range(0)
    for line in smaps.strip().splitlines():
        first, *rest = line.split()
        if first == "VmFlags:":
            mappings.append((places, set(rest)))
        elif "-" in first and not first.endswith(":"):
            start, end = first.split("-")
            places = range(int(start, 16), int(end, 16))
    return mappings


@pytest.mark.skipif(sys.platform != "linux", reason="the pages of Linux")
def test_what_is_allocated_next_has_large_pages_in_every_thread() -> None:
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("this system has no large pages")
    done = subprocess.run(
        [sys.executable, "-c", _ASKED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    own, threads, smaps = done.stdout.split("\n", 2)
    large = [places for places, flags in _mappings(smaps) if "hg" in flags]
    assert sum(map(len, large)) >= 32 * 1024**2
    for middle in (int(own), int(threads)):
        assert any(middle in places for places in large)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of Linux")
@pytest.mark.parametrize(
    ("arrays", "most"), [(10, 0.1), (25, 0.6)], ids=["40 MB", "100 MB, of which 64 are kept"]
)
def test_a_server_uses_what_it_has_freed(arrays: int, most: float) -> None:
    command = [sys.executable, "-c", _SERVED, str(arrays)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, later = map(int, done.stdout.split())
    assert first > 100
    assert later < most * first


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise AssertionError(args)

    monkeypatch.setattr(
        ctypes,
        "CDLL",
        lambda name: SimpleNamespace(sbrk=fail, madvise=fail, malloc=fail, free=fail),
    )
    use_large_pages()
