"""The page on which organisers copy a campaign, as for the next year."""

from __future__ import annotations

from typing import Any, cast

from django.urls import reverse
from django.utils.text import slugify
from rest_framework.request import Request

from evalhub.campaigns.api.campaigns import shift_of
from evalhub.campaigns.api.inputs import CampaignSerializer
from evalhub.campaigns.pages.desk_pages import ChangingDeskPage
from evalhub.campaigns.services.configuration import copy_campaign
from runs.errors import InvalidInput
from runs.models import Campaign, Collection, Team, User
from runs.web.forms import fields_of
from runs.web.origin import origin_of


class CopyPage(ChangingDeskPage):
    """Make a draft with the configuration, forms and agreements of a campaign.

    People and runs are not copied.
    """

    name, template = "campaign-copy-page", "campaigns/copy.html"
    fields = ("name", "slug", "team", "shift_days", "collections")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        collections = (
            Collection.objects.filter(phases__campaign=campaign).distinct().order_by("slug")
        )
        slugs = list(collections.values_list("slug", flat=True))
        proposed = {
            "team": campaign.team.slug,
            "shift_days": "365",
            "collections": "".join(f"{slug} = \n" for slug in slugs),
        }

        return {
            "teams": list(Team.objects.led_by(request.user)),
            "form_values": request.data if request.method == "POST" else proposed,
            "agreements": campaign.agreements.count(),
            "phases": list(campaign.phases.all()),
        }

    def act(self, request: Request, campaign: Campaign, **kwargs: str) -> tuple[str, str]:
        data: dict[str, Any] = fields_of(request, "name", "slug", "team")
        data["slug"] = data.get("slug") or slugify(data.get("name", ""))[:64]
        data["collections"] = _pairs_in(str(request.data.get("collections", "")))
        serializer = CampaignSerializer(data=data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        copy = copy_campaign(
            source=campaign,
            team=fields.pop("team"),
            user=cast(User, request.user),
            collections=fields.pop("collections"),
            fields=fields,
            shift=shift_of(str(request.data.get("shift_days", "")).strip() or "0"),
            origin=origin_of(request),
        )

        return f"Campaign {copy.name} is a draft.", reverse("campaign-desk-page", args=[copy.slug])


def _pairs_in(text: str) -> dict[str, str]:
    """Return the collections in lines such as `cup-1 = cup-2`.

    A line without a new collection keeps the old one. Raise InvalidInput with the number of a
    malformed line.
    """
    collections = {}
    for number, line in enumerate(text.splitlines(), 1):
        old, equals, new = (part.strip() for part in line.partition("="))
        if line.strip() and not (old and equals):
            message = f"line {number}: write the old and the new collection, as in: cup-1 = cup-2"
            raise InvalidInput(message, pointer="/collections")
        if new:
            collections[old] = new

    return collections
