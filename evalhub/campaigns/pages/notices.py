"""The page on which organisers post notices and see the state of mails."""

from __future__ import annotations

from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import Count
from django.http import QueryDict
from django.urls import reverse
from rest_framework.request import Request

from evalhub.campaigns.api.notices import MAIL_STATES, NoticeSerializer, mail_answer
from evalhub.campaigns.pages.act import many
from evalhub.campaigns.pages.desk_pages import ChangingDeskPage
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.services.campaigns import post_notice
from runs.models import Campaign, CampaignNotice, Mail, Participation, User
from runs.web.forms import fields_of
from runs.web.origin import origin_of
from runs.web.parameters import text_of

_OF_A_PAGE, _LATEST = 50, 100
AUDIENCES = {
    "teams": "the accepted teams",
    "public": "everyone",
    "without_entries": "the accepted teams without an entry",
    "without_address": "the accepted teams without an address for mail",
    "chosen": "chosen teams",
}


class NoticesPage(ChangingDeskPage):
    """The notices of a campaign and its outbox of the last 90 days; POST posts a notice."""

    name, template = "campaign-notices-page", "campaigns/notices.html"
    reads = ("page", "teams", "audience")
    fields = ("title", "text", "audience", "teams")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        rows = campaign.mails.select_related("recipient").order_by("-created_at", "pk")
        page = Paginator(rows, _OF_A_PAGE).get_page(request.query_params.get("page"))
        numbers = campaign.mails.order_by().values_list("state").annotate(n=Count("pk"))

        chosen = _chosen_teams(request, campaign)
        audience = request.query_params.get("audience", "chosen" if chosen else "teams")
        written = campaign.notices.order_by("-posted_at", "pk").prefetch_related("teams")

        return {
            "notices": shown_notices(written),
            "organiser": True,
            "audiences": {
                name: words for name, words in AUDIENCES.items() if chosen or name != "chosen"
            },
            "chosen": chosen,
            "page": page,
            "mails": [mail_answer(mail) for mail in page],
            "mail_counts": [
                (MAIL_STATES[Mail.State(state)], number) for state, number in sorted(numbers)
            ],
            "form_values": request.data if request.method == "POST" else {"audience": audience},
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        fields: dict[str, Any] = fields_of(request, "title", "text", "audience")
        if fields.get("audience") == "chosen":
            fields["teams"] = _checked(request)

        serializer = NoticeSerializer(data=fields)
        serializer.is_valid(raise_exception=True)
        user, origin = cast(User, request.user), origin_of(request)
        notice = post_notice(
            campaign=campaign, user=user, origin=origin, **serializer.validated_data
        )

        number = notice.teams.count()
        readers = many(number, "chosen team") if number else AUDIENCES[notice.audience]

        return f"Notice {notice.title} posted to {readers}.", reverse(
            self.name, args=[campaign.slug]
        )


def _checked(request: Request) -> list[str]:
    return [str(slug) for slug in cast(QueryDict, request.data).getlist("teams")]


def _chosen_teams(request: Request, campaign: Campaign) -> list[tuple[Participation, bool]]:
    """Return the teams that the address or the form names, with whether the form has them."""
    named = set(text_of(request.query_params).get("teams", "").split(","))
    checked = set(_checked(request)) if request.method == "POST" else named
    rows = campaign.participations.select_related("team").order_by("name", "pk")
    rows = rows.filter(team__slug__in=named | checked)

    return [(team, team.team.slug in checked) for team in rows]


def shown_notices(rows: Any) -> list[tuple[CampaignNotice, str]]:
    """Return the latest notices, each with its text as HTML."""
    return [(notice, rendered(notice.text, 4)) for notice in rows[:_LATEST]]
