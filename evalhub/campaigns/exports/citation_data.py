"""The data that citations of a stored snapshot name."""

from __future__ import annotations

import json

from django.conf import settings

from evalhub.campaigns.exports.citations import Cited
from runs.models import Snapshot


def cited_of(snapshot: Snapshot, site: str) -> Cited:
    """Return what a citation of a snapshot names; `site` begins the addresses of this server."""
    campaign = snapshot.campaign
    # As the manifest has them: a citation does not change with later versions.
    phases = json.loads(snapshot.manifest)["phases"]
    authors_of_judgements = dict.fromkeys(
        phase["collection"]["qrels"].get("authors", "") for phase in phases
    )
    superseded = snapshot.supersedes
    results = f"{campaign.name}, {snapshot.phase.name}" if snapshot.phase else campaign.name
    authors = [" ".join(author.split()) for author in campaign.citation_authors.split(";")]

    return Cited(
        title=", ".join(filter(None, [f"{results}: {snapshot.label}", *authors_of_judgements])),
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
        people=tuple(author for author in authors if author),
        supplements=campaign.paper_doi,
        derived_from=campaign.judgements_doi,
    )
