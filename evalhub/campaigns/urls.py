"""Pages of campaigns, and of the snapshots of their results."""

from __future__ import annotations

from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter

from evalhub.campaigns.pages import boards, snapshots
from evalhub.campaigns.pages.acts import ActPage
from evalhub.campaigns.pages.configuration import ConfigurationPage
from evalhub.campaigns.pages.copying import CopyPage
from evalhub.campaigns.pages.desk import EntriesPage, OverviewPage, TeamsPage
from evalhub.campaigns.pages.entering import EnterPage, EntryPage, OwnEntryPage
from evalhub.campaigns.pages.links import LinksPage, join_campaign_page
from evalhub.campaigns.pages.new_snapshot import MakeSnapshotPage
from evalhub.campaigns.pages.notices import NoticesPage
from evalhub.campaigns.pages.public import (
    campaign_page,
    campaigns_page,
    cite_page,
    leaderboard_page,
    rules_page,
)
from evalhub.campaigns.pages.setup import AgreementsPage, NewCampaignPage, PhasePage, SettingsPage
from evalhub.campaigns.pages.team import TeamDeskPage
from evalhub.campaigns.pages.topic_statistics import TopicStatisticsPage
from evalhub.campaigns.pages.trail import TrailPage

_CAMPAIGN = "campaigns/<slug:campaign>/"


class SnapshotConverter(StringConverter):
    """Match the code of a snapshot: at least 20 digits of its SHA-256.

    Keys of share links are shorter.
    """

    regex = "[0-9a-f]{20,64}"


class SnapshotFormConverter(StringConverter):
    """Match the forms of a snapshot."""

    regex = "|".join(form.replace(".", r"\.") for form in snapshots.FILES)


register_converter(SnapshotConverter, "snapshot_code")
register_converter(SnapshotFormConverter, "snapshot_form")

urlpatterns: list[URLPattern] = [
    path("campaigns/", campaigns_page, name="campaigns-page"),
    path("join-campaign/", join_campaign_page, name="join-campaign-page"),
    path("new-campaign/", NewCampaignPage.as_view(), name="new-campaign-page"),
    path(_CAMPAIGN, campaign_page, name="campaign-page"),
    path(_CAMPAIGN + "leaderboard/", leaderboard_page, name="campaign-leaderboard-page"),
    path(_CAMPAIGN + "rules/", rules_page, name="campaign-rules-page"),
    path(_CAMPAIGN + "cite/", cite_page, name="campaign-cite-page"),
    path(_CAMPAIGN + "desk/", OverviewPage.as_view(), name="campaign-desk-page"),
    path(_CAMPAIGN + "desk/teams/", TeamsPage.as_view(), name="campaign-teams-page"),
    path(_CAMPAIGN + "desk/invitations/", LinksPage.as_view(), name="campaign-links-page"),
    path(_CAMPAIGN + "desk/entries/", EntriesPage.as_view(), name="campaign-entries-page"),
    path(_CAMPAIGN + "desk/enter/", OwnEntryPage.as_view(), name="campaign-own-entry-page"),
    path(_CAMPAIGN + "desk/agreements/", AgreementsPage.as_view(), name="campaign-agreements-page"),
    path(_CAMPAIGN + "desk/notices/", NoticesPage.as_view(), name="campaign-notices-page"),
    path(_CAMPAIGN + "desk/audit/", TrailPage.as_view(), name="campaign-audit-page"),
    path(_CAMPAIGN + "desk/settings/", SettingsPage.as_view(), name="campaign-settings-page"),
    path(_CAMPAIGN + "desk/file/", ConfigurationPage.as_view(), name="campaign-config-page"),
    path(_CAMPAIGN + "desk/copy/", CopyPage.as_view(), name="campaign-copy-page"),
    path(_CAMPAIGN + "desk/new-phase/", PhasePage.as_view(), name="campaign-new-phase-page"),
    path(_CAMPAIGN + "desk/phases/<slug:phase>/", PhasePage.as_view(), name="campaign-phase-page"),
    path(
        _CAMPAIGN + "desk/phases/<slug:phase>/topics/",
        TopicStatisticsPage.as_view(),
        name="campaign-topics-page",
    ),
    path(_CAMPAIGN + "acts/<slug:act>/", ActPage.as_view(), name="campaign-act-page"),
    path(_CAMPAIGN + "team/", TeamDeskPage.as_view(), name="campaign-team-page"),
    path(_CAMPAIGN + "team/<slug:phase>/", EnterPage.as_view(), name="campaign-enter-page"),
    path(_CAMPAIGN + "entries/<uuid:entry>/", EntryPage.as_view(), name="campaign-entry-page"),
    path(
        _CAMPAIGN + "phases/<slug:phase>/",
        boards.phase_board_page,
        name="phase-board-page",
    ),
    path(
        _CAMPAIGN + "desk/snapshot/",
        MakeSnapshotPage.as_view(),
        name="campaign-snapshot-page",
    ),
    path("s/<snapshot_code:snapshot>/", snapshots.snapshot_page, name="snapshot-page"),
    path(
        "s/<snapshot_code:snapshot>.<snapshot_form:ending>",
        snapshots.snapshot_file,
        name="snapshot-file",
    ),
]
