"""The events of a campaign and all that belongs to it in the audit trail."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from runs.models import AuditEvent, Campaign, Release

_ACTION = AuditEvent.Action
# The beginnings of the actions of campaigns.
_OF_CAMPAIGNS = (
    "campaign.", "phase.", "agreement.", "participation.", "participant.", "entry.", "release.",
    "values.", "snapshot.", "notice.",
)  # fmt: skip
ACTIONS = tuple(action for action in _ACTION.values if action.startswith(_OF_CAMPAIGNS))


@dataclass(frozen=True)
class Subject:
    """The object of an event, in words; `phase` and `team` are slugs, or None without one."""

    words: str
    phase: str | None = None
    team: str | None = None


def subjects_of(campaign: Campaign) -> dict[tuple[str, str], Subject]:
    """Return what the events of a campaign are about, by the type and id of their objects."""
    subjects = {("campaign", str(campaign)): Subject("the campaign")}
    for phase in campaign.phases.all():
        subjects["phase", f"{campaign}/{phase.slug}"] = Subject(f"phase {phase.slug}", phase.slug)

    for team in campaign.participations.select_related("team"):
        subjects["participation", f"{team.team} in {campaign}"] = Subject(
            f"team {team.team}", None, str(team.team)
        )

    for agreement in campaign.agreements.all():
        subjects["agreement", f"{agreement.title} of {campaign}"[:200]] = Subject(
            f"agreement {agreement.title}"
        )

    entries = campaign.phases.order_by().exclude(entries=None)
    columns = (
        "entries__pk",
        "entries__number",
        "entries__run__tag",
        "slug",
        "entries__participation__team__slug",
    )

    for pk, number, tag, phase, team in entries.values_list(*columns):
        subjects["entry", str(pk)] = Subject(f"entry {number} of {phase}, {tag}", phase, team)

    for release in Release.objects.filter(phase__campaign=campaign).select_related("phase"):
        words = f"release of {release.phase.slug} to {release.get_audience_display()}"
        subjects["release", str(release.pk)] = Subject(words, release.phase.slug)

    for snapshot in campaign.snapshots.select_related("phase"):
        of = snapshot.phase.slug if snapshot.phase else None
        subjects["snapshot", snapshot.code] = Subject(f"snapshot {snapshot.code}", of)

    for pk, title in campaign.notices.values_list("pk", "title"):
        subjects["campaignnotice", str(pk)] = Subject(f"notice {title}")

    return subjects


def events_of(
    campaign: Campaign, subjects: dict[tuple[str, str], Subject], *, phase: str = "", team: str = ""
) -> QuerySet[AuditEvent]:
    """Return the events of a campaign, newest first, or only those of a phase, a team or both.

    An earlier, deleted draft with the same slug is another campaign.
    """
    matching = [
        (kind, key)
        for (kind, key), subject in subjects.items()
        if phase in ("", subject.phase) and team in ("", subject.team)
    ]
    about = Q(pk__in=())

    for kind in {kind for kind, _ in matching}:
        about |= Q(object_type=kind, object_id__in=[key for of, key in matching if of == kind])

    creation = (
        AuditEvent.objects.filter(object_id=str(campaign), action=_ACTION.CAMPAIGN_CREATED)
        .order_by("-pk")
        .first()
    )

    return AuditEvent.objects.filter(
        about, action__in=ACTIONS, pk__gte=creation.pk if creation else 0
    )
