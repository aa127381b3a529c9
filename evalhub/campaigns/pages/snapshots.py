"""The permanent address of a snapshot: a page for people, and its forms for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from evalhub.campaigns.exports.citation_data import cited_of
from evalhub.campaigns.exports.citations import FORMS
from evalhub.campaigns.questions.snapshots import (
    ARCHIVE,
    ARCHIVE_TYPE,
    archive_of,
    as_file,
    site_of,
    visible_snapshot,
)
from evalhub.campaigns.services.manifest import counts_of, shown_manifest
from evalhub.campaigns.services.notifications import time_text
from evalhub.campaigns.services.phases import late_notice_between
from metrics.exports.boards.words import best_of_runs
from runs.models import Snapshot
from runs.web.views import page

# Rows of a table on the page; the archive has all of them.
_MOST_ROWS = 200
_MANIFEST = "json"


def _manifest(snapshot: Snapshot, site: str) -> bytes:
    """Return the manifest that `sha256` belongs to, or the rest of it after a withdrawal."""
    if snapshot.withdrawn_at is None:
        return snapshot.manifest.encode()
    return json.dumps(shown_manifest(snapshot), ensure_ascii=False, indent=1).encode()


def _archive(snapshot: Snapshot, site: str) -> bytes:
    return archive_of(snapshot)


def _citing(form: str) -> Callable[[Snapshot, str], bytes]:
    return lambda snapshot, site: FORMS[form][0](cited_of(snapshot, site)).encode()


# The ending of an address: what makes the file, and its content type.
FILES: Mapping[str, tuple[Callable[[Snapshot, str], bytes], str]] = {
    _MANIFEST: (_manifest, "application/json"),
    ARCHIVE: (_archive, ARCHIVE_TYPE),
    **{form: (_citing(form), kind) for form, (_, kind) in FORMS.items()},
}


@dataclass(frozen=True)
class SnapshotRow:
    """A row of a table: an entry, and its means as texts with the names of their measures."""

    rank: str
    marked: bool
    team: str
    tag: str
    note: str
    means: list[tuple[str, str]]


@dataclass(frozen=True)
class SnapshotPhase:
    """A phase of a snapshot as its page shows it.

    `best` says which entries can be the best, `more` counts the rows that are left out, and `times`
    says how the phase was extended and paused.
    """

    content: Mapping[str, Any]
    rows: list[SnapshotRow]
    best: str
    more: int
    times: list[str]


@page
def snapshot_page(request: HttpRequest, snapshot: str) -> HttpResponse:
    """Show a snapshot, or answer with the form that a program asks for in `Accept`."""
    visible = visible_snapshot(request, snapshot)
    kinds = {kind.partition(";")[0]: form for form, (_, kind) in FILES.items()}
    preferred = request.get_preferred_type(["text/html", *kinds])
    if preferred in kinds:
        response = _file(request, visible, kinds[preferred])
    else:
        site = site_of(request)
        manifest = shown_manifest(visible)
        context = {
            "snapshot": visible,
            "after": visible.superseded_by.order_by("number").first(),
            "cited": cited_of(visible, site),
            "bibtex": FORMS["bib"][0](cited_of(visible, site)),
            "counts": counts_of(manifest),
            "manifest": manifest,
            "phases": [
                _snapshot_phase(phase, manifest["statistics"]["alpha"])
                for phase in manifest["phases"]
            ],
            "forms": list(FORMS),
        }
        response = render(request, "campaigns/snapshot.html", context)

    patch_vary_headers(response, ("Accept",))

    return response


@page
def snapshot_file(request: HttpRequest, snapshot: str, ending: str) -> HttpResponse:
    """Answer with a snapshot in one of its forms."""
    return _file(request, visible_snapshot(request, snapshot), ending)


def _file(request: HttpRequest, snapshot: Snapshot, form: str) -> HttpResponse:
    make, kind = FILES[form]
    response = as_file(snapshot, make(snapshot, site_of(request)), form, kind)
    if form == _MANIFEST and snapshot.withdrawn_at is None:
        response["X-SHA256"] = snapshot.sha256
    return response


def _snapshot_phase(phase: Mapping[str, Any], alpha: float) -> SnapshotPhase:
    evaluated = [entry for entry in phase["entries"] if "means" in entry]
    primary = phase["measures"][0]
    ranked = [entry for entry in evaluated if entry["rank"] is not None]
    best = sorted(ranked, key=lambda entry: (entry["rank"], entry["number"]))
    without_rank = [entry for entry in evaluated if entry["rank"] is None]
    means = [(entry["means"][primary]["mean"], entry["number"], entry) for entry in without_rank]
    unranked = [entry for *_, entry in sorted(means, key=lambda item: (-(item[0] or 0), item[1]))]
    rows = [*best, *unranked]
    # Snapshots of earlier versions do not have it.
    best_names = [entry["tag"] for entry in best if entry.get("in_best_set")]
    marks = 0 < len(best_names) < len(ranked)
    table_rows = [_row(entry, phase["measures"], marks) for entry in rows[:_MOST_ROWS]]
    sentence = best_of_runs(best_names, len(ranked), alpha) if best_names else ""

    return SnapshotPhase(
        phase, table_rows, sentence, max(0, len(rows) - _MOST_ROWS), list(_times(phase))
    )


def _times(phase: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each extension and pause."""
    for change in phase["extensions"]:
        old, new, announced = (
            datetime.fromisoformat(change[name]) for name in ("old", "new", "announced_at")
        )
        addressee = f" for {change['team']}" if change["team"] else ""
        values_seen = change.get("values_seen_since")
        knowledge = (
            f", when organisers had read values since {time_text(datetime.fromisoformat(values_seen))}"
            if values_seen
            else ""
        )
        notice = late_notice_between(announced, old) or "announced in time"
        yield f"Extended{addressee} from {time_text(old)} to {time_text(new)}, {notice}{knowledge}: {change['reason']}"

    for change in phase.get("pauses", ()):
        until = f" to {time_text(datetime.fromisoformat(change['to']))}" if change["to"] else ""
        yield f"Paused from {time_text(datetime.fromisoformat(change['from']))}{until}: {change['reason']}"


def _row(entry: Mapping[str, Any], measures: list[str], marks: bool) -> SnapshotRow:
    role = "" if entry["role"] == "competing" else entry["label"] or entry["role"].replace("_", " ")
    note = ", ".join(part for part in (role, "late" if entry["late"] else "") if part)
    means = [(name, entry["means"][name]["mean"]) for name in measures]

    return SnapshotRow(
        str(entry["rank"] or "–"),
        marks and bool(entry.get("in_best_set")),
        entry["team"]["name"] if entry["team"] else "",
        entry["tag"],
        note,
        [(name, "–" if mean is None else f"{mean:.4f}") for name, mean in means],
    )
