"""What is cited of a stored snapshot."""

from __future__ import annotations

from django.conf import settings

from evalhub.campaigns.exports.citations import Cited
from runs.models import Snapshot


def cited_of(snapshot: Snapshot, site: str) -> Cited:
    """Return what a citation of a snapshot names; `site` is how addresses of this server begin."""
    campaign, superseded = snapshot.campaign, snapshot.supersedes
    results = f"{campaign.name}, {snapshot.phase.name}" if snapshot.phase else campaign.name

    return Cited(
        title=f"{results}: {snapshot.label}",
        author=campaign.team.name,
        campaign=campaign.slug,
        campaign_address=f"{site}/campaigns/{campaign.slug}/",
        number=snapshot.number,
        sha256=snapshot.sha256,
        address=f"{site}/s/{snapshot.code}/",
        site=site,
        at=snapshot.created_at,
        before=f"{site}/s/{superseded.code}/" if superseded else "",
        doi=snapshot.doi,
        published_by=settings.EVALHUB_PUBLISHER,
        licence=campaign.licence,
        rights=campaign.rights,
        people=tuple(
            name
            for author in campaign.citation_authors.split(";")
            if (name := " ".join(author.split()))
        ),
        supplements=campaign.paper_doi,
        derived_from=campaign.judgements_doi,
    )
