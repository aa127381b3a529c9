"""The page on which organisers make links to take part, and the page that such a link opens."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.api.links import CampaignLinkSerializer, link_address
from evalhub.campaigns.pages.desk_pages import DeskPage, answer, frame
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.questions.lookup import organised_campaign, participation_of
from evalhub.campaigns.services.links import (
    create_campaign_link,
    open_links,
    take_part,
    take_part_as_newcomer,
    why_closed,
)
from evalhub.campaigns.services.teams import why_no_registrations
from metrics.engine.errors import EvalHubError
from runs.errors import Conflict, InvalidInput
from runs.models import Campaign, InvitationLink, Scope, Team, User
from runs.models.text import check_line
from runs.pages.accounts.joining import asks_address, password_of, welcome, without_trace
from runs.services import clock
from runs.services.accounts.invitation_links import (
    DAYS,
    campaign_links_create_accounts,
    creates_accounts,
    find_link,
    revoke_link,
)
from runs.services.accounts.provider_accounts import provider_label
from runs.web.forms import Refusal, fields_of, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.views import check_parameters, error_page, reads

_LINE = 150
_FIELDS = (
    "code", "username", "email", "password", "again", "team", "team_name", "affiliation", "agreements", "typed_name",
)  # fmt: skip


class LinksPage(DeskPage):
    """The open links of a campaign; make one, or revoke one."""

    name, template = "campaign-links-page", "campaigns/links.html"
    scopes = {"POST": Scope.MANAGE}
    fields = ("action", "team_name", "days", "max_uses", "key")

    def post(self, request: Request, campaign: str, **kwargs: str) -> HttpResponse:
        organised = organised_campaign(request, campaign)
        user, origin = cast(User, request.user), origin_of(request)
        try:
            if request.data.get("action") == "revoke":
                revoke_link(campaign=organised, key=str(request.data.get("key", "")), origin=origin)
                messages.success(request, "Invitation link revoked.")
                return redirect_to(request, reverse(self.name, args=[campaign]))

            fields = fields_of(request, "team_name", "days", "max_uses")
            serializer = CampaignLinkSerializer(
                data={name: value for name, value in fields.items() if value.strip()}
            )
            serializer.is_valid(raise_exception=True)
            _, code = create_campaign_link(
                campaign=organised, by=user, **serializer.validated_data, origin=origin
            )
        except (EvalHubError, APIException) as error:
            return self._page(request, organised, refusal_of(error))

        return self._page(request, organised, new_link=link_address(request, code))

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        return self._links(request, campaign)

    def _page(
        self,
        request: Request,
        campaign: Campaign,
        refused: Refusal | None = None,
        new_link: str = "",
    ) -> HttpResponse:
        context = {
            **frame(campaign, self.name),
            **self._links(request, campaign),
            "new_link": new_link,
        }
        if refused:
            context["form_values"] = request.data

        response = answer(request, self.template, context, refused)
        if new_link:
            response.status_code = 201
        return response

    def _links(self, request: Request, campaign: Campaign) -> dict[str, Any]:
        return {
            "creates_accounts": campaign_links_create_accounts(cast(User, request.user)),
            "links": open_links(campaign),
            "closed": why_no_registrations(campaign, clock.database_now(), invited=True),
            "form_values": {"days": DAYS},
        }


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("code", "password", "again")
@check_parameters
@reads("code", fields=_FIELDS)
def join_campaign_page(request: HttpRequest) -> HttpResponse:
    """Take part in the campaign of a link, with an account or with a new one."""
    form = request.POST if request.method == "POST" else request.GET
    code = form.get("code", "")
    context: dict[str, Any] = {"code": code, "form_values": form, "chosen": []}
    status = 200
    if request.method != "POST" and not code:
        # Its form takes a code, of a campaign as well.
        return HttpResponseRedirect(reverse("join-page"), status=303)

    try:
        link = find_link(code)
        campaign = link.campaign
        if campaign is None:
            query = urlencode({"code": code})
            return HttpResponseRedirect(f"{reverse('join-page')}?{query}", status=303)

        desk = reverse("campaign-team-page", args=[campaign.slug])
        if participation_of(request.user, campaign):
            return HttpResponseRedirect(desk, status=303)

        context |= _of_link(request, link, campaign)
        if refusal := why_closed(link):
            raise Conflict(refusal, code="registration_closed")

        if request.method == "POST":
            return _take_part(request, link, desk)
    except EvalHubError as error:
        if "link" not in context:
            return without_trace(error_page(request, error))
        refused = refusal_of(error)
        context |= {"refused": refused, "field_errors": refused.fields}
        context["chosen"] = request.POST.getlist("agreements")
        status = refused.status

    return without_trace(render(request, "campaigns/join.html", context, status=status))


def _of_link(request: HttpRequest, link: InvitationLink, campaign: Campaign) -> dict[str, Any]:
    """Return what the page shows of a link."""
    teams = Team.objects.led_by(request.user).exclude(participations__campaign=campaign)
    agreements = [(row, rendered(row.text, 4)) for row in campaign.agreements.all()]
    return {
        "link": link,
        "campaign": campaign,
        "closed": why_closed(link),
        "creates_accounts": creates_accounts(link),
        "provider": provider_label(),
        "agreements": agreements,
        "teams": [] if link.team_name else list(teams.order_by("slug")),
        "asks_address": not request.user.is_authenticated and asks_address(request, link),
    }


def _take_part(request: HttpRequest, link: InvitationLink, desk: str) -> HttpResponse:
    form, origin = request.POST, origin_of(request)
    fields: dict[str, Any] = {
        "link": link,
        "team_name": _line(form, "team_name", _LINE),
        "affiliation": _line(form, "affiliation", 300),
        "typed_name": _line(form, "typed_name", _LINE),
        "agreements": form.getlist("agreements"),
    }
    if request.user.is_authenticated:
        user, team = request.user, None
        if slug := form.get("team", ""):
            team = Team.objects.led_by(user).filter(slug=slug).first()
            if team is None:
                raise InvalidInput("choose a team that you own", pointer="/team")

        participation = take_part(**fields, user=user, team=team, origin=origin)
        messages.success(request, f"{participation.name} takes part.")
        return HttpResponseRedirect(desk, status=303)

    user = take_part_as_newcomer(
        **fields,
        username=form.get("username", ""),
        password=password_of(form),
        email=form.get("email", ""),
        origin=origin,
    )
    mail = " Open the link in the mail that was sent to you: it confirms your address."
    message = f"Welcome, {user}. You take part.{mail if asks_address(request, link) else ''}"

    return welcome(request, user, message, desk)


def _line(form: Any, name: str, most: int) -> str:
    """Return a field as one line. Raise InvalidInput for one that is too long or has others."""
    text = str(form.get(name, "")).strip()
    if len(text) > most:
        raise InvalidInput(f"use at most {most} characters", pointer=f"/{name}")

    try:
        check_line(text)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), pointer=f"/{name}") from error

    return text
