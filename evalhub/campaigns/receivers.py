"""Receivers of `runs.hooks`: campaigns take part in changes of teams, runs and evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from django.dispatch import receiver

from evalhub.campaigns.services.entries import OUR_FAULT
from evalhub.campaigns.services.guards import (
    check_file_released,
    check_not_entered,
    check_outside,
    check_phases_over,
    check_removable,
    check_stays_single,
)
from evalhub.campaigns.services.integrity import find_in_campaigns
from evalhub.campaigns.services.moments import note_digests, note_moments, note_waiting
from evalhub.campaigns.services.notifications import (
    notify_evaluated,
    notify_invited,
    notify_superseded,
)
from evalhub.campaigns.services.pseudonyms import veil
from evalhub.campaigns.services.read_log import note_values_read
from evalhub.campaigns.services.releasing import release_due
from evalhub.campaigns.services.teams import (
    check_may_grow,
    check_may_join,
    check_may_organise,
    join,
)
from metrics.models import Evaluation
from metrics.services.upkeep.findings import Finding
from runs import hooks
from runs.models import Collection, Entry, Invitation, Participation, Qrels, Run, Team, User
from runs.services.audit.trail import Origin

# How often, in seconds, the dispatcher looks for planned releases, moments of phases and digests.
RELEASING_SECONDS = 1.5
MOMENT_SECONDS = 15.0
DIGEST_SECONDS = 300.0


@receiver(hooks.before_submission)
def enter_through_the_phase(*, run: Run, **_: Any) -> None:
    check_outside(run)


@receiver(hooks.before_withdrawal)
def keep_entered_runs(*, run: Run, **_: Any) -> None:
    check_not_entered(run)


@receiver(hooks.before_joining)
def keep_entered_runs_single(*, run: Run, **_: Any) -> None:
    check_stays_single(run)


@receiver(hooks.before_removal)
def disqualify_before_removal(*, run: Run, **_: Any) -> None:
    check_removable(run)


@receiver(hooks.before_download)
def keep_files_until_release(*, run: Run, user: Any, **_: Any) -> None:
    check_file_released(run, user)


@receiver(hooks.before_disclosure)
def wait_for_phases(*, collection: Collection, **_: Any) -> None:
    check_phases_over(collection)


@receiver(hooks.hidden_names)
def hide_names(*, collection: Collection, **_: Any) -> datetime | None:
    return veil(collection)


@receiver(hooks.values_read)
def record_reading(*, collection: Collection, origin: Origin, **_: Any) -> None:
    note_values_read(collection, origin)


@receiver(hooks.judgements_replaced)
def announce_new_judgements(*, qrels: Qrels, **_: Any) -> None:
    notify_superseded(qrels)


@receiver(hooks.before_invitation)
def check_team_may_grow(*, participation: Participation, user: User | None, **_: Any) -> None:
    if user is None:
        check_may_grow(participation)
    else:
        check_may_join(participation, user)


@receiver(hooks.invited)
def announce_invitation(*, invitation: Invitation, **_: Any) -> None:
    notify_invited(invitation)


@receiver(hooks.joined)
def take_part(*, participation: Participation, user: User, origin: Origin, **_: Any) -> None:
    join(participation=participation, user=user, origin=origin)


@receiver(hooks.before_ownership)
def keep_organisers_apart(*, team: Team, user: User, **_: Any) -> None:
    check_may_organise(team, user)


@receiver(hooks.evaluations_ended)
def announce_evaluated(*, evaluations: list[Any], **_: Any) -> None:
    # Few runs are entered in campaigns: one small query says so of a batch.
    if not evaluations or not Entry.objects.filter(run__evaluations__in=evaluations).exists():
        return

    entered = (
        Evaluation.objects.counting().live().filter(pk__in=evaluations, run__entries__isnull=False)
    )
    ended = entered.filter(state__in=(Evaluation.State.EVALUATED, Evaluation.State.FAILED))

    for run, state, code in ended.distinct().values_list("run", "state", "error_code"):
        notify_evaluated(run, failed=state == Evaluation.State.FAILED, our_fault=code in OUR_FAULT)


@receiver(hooks.due_work)
def work_of_campaigns(**_: Any) -> tuple[tuple[str, float, Callable[[], object]], ...]:
    return (
        ("releasing", RELEASING_SECONDS, release_due),
        ("telling what the clock does", MOMENT_SECONDS, note_moments),
        ("telling of releases that wait", MOMENT_SECONDS, note_waiting),
        ("telling of the entries of a day", DIGEST_SECONDS, note_digests),
    )


@receiver(hooks.integrity_checks)
def checks_of_campaigns(*, fast: bool, **_: Any) -> Callable[[], Iterator[Finding]]:
    return partial(find_in_campaigns, fast=fast)
