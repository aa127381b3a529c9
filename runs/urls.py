"""Pages of collections and runs."""

from __future__ import annotations

from django.urls import URLPattern, path

from runs.pages.accounts.account import AccountPage
from runs.pages.accounts.inviting import InvitePage
from runs.pages.accounts.joining import (
    first_account_page,
    forgotten_password_page,
    join_page,
    new_password_page,
    register_page,
)
from runs.pages.accounts.provider import (
    new_provider_account_page,
    provider_callback,
    provider_login,
)
from runs.pages.accounts.teams import TeamPage, TeamsPage
from runs.pages.accounts.tokens import TokensPage
from runs.pages.collections.collections import NewCollectionPage
from runs.pages.collections.manage.access import AccessPage
from runs.pages.collections.manage.audit import AuditPage
from runs.pages.collections.manage.documents import DocumentsPage
from runs.pages.collections.manage.general import GeneralPage
from runs.pages.collections.manage.judgements import JudgementsPage
from runs.pages.collections.manage.measures import MeasuresPage
from runs.pages.collections.manage.quota import QuotaPage
from runs.pages.collections.manage.topics import TopicsPage
from runs.pages.collections.manage.withdrawn import WithdrawnPage
from runs.pages.submissions.changes import RunChangePage, SessionSetChangePage
from runs.pages.submissions.my_runs import MyRunsPage
from runs.pages.submissions.submit import SubmitPage
from runs.pages.submissions.submit_sessions import SubmitSessionsPage
from runs.pages.tracking.artifacts import RunArtifactsPage
from runs.pages.tracking.experiments import ExperimentsPage
from runs.pages.tracking.lineage import RunLineagePage
from runs.pages.tracking.notes import CollectionNotesPage, ExperimentNotesPage, RunNotesPage
from runs.pages.tracking.parameter_table import EditParametersPage
from runs.pages.tracking.parameters import RunParametersPage
from runs.pages.tracking.renaming import RenameParameterPage
from runs.pages.tracking.systems import SystemChangePage
from runs.pages.webhooks import CollectionWebhooksPage, TeamWebhooksPage
from runs.web import views

_MANAGE = "collections/<slug:slug>/manage/"

urlpatterns: list[URLPattern] = [
    path("favicon.ico", views.favicon, name="favicon"),
    path("api/v1/", views.api_root, name="api-root"),
    path("new-collection/", NewCollectionPage.as_view(), name="new-collection-page"),
    path(_MANAGE, GeneralPage.as_view(), name="manage-page"),
    path(_MANAGE + "topics/", TopicsPage.as_view(), name="manage-topics-page"),
    path(_MANAGE + "judgements/", JudgementsPage.as_view(), name="manage-judgements-page"),
    path(_MANAGE + "documents/", DocumentsPage.as_view(), name="manage-documents-page"),
    path(_MANAGE + "measures/", MeasuresPage.as_view(), name="manage-measures-page"),
    path(_MANAGE + "access/", AccessPage.as_view(), name="manage-access-page"),
    path(_MANAGE + "quota/", QuotaPage.as_view(), name="manage-quota-page"),
    path(_MANAGE + "withdrawn/", WithdrawnPage.as_view(), name="manage-withdrawn-page"),
    path(_MANAGE + "audit/", AuditPage.as_view(), name="manage-audit-page"),
    path("collections/<slug:slug>/submit/", SubmitPage.as_view(), name="submit-page"),
    path(
        "collections/<slug:slug>/webhooks/",
        CollectionWebhooksPage.as_view(),
        name="collection-webhooks-page",
    ),
    path("teams/<slug:team>/webhooks/", TeamWebhooksPage.as_view(), name="team-webhooks-page"),
    path("runs/<uuid:run_id>/files/edit/", RunArtifactsPage.as_view(), name="run-artifacts-page"),
    path("runs/", MyRunsPage.as_view(), name="my-runs-page"),
    path("experiments/", ExperimentsPage.as_view(), name="experiments-page"),
    path("runs/<uuid:run>/notes/", RunNotesPage.as_view(), name="run-notes-page"),
    path(
        "collections/<slug:collection>/notes/",
        CollectionNotesPage.as_view(),
        name="collection-notes-page",
    ),
    path(
        "experiments/<uuid:experiment>/notes/",
        ExperimentNotesPage.as_view(),
        name="experiment-notes-page",
    ),
    path(
        "runs/<uuid:run_id>/parameters/edit/",
        RunParametersPage.as_view(),
        name="run-parameters-edit-page",
    ),
    path(
        "collections/<slug:slug>/parameters/edit/",
        EditParametersPage.as_view(),
        name="edit-parameters-page",
    ),
    path(
        "collections/<slug:slug>/parameters/rename/",
        RenameParameterPage.as_view(),
        name="rename-parameter-page",
    ),
    path(
        "collections/<slug:slug>/submit-sessions/",
        SubmitSessionsPage.as_view(),
        name="submit-sessions-page",
    ),
    path("runs/<uuid:run>/change/", RunChangePage.as_view(), name="run-change-page"),
    path(
        "session-sets/<uuid:session_set>/change/",
        SessionSetChangePage.as_view(),
        name="session-set-change-page",
    ),
    path("runs/<uuid:run_id>/lineage/", RunLineagePage.as_view(), name="run-lineage-page"),
    path(
        "systems/<slug:team>/<str:system>/change/",
        SystemChangePage.as_view(),
        name="system-change-page",
    ),
    path("first-account/", first_account_page, name="first-account-page"),
    path("login/organisation/", provider_login, name="provider-login"),
    path("login/organisation/callback/", provider_callback, name="provider-callback"),
    path("login/organisation/new/", new_provider_account_page, name="new-provider-account-page"),
    path("join/", join_page, name="join-page"),
    path("register/", register_page, name="register-page"),
    path("forgotten-password/", forgotten_password_page, name="forgotten-password-page"),
    path("new-password/", new_password_page, name="new-password-page"),
    path("invite/", InvitePage.as_view(), name="invite-page"),
    path("teams/", TeamsPage.as_view(), name="teams-page"),
    path("teams/<slug:team>/", TeamPage.as_view(), name="team-page"),
    path("account/", AccountPage.as_view(), name="account-page"),
    path("tokens/", TokensPage.as_view(), name="tokens-page"),
]
