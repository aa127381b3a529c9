"""Start `evalhub eval` with settings that NumPy and the engine need at import, and end it."""

from __future__ import annotations

import gc
import os
import sys

from runs.formats.scanning.memory import use_large_pages

# Objects of modules stay: to look for garbage among them takes a tenth of the time of a small file.
_OBJECTS = 50_000


def main(argv: list[str]) -> None:
    """Run the command, and end the process."""
    # No measure multiplies matrices, and the threads that OpenBLAS starts at import take 20 to 40 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_OBJECTS)
    use_large_pages()

    try:
        from evalhub.local import eval as command

        command.main(argv)
    except SystemExit as stop:
        # Without this, Python frees all modules and their objects, which takes a tenth of the time.
        sys.stderr.flush()
        os._exit(int(stop.code or 0))
