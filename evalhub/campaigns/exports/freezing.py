"""Make snapshots: read the results of phases as of one moment, and store them with an archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalhub.campaigns.exports.citation_data import cited_of
from evalhub.campaigns.exports.snapshot_files import archive_of, files_of, sealed
from evalhub.campaigns.services.manifest import freeze_phase, manifest_of
from evalhub.campaigns.services.packets import check_evaluated
from evalhub.campaigns.services.phase_times import last_closing_time
from evalhub.campaigns.services.snapshots import keep_snapshot
from evalhub.campaigns.services.versions import latest_release
from metrics.services.boards.board_question import active_qrels
from metrics.services.snapshots import read_in_snapshot
from runs.errors import Blind, Conflict, InvalidInput
from runs.models import Campaign, Phase, Snapshot, User, can_see_scores
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin


@dataclass(frozen=True)
class FrozenResults:
    """The manifest and the files of results at one moment, of one phase, or with None of all."""

    campaign: Campaign
    phase: Phase | None
    label: str
    manifest: bytes
    files: dict[str, bytes]


def freeze_results(
    *, campaign: Campaign, phase: str | None, label: str, user: Any
) -> FrozenResults:
    """Read the results of a phase by its short name, or of all phases.

    Raise InvalidInput for a phase that the campaign does not have, Conflict for one that is not
    over, or whose entries are not evaluated; Blind for one whose results the organiser does not
    see.
    """
    phases = campaign.phases.select_related("collection", "campaign__team").prefetch_related(
        "extensions"
    )
    named_phase = phases.filter(slug=phase).first() if phase else None
    if phase and named_phase is None:
        raise InvalidInput(
            f"campaign {campaign} has no phase {phase!r}", code="invalid", pointer="/phase"
        )

    selected = [named_phase] if named_phase else list(phases)
    manifest, files = read_in_snapshot(
        lambda: _read_phases(campaign, selected, not named_phase, label, user)
    )

    return FrozenResults(campaign, named_phase, label, manifest, files)


def keep_results(
    frozen: FrozenResults, *, user: User, site: str, origin: Origin = SYSTEM
) -> tuple[Snapshot, bool]:
    """Store a snapshot of these results, with addresses of this site in its citations.

    Return it, and whether it is new: the same results are one snapshot. Raise Conflict if the
    campaign has too many.
    """

    def make_archive(snapshot: Snapshot) -> bytes:
        return archive_of(frozen.manifest, frozen.files, cited_of(snapshot, site))

    return keep_snapshot(
        campaign=frozen.campaign,
        phase=frozen.phase,
        label=frozen.label,
        manifest=frozen.manifest,
        archive=make_archive,
        user=user,
        origin=origin,
    )


def _read_phases(
    campaign: Campaign, phases: list[Phase], whole: bool, label: str, user: Any
) -> tuple[bytes, dict[str, bytes]]:
    """Return the manifest and the files of these phases."""
    frozen, files = [], dict[str, bytes]()
    for phase in phases:
        if not can_see_scores(user, phase.collection):
            raise Blind
        if clock.database_now() < last_closing_time(phase):
            message = (
                f"phase {phase.slug} is not over; "
                "a snapshot has its results when every team is done"
            )
            raise Conflict(message, code="phase_not_over", pointer="/phase")

        release = latest_release(phase)
        qrels = release.qrels if release else active_qrels(phase.collection)
        check_evaluated(phase, qrels)
        frozen.append(freeze_phase(phase, qrels, release.official if release else None))
        files |= files_of(frozen[-1])

    return sealed(manifest_of(campaign, frozen, whole=whole, label=label), files), files
