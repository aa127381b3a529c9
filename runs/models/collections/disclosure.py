"""Decide who sees what depends on judgements. This is the only place that does.

`sees_everything` opens every general address: values, boards, comparisons, judgements.
`sees_own_results` opens none of them: only the results of a team in a phase, at the addresses that
ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import Team, is_staff

if TYPE_CHECKING:
    from runs.models.campaigns import Phase
    from runs.models.collections.collections import Collection, Qrels

_ACCEPTED = "accepted"


class Disclosure(models.IntegerChoices):
    """The audience of what depends on the judgements of a collection; it only grows."""

    ORGANISERS = 0, "organisers"
    TEAMS = 1, "teams"
    PARTICIPANTS = 2, "participants"
    PUBLIC = 3, "public"


def in_team_of(user: Any, of: str = "") -> Q:
    """Return the condition of rows of the user's teams."""
    teams = Team.objects.of(user) if user.is_authenticated else ()
    return Q(**{f"{of}team__in": teams})


def led_by(user: Any, of: str = "") -> Q:
    """Return the condition of collections, or other rows, of teams that the user owns."""
    teams = Team.objects.led_by(user) if user.is_authenticated else ()
    return Q(**{f"{of}team__in": teams})


def sees_everything(user: Any, of: str = "", at: datetime | None = None) -> Q:
    """Return the condition of collections with all that depends on their judgements for a user.

    These are public ones, those that the user organises, and those that are shown to participants
    if the user is one: a member of an accepted team of a campaign with a phase on the collection.
    As long as names of teams are hidden that the general addresses would show, these open to
    organisers alone. For staff there is no condition.

    `of` is the path from a row to its collection, as in "collection__"; `at` is the time, by
    default now.
    """
    if is_staff(user):
        return Q()

    named = Q(**{f"{of}veiled_until": None}) | Q(**{f"{of}veiled_until__lte": at or now()})
    disclosed = named & sees_disclosed(user, of)
    return disclosed | led_by(user, of) if user.is_authenticated else disclosed


def sees_disclosed(user: Any, of: str = "") -> Q:
    """Return the condition of collections with results that are disclosed to the user.

    Names of teams may be hidden in them.
    """
    public = Q(**{f"{of}blind": False})
    if not user.is_authenticated:
        return public

    member = {"user": user.pk, "left_at": None, "participation__state": _ACCEPTED}
    of_member = {f"campaign__members__{name}": value for name, value in member.items()}
    phases = apps.get_model("runs", "Phase").objects.filter(**of_member).order_by()
    participants = {
        f"{of}shown_to": Disclosure.PARTICIPANTS,
        f"{of}pk__in": phases.values("collection"),
    }

    return public | Q(**participants)


def now() -> datetime:
    """Return the time at which names that were hidden are shown."""
    return timezone.now()


def sees_own_results(user: Any, phase: Phase) -> bool:
    """Return whether the user sees the results of the user's own team in a phase.

    Members of an accepted team do once the collection is disclosed to teams, or where the phase
    gives feedback. They may not see the results of others.
    """
    disclosed = phase.collection.disclosure >= Disclosure.TEAMS
    return (disclosed or gives_feedback(phase, "own", "board")) and is_participant(user, phase)


def sees_board(user: Any, phase: Phase) -> bool:
    """Return whether the user sees the board of a phase, on which names may be hidden.

    Everybody does who sees everything, and members of accepted teams where its feedback is the
    board.
    """
    rows = apps.get_model("runs", "Collection").objects.filter(pk=phase.collection_id)
    if rows.disclosed_to(user).exists():
        return True
    return gives_feedback(phase, "board") and is_participant(user, phase)


def sees_results(user: Any, phase: Phase) -> bool:
    """Return whether the user sees any results of a phase: those of an own team, or its board."""
    return sees_own_results(user, phase) or sees_board(user, phase)


def boards_seen(user: Any, phases: Iterable[Phase]) -> set[int]:
    """Return the keys of the phases with boards that the user sees, by the rule of `sees_board`.

    This takes one query, and more only for phases that give their boards as feedback.
    """
    phases = list(phases)
    if is_staff(user):
        return {phase.pk for phase in phases}

    collections = apps.get_model("runs", "Collection").objects.filter(
        pk__in={phase.collection_id for phase in phases}
    )
    disclosed = set(collections.disclosed_to(user).values_list("pk", flat=True))
    return {
        phase.pk
        for phase in phases
        if phase.collection_id in disclosed
        or (gives_feedback(phase, "board") and is_participant(user, phase))
    }


def gives_feedback(phase: Phase, *kinds: str) -> bool:
    """Return whether a phase gives feedback of one of these kinds now.

    Its setting has no effect while its judgements decide an evaluation.
    """
    return phase.feedback in kinds and leaks_to(phase) is None


def leaks_to(phase: Phase) -> Phase | None:
    """Return an undisclosed evaluation phase with the judgements of this phase, or None.

    It is on the same collection, or its active judgements are a file of this phase's collection.
    Values of this phase would disclose them: one run with values by topic reveals a dozen
    judgements of each. Every version of this phase's collection counts, as teams may have seen
    values under it.
    """
    phases, qrels = apps.get_model("runs", "Phase").objects, apps.get_model("runs", "Qrels").objects
    files = qrels.filter(collection=phase.collection_id).order_by().values("sha256")
    same_file = Q(collection__qrels__sha256__in=files)
    reduced_file = Q(collection__qrels__reduced_from__sha256__in=files)
    same_judgements = Q(collection__qrels__active=True) & (same_file | reduced_file)

    evaluation: Phase | None = (
        phases.filter(
            Q(collection=phase.collection_id) | same_judgements,
            kind="evaluation",
            collection__blind=True,
            collection__shown_to=Disclosure.ORGANISERS,
        )
        .exclude(pk=phase.pk)
        .select_related("campaign")
        .first()
    )
    return evaluation


def files_of(qrels: Qrels | None) -> set[str]:
    """Return the SHA-256 of judgements, and of the version with all topics if they lack some."""
    if qrels is None:
        return set()
    return {version.sha256 for version in (qrels, qrels.reduced_from) if version}


def feedback_on(files: set[str], collection: Collection) -> Phase | None:
    """Return a phase that gives feedback on another collection with one of these files, or None."""
    phases = apps.get_model("runs", "Phase").objects.exclude(feedback="none")
    phase: Phase | None = (
        phases.filter(collection__qrels__sha256__in=files)
        .exclude(collection=collection)
        .select_related("campaign", "collection")
        .first()
    )

    return phase


def is_participant(user: Any, phase: Phase) -> bool:
    """Return whether the user is a member of an accepted team of the phase's campaign."""
    if not user.is_authenticated:
        return False
    members = phase.campaign.members.filter(user=user, left_at=None, participation__state=_ACCEPTED)
    return bool(members.exists())
