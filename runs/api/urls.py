"""URLs of the API for collections, submissions, teams, tokens and the audit trail."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from runs.api import webhooks
from runs.api.accounts import account_invitations, accounts
from runs.api.audit import trail as audit
from runs.api.collections import collections as views
from runs.api.submissions import my_runs, states, submissions
from runs.api.tracking import (
    artifacts,
    configurations,
    edits,
    experiments,
    keys,
    labels,
    lineage,
    notes,
    parameter_table,
)
from runs.models import ParameterKey
from runs.models.tracking.artifacts import NAME_RULE as ARTIFACT_NAME_RULE
from runs.models.tracking.labels import NAME_RULE


class SpaceConverter(StringConverter):
    """Match the spaces of parameters: parameters themselves, and costs."""

    regex = "|".join(ParameterKey.Space.values)


class LabelConverter(StringConverter):
    """Match the names of labels."""

    regex = NAME_RULE


class ArtifactConverter(StringConverter):
    """Match the names of artifacts."""

    regex = ARTIFACT_NAME_RULE


register_converter(ArtifactConverter, "artifact")
register_converter(SpaceConverter, "space")
register_converter(LabelConverter, "label")

_COLLECTION = "collections/<slug:collection>/"

urlpatterns = [
    path("collections/", views.CollectionList.as_view(), name="collections"),
    path(_COLLECTION, views.CollectionDetail.as_view(), name="collection"),
    path(_COLLECTION + "release/", views.CollectionRelease.as_view(), name="release"),
    path(_COLLECTION + "audit/", audit.CollectionAuditList.as_view(), name="collection-audit"),
    path(_COLLECTION + "topics/", views.TopicList.as_view(), name="topics"),
    path(
        _COLLECTION + "topic-attributes/",
        views.TopicAttributeList.as_view(),
        name="topic-attributes",
    ),
    path(_COLLECTION + "documents/", views.DocumentList.as_view(), name="documents"),
    path(_COLLECTION + "qrels/", views.QrelsList.as_view(), name="qrels-list"),
    path(_COLLECTION + "qrels/<int:version>/", views.QrelsDetail.as_view(), name="qrels"),
    path(
        _COLLECTION + "qrels/<int:version>/activate/",
        views.QrelsActivation.as_view(),
        name="qrels-activate",
    ),
    path(_COLLECTION + "qrels/<int:version>/file/", views.QrelsFile.as_view(), name="qrels-file"),
    path(_COLLECTION + "runs/", submissions.RunList.as_view(), name="runs"),
    path(_COLLECTION + "runs/metadata/", edits.RunsMetadata.as_view(), name="runs-metadata"),
    path(
        _COLLECTION + "parameters/csv/",
        parameter_table.ParameterTable.as_view(),
        name="parameter-table",
    ),
    path(
        _COLLECTION + "parameters/<space:space>/<path:parameter>/",
        keys.ParameterDetail.as_view(),
        name="parameter",
    ),
    path(
        _COLLECTION + "configurations/",
        configurations.ConfigurationsView.as_view(),
        name="configurations",
    ),
    path(_COLLECTION + "labels/", labels.LabelList.as_view(), name="labels"),
    path(_COLLECTION + "labels/<label:label>/", labels.LabelDetail.as_view(), name="label"),
    path(_COLLECTION + "sessions/", submissions.SessionSetList.as_view(), name="session-sets"),
    path(
        "session-sets/<uuid:session_set>/",
        submissions.SessionSetDetail.as_view(),
        name="session-set",
    ),
    path(
        "session-sets/<uuid:session_set>/restore/",
        submissions.SessionSetRestore.as_view(),
        name="session-set-restore",
    ),
    path(
        "session-sets/<uuid:session_set>/file/",
        submissions.SessionSetFile.as_view(),
        name="session-set-file",
    ),
    path("runs/", states.RunStateList.as_view(), name="run-states"),
    path("runs/<uuid:run>/", submissions.RunDetail.as_view(), name="run"),
    path("runs/<uuid:run>/restore/", submissions.RunRestore.as_view(), name="run-restore"),
    path("runs/<uuid:run>/metadata/", edits.RunMetadata.as_view(), name="run-metadata"),
    path("runs/<uuid:run>/artifacts/", artifacts.ArtifactList.as_view(), name="artifacts"),
    path(
        "runs/<uuid:run>/artifacts/<artifact:artifact>/",
        artifacts.ArtifactDetail.as_view(),
        name="artifact",
    ),
    path("runs/<uuid:run>/history/", edits.RunHistory.as_view(), name="run-history"),
    path("runs/<uuid:run>/parents/", lineage.RunParentList.as_view(), name="run-parents"),
    path("runs/<uuid:run>/tree/", lineage.RunTreeView.as_view(), name="run-tree"),
    path("runs/<uuid:run>/links/", lineage.RunLinkList.as_view(), name="run-links"),
    path("runs/<uuid:run>/file/", submissions.RunFile.as_view(), name="run-file"),
    path("runs/<uuid:run>/known/", submissions.RunKnown.as_view(), name="run-known"),
    path("experiments/", experiments.ExperimentList.as_view(), name="experiments"),
    path(
        "experiments/<uuid:experiment>/", experiments.ExperimentDetail.as_view(), name="experiment"
    ),
    path(
        "experiments/<uuid:experiment>/runs/",
        experiments.ExperimentRuns.as_view(),
        name="experiment-runs",
    ),
    path(
        "experiments/<uuid:experiment>/notes/",
        notes.ExperimentNotes.as_view(),
        name="experiment-notes",
    ),
    path("runs/<uuid:run>/notes/", notes.RunNotes.as_view(), name="run-notes"),
    path(_COLLECTION + "notes/", notes.CollectionNotes.as_view(), name="collection-notes"),
    path("notes/<uuid:note>/", notes.NoteDetail.as_view(), name="note"),
    path("me/", accounts.MeView.as_view(), name="me"),
    path("me/runs/", my_runs.MyRunList.as_view(), name="my-runs"),
    path("me/runs/withdrawn/", my_runs.MyWithdrawnRunList.as_view(), name="my-withdrawn-runs"),
    path("teams/", accounts.TeamList.as_view(), name="teams"),
    path("teams/<slug:team>/", accounts.TeamDetail.as_view(), name="team"),
    path("teams/<slug:team>/members/", accounts.MemberList.as_view(), name="members"),
    path(
        "teams/<slug:team>/members/<str:username>/", accounts.MemberDetail.as_view(), name="member"
    ),
    path(
        "teams/<slug:team>/invitations/",
        accounts.TeamInvitationList.as_view(),
        name="team-invitations",
    ),
    path(
        "teams/<slug:team>/invitations/<str:invited>/",
        accounts.TeamInvitationDetail.as_view(),
        name="team-invitation",
    ),
    path("invitations/", accounts.InvitationList.as_view(), name="invitations"),
    path("invitations/<slug:team>/", accounts.InvitationDetail.as_view(), name="invitation"),
    path(
        "account-invitations/",
        account_invitations.AccountInvitationList.as_view(),
        name="account-invitations",
    ),
    path(
        "account-invitations/<slug:account_link>/",
        account_invitations.AccountInvitationDetail.as_view(),
        name="account-invitation",
    ),
    path("tokens/", accounts.TokenList.as_view(), name="tokens"),
    path("tokens/<slug:key>/", accounts.TokenDetail.as_view(), name="token"),
    path("teams/<slug:team>/webhooks/", webhooks.TeamWebhookList.as_view(), name="team-webhooks"),
    path(
        _COLLECTION + "webhooks/",
        webhooks.CollectionWebhookList.as_view(),
        name="collection-webhooks",
    ),
    path("webhooks/<uuid:webhook>/", webhooks.WebhookDetail.as_view(), name="webhook"),
    path(
        "webhooks/<uuid:webhook>/secret/",
        webhooks.WebhookNewSecret.as_view(),
        name="webhook-secret",
    ),
    path("webhooks/<uuid:webhook>/test/", webhooks.WebhookTestView.as_view(), name="webhook-test"),
    path("webhooks/<uuid:webhook>/deliveries/", webhooks.DeliveryList.as_view(), name="deliveries"),
    path(
        "deliveries/<uuid:delivery>/again/", webhooks.DeliveryAgain.as_view(), name="delivery-again"
    ),
    path("audit/", audit.AuditList.as_view(), name="audit"),
]
