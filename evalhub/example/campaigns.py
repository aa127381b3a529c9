"""Two campaigns on the example's documents: a round that is over and released, and an open one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from evalhub.campaigns.exports.freezing import freeze_results, keep_results
from evalhub.campaigns.services.campaigns import create_campaign, post_notice, publish_campaign
from evalhub.campaigns.services.entering import EntryRequest, EntryUpload, enter_run
from evalhub.campaigns.services.phases import create_phase
from evalhub.campaigns.services.releases import plan_release
from evalhub.campaigns.services.releasing import release_now
from evalhub.campaigns.services.teams import register_team
from evalhub.example.collection import (
    DOCUMENTS,
    LABELS,
    MEASURES,
    OPEN_TOPICS,
    TOPICS,
    Corpus,
    pooled_qrels,
    read_corpus,
    read_file,
)
from evalhub.example.loading import Loader, stored_upload
from evalhub.example.runs import BASELINE_ENTRY, ENTRIES, OPEN_ENTRIES, TEAMS
from metrics.services.queue.queueing import queue_submitted
from runs.models import (
    Campaign,
    Disclosure,
    Entry,
    Participation,
    Phase,
    Release,
    Run,
    Snapshot,
    Team,
    User,
)
from runs.services.accounts.teams import create_team

FIRST, SECOND = "sea-search-1", "sea-search-2"
PARTICIPANT = TEAMS[0][2]
_PHASE = "ranking"
# The first round was open for a month, long before the lab's runs; the second one closes soon.
_FIRST_OPENED, _FIRST_CLOSED = timedelta(days=-150), timedelta(days=-120)
_SECOND_OPENED, _SECOND_CLOSES = timedelta(days=-9), timedelta(days=12)
_GUIDELINES = """\
# The task

Rank the 209 documents about the sea for each topic, at most 50 for a topic. A run is a TREC file.

# What is judged

The first ten documents of every entry, on four levels from *not relevant* (0) to *answers* (3).

| measure | says |
| --- | --- |
| nDCG@10 | how good the first ten are: decides |
| AP | how early all relevant documents come |

