"""The page on which organisers post notices and see the state of mails."""

from __future__ import annotations

from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import Count
from django.urls import reverse
from rest_framework.request import Request

from evalhub.campaigns.api.notices import MAIL_STATES, NoticeSerializer, mail_answer
from evalhub.campaigns.pages.desk_pages import ChangingDeskPage
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.services.campaigns import post_notice
from runs.models import Campaign, CampaignNotice, Mail, User
from runs.web.forms import fields_of
from runs.web.origin import origin_of

_OF_A_PAGE, _LATEST = 50, 100
AUDIENCES = {"teams": "the accepted teams", "public": "everyone"}


class NoticesPage(ChangingDeskPage):
    """The notices of a campaign and its outbox of the last 90 days; POST posts a notice."""

    name, template = "campaign-notices-page", "campaigns/notices.html"
    reads = ("page",)
    fields = ("title", "text", "audience")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        rows = campaign.mails.select_related("recipient").order_by("-created_at", "pk")
        page = Paginator(rows, _OF_A_PAGE).get_page(request.query_params.get("page"))
        numbers = campaign.mails.order_by().values_list("state").annotate(n=Count("pk"))

        return {
            "notices": shown_notices(campaign.notices.order_by("-posted_at", "pk")),
            "audiences": AUDIENCES,
            "page": page,
            "mails": [mail_answer(mail) for mail in page],
            "mail_counts": [
                (MAIL_STATES[Mail.State(state)], number) for state, number in sorted(numbers)
            ],
            "form_values": request.data if request.method == "POST" else {"audience": "teams"},
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        serializer = NoticeSerializer(data=fields_of(request, *self.fields))
        serializer.is_valid(raise_exception=True)
        user, origin = cast(User, request.user), origin_of(request)
        notice = post_notice(
            campaign=campaign, user=user, origin=origin, **serializer.validated_data
        )

        return f"Notice {notice.title} posted to {AUDIENCES[notice.audience]}.", reverse(
            self.name, args=[campaign.slug]
        )


def shown_notices(rows: Any) -> list[tuple[CampaignNotice, str]]:
    """Return the latest notices, each with its text as HTML."""
    return [(notice, rendered(notice.text, 4)) for notice in rows[:_LATEST]]
