"""Decide who sees what depends on judgements. This is the only place that does.

`sees_everything` opens every general address: values, boards, comparisons, judgements.
`sees_own_results` opens none of them: only the results of a team in a phase, at the addresses that
ask for it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import Team, is_staff

if TYPE_CHECKING:
    from runs.models.collections.collections import Qrels

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


def files_of(qrels: Qrels | None) -> set[str]:
    """Return the SHA-256 of judgements, and of the version with all topics if they lack some."""
    if qrels is None:
        return set()
    return {version.sha256 for version in (qrels, qrels.reduced_from) if version}
