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
    """Return a report as it is stored: `warnings` with one entry for each kind, `counts` with all of them by code."""
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
    """Return a stored report. Reports of earlier releases have an entry for each of the first 50 lines, which are
    grouped by kind."""
    if all("count" in entry for entry in stored.get("warnings", [])):
        return cast(FileReport, stored)
    kinds: dict[str, Any] = {}
    for entry in stored["warnings"]:
        count = stored["counts"].get(entry["code"], 1)
        kind = kinds.setdefault(entry["code"], {**entry, "count": count, "lines": []})
        if entry["line"] and len(kind["lines"]) < LINES_NAMED:
            kind["lines"].append(entry["line"])
    return FileReport(warnings=list(kinds.values()), counts=stored["counts"])


def warn_of_outside(report: errors.FileReport, topics: Iterable[str], listed: list[str]) -> None:
    """Warn of the topics of a file that its collection does not list, in more detail if it lists none of them."""
    found, there = list(topics), set(listed)
    outside = [topic for topic in found if topic not in there]
    if (
        not warn_where_none_matches(report, found, listed, "in the collection's topic list")
        and outside
    ):
        say = f"{len(outside):,} topics not in the collection's topic list: {named(outside)}{_alike(outside, there)}"
        report.warning(0, "topic_outside", say, len(outside))


def warn_where_none_matches(
    report: errors.FileReport, topics: list[str], known: list[str], where: str
) -> bool:
    """Warn if a file has none of the known topics, and return whether this is so."""
    there = set(known)
    if not topics or not there or not there.isdisjoint(topics):
        return False
    say = (
        f"none of the file's {len(topics):,} topics is {where}, where ids are like {known[0][:100]!r}; "
        f"here they are like {topics[0][:100]!r}{_alike(topics, there)}"
    )
    report.warning(0, "no_topic_matches", say, len(topics))
    return True


def named(topics: list[str]) -> str:
    """Return the first of some topics as part of a sentence."""
    return ", ".join(topics[:_TOPICS_NAMED]) + (", ..." if len(topics) > _TOPICS_NAMED else "")


def _alike(outside: list[str], listed: set[str]) -> str:
    """Return the topics that differ from a listed one only in case or leading zeros."""
    known = {_plain(topic): topic for topic in listed}
    for topic in outside:
        if other := known.get(_plain(topic)):
            return f"; {topic!r} differs from {other!r} in case or leading zeros only"
    return ""


def _plain(topic: str) -> str:
    return topic.casefold().lstrip("0")
