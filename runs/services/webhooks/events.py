"""Events for webhooks, written in the transactions that cause them.

A body has ids and states, but never values: its receiver requests these with a token, and sees what
the owner of the token may see. Only this module decides which webhooks receive an event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from runs.models import Collection, Delivery, Qrels, Run, SessionSet, Team, Webhook

Event = Webhook.Event

# The only event of a blind collection that its team receives: the team itself caused it. All others
# would reveal that and when something was evaluated.
_SENT_WHILE_BLIND = (Event.RUN_SUBMITTED,)


def announce(
    event: Webhook.Event,
    *,
    collection: Collection,
    teams: QuerySet[Any],
    path: str,
    about: Mapping[str, Any],
    request_id: str = "",
) -> None:
    """Write a delivery of an event for each of its webhooks, in the transaction of the event.

    `teams` are the keys of the teams with runs that the event is about, `path` is the address of
    its object below the API, `about` its ids and states.
    """
    if settings.EVALHUB_WEBHOOKS:
        _write(event, _recipients(event, collection, teams), path, about, request_id)


def announce_of_campaign(
    event: Webhook.Event,
    *,
    teams: QuerySet[Any],
    path: str,
    about: Mapping[str, Any],
    request_id: str = "",
) -> None:
    """Write a delivery of a campaign's event for each webhook of these teams.

    They are its organisers and participants. Call this inside the transaction of the event.
    """
    if settings.EVALHUB_WEBHOOKS:
        _write(event, Webhook.objects.filter(team__in=teams, enabled=True), path, about, request_id)


def _write(
    event: Webhook.Event,
    webhooks: QuerySet[Webhook],
    path: str,
    about: Mapping[str, Any],
    request_id: str,
) -> None:
    """Write a delivery for each of these webhooks that subscribes to the event."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            f"{event} is announced outside the transaction of its cause"
        )

    recipients = [webhook for webhook in webhooks if event in (webhook.events or ())]
    now = timezone.now()
    body = compose(event, now, path, about)
    Delivery.objects.bulk_create(
        Delivery(
            webhook=webhook,
            event=event,
            body=body if webhook.format == Webhook.Format.STANDARD else as_text(body),
            request_id=request_id,
            created_at=now,
            next_at=now,
        )
        for webhook in recipients
    )


def _recipients(
    event: Webhook.Event, collection: Collection, teams: QuerySet[Any]
) -> QuerySet[Webhook]:
    """Return the enabled webhooks that may receive an event.

    They are those of the collection, which belong to its organisers, and those of the teams
    concerned, unless the collection is blind or not visible to them.
    """
    recipients = Q(collection=collection)

    if not collection.blind or event in _SENT_WHILE_BLIND:
        of_teams = Q(team__in=teams)
        public = collection.visibility == Collection.Visibility.PUBLIC
        recipients |= of_teams if public else of_teams & Q(team=collection.team_id)

    return Webhook.objects.filter(recipients, enabled=True)


def compose(event: str, moment: datetime, path: str, about: Mapping[str, Any]) -> str:
    """Return the body of an event as JSON."""
    stamp = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = {**about, "url": f"{settings.EVALHUB_URL}/api/v1/{path}"}
    return json.dumps(
        {"type": event, "timestamp": stamp, "data": data}, ensure_ascii=False, separators=(",", ":")
    )


def as_text(body: str) -> str:
    """Return the body of an event for incoming webhooks of Slack, Mattermost and Discord."""
    event = json.loads(body)
    data = event["data"]
    ids = ", ".join(f"{name} {value}" for name, value in data.items() if name != "url")
    text = f"{event['type']}: {ids}\n{data['url']}" if ids else f"{event['type']}: {data['url']}"

    # Tags and slugs have none of the characters that Slack reads as a mention or a link.
    return json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":"))


def run_submitted(run: Run, request_id: str) -> None:
    """Announce a run that this transaction stores, evaluated or not."""
    about = {**_identity(run), "state": "received"}
    _announce_submission(Event.RUN_SUBMITTED, run, f"runs/{run.pk}/", about, request_id)


def submission_ended(submission: Run | SessionSet, state: str, version: int | None) -> None:
    """Announce the end of the current evaluation of a run or session set, with its status."""
    about = {**_identity(submission), "state": state, "qrels": version}

    if isinstance(submission, Run):
        event = Event.RUN_EVALUATED if state == "evaluated" else Event.RUN_FAILED
        _announce_submission(event, submission, f"runs/{submission.pk}/", about)
    elif state == "evaluated":
        _announce_submission(
            Event.SESSION_SET_EVALUATED, submission, f"session-sets/{submission.pk}/", about
        )


def _identity(submission: Run | SessionSet) -> dict[str, Any]:
    return {
        submission.KEY: str(submission.pk),
        "collection": submission.collection.slug,
        "team": submission.team.slug,
        "tag": submission.tag,
    }


def _announce_submission(
    event: Webhook.Event,
    submission: Run | SessionSet,
    path: str,
    about: Mapping[str, Any],
    request_id: str = "",
) -> None:
    team = Team.objects.filter(pk=submission.team_id).values("pk")
    announce(
        event,
        collection=submission.collection,
        teams=team,
        path=path,
        about=about,
        request_id=request_id,
    )


def qrels_activated(qrels: Qrels, request_id: str = "") -> None:
    """Announce a version of judgements that became active."""
    _announce_qrels(Event.QRELS_ACTIVATED, qrels, request_id)


def evaluations_done(qrels: Qrels) -> None:
    """Announce that every run of a collection is evaluated under a version of its judgements."""
    _announce_qrels(Event.EVALUATIONS_DONE, qrels)


def collection_released(qrels: Qrels, request_id: str = "") -> None:
    """Announce the release of a blind collection with these active judgements."""
    _announce_qrels(Event.COLLECTION_RELEASED, qrels, request_id)


def _announce_qrels(event: Webhook.Event, qrels: Qrels, request_id: str = "") -> None:
    collection = qrels.collection
    about = {"collection": collection.slug, "qrels": qrels.version}
    path = f"collections/{collection.slug}/"

    if event != Event.COLLECTION_RELEASED:
        path += f"qrels/{qrels.version}/"

    announce(
        event,
        collection=collection,
        teams=_submitters(collection),
        path=path,
        about=about,
        request_id=request_id,
    )


def comparison_compared(pk: UUID, collection: Collection, teams: QuerySet[Any]) -> None:
    """Announce a comparison that a worker finished; `teams` are the keys of the runs' teams."""
    about = {"comparison": str(pk), "collection": collection.slug, "state": "compared"}
    announce(
        Event.COMPARISON_COMPARED,
        collection=collection,
        teams=teams,
        path=f"comparisons/{pk}/",
        about=about,
    )


def _submitters(collection: Collection) -> QuerySet[Any]:
    """Return the keys of the teams that have a run or session set in a collection."""
    runs = Run.objects.filter(collection=collection, deleted_at=None).values("team")
    sets = SessionSet.objects.filter(collection=collection, deleted_at=None).values("team")
    teams: QuerySet[Any] = Team.objects.filter(Q(pk__in=runs) | Q(pk__in=sets)).values("pk")

    return teams
