"""What the organisers' desk counts of each phase, in a fixed number of queries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, OuterRef
from django.urls import reverse
from django.utils.http import urlencode

from evalhub.campaigns.pages.phase_words import (
    LocalTime,
    PhaseSummary,
    local_time,
    summarise_phases,
)
from evalhub.campaigns.services.guards import last_ends
from evalhub.campaigns.services.phase_times import PhaseState
from evalhub.campaigns.services.releasing import waits_for
from metrics.services.queue.status import with_states
from runs.models import Campaign, Collection, Entry, Participation, Phase, Release, Run

_ENTERED = Entry.State.ENTERED
# Of each kind of problem.
_LISTED = 20


@dataclass(frozen=True)
class ShownRelease:
    """A release with its state in words, and the address of the page that cancels it."""

    release: Release
    description: str
    cancel: str = ""


@dataclass
class PhaseCounts:
    """What the dashboard says about a phase.

    `states` and `types` count entries, `evaluations` those of entries that are entered. `problems`
    are sentences with an address. `releasing` has the audiences that results can still be released
    to, with the address of the act; it is empty before `releasable`, the end of all phases on the
    collection, which is None afterwards.
    """

    summary: PhaseSummary
    accepted: int
    with_entries: int = 0
    late: int = 0
    baselines: int = 0
    states: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    evaluations: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[str, str]] = field(default_factory=list)
    acts: list[tuple[str, str, str]] = field(default_factory=list)
    releases: list[ShownRelease] = field(default_factory=list)
    releasing: list[tuple[str, str]] = field(default_factory=list)
    releasable: LocalTime | None = None

    @property
    def without_entries(self) -> int:
        return self.accepted - self.with_entries

    @property
    def by_type(self) -> list[tuple[str, int]]:
        """Return the label of each type of runs, with how many compete."""
        return [
            (run_type["label"], self.types[run_type["key"]])
            for run_type in self.summary.phase.run_types
        ]

    @property
    def unfinished(self) -> int:
        """Return how many entries are not evaluated yet."""
        return self.evaluations["queued"] + self.evaluations["evaluating"]

    @property
    def waits_for_judgements(self) -> bool:
        """Return whether entries cannot be evaluated, since no judgements are active."""
        return self.summary.phase.collection.active_qrels is None and self.unfinished > 0


def phase_counts(campaign: Campaign, now: datetime) -> list[PhaseCounts]:
    """Return what the desk says of every phase of a campaign."""
    accepted = campaign.participations.filter(state=Participation.State.ACCEPTED).count()
    counts_by_phase = {
        summary.phase.pk: PhaseCounts(summary, accepted)
        for summary in summarise_phases(campaign, None, now, organiser=True)
    }
    entries = Entry.objects.filter(phase__campaign=campaign).order_by()
    numbers = entries.values("phase", "state", "role", "run_type", "late").annotate(n=Count("pk"))

    for row in numbers:
        counts, number = counts_by_phase[row["phase"]], row["n"]
        counts.states[row["state"]] += number
        if row["state"] == _ENTERED:
            counts.late += number * row["late"]
            if row["role"] == Entry.Role.COMPETING:
                counts.types[row["run_type"]] += number
            else:
                counts.baselines += number

    entered = entries.filter(state=_ENTERED)
    teams = entered.filter(
        role=Entry.Role.COMPETING, participation__state=Participation.State.ACCEPTED
    )

    for row in teams.values("phase").annotate(n=Count("participation", distinct=True)):
        counts_by_phase[row["phase"]].with_entries = row["n"]

    runs = Run.objects.filter(entries__phase__campaign=campaign, entries__state=_ENTERED).order_by()

    for row in with_states(runs).values("entries__phase", "state").annotate(n=Count("entries")):
        if row["entries__phase"] in counts_by_phase:
            counts_by_phase[row["entries__phase"]].evaluations[row["state"]] += row["n"]

    _add_problems(campaign, entered, counts_by_phase)

    for counts in counts_by_phase.values():
        counts.acts = _acts(campaign, counts.summary)

    _add_releases(campaign, counts_by_phase, now)

    return list(counts_by_phase.values())


def _add_releases(
    campaign: Campaign, counts_by_phase: dict[int, PhaseCounts], now: datetime
) -> None:
    """Add the releases of each phase, and buttons for those that it may still have."""
    rows = Release.objects.filter(phase__campaign=campaign, cancelled_at=None)
    for release in rows.select_related("phase__campaign", "phase__collection", "qrels").order_by(
        "audience", "created_at"
    ):
        counts = counts_by_phase[release.phase_id]
        zone = counts.summary.phase.zone
        if release.done_at:
            official = len(release.official)
            runs = f"{official:,} official run{'' if official == 1 else 's'}"
            state = f"done {local_time(release.done_at, zone).local}, {runs}"
            counts.releases.append(ShownRelease(release, state))
            continue

        waits, running = waits_for(release, now)
        state = (
            f"planned for {local_time(release.planned_at, zone).local}"
            if release.planned_at
            else "planned"
        )
        state += (
            f"; waits for {waits}{f' ({running} to be done)' if waits == 'evaluations' else ''}"
            if waits
            else ""
        )
        cancel = reverse("campaign-act-page", args=[campaign.slug, "cancel-release"])
        counts.releases.append(
            ShownRelease(release, state, f"{cancel}?{urlencode({'release': str(release.pk)})}")
        )

    ends = last_ends([counts.summary.phase.collection_id for counts in counts_by_phase.values()])

    for counts in counts_by_phase.values():
        phase, releases = counts.summary.phase, [release.release for release in counts.releases]
        end = ends.get(phase.collection_id)
        if end and now < end:
            counts.releasable = local_time(end, phase.zone, ends=True)
            continue
        if phase.collection.active_qrels is None:
            continue

        # The last one to the largest audience.
        last = max(
            releases,
            key=lambda release: (release.audience, release.done_at is None, release.done_at),
            default=None,
        )
        newer = last and last.done_at and phase.collection.active_qrels not in (None, last.qrels)
        if campaign.state == Campaign.State.PUBLISHED and phase.kind == Phase.Kind.EVALUATION:
            for audience in Release.Audience:
                more = audience > max(
                    [phase.collection.disclosure, *(release.audience for release in releases)]
                )
                if more or (newer and last and audience == last.audience):
                    path = reverse(
                        "campaign-act-page", args=[campaign.slug, f"release-to-{audience.label}"]
                    )
                    state = f"{path}?{urlencode({'phase': phase.slug})}"
                    counts.releasing.append(
                        (f"{audience.label}{'' if more else ' again, by newer judgements'}", state)
                    )


def hidden_collections(campaign: Campaign) -> list[Collection]:
    """Return the collections of the phases that are not public, which other teams do not see."""
    rows = Collection.objects.filter(phases__campaign=campaign).exclude(
        visibility=Collection.Visibility.PUBLIC
    )
    return list(rows.distinct())


def _add_problems(
    campaign: Campaign, entered: Any, counts_by_phase: dict[int, PhaseCounts]
) -> None:
    """Add problems: failed evaluations, topics without an answer, equal files of two teams."""
    address = reverse("campaign-entries-page", args=[campaign.slug])

    def listed(phase: int, **filters: str) -> str:
        return f"{address}?{urlencode({'phase': counts_by_phase[phase].summary.phase.slug, **filters})}"

    hidden = {collection.pk for collection in hidden_collections(campaign)}

    for pk, counts in counts_by_phase.items():
        collection = counts.summary.phase.collection
        if collection.pk in hidden:
            message = f"collection {collection.name} is not public: other teams do not see it and cannot enter runs"
            counts.problems.append((message, reverse("manage-page", args=[collection.slug])))

        if failed := counts.evaluations["failed"]:
            counts.problems.append(
                (
                    f"{failed} evaluation{'' if failed == 1 else 's'} failed",
                    listed(pk, problem="failed"),
                )
            )

    unanswered = entered.filter(run__warnings__counts__topic_missing__gt=0)

    for row in unanswered.values("phase").annotate(n=Count("pk")):
        message = (
            f"{row['n']} entr{'y has' if row['n'] == 1 else 'ies have'} no answer to some topics"
        )
        counts_by_phase[row["phase"]].problems.append(
            (message, listed(row["phase"], problem="unanswered"))
        )

    equal = (
        entered.exclude(participation=None)
        .values("phase", sha256=F("run__sha256"))
        .annotate(teams=Count("participation", distinct=True), n=Count("pk"))
        .filter(teams__gt=1)
        .order_by("phase", "sha256")
    )

    for row in equal[:_LISTED]:
        message = (
            f"{row['n']} entries of {row['teams']} teams have the same file (a hint, not a verdict)"
        )
        counts_by_phase[row["phase"]].problems.append(
            (message, listed(row["phase"], sha256=row["sha256"]))
        )

    baselines = entered.filter(
        role=Entry.Role.BASELINE, phase=OuterRef("phase"), run__sha256=OuterRef("run__sha256")
    )
    copies = entered.filter(role=Entry.Role.COMPETING).filter(Exists(baselines))
    copied = (
        copies.values("phase", sha256=F("run__sha256"))
        .annotate(n=Count("pk"))
        .order_by("phase", "sha256")
    )

    for row in copied[:_LISTED]:
        subject = "1 entry of a team has" if row["n"] == 1 else f"{row['n']} entries of teams have"
        message = f"{subject} the same file as a baseline (a hint, not a verdict)"
        counts_by_phase[row["phase"]].problems.append(
            (message, listed(row["phase"], sha256=row["sha256"]))
        )


def _acts(campaign: Campaign, summary: PhaseSummary) -> list[tuple[str, str, str]]:
    """Return the next acts on a phase: the words of a button, its address, and what it does."""
    if campaign.state != Campaign.State.PUBLISHED:
        return []

    def address(act: str) -> str:
        return f"{reverse('campaign-act-page', args=[campaign.slug, act])}?{urlencode({'phase': summary.phase.slug})}"

    acts = []
    if summary.state != PhaseState.CLOSED:
        acts.append(("Extend", address("extend"), "a later end for all teams"))
    if summary.state == PhaseState.OPEN:
        acts.append(("Pause", address("pause"), "take no runs for now"))
    if summary.phase.paused_at is not None:
        acts.append(("Resume", address("resume"), "take runs again"))

    return acts


def with_problem(rows: Any, problem: str) -> Any:
    """Return those entries that have a problem of this kind."""
    if problem == "unanswered":
        return rows.filter(run__warnings__counts__topic_missing__gt=0)
    if problem == "failed":
        failed = with_states(Run.objects.filter(entries__in=rows.order_by())).filter(state="failed")
        return rows.filter(run__in=failed.values("pk"))

    return rows
