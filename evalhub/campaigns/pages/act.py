"""What an act on a campaign is, and what it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from django.conf import settings
from django.http import Http404
from rest_framework.request import Request

from evalhub.campaigns.api.inputs import OptionalReasonSerializer, ReasonSerializer
from evalhub.campaigns.services.notifications import unreachable_teams
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
# Names of teams in one sentence.
_NAMES = 20
ACCEPTED, ENTERED = Participation.State.ACCEPTED, Entry.State.ENTERED


@dataclass(frozen=True)
class Target:
    """What an act is about: a campaign, and perhaps one of its phases, teams, entries and so on.

    A property `of_...` returns a part that the act needs; it raises Http404 if it is missing.
    """

    request: Request
    campaign: Campaign
    phase: Phase | None = None
    team: Participation | None = None
    entry: Entry | None = None
    release: Release | None = None
    member: CampaignMember | None = None
    extension: Extension | None = None
    teams: Sequence[Participation] = ()

    @property
    def user(self) -> User:
        return cast(User, self.request.user)

    @property
    def origin(self) -> Any:
        return origin_of(self.request)

    @property
    def of_phase(self) -> Phase:
        return _required(self.phase, "phase")

    @property
    def of_team(self) -> Participation:
        return _required(self.team, "team")

    @property
    def of_entry(self) -> Entry:
        return _required(self.entry, "entry")

    @property
    def of_member(self) -> CampaignMember:
        return _required(self.member, "member of a team")

    @property
    def of_extension(self) -> Extension:
        return _required(self.extension, "extension")

    @property
    def of_release(self) -> Release:
        return _required(self.release, "release")

    def reason(self, *, required: bool = True) -> str:
        kind = ReasonSerializer if required else OptionalReasonSerializer
        serializer: Any = kind(data={"reason": str(self.request.data.get("reason", "")).strip()})
        serializer.is_valid(raise_exception=True)
        return str(serializer.validated_data["reason"])


@dataclass(frozen=True)
class Act:
    """An act: its button, sentences that say what it will do, and the function that does it.

    `do` returns a sentence about what was done. `asks` names the fields of the form. With
    `organisers`, only organisers may do it, otherwise members of the team may, too.
    """

    title: str
    button: str
    says: Callable[[Target], list[str]]
    do: Callable[[Target], str]
    asks: tuple[str, ...] = ()
    organisers: bool = True
    back: str = "campaign-desk-page"


def _required(part: _T | None, name: str) -> _T:
    if part is None:
        raise Http404(f"the address names no {name}")
    return part


def many(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def people(target: Target) -> str:
    accepted = target.campaign.participations.filter(state=ACCEPTED)
    members = CampaignMember.objects.filter(
        participation__in=accepted.order_by(), left_at=None
    ).count()
    return f"{many(accepted.count(), 'accepted team')} with {many(members, 'member')}"


def warn_of_unreachable(target: Target) -> list[str]:
    """Return a sentence with the teams that get no mail about an act.

    There is none if all get it, or if the server sends no mail.
    """
    if not settings.EVALHUB_MAIL_URL:
        return []

    names = [team.name for team in unreachable_teams(target.campaign)]
    if not names:
        return []

    listed = ", ".join(names[:_NAMES])
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    have = many(len(names), "team has", "teams have")

    return [f"{have} no mail address, and no mail about it reaches them: {listed}{more}."]
