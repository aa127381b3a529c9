"""Means and deviations of measures by topic, in the format of trec_eval -Z.

A line is `topic measure mean deviation`.
"""

from __future__ import annotations

import math

from runs.errors import FileReport
from runs.formats.scanning.pieces import Opener

_COLUMNS = 4


def read_zscores(open_file: Opener) -> dict[tuple[bytes, str], tuple[float, float]]:
    """Return mean and standard deviation by topic_id and measure.

    Raise InvalidFile with every invalid line.
    """
    report, zscores = FileReport(), dict[tuple[bytes, str], tuple[float, float]]()

    for number, line in enumerate(open_file().read().split(b"\n"), 1):
        columns = line.split()
        if not columns:
            continue

        if len(columns) < _COLUMNS:
            report.problem(
                number, "too_few_columns", "a line needs 4 columns: topic measure mean deviation"
            )
            continue

        mean, deviation = (_number(column) for column in columns[2:_COLUMNS])
        if math.isnan(mean + deviation) or deviation < 0:
            report.problem(
                number,
                "bad_score",
                "mean and deviation are finite numbers, the deviation 0 or more",
            )

        zscores[columns[0], columns[1].decode(errors="replace")] = mean, deviation

    report.check()
    return zscores


def _number(text: bytes) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
