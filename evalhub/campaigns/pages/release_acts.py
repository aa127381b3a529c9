"""Acts that plan, do and cancel releases of the results of a phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from evalhub.campaigns.pages.act import ENTERED, Act, Target, many, people, warn_of_unreachable
from evalhub.campaigns.pages.inputs import time_in
from evalhub.campaigns.pages.phase_words import local_time
from evalhub.campaigns.services.phase_times import last_closing_time, read_time, read_zone
from evalhub.campaigns.services.releases import cancel_release, plan_release
from evalhub.campaigns.services.releasing import count_running, release_now
from runs.errors import InvalidInput
from runs.models import Entry, Release
from runs.services import clock

_AUDIENCE = Release.Audience
# What each audience sees then.
_SEES = {
    _AUDIENCE.TEAMS: "Each team sees the values of its own runs, and of each topic minimum, median and maximum of the "
    "runs of a type, where these are five or more.",
    _AUDIENCE.PARTICIPANTS: "Members of accepted teams see everything: all entries, leaderboards, and the judgements.",
    _AUDIENCE.PUBLIC: "Everyone who sees the collection sees everything: all entries, leaderboards, and the "
    "judgements, which can be downloaded.",
}


def _says_release(audience: int) -> Callable[[Target], list[str]]:
    def says(target: Target) -> list[str]:
        phase = target.of_phase
        entries = Entry.objects.filter(phase=phase, state=ENTERED)
        late = entries.filter(late=True).count()
        qrels, end = phase.collection.active_qrels, last_closing_time(phase)
        addressees = "everyone" if audience == _AUDIENCE.PUBLIC else people(target)
        sentences = [f"Results of phase {phase.name}, to {addressees}.", _SEES[_AUDIENCE(audience)]]
        entry_count = (
            f"{many(entries.count(), 'entry', 'entries')}, {late} late (counted separately)"
        )
        if qrels:
            sentences.append(
                f"{entry_count}; judgements of version {qrels.version} (SHA-256 {qrels.sha256[:12]})."
            )
            if running := count_running(phase, qrels):
                sentences.append(
                    f"{many(running, 'evaluation is', 'evaluations are')} still to be done; the release waits."
                )
        else:
            sentences.append(
                f"{entry_count}. The collection has no active judgements yet: a release needs them."
            )

        if clock.database_now() < end:
            sentences.append(
                f"The phase is not over before {local_time(end, phase.zone, ends=True).local}."
            )

        return [
            *sentences,
            *warn_of_unreachable(target),
            "A release that is done cannot be undone. The disclosure of the collection only grows.",
        ]

    return says


def _release(audience: int) -> Callable[[Target], str]:
    def release(target: Target) -> str:
        form, phase = target.request.data, target.of_phase
        zone = read_zone(str(form.get("zone", "")).strip() or phase.zone)
        time_text = time_in(form, "at", zone)
        at = read_time(time_text, zone, name="at") if time_text else None
        with_files, force = "with_run_files" in form, "force" in form
        reason = target.reason(required=False)

        if force and not reason:
            message = "say why the release does not wait for evaluations"
            raise InvalidInput(message, code="required", pointer="/reason")

        author: dict[str, Any] = {"user": target.user, "origin": target.origin}
        label = _AUDIENCE(audience).label

        with transaction.atomic():
            planned = plan_release(
                phase=phase,
                audience=audience,
                at=at,
                with_run_files=with_files,
                note=reason,
                **author,
            )
            if at is None:
                release_now(release=planned, force=force, reason=reason, **author)
                return f"Results of phase {phase.name} released to {label}."

        time = local_time(at, phase.zone)

        return (
            f"Results of phase {phase.name} are released to {label} at {time.local} ({time.utc})."
        )

    return release


def _says_cancel(target: Target) -> list[str]:
    release = target.of_release
    time = (
        local_time(release.planned_at, release.phase.zone).local
        if release.planned_at
        else "an organiser does it"
    )
    return [
        f"The release of phase {release.phase.name} to {release.get_audience_display()}, planned for {time}."
    ]


def _cancel(target: Target) -> str:
    cancel_release(release=target.of_release, user=target.user, origin=target.origin)
    return f"Release of phase {target.of_release.phase.name} cancelled."


_ASKS = ("at", "zone", "with_run_files", "force", "maybe-reason")
RELEASE_ACTS: dict[str, Act] = {
    **{
        f"release-to-{audience.label}": Act(
            f"Release results to {audience.label}",
            "Release",
            _says_release(audience),
            _release(audience),
            _ASKS,
        )
        for audience in _AUDIENCE
    },
    "cancel-release": Act("Cancel a release", "Cancel the release", _says_cancel, _cancel),
}
