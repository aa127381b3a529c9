"""What happened, for the webhooks that want to know: written in the transaction in which it happened.

A body has ids and states, and never a value: whoever receives it asks for values with a token, and
is told what the owner of the token may see. Who is told of an event at all is decided here and
nowhere else.
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

# The only event of a blind collection of which a team is told: it is of its own doing. Every other
# one would tell that and when something was evaluated.
_OF_BLIND = (Event.RUN_SUBMITTED,)


def announce(
    event: Webhook.Event,
    *,
    collection: Collection,
    teams: QuerySet[Any],
    path: str,
    about: Mapping[str, Any],
    request_id: str = "",
) -> None:
    """Write a delivery of an event for each webhook that it is for. Call this inside the transaction of the event.

    `teams` are the keys of the teams whose runs it is about, `path` is the address of its object
    below the API, `about` its ids and states.
    """
    if not settings.EVALHUB_WEBHOOKS:
        return
    _write(event, _told(event, collection, teams), path, about, request_id)


def announce_of_campaign(
    event: Webhook.Event,
    *,
    teams: QuerySet[Any],
    path: str,
    about: Mapping[str, Any],
    request_id: str = "",
) -> None:
    """Write a delivery of an event of a campaign for each webhook of these teams: its organisers' and participants'.
    Call this inside the transaction of the event."""
    if settings.EVALHUB_WEBHOOKS:
        _write(event, Webhook.objects.filter(team__in=teams, enabled=True), path, about, request_id)


def _write(
    event: Webhook.Event, told: QuerySet[Webhook], path: str, about: Mapping[str, Any], request_id: str
) -> None:  # fmt: skip
    """Write a delivery for each of these webhooks that wants the event."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            f"{event} is announced outside the transaction of its cause"
        )
    wanting = [webhook for webhook in told if event in (webhook.events or ())]
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
        for webhook in wanting
    )


def _told(event: Webhook.Event, collection: Collection, teams: QuerySet[Any]) -> QuerySet[Webhook]:
    """Return the enabled webhooks that may be told: those of the collection, which are its organisers', and those of
    the teams concerned, unless the collection is blind or not visible to them."""
    told = Q(collection=collection)
    if not collection.blind or event in _OF_BLIND:
        of_teams = Q(team__in=teams)
        public = collection.visibility == Collection.Visibility.PUBLIC
        told |= of_teams if public else of_teams & Q(team=collection.team_id)
    return Webhook.objects.filter(told, enabled=True)


def compose(event: str, moment: datetime, path: str, about: Mapping[str, Any]) -> str:
    """Return the body of an event as JSON."""
    stamp = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = {**about, "url": f"{settings.EVALHUB_URL}/api/v1/{path}"}
    return json.dumps(
        {"type": event, "timestamp": stamp, "data": data}, ensure_ascii=False, separators=(",", ":")
    )


def as_text(body: str) -> str:
    """Return the body of an event in the form of Slack's incoming webhooks, which Mattermost and Discord take too."""
    event = json.loads(body)
    data = event["data"]
    ids = ", ".join(f"{name} {value}" for name, value in data.items() if name != "url")
    text = f"{event['type']}: {ids}\n{data['url']}" if ids else f"{event['type']}: {data['url']}"
    # Tags and slugs have none of the characters that Slack reads as a mention or a link.
    return json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":"))


def run_submitted(run: Run, request_id: str) -> None:
    """Announce a run that this transaction stores: in the same words whether or not anything evaluates it."""
    about = {**_identity(run), "state": "received"}
    _of_submission(Event.RUN_SUBMITTED, run, f"runs/{run.pk}/", about, request_id)


def submission_ended(made: Run | SessionSet, state: str, version: int | None) -> None:
    """Announce the end of the current evaluation of a run or session set, in a state that its status has."""
    about = {**_identity(made), "state": state, "qrels": version}
    if isinstance(made, Run):
        event = Event.RUN_EVALUATED if state == "evaluated" else Event.RUN_FAILED
        _of_submission(event, made, f"runs/{made.pk}/", about)
    elif state == "evaluated":
        _of_submission(Event.SESSION_SET_EVALUATED, made, f"session-sets/{made.pk}/", about)


def _identity(made: Run | SessionSet) -> dict[str, Any]:
    return {
        made.KEY: str(made.pk),
        "collection": made.collection.slug,
        "team": made.team.slug,
        "tag": made.tag,
    }


def _of_submission(
    event: Webhook.Event,
    made: Run | SessionSet,
    path: str,
    about: Mapping[str, Any],
    request_id: str = "",
) -> None:
    team = Team.objects.filter(pk=made.team_id).values("pk")
    announce(
        event, collection=made.collection, teams=team, path=path, about=about, request_id=request_id
    )


def qrels_activated(qrels: Qrels, request_id: str = "") -> None:
    """Announce a version of judgements that became active."""
    _of_qrels(Event.QRELS_ACTIVATED, qrels, request_id)


def evaluations_done(qrels: Qrels) -> None:
    """Announce that every run of a collection is evaluated under a version of its judgements."""
    _of_qrels(Event.EVALUATIONS_DONE, qrels)


def collection_released(qrels: Qrels, request_id: str = "") -> None:
    """Announce that a blind collection was opened, whose active judgements these are."""
    _of_qrels(Event.COLLECTION_RELEASED, qrels, request_id)


def _of_qrels(event: Webhook.Event, qrels: Qrels, request_id: str = "") -> None:
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
    """Announce a comparison that a worker finished; `teams` are the keys of those whose runs it compares."""
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
    kinds = (Run, SessionSet)
    runs, sets = (
        kind.objects.filter(collection=collection, deleted_at=None).values("team") for kind in kinds
    )
    teams: QuerySet[Any] = Team.objects.filter(Q(pk__in=runs) | Q(pk__in=sets)).values("pk")
    return teams
