"""Check campaigns against the audit trail, and published files against their digests.

The trail has every change of their rows. What is lost there cannot be computed again.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet

from evalhub.campaigns.services.phase_times import closing_time
from metrics.engine.errors import EvalHubError
from metrics.services.upkeep.findings import Finding
from runs.models import (
    Agreement,
    AuditEvent,
    Campaign,
    Collection,
    Disclosure,
    Entry,
    Packet,
    Participation,
    Phase,
    Release,
    Snapshot,
)

_RESTORE = "restore a backup"
_Action = AuditEvent.Action
# Actions that create an object. Earlier events with the same name belong to another object.
_CREATING = (
    _Action.CAMPAIGN_CREATED, _Action.PHASE_CREATED, _Action.PARTICIPATION_REQUESTED, _Action.ENTRY_MADE,
    _Action.RELEASE_PLANNED, _Action.COLLECTION_CREATED,
)  # fmt: skip
_STATES = {
    _Action.ENTRY_MADE: Entry.State.ENTERED, _Action.ENTRY_RESTORED: Entry.State.ENTERED,
    _Action.ENTRY_WITHDRAWN: Entry.State.WITHDRAWN, _Action.ENTRY_DISQUALIFIED: Entry.State.DISQUALIFIED,
}  # fmt: skip
_TYPES = ("campaign", "phase", "participation", "entry", "release", "collection")
Trail = dict[tuple[str, str], dict[str, Any]]


def find_in_campaigns(*, fast: bool = False) -> Iterator[Finding]:
    """Yield what contradicts the audit trail, itself or its digest.

    With `fast`, the contents of published files are not read.
    """
    trail = _read_trail()
    yield from _find_in_rows(trail)
    yield from _find_in_disclosures(trail)
    yield from _find_in_phases(trail)
    yield from _find_in_entries()
    yield from _find_in_releases(trail)

    if not fast:
        yield from _find_in_published()


def _read_trail() -> Trail:
    """Return the last value of each field in the audit trail, by type and id of an object."""
    trail: Trail = defaultdict(dict)
    events = AuditEvent.objects.filter(object_type__in=_TYPES).order_by("pk")

    columns = ("action", "object_type", "object_id", "before", "after")

    for action, kind, key, before, after in events.values_list(*columns).iterator():
        fields = trail[kind, key]
        if action in _CREATING:
            fields.clear()

        if action in (_Action.PHASE_EXTENDED, _Action.PHASE_EXTENSION_CANCELLED):
            extensions = fields.setdefault("extensions", [])
            if action == _Action.PHASE_EXTENDED:
                extensions.append([after.get("team"), after["closes_at"]])
            else:
                extensions.remove([after.get("team"), before["closes_at"]])

            if "team" not in after:
                fields["closes_at"] = after["closes_at"]
                # It moves with the end if it would be earlier.
                fields.pop("late_closes_at", None)

            continue

        if action in (_Action.PHASE_PAUSED, _Action.PHASE_RESUMED):
            fields["paused"] = action == _Action.PHASE_PAUSED
            continue

        # A field that became empty is only in `before`.
        fields.update({**dict.fromkeys(before), **after})
        if action in _STATES:
            fields["state"] = str(_STATES[action])
            fields.pop("chosen", None)

        # It changes with other entries of the team, too.
        fields.pop("priority", None)
        if action == _Action.ENTRY_RESTORED:
            fields.pop("answers", None)
            fields.pop("run_type", None)

        if action in (_Action.RELEASE_DONE, _Action.RELEASE_CANCELLED):
            fields["ended"] = str(action)

    return trail


def _find_in_rows(trail: Trail) -> Iterator[Finding]:
    """Compare each field of a row with its last value in the trail."""

    kinds: tuple[tuple[str, QuerySet[Any]], ...] = (
        ("campaign", Campaign.objects.select_related("team")),
        ("phase", Phase.objects.select_related("campaign", "collection")),
        ("participation", Participation.objects.select_related("campaign", "team")),
        ("entry", Entry.objects.select_related("phase__campaign", "run")),
    )
    for kind, rows in kinds:
        for row in rows.iterator(500):
            fields = trail.get((kind, str(row.pk) if kind == "entry" else str(row)), {})
            for name, value in fields.items():
                now = _stored_value(row, name)
                if now is not _UNKNOWN and now != (None if value == "" else value):
                    text = (
                        f"{kind} {row} has {name} {now!r:.100}, and its last change in the "
                        "audit trail says "
                    )
                    yield Finding(
                        "trail_differs",
                        f"{text}{value!r:.100}; {_RESTORE}, or change it again on the organiser's dashboard",
                    )


_UNKNOWN = object()


def _stored_value(row: Model, name: str) -> Any:
    """Return the value of a field as the trail would have it, or _UNKNOWN if it is not one."""
    if isinstance(row, Entry) and name in ("tag", "sha256"):
        return getattr(row.run, name)
    if name not in {field.name for field in row._meta.concrete_fields}:
        return _UNKNOWN

    value = getattr(row, name)
    plain = (
        str(value)
        if isinstance(value, Model)
        else json.loads(json.dumps(value, cls=DjangoJSONEncoder))
    )

    return None if plain == "" else plain


def _find_in_disclosures(trail: Trail) -> Iterator[Finding]:
    """Check that nobody sees more of a collection than the trail says that they were shown."""
    for collection in Collection.objects.iterator(500):
        fields = trail.get(("collection", str(collection)), {})
        label = fields.get("disclosure") or ("organisers" if fields.get("blind") else None)
        if collection.shown_to not in Disclosure.values or (
            label and collection.disclosure.label != label
        ):
            text = (
                f"collection {collection} shows results to {collection.disclosure.label}, and "
                "the audit trail says "
            )
            yield Finding("disclosure_differs", f"{text}{label}; {_RESTORE}")


def _find_in_phases(trail: Trail) -> Iterator[Finding]:
    """Check measures, extensions and pauses of phases, and the digests of agreements."""

    rows = Phase.objects.select_related("campaign", "collection").prefetch_related(
        "extensions__participation__team"
    )
    for phase in rows:
        fields = trail.get(("phase", str(phase)), {})
        try:
            for name in phase.measures:
                phase.collection.measure(name)
        except EvalHubError as error:
            yield Finding(
                "measure_unknown",
                f"phase {phase} asks for what this engine cannot compute: {error.message}",
            )

        extended = [
            [
                extension.participation.team.slug if extension.participation else None,
                _as_json(extension.new),
            ]
            for extension in phase.extensions.order_by("pk")
        ]

        if fields and extended != fields.get("extensions", []):
            yield Finding(
                "trail_differs",
                f"phase {phase} has other extensions than the audit trail; {_RESTORE}",
            )

        if fields and (phase.paused_at is not None) != fields.get("paused", False):
            text = (
                f"phase {phase} is {'' if phase.paused_at else 'not '}paused, and the audit "
                "trail says otherwise"
            )
            yield Finding(
                "trail_differs",
                f"{text}; {_RESTORE}, or pause or resume it on the organiser's dashboard",
            )

    for agreement in Agreement.objects.select_related("campaign"):
        if (
            hashlib.sha256(f"{agreement.title}\n\n{agreement.text}".encode()).hexdigest()
            != agreement.sha256
        ):
            yield Finding(
                "agreement_altered", f"{agreement} has not the text of its SHA-256; {_RESTORE}"
            )


def _find_in_entries() -> Iterator[Finding]:
    """Check that entries fit their phase, run and team, and that priorities have no gaps.

    Entries in time must have been in time.
    """
    rows = Entry.objects.select_related("phase__campaign", "run", "participation")
    priorities: dict[tuple[int, int | None], list[int]] = defaultdict(list)

    for entry in rows.prefetch_related("phase__extensions").order_by("pk"):
        phase, team, run = entry.phase, entry.participation, entry.run

        owner, campaign = (
            (team.team_id, team.campaign_id)
            if team
            else (phase.campaign.team_id, phase.campaign_id)
        )
        if (run.collection_id, run.team_id, campaign) != (
            phase.collection_id,
            owner,
            phase.campaign_id,
        ):
            text = f"{entry} names a run or a team of another collection or campaign; {_RESTORE}"
            yield Finding("entry_contradicts", text)

        if (
            team
            and not entry.late
            and not phase.opens_at <= entry.arrived_at < closing_time(phase, team)
        ):
            text = (
                f"{entry} arrived at {entry.arrived_at:%F %T} and is not late, and the phase "
                "was not open then"
            )
            yield Finding("entry_contradicts", f"{text}; {_RESTORE}")

        if entry.priority is not None:
            priorities[entry.phase_id, entry.participation_id].append(entry.priority)

    for (phase_id, team_id), numbers in priorities.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            text = (
                f"the entries of participation {team_id} in phase {phase_id} have the "
                f"priorities {sorted(numbers)}: "
            )
            yield Finding(
                "priorities_have_gaps",
                text + "the team can order them again while the phase is open",
            )


def _find_in_releases(trail: Trail) -> Iterator[Finding]:
    """Check that a release was done as the trail says, for whom results are shown now."""
    for release in Release.objects.select_related(
        "phase__campaign", "phase__collection", "qrels"
    ).iterator(500):
        fields, collection = trail.get(("release", str(release.pk)), {}), release.phase.collection

        action = (
            _Action.RELEASE_DONE
            if release.done_at
            else _Action.RELEASE_CANCELLED
            if release.cancelled_at
            else None
        )
        if fields and fields.get("ended") != action:
            yield Finding(
                "trail_differs",
                f"the {release} is {action or 'planned'}, the trail says otherwise; {_RESTORE}",
            )

        wrong = (
            fields
            and not release.done_at
            and _as_json(release.planned_at) != fields.get("planned_at")
        )

        if wrong:
            yield Finding(
                "trail_differs",
                f"the {release} is planned for another time than the trail says; {_RESTORE}",
            )

        if release.done_at:
            entered = Entry.objects.filter(phase=release.phase).values_list("pk", flat=True)
            official = set(release.official) if isinstance(release.official, list) else {None}
            version = (release.qrels.version, release.qrels.sha256) if release.qrels else None

            fits = (
                official <= {str(pk) for pk in entered}
                and release.qrels is not None
                and release.qrels.collection_id == collection.pk
                and release.audience <= collection.disclosure
            )

            agrees = not fields or (
                fields.get("disclosure") == release.get_audience_display()
                and (fields.get("qrels"), fields.get("sha256")) == version
                and fields.get("entries") == len(release.official)
            )

            if not (fits and agrees):
                text = (
                    f"the {release} names other entries, judgements or people than it was done "
                    f"with; {_RESTORE}"
                )
                yield Finding("release_contradicts", text)


def _find_in_published() -> Iterator[Finding]:
    """Compare snapshots and packets with their digests."""
    for snapshot in Snapshot.objects.iterator(5):
        if not (
            snapshot.is_sound
            and snapshot.has_sound_archive
            and snapshot.sha256.startswith(snapshot.code)
        ):
            text = (
                f"snapshot {snapshot.code} differs from its digest; nothing of what differs is "
                "given out"
            )
            yield Finding("snapshot_altered", f"{text}. {_RESTORE.capitalize()}")

    for packet in Packet.objects.select_related("phase__campaign", "participation__team").iterator(
        20
    ):
        if not packet.is_sound:
            text = f"the {packet} differs from its digest, and is not given out"
            yield Finding("packet_altered", f"{text}. {_RESTORE.capitalize()}")


def _as_json(moment: Any) -> Any:
    return json.loads(json.dumps(moment, cls=DjangoJSONEncoder))
