"""A file's report, as it is stored and returned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NotRequired, TypedDict, cast

from runs import errors
from runs.errors import LINES_NAMED

_TOPICS_NAMED = 10


class FileWarning(TypedDict):
    """All irregularities of one kind in a file."""

    line: Annotated[int, "the first one; 0 where it concerns the whole file"]
    code: str
    message: Annotated[str, "of the first one"]
    count: int
    lines: Annotated[list[int], "the first ten"]


class FileReport(TypedDict):
    """The irregularities in a file; empty if there was no file."""

    warnings: NotRequired[list[FileWarning]]
    counts: NotRequired[Annotated[dict[str, int], "by code"]]


def report_as_json(report: errors.FileReport) -> FileReport:
    """Return a report as it is stored.

    `warnings` has one entry for each kind of warning, `counts` their numbers by code.
    """
    entries = [
        FileWarning(
            line=entry.line,
            code=entry.code,
            message=entry.message,
            count=entry.count,
            lines=sorted(entry.lines),
        )
        for entry in report.warnings
    ]
    return FileReport(warnings=entries, counts=report.counts)


def grouped(stored: dict[str, Any]) -> FileReport:
    """Return a stored report with one warning for each kind.

    Reports of earlier releases have an entry for each of the first 50 lines.
    """
    if all("count" in entry for entry in stored.get("warnings", [])):
        return cast(FileReport, stored)

    kinds: dict[str, Any] = {}
    for entry in stored["warnings"]:
        count = stored["counts"].get(entry["code"], 1)
        kind = kinds.setdefault(entry["code"], {**entry, "count": count, "lines": []})
        if entry["line"] and len(kind["lines"]) < LINES_NAMED:
            kind["lines"].append(entry["line"])

    return FileReport(warnings=list(kinds.values()), counts=stored["counts"])


def warn_of_outside(
    report: errors.FileReport,
    topics: Iterable[str],
    listed: list[str],
    where: str = "in the collection's topic list",
) -> None:
    """Warn of the topics of a file that are not listed."""
    topics = list(topics)
    if warn_where_none_matches(report, topics, listed, where):
        return

    known = set(listed)
    outside = [topic for topic in topics if topic not in known]
    if outside:
        message = (
            f"{len(outside):,} topics not {where}: "
            f"{list_topics(outside)}{_explain_difference(outside, known)}"
        )
        report.warning(0, "topic_outside", message, len(outside))


def warn_where_none_matches(
    report: errors.FileReport, topics: list[str], listed: list[str], where: str
) -> bool:
    """Warn if none of a file's topics is listed, and return whether this is so."""
    known = set(listed)
    if not topics or not known or not known.isdisjoint(topics):
        return False

    message = (
        f"none of the file's {len(topics):,} topics is {where}, "
        f"where ids are like {listed[0][:100]!r}; "
        f"here they are like {topics[0][:100]!r}{_explain_difference(topics, known)}"
    )
    report.warning(0, "no_topic_matches", message, len(topics))
    return True


def list_topics(topics: list[str]) -> str:
    """Return the first of some topics as part of a sentence."""
    return ", ".join(topics[:_TOPICS_NAMED]) + (", ..." if len(topics) > _TOPICS_NAMED else "")


def _explain_difference(topics: list[str], known: set[str]) -> str:
    """Name the first topic that differs from a known one only in case or leading zeros."""
    known_by_form = {_normalize(topic): topic for topic in known}
    for topic in topics:
        if similar := known_by_form.get(_normalize(topic)):
            return f"; {topic!r} differs from {similar!r} in case or leading zeros only"

    return ""


def _normalize(topic: str) -> str:
    return topic.casefold().lstrip("0")
