"""Topics that organisers take out of the scoring of a phase, before anybody else sees results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction

from evalhub.campaigns.services.phases import locked_phase
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import AuditEvent, Campaign, Collection, Disclosure, Phase, Qrels, User
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.collections.qrels import activate_again
from runs.services.storage.files import storing


def exclude_topics(
    *,
    phase: Phase,
    topics: Sequence[str],
    reason: str,
    user: User,
    enqueue: Callable[[Qrels], object],
    origin: Origin = SYSTEM,
) -> None:
    """Exclude these topics, and no others, from a phase; without topics, count all of them again.

    Every run is evaluated again by a version of the judgements without them. Raise Conflict
    (`already_released`) once results are disclosed: then upload a new version of the judgements;
    InvalidInput for an unknown topic and without a reason; NotAllowed unless the user manages the
    collection.
    """
    with storing(), transaction.atomic():
        # A release of the collection locks its row, too: if both happen at once, the second one
        # sees what the first one did.
        collection = Collection.objects.select_for_update().get(pk=phase.collection_id)
        phase = locked_phase(phase)
        if not Collection.objects.managed_by(user).filter(pk=collection.pk).exists():
            raise NotAllowed(f"only organisers of collection {collection} can exclude its topics")

        if phase.campaign.state == Campaign.State.ARCHIVED:
            raise Conflict(
                f"campaign {phase.campaign} is archived; it stays as it is",
                code="campaign_archived",
            )

        excluded = list(dict.fromkeys(topics))
        fields: dict[str, Any] = {
            "excluded_topics": excluded or None,
            "excluded_reason": reason if excluded else "",
        }
        before, after = changed(phase, fields)
        if not after:
            return
        if collection.disclosure != Disclosure.ORGANISERS:
            message = (
                f"results on {collection} are disclosed; upload judgements without the topic as "
                "a new version"
            )
            raise Conflict(message, code="already_released", pointer="/excluded_topics")
        if excluded and not reason:
            raise InvalidInput(
                "say why topics are excluded", code="required", pointer="/excluded_reason"
            )

        active = collection.active_qrels
        known_topics = {
            *collection.topics.values_list("topic_id", flat=True),
            *(active.topic_ids if active else ()),
        }
        if active and active.reduced_from:
            known_topics |= set(active.reduced_from.topic_ids)
        if unknown := [topic for topic in excluded if topic not in known_topics]:
            message = f"collection {collection} has no topic {unknown[0][:60]!r}"
            raise InvalidInput(message, code="unknown_topic", pointer="/excluded_topics")

        Phase.objects.filter(pk=phase.pk).update(**fields)
        record(
            origin,
            AuditEvent.Action.PHASE_CHANGED,
            phase,
            collection=collection,
            before=before,
            after=after,
        )
        activate_again(collection=collection, enqueue=enqueue, origin=origin)
