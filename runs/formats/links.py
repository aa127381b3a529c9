"""Addresses that belong to a run: what they may be, and those in an ir_metadata header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from runs.errors import FileReport, Unprocessable

KINDS = ("code", "model", "paper", "data")
MAX_URL, MAX_COMMIT, MAX_TITLE, MAX_LINKS = 2_000, 64, 200, 20
_ODD = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029<>\"\\^`{|}\ud800-\udfff]")
_COMMIT = re.compile(r"[A-Za-z0-9._/-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
# What stands before the identifiers of a publication.
_PUBLISHED = {
    "doi": "https://doi.org/",
    "arxiv": "https://arxiv.org/abs/",
    "dblp": "https://dblp.org/rec/",
    "url": "",
}


@dataclass(frozen=True)
class Link:
    """An address with its kind, perhaps a commit of the code there, and a title."""

    kind: str
    url: str
    commit: str = ""
    title: str = ""


def check_url(url: str, pointer: str) -> str:
    """Return an address that a browser may be led to. Raise Unprocessable (`bad_link`) for any other."""

    def bad(why: str) -> Unprocessable:
        return Unprocessable(f"{url[:80]!r}: {why}", code="bad_link", pointer=pointer)

    if len(url) > MAX_URL:
        raise bad(f"an address has at most {MAX_URL:,} characters")
    if odd := _ODD.search(url):
        raise bad(f"character {odd.start() + 1} cannot stand in an address; write it with %")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise bad("this cannot be read as an address") from error
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise bad("an address begins with https:// or http:// and a host")
    if parts.username is not None or parts.password is not None:
        raise bad("an address with a user name or password is not kept; leave them out")
    return url


def check_links(links: Iterable[Link]) -> list[Link]:
    """Return links without repetitions. Raise Unprocessable (`bad_link`) for one that cannot be kept, and for too
    many."""
    found = list(dict.fromkeys(links))
    if len(found) > MAX_LINKS:
        message = f"{len(found)} links; a run has at most {MAX_LINKS}"
        raise Unprocessable(message, code="bad_link", pointer="/links")
    for number, link in enumerate(found):
        check_url(link.url, f"/links/{number}/url")
        if link.commit and not _COMMIT.fullmatch(link.commit):
            message = f"{link.commit[:80]!r}: a commit has up to 64 letters, digits, '.', '_', '/' and '-'"
            raise Unprocessable(message, code="bad_link", pointer=f"/links/{number}/commit")
        if len(link.title) > MAX_TITLE or _CONTROL.search(link.title):
            message = f"a title has at most {MAX_TITLE} characters, without control characters"
            raise Unprocessable(message, code="bad_link", pointer=f"/links/{number}/title")
    return found


def with_header_links(
    header: Mapping[str, Any] | None, given: list[Link], report: FileReport
) -> list[Link]:
    """Return the given links and those of the header of other kinds; the report names what was left out."""
    kinds = {link.kind for link in given}
    found = list(given)
    for name, link in header_links(header or {}):
        try:
            (checked,) = check_links([link])
        except Unprocessable as error:
            message = f"{name} of the header is left out: {error.message}"
            report.warning(0, "bad_ir_metadata", message, kind=name)
            continue
        if checked.kind not in kinds:
            found.append(checked)
        elif checked.url not in (one.url for one in given):
            message = f"{name} of the file's header is left out: the request has {checked.kind} links, which count"
            report.warning(0, "header_overridden", message, kind=name)
    return found[:MAX_LINKS]


def header_links(header: Mapping[str, Any]) -> list[tuple[str, Link]]:
    """Return the links of an ir_metadata header with their keys there: the repository and publications."""
    found = []
    source = _inside(header, "implementation", "source")
    if repository := _text(source.get("repository")):
        commit = _text(source.get("commit"))
        found.append(("implementation.source.repository", Link("code", repository, commit)))
    publication = _inside(header, "research goal", "publication")
    for key, before in _PUBLISHED.items():
        if text := _text(publication.get(key)):
            url = text if _is_address(text) else f"{before}{text.removeprefix(f'{key}:')}"
            found.append((f"research goal.publication.{key}", Link("paper", url)))
    return found


def header_baselines(header: Mapping[str, Any] | None) -> list[str]:
    """Return the tags of the runs that an ir_metadata header calls its baseline, 10 at most."""
    named = _inside(header or {}, "research goal", "evaluation").get("baseline")
    tags = named if isinstance(named, list) else [named]
    return list(dict.fromkeys(text for tag in tags if (text := _text(tag))))[:10]


def _is_address(text: str) -> bool:
    """Return whether a text begins as an address does."""
    return text.lower().startswith(("http://", "https://"))


def _inside(header: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    value: Any = header
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return value.strip() if isinstance(value, str) else ""
