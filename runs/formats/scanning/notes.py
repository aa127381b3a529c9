"""The notes of a scan on a row.

They have a module of their own because kernels are compiled again when their imports change.
"""

from __future__ import annotations

# The notes. A row without one is valid.
FEW, EXTRA, BAD_NUMBER, SLOW_NUMBER, FRACTION = 1, 2, 4, 8, 16
CONTROL, HASH, LONG_ID, LONG_LINE = 32, 64, 128, 256
NEW_TOPIC, NEW_LABEL, NO_RANK, EXTRA_NUMBER = 512, 1024, 2048, 4096
# The column that a format lacks.
ABSENT = 8
# Ranks are smaller than this.
LARGEST_RANK = 10.0**15
