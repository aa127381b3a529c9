"""make calibrate: how often every test finds something where nothing is, and how often intervals hold the truth; in how
many studies of parameters that mean nothing any of them seems to matter; how often sessions of
equally good systems seem to differ; how often runs that differ by a margin seem to differ by less;
and all of it for real runs.

`python -m tests.benchmarks.calibrate [collections] [resamples]`; the figures of docs/statistics.md
are those of 10,000 collections at B = 9,999. The tests of the suite run the same simulation
smaller. Where EVALHUB_REAL_DATA is set, the score matrices of real tracks follow, 400 collections
of each.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import numpy as np

from tests.engine.calibration import print_table
from tests.engine.crossed import print_crossed, print_mean_coverage
from tests.engine.detectable import print_detectable
from tests.engine.margins import print_margins
from tests.engine.order_intervals import print_order_intervals
from tests.engine.real_runs import (
    print_levels,
    print_real_baselines,
    print_real_intervals,
    print_real_tests,
)
from tests.engine.studies import print_dealt, print_explanations
from tests.engine.weighted_intervals import print_weighted_intervals

STUDIES = 1_000


def _read(path: Path) -> np.ndarray:
    with path.open() as file:
        _, *rows = csv.reader(file)
    return np.array(rows, np.float64).T


if __name__ == "__main__":
    collections, resamples = [*map(int, sys.argv[1:]), 10_000, 9_999][:2]
    print_table(print, collections, resamples)
    print_explanations(print, STUDIES)
    print_crossed(print, min(collections, 2 * STUDIES))
    print_mean_coverage(print, min(collections, 2 * STUDIES))
    print_weighted_intervals(print, min(collections, 4 * STUDIES))
    folder = os.environ.get("EVALHUB_REAL_DATA", "")
    paths = sorted(Path(folder, "score-matrices-urbano2019").glob("*.csv")) if folder else []
    tracks, real_collections = {path.stem: _read(path) for path in paths}, min(collections, 400)
    print_margins(print, collections, tracks, real_collections)
    if tracks:
        print_levels(print, tracks, real_collections)
        print_dealt(print, tracks, 200)
        print_real_tests(print, tracks, real_collections, resamples)
        print_real_baselines(print, tracks, real_collections, resamples)
        print_real_intervals(print, tracks, real_collections)
        print_order_intervals(print, tracks, min(collections, 200))
        print_detectable(print, tracks, real_collections)
