"""A file's report as stored and answered."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from metrics.engine.errors import FileReport


def report_as_json(report: FileReport) -> dict[str, Any]:
    """`warnings` with the first 50 in full, `counts` with all of them by code."""
    return {"warnings": [asdict(entry) for entry in report.warnings], "counts": report.counts}
