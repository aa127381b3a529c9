"""Pages of collections and runs."""

from __future__ import annotations

from django.urls import URLPattern, path

from runs import views
from runs.pages.account import AccountPage
from runs.pages.parameters import RunParametersPage
from runs.pages.submit import SubmitPage
from runs.pages.tokens import TokensPage
from runs.pages.webhooks import CollectionWebhooksPage, TeamWebhooksPage

urlpatterns: list[URLPattern] = [
    path("", views.home, name="home"),
    path("collections/<slug:slug>/submit/", SubmitPage.as_view(), name="submit-page"),
    path("collections/<slug:slug>/webhooks/", CollectionWebhooksPage.as_view(), name="collection-webhooks-page"),
    path("teams/<slug:team>/webhooks/", TeamWebhooksPage.as_view(), name="team-webhooks-page"),
    path("runs/<uuid:run_id>/parameters/", RunParametersPage.as_view(), name="run-parameters-page"),
    path("account/", AccountPage.as_view(), name="account-page"),
    path("tokens/", TokensPage.as_view(), name="tokens-page"),
]
