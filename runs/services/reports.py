"""A file's report as stored and answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from metrics.engine.errors import FileReport

_TOPICS_NAMED = 10


def report_as_json(report: FileReport) -> dict[str, Any]:
    """`warnings` with the first 50 in full, `counts` with all of them by code."""
    return {"warnings": [asdict(entry) for entry in report.warnings], "counts": report.counts}


def warn_of_outside(report: FileReport, topics: Iterable[str], listed: set[str]) -> None:
    """Name the topics of a file that its collection does not list."""
    outside = [topic for topic in topics if topic not in listed]
    warn_of_topics(report, "topic_outside", outside, "not in the collection's topic list")


def warn_of_topics(report: FileReport, code: str, topics: list[str], say: str) -> None:
    """One warning for all of these topics, the first of them named."""
    if topics:
        named = ", ".join(topics[:_TOPICS_NAMED]) + (", ..." if len(topics) > _TOPICS_NAMED else "")
        report.warning(0, code, f"{len(topics)} topics {say}: {named}", len(topics))