Teams see no values before the results are released to everybody. The teams and the dates are
invented; their runs come from real systems.
"""


def load_first_round(loader: Loader, corpus: Corpus) -> None:
    """Load the campaign with its teams and entries, and end it. Its results are not released yet."""
    phase = _load_campaign(
        loader,
        FIRST,
        "Sea Search, first round",
        topics=TOPICS,
        opens_at=_midnight() + _FIRST_OPENED,
        # Teams register and enter before it ends, below.
        closes_at=_midnight() + timedelta(days=1),
    )
    if phase.closes_at < timezone.now():
        return

    loader.add_qrels(phase.collection, pooled_qrels(corpus))
    _load_teams(phase.campaign, {team for team, _, _ in ENTRIES})

    closed = _midnight() + _FIRST_CLOSED
    for number, (team, tag, parameters) in enumerate([*ENTRIES, BASELINE_ENTRY]):
        arrived_at = closed - timedelta(hours=7 * (len(ENTRIES) - number) + 1)
        _enter(loader, phase, corpus, team, tag, parameters, arrived_at)

    Phase.objects.filter(pk=phase.pk).update(closes_at=closed)


def load_second_round(loader: Loader) -> None:
    """Load the campaign that is open, or open it longer if it has closed since it was loaded."""
    now = timezone.now()
    phase = _load_campaign(
        loader,
        SECOND,
        "Sea Search, second round",
        topics=OPEN_TOPICS,
        opens_at=_midnight() + _SECOND_OPENED,
        closes_at=_midnight() + _SECOND_CLOSES,
    )
    if phase.closes_at <= now:
        Phase.objects.filter(pk=phase.pk).update(closes_at=_midnight() + _SECOND_CLOSES)
        return

    _load_teams(phase.campaign, {team for team, _, _ in OPEN_ENTRIES})
    corpus = read_corpus(OPEN_TOPICS)
    for number, (team, tag, parameters) in enumerate(OPEN_ENTRIES):
        arrived_at = now - timedelta(hours=40 - 11 * number)
        _enter(loader, phase, corpus, team, tag, parameters, arrived_at)

    if not phase.campaign.notices.exists():
        post_notice(
            campaign=phase.campaign,
            title="Topic 58 is about origin and end",
            text="A document that only names an island is not relevant.",
            audience="public",
            user=loader.user,
            origin=loader.origin,
        )


def release_first_round(loader: Loader, site: str) -> Snapshot:
    """Release the results of the first round to everybody and freeze them.

    Its entries are evaluated. Return the snapshot, which is the existing one if there is one.
    """
    campaign = Campaign.objects.get(slug=FIRST)
    phase = campaign.phases.select_related("campaign__team", "collection").get()

    if not Release.objects.filter(phase=phase).exclude(done_at=None).exists():
        planned = Release.objects.filter(phase=phase, cancelled_at=None).first() or plan_release(
            phase=phase, audience=Disclosure.PUBLIC, user=loader.user, origin=loader.origin
        )
        release_now(release=planned, user=loader.user, origin=loader.origin)

    existing = Snapshot.objects.filter(campaign=campaign).first()
    if existing:
        return existing

    frozen = freeze_results(
        campaign=campaign, phase=_PHASE, label="official results", user=loader.user
    )
    return keep_results(frozen, user=loader.user, site=site, origin=loader.origin)[0]


def _midnight() -> datetime:
    """Return the next beginning of a day in UTC, at least an hour away."""
    later = timezone.now().astimezone(UTC) + timedelta(days=1, hours=1)
    return later.replace(hour=0, minute=0, second=0, microsecond=0)


def _load_campaign(
    loader: Loader,
    slug: str,
    name: str,
    *,
    topics: str,
    opens_at: datetime,
    closes_at: datetime,
) -> Phase:
    """Return the only phase of the campaign, published."""
    collection = loader.create(
        slug,
        name=name,
        description="The topics of a campaign on short texts about the sea.",
        blind=True,
        level_labels=LABELS,
        measures=MEASURES,
        documents=read_file(DOCUMENTS).count("\n"),
    )
    if not collection.document_titles.exists():
        loader.add_topics(collection, read_file(topics))
        loader.add_documents(collection, read_file(DOCUMENTS))

    fields: dict[str, Any] = {
        "slug": slug,
        "name": name,
        "summary": "Find the short texts about the sea that answer a question.",
        "guidelines": _GUIDELINES,
        "registration": Campaign.Registration.OPEN,
        "citation_authors": "Sea lab",
    }
    campaign = Campaign.objects.filter(slug=slug).first() or create_campaign(
        team=loader.team, user=loader.user, fields=fields, origin=loader.origin
    )
    phase_fields: dict[str, Any] = {
        "slug": _PHASE,
        "name": "Ranking",
        "collection": collection,
        "opens_at": opens_at,
        "closes_at": closes_at,
        "slots": 3,
        "max_documents": 50,
        "measures": MEASURES,
    }
    if not campaign.phases.exists():
        create_phase(campaign=campaign, user=loader.user, fields=phase_fields, origin=loader.origin)

    if campaign.state == Campaign.State.DRAFT:
        publish_campaign(campaign=campaign, origin=loader.origin)

    return campaign.phases.select_related("campaign__team", "collection").get()


def _load_teams(campaign: Campaign, slugs: set[str]) -> None:
    for slug, name, username, affiliation in TEAMS:
        if slug not in slugs:
            continue

        user = User.objects.filter(username=username).first() or User.objects.create_user(username)
        team = Team.objects.filter(slug=slug).first() or create_team(
            owner=user, slug=slug, name=name
        )
        if not campaign.participations.filter(team=team).exists():
            register_team(campaign=campaign, team=team, user=user, affiliation=affiliation)


def _enter(
    loader: Loader,
    phase: Phase,
    corpus: Corpus,
    team: str,
    tag: str,
    parameters: dict[str, Any],
    arrived_at: datetime,
) -> None:
    """Enter a run for a team; without one it is the baseline of the organisers."""
    participation = Participation.objects.filter(campaign=phase.campaign, team__slug=team).first()
    if participation:
        owner = User.objects.get(memberships__team=participation.team)
        loader = replace(loader, team=participation.team, user=owner)

    request = EntryRequest(
        phase=phase,
        user=loader.user,
        arrived_at=arrived_at,
        participation=participation,
        role=Entry.Role.COMPETING if participation else Entry.Role.BASELINE,
        label="" if participation else "BM25",
        origin=loader.origin,
    )
    with stored_upload(corpus.run(tag, parameters)) as upload:
        entry, _ = enter_run(
            upload=EntryUpload(
                request=request,
                collection=phase.collection,
                team=loader.team,
                user=loader.user,
                file=upload.path,
                tag=tag,
                metadata=parameters,
                origin=loader.origin,
            ),
            enqueue=queue_submitted,
        )

    Run.objects.filter(pk=entry.run_id).update(created_at=arrived_at)
