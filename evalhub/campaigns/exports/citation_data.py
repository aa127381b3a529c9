"""What is cited of a stored snapshot."""

from __future__ import annotations

from django.conf import settings

from evalhub.campaigns.exports.citations import Cited
from runs.models import Snapshot


def cited_of(snapshot: Snapshot, site: str) -> Cited:
    """Return what a citation of a snapshot names; `site` is how addresses of this server begin."""
    campaign, before = snapshot.campaign, snapshot.supersedes
    what = f"{campaign.name}, {snapshot.phase.name}" if snapshot.phase else campaign.name

    return Cited(
        title=f"{what}: {snapshot.label}",
        author=campaign.team.name,
        campaign=campaign.slug,
        campaign_address=f"{site}/campaigns/{campaign.slug}/",
        number=snapshot.number,
        sha256=snapshot.sha256,
        address=f"{site}/s/{snapshot.code}/",
        site=site,
        at=snapshot.created_at,
        before=f"{site}/s/{before.code}/" if before else "",
        doi=snapshot.doi,
        published_by=settings.EVALHUB_PUBLISHER,
        licence=campaign.licence,
        rights=campaign.rights,
        people=tuple(
            name for one in campaign.citation_authors.split(";") if (name := " ".join(one.split()))
        ),
        supplements=campaign.paper_doi,
        derived_from=campaign.judgements_doi,
    )
