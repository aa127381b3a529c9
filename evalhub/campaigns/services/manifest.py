"""The content of a snapshot: everything that a reader of a paper needs to check its numbers, and nobody's address.

It has no time of its own making, no key of a database and no name of an account: the same results
have the same content on every server.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from evalhub.campaigns.services.official_board import TestedPlace, placed_entries, tiers_of
from evalhub.campaigns.services.phases import pauses_of
from evalhub.campaigns.services.pseudonyms import ShownName, hidden_tag, shown_names
from evalhub.campaigns.services.reference_sets import (
    ALL,
    EntryValues,
    ReferenceSet,
    read_entry_values,
    reference_sets,
    with_hidden_names,
)
from evalhub.campaigns.services.results import (
    CONFIDENCE,
    OwnEntry,
    described_entries,
    phase_measures,
)
from metrics.engine import ENGINE_VERSION
from metrics.engine.significance.families import USUAL_RULE, USUAL_TEST
from metrics.services.boards.mean_intervals import MEAN_INTERVAL_METHOD
from runs.models import Campaign, Disclosure, Entry, Phase, Qrels, Snapshot
from runs.services import clock
from runs.services.collections.reduced_qrels import reasons_of_exclusion
from runs.services.storage.files import stored_bytes

SCHEMA = "evalhub-snapshot-1"
TIE_RULE = "score descending, then document id descending by bytes"
# Whether the files of runs are part of a snapshot.
INCLUDED, NOT_RELEASED, TOO_LARGE = "included", "not_released", "too_large"
RUN_FILES = (INCLUDED, NOT_RELEASED, TOO_LARGE)
# What an evaluated entry has beside the facts of how it was entered.
_OF_VALUES = (
    "rank", "tier", "in_best_set", "in_reference", "judged_at_10", "judged_depth", "means",
)  # fmt: skip


@dataclass(frozen=True)
class FrozenPhase:
    """The results of a phase at one moment: the evaluated entries with what is told of each, in the order of the rows,
    their ranks and tiers by row, the reference sets, whether the files of runs come with them,
    and the names of teams by their keys: pseudonyms of those that are hidden then."""

    read: EntryValues
    described: list[OwnEntry]
    places: list[tuple[int, int | None]]
    tiers: dict[int, TestedPlace]
    sets: list[ReferenceSet]
    run_files: str
    names: dict[int, ShownName]

    @property
    def phase(self) -> Phase:
        return self.read.phase


def freeze_phase(phase: Phase, qrels: Qrels, stood: tuple[str, ...] | None = None) -> FrozenPhase:
    """Return the results of a phase under these judgements. `stood` has the ids of the entries of the official
    leaderboard where a release has fixed them: those that were disqualified since leave it, and
    nothing takes their place, as on the page."""
    now = clock.database_now()
    read = read_entry_values(phase=phase, qrels=qrels, measures=phase_measures(phase))
    read = with_hidden_names(read, None, now)
    names = shown_names(
        phase, phase.campaign.participations.select_related("team", "campaign"), None, False, now
    )
    sets = reference_sets(read, sees_all=True)
    described = described_entries(read, sets, list(range(len(read.entries))))
    places = placed_entries(read, stood)

    return FrozenPhase(
        read, described, places, tiers_of(read, places), sets, run_files_of(phase, names), names
    )


def manifest_of(
    campaign: Campaign, frozen: Iterable[FrozenPhase], *, whole: bool, label: str
) -> dict[str, Any]:
    """Return the content of a snapshot as JSON types, still without its files."""
    agreements = campaign.agreements.order_by("sha256").values("title", "sha256", "required_of")
    return {
        "schema": SCHEMA,
        "label": label,
        "covers": "campaign" if whole else "phase",
        "campaign": {
            "slug": campaign.slug,
            "name": campaign.name,
            "summary": campaign.summary,
            "organiser": {"slug": campaign.team.slug, "name": campaign.team.name},
            "guidelines_sha256": hashlib.sha256(campaign.guidelines.encode()).hexdigest(),
            "agreements": list(agreements),
        },
        "engine_version": ENGINE_VERSION,
        "tie_rule": TIE_RULE,
        "statistics": {
            "intervals": MEAN_INTERVAL_METHOD, "confidence": CONFIDENCE, "tiers": USUAL_TEST,
            "correction": USUAL_RULE.correction, "alpha": USUAL_RULE.alpha,
        },
        "phases": [_phase(one) for one in frozen],
    }  # fmt: skip


def run_files_of(phase: Phase, names: Mapping[int, ShownName]) -> str:
    """Return whether the files of runs are part of a snapshot: where they were released to everybody, and take no more
    of the store than EVALHUB_SNAPSHOT_RUNS_MB. Those of hidden teams have their tags inside."""
    to_all = {"done_at__isnull": False, "audience": Disclosure.PUBLIC, "with_run_files": True}
    public = phase.collection.disclosure == Disclosure.PUBLIC
    entries = phase.entries.filter(state=Entry.State.ENTERED).order_by("number")
    rows = list(entries.values_list("participation", "run__sha256"))
    hidden = any(team and names[team].hidden for team, _ in rows)
    if hidden or not public or not phase.releases.filter(**to_all).exists():
        return NOT_RELEASED

    size = 0

    for _, sha256 in rows:
        size += stored_bytes(sha256)
        if size > settings.EVALHUB_SNAPSHOT_RUN_BYTES:
            return TOO_LARGE

    return INCLUDED


def planned_run_files(phase: Phase) -> str:
    """Return the same of a snapshot that is still to be made."""
    teams = phase.campaign.participations.select_related("team", "campaign")
    return run_files_of(phase, shown_names(phase, teams, None, False, clock.database_now()))


def _phase(frozen: FrozenPhase) -> dict[str, Any]:
    phase, read = frozen.phase, frozen.read
    told = ("slug", "name", "description", "kind", "zone", "slots", "attempts_daily", "attempts_total", "selection",
            "chosen_max", "run_types", "must_answer_all")  # fmt: skip
    # Left out where there are none, so that snapshots without them keep their hash.
    rules: dict[str, Any] = {
        name: getattr(phase, name) for name in ("max_documents", "naming") if getattr(phase, name)
    }
    if phase.feedback != Phase.Feedback.NONE:
        rules["feedback"] = phase.feedback

    if paused := pauses_of(phase):
        rules["pauses"] = [
            {"from": instant(one.since), "to": instant(one.until), "reason": one.reason}
            for one in paused
        ]

    if phase.freeze_board_at:
        rules["freeze_board_at"] = instant(phase.freeze_board_at)
    if excluded := reasons_of_exclusion(phase.collection):
        rules["excluded_topics"] = [
            {"topic": topic, "reason": reason} for topic, reason in excluded.items()
        ]

    times = {
        name: instant(getattr(phase, name)) for name in ("opens_at", "closes_at", "late_closes_at")
    }

    return {
        **{name: getattr(phase, name) for name in told},
        **rules,
        **times,
        "form": [field for field in phase.form if field.get("public", True)],
        "extensions": [
            {
                "team": frozen.names[one.participation_id].slug if one.participation_id else None,
                "old": instant(one.old),
                "new": instant(one.new),
                "announced_at": instant(one.announced_at),
                "reason": one.reason,
                **(
                    {"values_seen_since": instant(one.values_seen_since)}
                    if one.values_seen_since
                    else {}
                ),
            }
            for one in phase.extensions.order_by("announced_at", "pk")
        ],
        "collection": _collection(phase, read.qrels),
        "measures": [measure.name for measure in read.measures],
        "reference": {
            "runs": ALL,
            "sets": [{"run_type": one.run_type, "runs": len(one.rows)} for one in frozen.sets],
        },
        "run_files": frozen.run_files,
        "releases": [
            {
                "audience": one.get_audience_display(),
                "done_at": instant(one.done_at),
                "qrels": one.qrels.version if one.qrels else None,
                "with_run_files": one.with_run_files,
                "note": one.note,
            }
            for one in phase.releases.filter(done_at__isnull=False)
            .select_related("qrels")
            .order_by("done_at")
        ],
        "entries": _entries(frozen),
    }


def _collection(phase: Phase, qrels: Qrels) -> dict[str, Any]:
    collection = phase.collection
    topics = collection.topics.order_by("position").values_list("topic_id", "title")
    listed = "".join(f"{topic}\t{' '.join(title.split())}\n" for topic, title in topics)

    return {
        "slug": collection.slug,
        "name": collection.name,
        "disclosure": collection.disclosure.label,
        "scores": collection.scores,
        "documents": collection.documents,
        # Of a line for each topic: its id, a tab, its title.
        "topics_sha256": hashlib.sha256(listed.encode()).hexdigest(),
        "qrels": {
            "version": qrels.version,
            "sha256": qrels.sha256,
            "bytes": qrels.size,
            "judgements": qrels.judgements,
            "topics": qrels.topics,
            "note": qrels.note,
        },
    }


def _entries(frozen: FrozenPhase) -> list[dict[str, Any]]:
    described = {one.entry.pk: one for one in frozen.described}
    ranks = dict(frozen.places)
    public = {field["key"] for field in frozen.phase.form if field.get("public", True)}
    rows = frozen.phase.entries.select_related("participation__team", "run").order_by("number")
    found = []

    for entry in rows:
        team, run = entry.participation, entry.run
        shown = frozen.names[team.pk] if team else None
        hidden, affiliation = bool(shown and shown.hidden), team.affiliation if team else ""
        told: dict[str, Any] = {
            "number": entry.number,
            "team": shown
            and {
                "slug": shown.slug,
                "name": shown.name,
                "affiliation": "" if hidden else affiliation,
            },
            "tag": hidden_tag(entry) if hidden else run.tag,
            "run": {
                "sha256": run.sha256,
                "bytes": run.size,
                "documents": run.documents,
                "topics": run.topics,
            },
            "arrived_at": instant(entry.arrived_at),
            "late": entry.late,
            "role": entry.role,
            "label": entry.label,
            "run_type": entry.run_type,
            "priority": entry.priority,
            "state": entry.state,
            "reason": entry.state_reason,
            "answers": {
                key: value for key, value in entry.answers.items() if key in public and not hidden
            },
            "description": "" if hidden else run.description,
        }
        if one := described.get(entry.pk):
            told |= _values(one, ranks.get(one.row), frozen.tiers.get(one.row))

        found.append(told)

    return found


def _values(one: OwnEntry, rank: int | None, tested: TestedPlace | None) -> dict[str, Any]:
    means: dict[str, Mapping[str, Any]] = {}
    for name, (mean, topics) in one.means.items():
        low, high = one.intervals.get(name, (None, None))
        means[name] = {"mean": mean, "topics": topics, "low": low, "high": high}

    return {
        "rank": rank,
        "tier": tested.tier if tested else None,
        "in_best_set": tested.in_best_set if tested else None,
        "in_reference": one.counts,
        "judged_at_10": one.judged,
        "judged_depth": one.depth,
        "means": means,
    }


def instant(value: datetime | None) -> str | None:
    """Return an instant as text in UTC, with microseconds whether it has any or not."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def counts_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return how many teams and entries a snapshot has, and how many of the entries are ranked."""
    entries = [entry for phase in manifest["phases"] for entry in phase["entries"]]
    teams = {entry["team"]["slug"] for entry in entries if entry["team"]}
    ranked = sum(entry.get("rank") is not None for entry in entries)
    return {"teams": len(teams), "entries": len(entries), "ranked": ranked}


def shown_manifest(snapshot: Snapshot) -> dict[str, Any]:
    """Return the content of a stored snapshot; that of a withdrawn one has no values, and says why and what follows."""
    manifest: dict[str, Any] = json.loads(snapshot.manifest)
    if snapshot.withdrawn_at is None:
        return manifest

    del manifest["files"]

    for phase in manifest["phases"]:
        phase["entries"] = [
            {key: entry[key] for key in entry if key not in _OF_VALUES}
            for entry in phase["entries"]
        ]

    after = snapshot.superseded_by.order_by("number").values_list("sha256", flat=True).first()
    at = instant(snapshot.withdrawn_at)

    return {
        **manifest,
        "withdrawn": {"at": at, "reason": snapshot.withdrawn_reason, "successor": after},
    }
