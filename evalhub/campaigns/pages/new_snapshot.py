"""The page on which organisers make a snapshot; it says what is frozen, and what prevents it."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.urls import reverse
from rest_framework.request import Request

from evalhub.campaigns.exports.freezing import freeze_results, keep_results
from evalhub.campaigns.pages.act import many
from evalhub.campaigns.pages.desk_pages import ChangingDeskPage
from evalhub.campaigns.pages.phase_words import local_time
from evalhub.campaigns.questions.snapshots import SnapshotSerializer, site_of
from evalhub.campaigns.services.manifest import INCLUDED, NOT_RELEASED, TOO_LARGE, planned_run_files
from evalhub.campaigns.services.phase_times import last_closing_time
from evalhub.campaigns.services.releasing import count_running
from runs.models import Campaign, Entry, Phase, User, can_see_scores
from runs.services import clock
from runs.web.forms import fields_of
from runs.web.origin import origin_of


class MakeSnapshotPage(ChangingDeskPage):
    """Make a snapshot of the results of a phase, or of all of them."""

    name, template = "campaign-snapshot-page", "campaigns/make_snapshot.html"
    reads, fields = ("phase",), ("phase", "label")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        """Return the phases with what a snapshot has of each, and what the form shows."""
        phases = campaign.phases.select_related("collection", "campaign").prefetch_related(
            "extensions"
        )
        proposed = {"phase": request.query_params.get("phase", ""), "label": "results"}

        return {
            "phases": [(phase, _says(request, phase)) for phase in phases],
            "form_values": request.data if request.method == "POST" else proposed,
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        data = {
            name: value for name, value in fields_of(request, *self.fields).items() if value.strip()
        }
        serializer = SnapshotSerializer(data=data)
        serializer.is_valid(raise_exception=True)
        user = cast(User, request.user)
        fields = serializer.validated_data
        frozen = freeze_results(
            campaign=campaign, phase=fields["phase"], label=fields["label"], user=user
        )
        snapshot, new = keep_results(
            frozen, user=user, site=site_of(request), origin=origin_of(request)
        )
        outcome = "made" if new else "has the same results already"

        return (
            f"Snapshot {snapshot.number} {outcome}.",
            f"{reverse('campaign-cite-page', args=[campaign.slug])}",
        )


def _says(request: Request, phase: Phase) -> list[str]:
    """Return sentences: what a snapshot has of a phase, and what prevents it."""
    entered = Entry.objects.filter(phase=phase, state=Entry.State.ENTERED).count()
    sentences, end = [many(entered, "entry", "entries")], last_closing_time(phase)
    if clock.database_now() < end:
        sentences.append(f"not over before {local_time(end, phase.zone, ends=True).local}")
    if not can_see_scores(request.user, phase.collection):
        return [*sentences, "you do not see its results"]

    if qrels := phase.collection.active_qrels:
        if running := count_running(phase, qrels):
            sentences.append(f"{many(running, 'evaluation')} still to be done")

        sentences.append(f"judgements of version {qrels.version}")
    else:
        sentences.append("no judgements yet")

    sentences.append(f"results are disclosed to {phase.collection.disclosure.label}")

    return [*sentences, _FILES[planned_run_files(phase)].format(limit=_limit())]


# Whether a snapshot has the files of runs.
_FILES = {
    INCLUDED: "with the files of runs",
    NOT_RELEASED: "without the files of runs, which are not released to everybody",
    TOO_LARGE: "without the files of runs, which are larger than {limit} (EVALHUB_SNAPSHOT_RUNS_MB)",
}


def _limit() -> str:
    return f"{settings.EVALHUB_SNAPSHOT_RUN_BYTES // 1024**2:,} MB"
