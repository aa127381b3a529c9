"""Start `evalhub eval` with what must be settled before NumPy and the engine are loaded, and end it."""

from __future__ import annotations

import gc
import os
import sys

from runs.formats.scanning.memory import use_large_pages

# Modules make objects that stay: looking through them for garbage takes a tenth of the time of a
# small file.
_OBJECTS = 50_000


def main(argv: list[str]) -> None:
    """Run the command, and end the process."""
    # No measure multiplies matrices, and the threads that OpenBLAS starts when it is loaded take 20
    # to 40 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_OBJECTS)
    use_large_pages()

    try:
        from evalhub.local import eval as command

        command.main(argv)
    except SystemExit as stop:
        # Python would first take apart all modules and free what they hold, which takes a tenth of
        # the time.
        sys.stderr.flush()
        os._exit(int(stop.code or 0))
