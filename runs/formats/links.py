"""Links of a run: their rules, and those in an ir_metadata header."""

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
# The addresses of publications by the kind of their identifiers, without the identifier.
_PUBLISHED = {
    "doi": "https://doi.org/",
    "arxiv": "https://arxiv.org/abs/",
    "dblp": "https://dblp.org/rec/",
    "url": "",
}


@dataclass(frozen=True)
class Link:
    """An address with its kind and possibly a commit of the code there, and a title."""

    kind: str
    url: str
    commit: str = ""
    title: str = ""


def check_url(url: str, pointer: str) -> str:
    """Return an address that is safe to link to. Raise Unprocessable (`bad_link`) for others."""

    def bad_link(reason: str) -> Unprocessable:
        return Unprocessable(f"{url[:80]!r}: {reason}", code="bad_link", pointer=pointer)

    if len(url) > MAX_URL:
        raise bad_link(f"an address has at most {MAX_URL:,} characters")
    if forbidden := _ODD.search(url):
        raise bad_link(
            f"character {forbidden.start() + 1} cannot stand in an address; write it with %"
        )

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise bad_link("this cannot be read as an address") from error

    if parts.scheme.lower() not in ("http", "https") or not host:
        raise bad_link("an address begins with https:// or http:// and a host")
    if parts.username is not None or parts.password is not None:
        raise bad_link("an address with a user name or password is not kept; leave them out")

    return url


def check_links(links: Iterable[Link]) -> list[Link]:
    """Return links without repetitions.

    Raise Unprocessable (`bad_link`) for one that is not permitted, and for too many.
    """
    distinct = list(dict.fromkeys(links))
    if len(distinct) > MAX_LINKS:
        message = f"{len(distinct)} links; a run has at most {MAX_LINKS}"
        raise Unprocessable(message, code="bad_link", pointer="/links")

    for number, link in enumerate(distinct):
        check_url(link.url, f"/links/{number}/url")
        if link.commit and not _COMMIT.fullmatch(link.commit):
            message = (
                f"{link.commit[:80]!r}: "
                "a commit has up to 64 letters, digits, '.', '_', '/' and '-'"
            )
            raise Unprocessable(message, code="bad_link", pointer=f"/links/{number}/commit")

        if len(link.title) > MAX_TITLE or _CONTROL.search(link.title):
            message = f"a title has at most {MAX_TITLE} characters, without control characters"
            raise Unprocessable(message, code="bad_link", pointer=f"/links/{number}/title")

    return distinct


def with_header_links(
    header: Mapping[str, Any] | None, requested: list[Link], report: FileReport
) -> list[Link]:
    """Return the requested links, and links of the header of other kinds.

    The report names links that were left out.
    """
    kinds = {link.kind for link in requested}
    merged = list(requested)

    for name, link in header_links(header or {}):
        try:
            (checked,) = check_links([link])
        except Unprocessable as error:
            message = f"{name} of the header is left out: {error.message}"
            report.warning(0, "bad_ir_metadata", message, kind=name)
            continue

        if checked.kind not in kinds:
            merged.append(checked)
        elif checked.url not in (request_link.url for request_link in requested):
            message = (
                f"{name} of the file's header is left out: "
                f"the request has {checked.kind} links, which count"
            )
            report.warning(0, "header_overridden", message, kind=name)

    return merged[:MAX_LINKS]


def header_links(header: Mapping[str, Any]) -> list[tuple[str, Link]]:
    """Return the repository and publications in an ir_metadata header, with their keys."""
    links = []
    source = _inside(header, "implementation", "source")
    if repository := _text(source.get("repository")):
        commit = _text(source.get("commit"))
        links.append(("implementation.source.repository", Link("code", repository, commit)))

    publication = _inside(header, "research goal", "publication")
    for key, prefix in _PUBLISHED.items():
        if text := _text(publication.get(key)):
            url = text if _is_address(text) else f"{prefix}{text.removeprefix(f'{key}:')}"
            links.append((f"research goal.publication.{key}", Link("paper", url)))

    return links


def header_baselines(header: Mapping[str, Any] | None) -> list[str]:
    """Return the tags of at most 10 runs that an ir_metadata header calls its baseline."""
    baseline = _inside(header or {}, "research goal", "evaluation").get("baseline")
    tags = baseline if isinstance(baseline, list) else [baseline]
    return list(dict.fromkeys(text for tag in tags if (text := _text(tag))))[:10]


def _is_address(text: str) -> bool:
    """Return whether a text begins like an address."""
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
