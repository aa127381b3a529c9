"""The API of campaigns, their entries and their results."""

from __future__ import annotations

from django.urls import URLPattern, path

from evalhub.campaigns.api import (
    boards,
    campaigns,
    configuration,
    entries,
    links,
    notices,
    phase_files,
    phases,
    releases,
    results,
    snapshots,
    teams,
    trail,
)

_CAMPAIGN = "campaigns/<slug:campaign>/"
_PHASE = _CAMPAIGN + "phases/<slug:phase>/"
_ENTRANT = _CAMPAIGN + "teams/<slug:entrant>/"

urlpatterns: list[URLPattern] = [
    path("campaigns/", campaigns.CampaignList.as_view(), name="campaigns"),
    path(_CAMPAIGN, campaigns.CampaignDetail.as_view(), name="campaign"),
    path(_CAMPAIGN + "publish/", campaigns.CampaignPublish.as_view(), name="campaign-publish"),
    path(_CAMPAIGN + "archive/", campaigns.CampaignArchive.as_view(), name="campaign-archive"),
    path(_CAMPAIGN + "config/", configuration.CampaignConfigView.as_view(), name="campaign-config"),
    path(_CAMPAIGN + "notices/", notices.NoticeList.as_view(), name="campaign-notices"),
    path(_CAMPAIGN + "outbox/", notices.OutboxList.as_view(), name="campaign-outbox"),
    path(_CAMPAIGN + "audit/", trail.CampaignTrail.as_view(), name="campaign-audit"),
    path(_CAMPAIGN + "agreements/", campaigns.AgreementList.as_view(), name="agreements"),
    path(
        _CAMPAIGN + "agreements/<slug:agreement>/sign/",
        campaigns.AgreementSign.as_view(),
        name="agreement-sign",
    ),
    path(_CAMPAIGN + "links/", links.CampaignLinkList.as_view(), name="campaign-links"),
    path(
        _CAMPAIGN + "links/<slug:campaign_link>/",
        links.CampaignLinkDetail.as_view(),
        name="campaign-link",
    ),
    path(_CAMPAIGN + "teams/", teams.ParticipationList.as_view(), name="participations"),
    path(_ENTRANT, teams.ParticipationDetail.as_view(), name="participation"),
    path(
        _ENTRANT + "invitations/",
        teams.ParticipationInvitationList.as_view(),
        name="participation-invitations",
    ),
    path(_ENTRANT + "members/", teams.CampaignMemberList.as_view(), name="participants"),
    path(
        _ENTRANT + "members/<str:participant>/",
        teams.CampaignMemberDetail.as_view(),
        name="participant",
    ),
    path(_CAMPAIGN + "phases/", phases.PhaseList.as_view(), name="phases"),
    path(_PHASE, phases.PhaseDetail.as_view(), name="phase"),
    path(_PHASE + "extend/", phases.PhaseExtend.as_view(), name="phase-extend"),
    path(_PHASE + "pause/", phases.PhasePause.as_view(), name="phase-pause"),
    path(_PHASE + "resume/", phases.PhaseResume.as_view(), name="phase-resume"),
    path(_PHASE + "entries/", entries.EntryList.as_view(), name="entries"),
    path(_PHASE + "priorities/", entries.PrioritiesView.as_view(), name="priorities"),
    path(_PHASE + "allowance/", entries.AllowanceView.as_view(), name="allowance"),
    path("entries/<uuid:entry>/", entries.EntryDetail.as_view(), name="entry"),
    path("entries/<uuid:entry>/withdraw/", entries.EntryWithdraw.as_view(), name="entry-withdraw"),
    path(
        "entries/<uuid:entry>/disqualify/",
        entries.EntryDisqualify.as_view(),
        name="entry-disqualify",
    ),
    path(_CAMPAIGN + "snapshots/", snapshots.SnapshotList.as_view(), name="snapshots"),
    path("snapshots/<slug:snapshot>/", snapshots.SnapshotDetail.as_view(), name="snapshot"),
    path(
        "snapshots/<slug:snapshot>/archive/",
        snapshots.SnapshotArchive.as_view(),
        name="snapshot-archive",
    ),
    path(
        "snapshots/<slug:snapshot>/withdraw/",
        snapshots.SnapshotWithdraw.as_view(),
        name="snapshot-withdraw",
    ),
    path(
        _PHASE + "packet/",
        results.PacketView.as_view(),
        name="packet",
    ),
    path(_PHASE + "packets/", phase_files.PacketsView.as_view(), name="packets"),
    path(_PHASE + "topics/", phase_files.TopicStatisticsView.as_view(), name="phase-topics"),
    path(
        _PHASE + "results/",
        results.ResultsView.as_view(),
        name="phase-results",
    ),
    path(
        _PHASE + "releases/",
        releases.ReleaseList.as_view(),
        name="phase-releases",
    ),
    path("releases/<uuid:release>/", releases.ReleaseDetail.as_view(), name="phase-release"),
    path("releases/<uuid:release>/now/", releases.ReleaseNow.as_view(), name="phase-release-now"),
    path(
        _PHASE + "board/",
        boards.PhaseBoardView.as_view(),
        name="phase-board",
    ),
    path(
        _PHASE + "board/export/<board_export:kind>/",
        boards.PhaseBoardExport.as_view(),
        name="phase-board-export",
    ),
]
