"""The content of a snapshot: what a reader needs to check the numbers of a paper.

It contains no addresses of people.

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
from metrics.engine.measures.external import ExternalDefinition
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
# Keys of an evaluated entry that depend on its values.
_VALUE_KEYS = (
    "rank", "tier", "in_best_set", "in_reference", "judged_at_10", "judged_depth", "means",
)  # fmt: skip


@dataclass(frozen=True)
class FrozenPhase:
    """The results of a phase at one moment.

    `described` are the evaluated entries in the order of the rows; `places` and `tiers` have ranks
    and tiers by row; `run_files` says whether the files of runs come with them; `names` has the
    names of teams by their keys, pseudonyms for teams that are hidden then.
    """

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
    """Return the results of a phase under these judgements.

    `stood` has the ids of the official entries where a release has fixed them. Entries that were
    disqualified since leave the leaderboard and are not replaced, as on the page.
    """
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
        "phases": [_phase(phase) for phase in frozen],
    }  # fmt: skip


def run_files_of(phase: Phase, names: Mapping[int, ShownName]) -> str:
    """Return whether the files of runs are part of a snapshot.

    They are if they were released to everybody and are not larger than EVALHUB_SNAPSHOT_RUNS_MB,
    unless a team is hidden: files contain tags.
    """
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
    """Return whether the files of runs would be part of a snapshot that is made now."""
    teams = phase.campaign.participations.select_related("team", "campaign")
    return run_files_of(phase, shown_names(phase, teams, None, False, clock.database_now()))


def _phase(frozen: FrozenPhase) -> dict[str, Any]:
    phase, read = frozen.phase, frozen.read
    copied = ("slug", "name", "description", "kind", "zone", "slots", "attempts_daily", "attempts_total", "selection",
            "chosen_max", "run_types", "must_answer_all")  # fmt: skip
    # Left out where there are none, so that snapshots without them keep their hash.
    rules: dict[str, Any] = {
        name: getattr(phase, name)
        for name in ("max_documents", "naming", "measure_titles", "decimals")
        if getattr(phase, name)
    }
    if phase.feedback != Phase.Feedback.NONE:
        rules["feedback"] = phase.feedback

    if paused := pauses_of(phase):
        rules["pauses"] = [
            {"from": instant(item.since), "to": instant(item.until), "reason": item.reason}
            for item in paused
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
        **{name: getattr(phase, name) for name in copied},
        **rules,
        **times,
        "form": [field for field in phase.form if field.get("public", True)],
        "extensions": [
            {
                "team": frozen.names[item.participation_id].slug if item.participation_id else None,
                "old": instant(item.old),
                "new": instant(item.new),
                "announced_at": instant(item.announced_at),
                "reason": item.reason,
                **(
                    {"values_seen_since": instant(item.values_seen_since)}
                    if item.values_seen_since
                    else {}
                ),
            }
            for item in phase.extensions.order_by("announced_at", "pk")
        ],
        "collection": _collection(phase, read.qrels),
        "measures": [measure.name for measure in read.measures],
        "reference": {
            "runs": ALL,
            "sets": [{"run_type": item.run_type, "runs": len(item.rows)} for item in frozen.sets],
        },
        "run_files": frozen.run_files,
        "releases": [
            {
                "audience": item.get_audience_display(),
                "done_at": instant(item.done_at),
                "qrels": item.qrels.version if item.qrels else None,
                "with_run_files": item.with_run_files,
                "note": item.note,
            }
            for item in phase.releases.filter(done_at__isnull=False)
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
        # The digest of one line per topic: its id, a tab, its title.
        "topics_sha256": hashlib.sha256(listed.encode()).hexdigest(),
        "qrels": {
            "version": qrels.version,
            "sha256": qrels.sha256,
            "bytes": qrels.size,
            "judgements": qrels.judgements,
            "topics": qrels.topics,
            "note": qrels.note,
            **_authors(qrels),
        },
        **_external_measures(phase),
    }


def _external_measures(phase: Phase) -> dict[str, Any]:
    """Return what the collection declares of measures of value tables; nothing without one."""
    declared = phase.collection.declared_measures
    measures = [declared[name].definition for name in phase.measure_names if name in declared]
    described = {
        definition.name: {
            "lower_is_better": definition.lower_is_better,
            "low": definition.low,
            "high": definition.high,
            "unit": definition.unit,
            "description": definition.description,
            "table": definition.version,
        }
        for definition in measures
        if isinstance(definition, ExternalDefinition)
    }
    return {"external_measures": described} if described else {}


def _authors(qrels: Qrels) -> dict[str, Any]:
    """Return who judged, without the names of judges; nothing if that is unknown."""
    if not qrels.author_kind:
        return {}
    return {
        "author_kind": qrels.author_kind,
        "authors": qrels.authors,
        "model": qrels.model,
        "prompt_sha256": qrels.prompt_sha256,
        "derivation": qrels.derivation,
        "parent": qrels.parent.version if qrels.parent else None,
    }


def _entries(frozen: FrozenPhase) -> list[dict[str, Any]]:
    described = {own.entry.pk: own for own in frozen.described}
    ranks = dict(frozen.places)
    public = {field["key"] for field in frozen.phase.form if field.get("public", True)}
    rows = frozen.phase.entries.select_related("participation__team", "run").order_by("number")
    contents = []

    for entry in rows:
        team, run = entry.participation, entry.run
        name = frozen.names[team.pk] if team else None
        hidden, affiliation = bool(name and name.hidden), team.affiliation if team else ""
        fields: dict[str, Any] = {
            "number": entry.number,
            "team": name
            and {
                "slug": name.slug,
                "name": name.name,
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
        # Left out where there is none, so that snapshots without papers keep their hash.
        if entry.paper and not hidden:
            fields["paper"] = entry.paper_address
        if own := described.get(entry.pk):
            fields |= _values(own, ranks.get(own.row), frozen.tiers.get(own.row))

        contents.append(fields)

    return contents


def _values(own: OwnEntry, rank: int | None, place: TestedPlace | None) -> dict[str, Any]:
    means: dict[str, Mapping[str, Any]] = {}
    for name, (mean, topics) in own.means.items():
        low, high = own.intervals.get(name, (None, None))
        means[name] = {"mean": mean, "topics": topics, "low": low, "high": high}

    return {
        "rank": rank,
        "tier": place.tier if place else None,
        "in_best_set": place.in_best_set if place else None,
        "in_reference": own.counts,
        "judged_at_10": own.judged,
        "judged_depth": own.depth,
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
    """Return the content of a stored snapshot.

    A withdrawn one has no values; it says why, and which snapshot succeeds it.
    """
    manifest: dict[str, Any] = json.loads(snapshot.manifest)
    if snapshot.withdrawn_at is None:
        return manifest

    del manifest["files"]

    for phase in manifest["phases"]:
        phase["entries"] = [
            {key: entry[key] for key in entry if key not in _VALUE_KEYS}
            for entry in phase["entries"]
        ]

    after = snapshot.superseded_by.order_by("number").values_list("sha256", flat=True).first()
    at = instant(snapshot.withdrawn_at)

    return {
        **manifest,
        "withdrawn": {"at": at, "reason": snapshot.withdrawn_reason, "successor": after},
    }
