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

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        filters = {
            name: request.query_params.get(name, "") for name in self.reads if name != "page"
        }
        filters = {name: text for name, text in filters.items() if text}
        subjects = subjects_of(campaign)
        events = events_of(
            campaign, subjects, phase=filters.get("phase", ""), team=filters.get("team", "")
        )
        # Without addresses, which organisers must not see.
        events = events.filter(
            **{name: filters[name] for name in ("action", "actor") if name in filters}
        )
        events = events.defer("address", "token")
        page = Paginator(events, _OF_A_PAGE).get_page(request.query_params.get("page"))
        file = reverse("campaign-audit", args=[campaign.slug])

        return {
            "page": page,
            "events": [
                (
                    event,
                    subjects[event.object_type, event.object_id],
                    texts_of(event.before),
                    texts_of(event.after),
                )
                for event in page
            ],
            "filters": filters,
            "query_prefix": f"{urlencode(filters)}&" if filters else "",
            "files": [
                (words, f"{file}?{urlencode({**filters, **more})}") for words, more in _FILES
            ],
            "phases": list(campaign.phases.all()),
            "teams": list(campaign.participations.select_related("team").order_by("name")),
            "actions": ACTIONS,
        }
