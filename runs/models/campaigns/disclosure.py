"""Who sees the results of a phase, beside those who see everything on its collection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from runs.models.accounts.accounts import is_staff
from runs.models.campaigns.campaigns import Participation, Phase
from runs.models.collections.collections import Collection, Qrels
from runs.models.collections.disclosure import Disclosure

_ACCEPTED = Participation.State.ACCEPTED


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
    rows = Collection.objects.filter(pk=phase.collection_id)
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

    collections = Collection.objects.filter(pk__in={phase.collection_id for phase in phases})
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
    phases, qrels = Phase.objects, Qrels.objects
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


def feedback_on(files: set[str], collection: Collection) -> Phase | None:
    """Return a phase that gives feedback on another collection with one of these files, or None."""
    phases = Phase.objects.exclude(feedback="none")
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
