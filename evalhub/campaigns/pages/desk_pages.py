"""What the organisers' pages of a campaign share: tabs, permission and refusals."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.questions.lookup import organised_campaign
from metrics.engine.errors import EvalHubError
from runs.models import Campaign, Scope
from runs.services import clock
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of
from runs.web.permissions import Access

# The pages of the desk, in the order of their navigation.
TABS = {
    "campaign-desk-page": "Overview",
    "campaign-teams-page": "Teams",
    "campaign-links-page": "Invitations",
    "campaign-entries-page": "Entries",
    "campaign-notices-page": "Notices and mail",
    "campaign-agreements-page": "Agreements",
    "campaign-audit-page": "Audit trail",
    "campaign-settings-page": "Settings",
    "campaign-config-page": "File",
}


def answer(
    request: Request, template: str, context: dict[str, Any], refused: Refusal | None = None
) -> HttpResponse:
    """Return a page that is not cached, with the status of a refusal if there is one."""
    values = {**context, "refused": refused, "field_errors": refused.fields if refused else {}}
    response = render(request, template, values, status=refused.status if refused else 200)
    response["Cache-Control"] = "no-store"
    return response


def frame(campaign: Campaign, current: str = "") -> dict[str, Any]:
    """Return what the head of the organisers' pages needs."""
    return {
        "campaign": campaign,
        "now": clock.database_now(),
        "tabs": [
            (reverse(name, args=[campaign.slug]), title, name == current)
            for name, title in TABS.items()
        ],
    }


class DeskPage(FormPage):
    """A page of the organisers of a campaign.

    `act` does what a form asks for, and returns a message and the address of the next page.
    """

    access = {"GET": Access.ORGANISERS}
    name: ClassVar[str] = ""
    template: ClassVar[str]

    def get(self, request: Request, campaign: str, **kwargs: str) -> HttpResponse:
        return self.show(request, organised_campaign(request, campaign), kwargs)

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        """Return what the page shows of the campaign."""
        return {}

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        raise NotImplementedError

    def show(
        self,
        request: Request,
        campaign: Campaign,
        kwargs: dict[str, str],
        refused: Refusal | None = None,
    ) -> HttpResponse:
        context = {**frame(campaign, self.name), **self.about(request, campaign, **kwargs)}
        return answer(request, self.template, context, refused)


class ChangingDeskPage(DeskPage):
    """The same with forms."""

    scopes = {"POST": Scope.MANAGE}

    def post(self, request: Request, campaign: str, **kwargs: str) -> HttpResponse:
        organised = organised_campaign(request, campaign)
        try:
            done, address = self.act(request, organised, **kwargs)
        except (EvalHubError, APIException) as error:
            return self.show(
                request, organised_campaign(request, campaign), kwargs, refusal_of(error)
            )

        messages.success(request, done)

        return redirect_to(request, address)
