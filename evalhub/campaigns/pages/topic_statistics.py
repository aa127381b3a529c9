"""The organisers' page of a phase's statistics by topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.urls import reverse
from rest_framework.request import Request

from evalhub.campaigns.exports.topic_statistics import topic_table
from evalhub.campaigns.pages.desk_pages import DeskPage
from evalhub.campaigns.questions.results import organised_values
from evalhub.campaigns.services.topic_statistics import TopicStatistics, read_topic_statistics
from metrics.exports.formats import FORMATS
from metrics.services.boards.board_question import active_qrels
from metrics.services.snapshots import read_in_snapshot
from runs.models import Campaign

_FILES = ("csv", "md", "tex")


class TopicStatisticsPage(DeskPage):
    """Lowest, median, highest and mean values of the entries of a phase on each topic."""

    name, template = "campaign-topics-page", "campaigns/topic_statistics.html"

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        phase = organised_values(request, campaign.slug, kwargs["phase"])

        def read() -> TopicStatistics:
            return read_topic_statistics(phase=phase, qrels=active_qrels(phase.collection))

        table = replace(
            topic_table(read_in_snapshot(read)), title=f"Values by topic of {phase.name}"
        )
        address = reverse("phase-topics", args=[campaign.slug, phase.slug])

        return {
            "phase": phase,
            "table": table,
            "files": [(FORMATS[kind].title, f"{address}?format={kind}") for kind in _FILES],
        }
