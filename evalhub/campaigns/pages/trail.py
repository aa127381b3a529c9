"""The audit trail of a campaign, for its organisers."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from evalhub.campaigns.pages.desk_pages import DeskPage
from evalhub.campaigns.services.trail import ACTIONS, events_of, subjects_of
from runs.models import Campaign
from runs.pages.collections.manage.audit import texts_of

_OF_A_PAGE = 50
# The forms of the whole trail, and how the API is asked for them.
_FILES = (("CSV", {"format": "csv"}), ("JSON", {"limit": "200"}))


class TrailPage(DeskPage):
    """What was done in a campaign, newest first, filtered by action, phase, team and person."""

    name, template = "campaign-audit-page", "campaigns/trail.html"
    reads = ("action", "phase", "team", "actor", "page")

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        asked = {name: request.query_params.get(name, "") for name in self.reads if name != "page"}
        asked = {name: text for name, text in asked.items() if text}
        subjects = subjects_of(campaign)
        events = events_of(
            campaign, subjects, phase=asked.get("phase", ""), team=asked.get("team", "")
        )
        # Without addresses, which organisers must not see.
        events = events.filter(
            **{name: asked[name] for name in ("action", "actor") if name in asked}
        )
        events = events.defer("address", "token")
        page = Paginator(events, _OF_A_PAGE).get_page(request.query_params.get("page"))
        file = reverse("campaign-audit", args=[campaign.slug])

        return {
            "page": page,
            "events": [
                (
                    one,
                    subjects[one.object_type, one.object_id],
                    texts_of(one.before),
                    texts_of(one.after),
                )
                for one in page
            ],
            "asked": asked,
            "kept": f"{urlencode(asked)}&" if asked else "",
            "files": [(words, f"{file}?{urlencode({**asked, **more})}") for words, more in _FILES],
            "phases": list(campaign.phases.all()),
            "teams": list(campaign.participations.select_related("team").order_by("name")),
            "actions": ACTIONS,
        }
