"""What the first request of each kind goes through does not grow unnoticed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.walk import REQUESTS

pytestmark = pytest.mark.slow

# The most calls of own functions, and the most own files. Lower them when code is taken out.
LIMITS = {
    # With the look for another run with the same file, and replicates, here and below.
    "upload (API)": (377, 65),
    # With the look for measures of value tables, selected topics, and the stored keys of attributes,
    # here and below.
    "board (API)": (440, 54),
    # With the lines that install and use the client of this server, and whether runs have a ranking.
    "board (page)": (1125, 88),
    # With a letter for each baseline, and the look for groups of topics, here and below.
    "comparison (API)": (905, 77),
    "comparison (page)": (1978, 101),
    # With the titles of topics on the marks of its chart, the run with the same ranking, and the look
    # for selected topics.
    "run (page)": (2277, 93),
    "campaign entry (API)": (499, 74),
}


def test_a_first_request_goes_through_no_more_than_it_did() -> None:
    command = [sys.executable, "-m", "tests.walk"]
    root = Path(__file__).resolve().parent.parent
    output = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout

    counts = {
        name: (int(calls), int(files))
        for name, calls, files in re.findall(r"(.+?\)) +(\d+) calls +(\d+) files", output)
    }

    assert counts.keys() == LIMITS.keys() == REQUESTS.keys()
    assert [
        f"{name}: {counts[name]}, at most {limits}"
        for name, limits in LIMITS.items()
        if counts[name][0] > limits[0] or counts[name][1] > limits[1]
    ] == []
