"""Create, change, release and delete collections, and read the titles of their topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from runs import hooks
from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Disclosure, Qrels
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.webhooks.events import collection_released
from runs.services.webhooks.managing import disable_moved

# Ids that are looked up at once: databases limit the parameters of a query.
_IDS_AT_ONCE = 10_000


def create_collection(*, origin: Origin = SYSTEM, **fields: Any) -> Collection:
    """Return a new, empty collection. Raise Conflict if the slug is taken."""
    try:
        with transaction.atomic():
            collection = Collection.objects.create(**fields)
            after = {**fields, "team": str(fields["team"])}
            record(
                origin,
                AuditEvent.Action.COLLECTION_CREATED,
                collection,
                collection=collection,
                after=after,
            )
    except IntegrityError as error:
        slug = fields["slug"]
        if not Collection.objects.filter(slug=slug).exists():
            raise
        raise Conflict(
            f"a collection {slug!r} exists already", code="slug_taken", pointer="/slug"
        ) from error

    return collection


def change_collection(
    *,
    collection: Collection,
    changes: dict[str, Any],
    enqueue: Callable[[Qrels], object],
    origin: Origin = SYSTEM,
) -> None:
    """Change a collection that is locked; `enqueue` is called for the active judgements.

    Raise Conflict if it would become blind after its judgements were open, or open without a
    release.
    """
    _check_blind(collection, changes.get("blind", collection.blind))
    before, after = changed(collection, changes)
    for name, value in after.items():
        setattr(collection, name, value)

    collection.save(update_fields=list(after))
    if after:
        action = AuditEvent.Action.COLLECTION_CHANGED
        details = {"before": _by_name(before), "after": _by_name(after)}
        record(origin, action, collection, collection=collection, **details)

    if "team" in after:
        disable_moved(collection)

    if collection.active_qrels:
        enqueue(collection.active_qrels)


def _by_name(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields in the form of the audit trail: a team by its slug."""
    return {name: str(value) if name == "team" else value for name, value in fields.items()}


def delete_collection(*, collection: Collection, origin: Origin = SYSTEM) -> None:
    """Delete a collection. Raise Conflict if it has judgements, runs, session sets or phases."""
    contents = (collection.qrels, collection.runs, collection.session_sets, collection.phases)

    with transaction.atomic():
        collection = Collection.objects.select_for_update(of=("self",)).get(pk=collection.pk)
        if any(rows.exists() for rows in contents):
            raise Conflict(f"collection {collection} is not empty; only an empty one is deleted")

        before = {"name": collection.name}
        record(origin, AuditEvent.Action.COLLECTION_DELETED, collection, before=before)
        hooks.before_deletion.send(Collection, collection=collection)
        try:
            collection.delete()
        except ProtectedError as error:
            raise Conflict(f"collection {collection} is in use, such as by a pool") from error


def release_collection(*, collection: Collection, origin: Origin = SYSTEM) -> None:
    """Make a blind collection permanently open. Raise the errors of `disclose`."""
    disclose(collection=collection, to=Disclosure.PUBLIC, origin=origin)


def disclose(*, collection: Collection, to: Disclosure, origin: Origin = SYSTEM) -> Qrels:
    """Show what depends on the judgements to more people, permanently. Return these judgements.

    Raise Conflict if the collection is not blind, is shown to them already, has no active
    judgements, or is used by an evaluation phase that is not over.
    """
    with transaction.atomic():
        # The lock blocks a simultaneous activation; the conditional update decides.
        locked = locked_collection(collection)
        qrels, previous, now = locked.active_qrels, locked.disclosure, clock.database_now()
        hooks.before_disclosure.send(Collection, collection=locked)

        if locked.blind and qrels is None:
            raise Conflict(
                f"collection {locked} has no active judgements, so there is nothing to release",
                code="nothing_to_release",
            )

        public = to == Disclosure.PUBLIC
        fields: dict[str, Any] = {"shown_to": to}

        if public:
            fields = {"blind": False, "released_at": now}

        rows = Collection.objects.filter(pk=locked.pk, blind=True, shown_to__lt=to)
        if not rows.update(**fields) or not qrels:
            if locked.blind:
                message = f"collection {locked} is shown to {previous.label} already"
                raise Conflict(message, code="already_released")
            raise Conflict(f"collection {locked} is not blind", code="not_blind")

        if to >= Disclosure.PARTICIPANTS:
            hidden = [until for _, until in hooks.hidden_names.send(Collection, collection=locked)]
            fields["veiled_until"] = max(filter(None, hidden), default=None)
            Collection.objects.filter(pk=locked.pk).update(veiled_until=fields["veiled_until"])

        actions = AuditEvent.Action
        record(
            origin,
            actions.COLLECTION_RELEASED if public else actions.COLLECTION_DISCLOSED,
            locked,
            collection=locked,
            before={"blind": True, "disclosure": previous.label},
            after={
                **fields,
                "disclosure": to.label,
                "qrels": qrels.version,
                "sha256": qrels.sha256,
            },
        )

        for name, value in fields.items():
            setattr(locked, name, value)

        qrels.collection = locked
        if public:
            collection_released(qrels, origin.request_id)

    return qrels


def locked_collection(collection: Collection) -> Collection:
    """Return a collection as it is now, locked.

    Neither it nor its active judgements change until the transaction ends.
    """
    return Collection.objects.select_for_update().get(pk=collection.pk)


def _check_blind(collection: Collection, blind: bool) -> None:
    if blind == collection.blind:
        return

    if collection.released_at:
        raise Conflict(
            f"the judgements of {collection} were released; "
            "released judgements cannot be hidden again",
            code="already_released",
            pointer="/blind",
        )

    if not blind:
        raise Conflict(
            f"POST to the release/ of {collection} to show what is blind; "
            "a release cannot be undone",
            code="release_needed",
            pointer="/blind",
        )

    if collection.qrels.exists():
        raise Conflict(
            f"the judgements of {collection} have been open; "
            "create a new collection that is blind from the start",
            code="judgements_were_open",
            pointer="/blind",
        )


def read_topic_titles(collection: Collection, topic_ids: Iterable[str]) -> dict[str, str]:
    """Return the titles of topics by their ids; those that the collection does not list have none."""
    ids = list(topic_ids)
    titles: dict[str, str] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        batch = ids[start : start + _IDS_AT_ONCE]
        listed = collection.topics.filter(topic_id__in=batch).order_by()
        titles.update(listed.values_list("topic_id", "title"))

    return titles
