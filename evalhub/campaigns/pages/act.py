"""What an act on a campaign is, and what it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from django.http import Http404
from rest_framework.request import Request

from evalhub.campaigns.api.inputs import OptionalReasonSerializer, ReasonSerializer
from runs.models import (
    Campaign,
    CampaignMember,
    Entry,
    Extension,
    Participation,
    Phase,
    Release,
    User,
)
from runs.web.origin import origin_of

_T = TypeVar("_T")
ACCEPTED, ENTERED = Participation.State.ACCEPTED, Entry.State.ENTERED


@dataclass(frozen=True)
class Target:
    """What an act is about: a campaign, and of it perhaps a phase, an extension, a team, a person in it, an entry or a
    release."""

    request: Request
    campaign: Campaign
    phase: Phase | None = None
    team: Participation | None = None
    entry: Entry | None = None
    release: Release | None = None
    member: CampaignMember | None = None
    extension: Extension | None = None

    @property
    def user(self) -> User:
        return cast(User, self.request.user)

    @property
    def origin(self) -> Any:
        return origin_of(self.request)

    @property
    def of_phase(self) -> Phase:
        return _found(self.phase, "phase")

    @property
    def of_team(self) -> Participation:
        return _found(self.team, "team")

    @property
    def of_entry(self) -> Entry:
        return _found(self.entry, "entry")

    @property
    def of_member(self) -> CampaignMember:
        return _found(self.member, "member of a team")

    @property
    def of_extension(self) -> Extension:
        return _found(self.extension, "extension")

    @property
    def of_release(self) -> Release:
        return _found(self.release, "release")

    def reason(self, *, required: bool = True) -> str:
        kind = ReasonSerializer if required else OptionalReasonSerializer
        serializer: Any = kind(data={"reason": str(self.request.data.get("reason", "")).strip()})
        serializer.is_valid(raise_exception=True)
        return str(serializer.validated_data["reason"])


@dataclass(frozen=True)
class Act:
    """An act: its button, what it will do to whom in sentences with counts, and what does it, which returns what was
    done. `asks` names the fields of its form; `organisers` do it, or else members of the team."""

    title: str
    button: str
    says: Callable[[Target], list[str]]
    do: Callable[[Target], str]
    asks: tuple[str, ...] = ()
    organisers: bool = True
    back: str = "campaign-desk-page"


def _found(one: _T | None, name: str) -> _T:
    if one is None:
        raise Http404(f"the address names no {name}")
    return one


def many(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def people(target: Target) -> str:
    accepted = target.campaign.participations.filter(state=ACCEPTED)
    members = CampaignMember.objects.filter(
        participation__in=accepted.order_by(), left_at=None
    ).count()
    return f"{many(accepted.count(), 'accepted team')} with {many(members, 'member')}"
