"""Create, check and revoke share links."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from runs.errors import Blind, Conflict, Gone, InvalidInput, NotAllowed, NotFound
from runs.models import AuditEvent, Collection, Run, ShareLink, User
from runs.models.accounts.accounts import digest_of_secret
from runs.models.collections.disclosure import in_team_of
from runs.services.audit.trail import SYSTEM, Origin, record

# Active links of one account.
MAX_SHARES = 100
USUAL, LONGEST = timedelta(days=30), timedelta(days=366)
# 192 random bits.
_SECRET_BYTES = 24


@dataclass(frozen=True)
class Shared:
    """A shared page: the id of a run or stored comparison in `target`, or parameters in `query`."""

    kind: str
    collection: Collection
    target: str = ""
    query: str = ""


def may_share(user: Any, shared: Shared) -> bool:
    """Return whether a user may share a page.

    Organisers may share everything in their collections, members the runs of their teams.
    """
    if not user.is_active:
        return False
    if Collection.objects.managed_by(user).filter(pk=shared.collection.pk).exists():
        return True

    own = Run.objects.visible_to(user).filter(in_team_of(user))

    return shared.kind == ShareLink.Kind.RUN and own.filter(pk=shared.target).exists()


def create_share(
    *, shared: Shared, by: User, expires_at: datetime | None = None, origin: Origin = SYSTEM
) -> tuple[ShareLink, str]:
    """Return a new link and its secret, which cannot be read again.

    Raise NotAllowed for a user who may not share the page, InvalidInput for an expiry in the past
    or too far away, Conflict if the user has too many links.
    """
    if not may_share(by, shared):
        raise NotAllowed(
            f"only organisers of collection {shared.collection} share its leaderboards, "
            "comparisons and runs, and members of a team the team's own runs"
        )

    now = timezone.now()
    expires_at = expires_at or now + USUAL
    if not now < expires_at <= now + LONGEST:
        message = f"expires_at: a link ends within the next {LONGEST.days} days"
        raise InvalidInput(message, pointer="/expires_at")

    key, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET_BYTES)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=by.pk)
        active = ShareLink.objects.filter(created_by=by, revoked_at=None, expires_at__gt=now)
        if active.count() >= MAX_SHARES:
            message = f"you have {MAX_SHARES} share links already; revoke one first"
            raise Conflict(message, code="too_many_shares")

        link = ShareLink.objects.create(
            key=key,
            digest=digest_of_secret(secret),
            kind=shared.kind,
            collection=shared.collection,
            target=shared.target,
            query=shared.query,
            created_by=by,
            expires_at=expires_at,
        )

        after = {"kind": link.kind, "target": link.target, "expires_at": link.expires_at}
        record(
            origin, AuditEvent.Action.SHARE_CREATED, link, collection=link.collection, after=after
        )

    return link, secret


def revoke_share(*, link: ShareLink, origin: Origin = SYSTEM) -> None:
    """Revoke a link immediately. A revoked link stays as it is."""
    with transaction.atomic():
        now = timezone.now()
        if ShareLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=now):
            record(
                origin,
                AuditEvent.Action.SHARE_REVOKED,
                link,
                collection=link.collection,
                after={"revoked_at": now},
            )


def open_share(*, key: str, secret: str) -> ShareLink:
    """Return the link with this secret, and count that it was opened today.

    Raise NotFound for another secret, and the errors of `check_share`.
    """
    link = _links().filter(key=key[:8]).first()
    matches = hmac.compare_digest(
        link.digest if link else digest_of_secret(""), digest_of_secret(secret)
    )
    if link is None or not matches:
        raise no_share()

    check_share(link)
    ShareLink.objects.filter(pk=link.pk).update(
        opened=F("opened") + 1, last_opened_on=timezone.now().date()
    )
    return link


def opened_share(*, key: str, proof: str) -> ShareLink:
    """Return a link that was opened before: a signed cookie has its `proof_of`."""
    link = _links().filter(key=key[:8]).first()
    if link is None or not hmac.compare_digest(proof_of(link), proof):
        raise no_share()

    check_share(link)
    return link


def proof_of(link: ShareLink) -> str:
    return link.digest[:32]


def no_share() -> NotFound:
    return NotFound(
        "there is no shared page at this address; open the whole link that you received"
    )


def check_share(link: ShareLink) -> None:
    """Raise Gone for a link that has ended, Blind while the judgements are blind.

    A link ends when it is revoked or expires, or when its creator may not share the page any more.
    """
    if link.ended == "expired":
        raise Gone(
            "this link has expired; request a new one from the person who sent it",
            code="share_expired",
        )

    if link.ended or not may_share(link.created_by, shared_by(link)):
        raise Gone(
            "this link was revoked; request a new one from the person who sent it",
            code="share_revoked",
        )

    if link.collection.blind or link.collection.veiled:
        raise Blind


def shared_by(link: ShareLink) -> Shared:
    return Shared(link.kind, link.collection, link.target, link.query)


def _links() -> QuerySet[ShareLink]:
    return ShareLink.objects.select_related("collection__team", "created_by")
