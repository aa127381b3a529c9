"""make calibrate: how often every test finds something where nothing is, and how often intervals hold the truth.

`python -m tests.benchmarks.calibrate [collections] [resamples]`; the figures of docs/statistics.md are those of 10,000
collections at B = 9,999. The tests of the suite run the same simulation smaller.
"""

from __future__ import annotations

import sys

from tests.engine.calibration import print_table

if __name__ == "__main__":
    collections, resamples = [*map(int, sys.argv[1:]), 10_000, 9_999][:2]
    print_table(print, collections, resamples)
