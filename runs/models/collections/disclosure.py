"""Who sees what depends on judgements. This is the only place that decides it.

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
    """To whom what depends on the judgements of a collection is shown; it only grows."""

    ORGANISERS = 0, "organisers"
    TEAMS = 1, "teams"
    PARTICIPANTS = 2, "participants"
    PUBLIC = 3, "public"


def in_team_of(user: Any, of: str = "") -> Q:
    """Return the condition of rows of a team of which the user is a member."""
    teams = Team.objects.of(user) if user.is_authenticated else ()
    return Q(**{f"{of}team__in": teams})


def led_by(user: Any, of: str = "") -> Q:
    """Return the condition of collections, or of other rows of a team, whose team the user owns."""
    teams = Team.objects.led_by(user) if user.is_authenticated else ()
    return Q(**{f"{of}team__in": teams})


def sees_everything(user: Any, of: str = "", at: datetime | None = None) -> Q:
    """Return the condition of collections of which the user sees everything that depends on their judgements: public
    ones, those of which the user is an organiser, and those that are shown to participants, of whom
    the user is one: a member of an accepted team of a campaign with a phase on the collection. As
    long as names of teams are hidden that the general addresses would show, these open to
    organisers alone. For staff there is no condition.

    `of` is the path from the rows that are asked for to their collection, as in "collection__";
    `at` is the time, now unless another is given.
    """
    if is_staff(user):
        return Q()
    named = Q(**{f"{of}veiled_until": None}) | Q(**{f"{of}veiled_until__lte": at or now()})
    disclosed = named & sees_disclosed(user, of)
    return disclosed | led_by(user, of) if user.is_authenticated else disclosed


def sees_disclosed(user: Any, of: str = "") -> Q:
    """Return the condition of collections whose results the user sees by their disclosure, with names or without."""
    public = Q(**{f"{of}blind": False})
    if not user.is_authenticated:
        return public
    participants = {
        f"{of}shown_to": Disclosure.PARTICIPANTS,
        f"{of}pk__in": _takes_part_in(user),
    }
    return public | Q(**participants)


def now() -> datetime:
    """Return the time at which names that were hidden are shown."""
    return timezone.now()


def _takes_part_in(user: Any) -> models.QuerySet[Any]:
    """Return the collections of the phases of campaigns in which the user takes part with an accepted team."""
    member = {"user": user.pk, "left_at": None, "participation__state": _ACCEPTED}
    of_member = {f"campaign__members__{name}": value for name, value in member.items()}
    rows: models.QuerySet[Any] = apps.get_model("runs", "Phase").objects.filter(**of_member)
    return rows.order_by().values("collection")


def sees_own_results(user: Any, phase: Phase) -> bool:
    """Return whether the user sees the results of the user's own team in a phase: as a member of an accepted team, once
    the collection is disclosed to teams or where the phase gives feedback. It says nothing about
    the results of others."""
    shown = phase.collection.disclosure >= Disclosure.TEAMS or gives_feedback(phase, "own", "board")
    return shown and is_participant(user, phase)


def sees_board(user: Any, phase: Phase) -> bool:
    """Return whether the user sees the board of a phase: whoever sees everything, and members of accepted teams where
    its feedback is the board. Names may be hidden on it."""
    rows = apps.get_model("runs", "Collection").objects.filter(pk=phase.collection_id)
    if rows.disclosed_to(user).exists():
        return True
    return gives_feedback(phase, "board") and is_participant(user, phase)


def sees_results(user: Any, phase: Phase) -> bool:
    """Return whether the user sees any results of a phase: those of the user's own team, or its board."""
    return sees_own_results(user, phase) or sees_board(user, phase)


def boards_seen(user: Any, phases: Iterable[Phase]) -> set[int]:
    """Return the keys of those phases whose boards the user sees, as `sees_board` says of each, in one query unless one
    of them gives its board as feedback."""
    asked = list(phases)
    if is_staff(user):
        return {one.pk for one in asked}
    rows = apps.get_model("runs", "Collection").objects.filter(
        pk__in={one.collection_id for one in asked}
    )
    open_now = set(rows.disclosed_to(user).values_list("pk", flat=True))
    return {
        one.pk for one in asked
        if one.collection_id in open_now or (gives_feedback(one, "board") and is_participant(user, one))
    }  # fmt: skip


def gives_feedback(phase: Phase, *kinds: str) -> bool:
    """Return whether a phase gives feedback of one of these kinds now. It never does while its judgements decide an
    evaluation, whatever it says."""
    return phase.feedback in kinds and leaks_to(phase) is None


def leaks_to(phase: Phase) -> Phase | None:
    """Return an evaluation phase whose results nobody sees yet, and whose judgements are those of this phase: it is on
    the same collection, or its active judgements are a file of this phase's collection. Values of
    this phase would tell them: one run with values by topic reveals a dozen judgements of each.

    Every version of this phase's collection counts, as teams may have seen values under it.
    """
    phases, qrels = apps.get_model("runs", "Phase").objects, apps.get_model("runs", "Qrels").objects
    files = qrels.filter(collection=phase.collection_id).order_by().values("sha256")
    active = Q(collection__qrels__active=True) & (
        Q(collection__qrels__sha256__in=files)
        | Q(collection__qrels__reduced_from__sha256__in=files)
    )
    evaluation: Phase | None = (
        phases.filter(
            Q(collection=phase.collection_id) | active,
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
    """Return the SHA-256 of judgements, and of those that they are without excluded topics."""
    if qrels is None:
        return set()
    return {version.sha256 for version in (qrels, qrels.reduced_from) if version}


def feedback_on(files: set[str], collection: Collection) -> Phase | None:
    """Return a phase that gives feedback on another collection, one of whose versions is one of these files."""
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
