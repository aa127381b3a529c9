"""Make suites and their versions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max

from evalhub.suites.models import DIGEST_LENGTH, MEASURE_LENGTH, Suite, SuiteMember, SuiteVersion
from metrics.engine.errors import MeasureError
from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.selection import effectiveness_measures
from runs.errors import Conflict, InvalidInput
from runs.models import AuditEvent, Collection, ExternalMeasure, Qrels, Team, User
from runs.services.audit.trail import SYSTEM, Origin, record

MAX_MEMBERS = 100
MAX_VERSIONS = 1_000
MAX_WEIGHT = 1e6


@dataclass(frozen=True)
class MemberRequest:
    """A collection to put into a suite: without a measure its first one, without a version of the
    judgements the active one."""

    collection: str
    measure: str = ""
    weight: float = 1.0
    group: str = ""
    qrels: int | None = None


def create_suite(
    *,
    slug: str,
    name: str,
    team: Team,
    members: Sequence[SuiteMember],
    description: str = "",
    note: str = "",
    user: User,
    origin: Origin = SYSTEM,
) -> SuiteVersion:
    """Return the first version of a new suite. Raise Conflict if the slug is taken."""
    try:
        with transaction.atomic():
            suite = Suite.objects.create(slug=slug, name=name, description=description, team=team)
            return _store(suite, 1, members, note, user, origin, AuditEvent.Action.SUITE_CREATED)
    except IntegrityError as error:
        if not Suite.objects.filter(slug=slug).exists():
            raise
        message = f"a suite {slug!r} exists already; choose another name"
        raise Conflict(message, code="slug_taken", pointer="/slug") from error


def add_version(
    *,
    suite: Suite,
    members: Sequence[SuiteMember],
    note: str = "",
    user: User,
    origin: Origin = SYSTEM,
) -> SuiteVersion:
    """Return a new version of a suite. Earlier ones stay as they are."""
    with transaction.atomic():
        _lock(suite)
        newest = suite.versions.aggregate(newest=Max("number"))["newest"] or 0
        if newest >= MAX_VERSIONS:
            message = f"a suite has at most {MAX_VERSIONS:,} versions; make another suite"
            raise Conflict(message, code="too_many_versions")

        action = AuditEvent.Action.SUITE_VERSION_CREATED
        return _store(suite, newest + 1, members, note, user, origin, action)


def delete_suite(*, suite: Suite, origin: Origin = SYSTEM) -> None:
    """Delete a suite with its versions; its collections stay, and so do their results.

    The audit trail keeps the digests, by which papers name versions. Raise Conflict if the suite
    was deleted meanwhile.
    """
    with transaction.atomic():
        _lock(suite)
        digests = dict(suite.versions.order_by("number").values_list("number", "digest"))
        before = {"name": suite.name, "team": suite.team.slug, "digests": digests}
        record(origin, AuditEvent.Action.SUITE_DELETED, suite, before=before)
        suite.delete()


def _lock(suite: Suite) -> None:
    if not Suite.objects.select_for_update().filter(pk=suite.pk).exists():
        raise Conflict(f"suite {suite} was deleted meanwhile", code="conflict")


def delete_versions_with(collection: Collection) -> None:
    """Delete the versions of suites with this collection, and the suites without other versions.

    Anybody who sees a collection can put it into a suite, which must not keep its organisers from
    deleting it while it is empty.
    """
    with transaction.atomic():
        versions = SuiteVersion.objects.filter(members__collection=collection)
        suites = list(versions.values_list("suite", flat=True).distinct())
        versions.delete()
        Suite.objects.filter(pk__in=suites, versions=None).delete()


def check_not_averaged(measure: ExternalMeasure, user: User | None) -> None:
    """Raise Conflict while the last version of a suite that the user manages averages a measure.

    Suites of others do not keep organisers from deleting what is theirs; they say that the measure
    is not declared any more.
    """
    suites = Suite.objects.all() if user is None else Suite.objects.managed_by(user)
    members = SuiteMember.objects.filter(
        version__suite__in=suites, collection=measure.collection_id, measure=str(measure)
    )
    averaged = members.annotate(newest=Max("version__suite__versions__number")).filter(
        version__number=F("newest")
    )

    slugs = sorted(averaged.values_list("version__suite__slug", flat=True))
    if slugs:
        message = f"{measure} is a measure of suite {', '.join(slugs)}: make a version without it"
        raise Conflict(message, code="measure_in_use")


def _store(
    suite: Suite,
    number: int,
    members: Sequence[SuiteMember],
    note: str,
    user: User,
    origin: Origin,
    action: AuditEvent.Action,
) -> SuiteVersion:
    version = SuiteVersion.objects.create(
        suite=suite,
        number=number,
        note=note,
        digest=_digest(suite, number, members),
        created_by=user,
    )
    for position, member in enumerate(members):
        member.version, member.position = version, position
    SuiteMember.objects.bulk_create(members)

    record(origin, action, suite, after={"version": number, "digest": version.digest})
    return version


def _digest(suite: Suite, number: int, members: Sequence[SuiteMember]) -> str:
    rows = [asdict(request_of(member)) for member in members]
    content = json.dumps([suite.slug, number, rows], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_LENGTH]


def request_of(member: SuiteMember) -> MemberRequest:
    """Return the request that makes this member."""
    return MemberRequest(
        collection=member.collection.slug,
        measure=member.measure,
        weight=member.weight,
        group=member.group,
        qrels=member.qrels.version if member.qrels else None,
    )


def members_of(requests: Sequence[MemberRequest], user: Any) -> list[SuiteMember]:
    """Return the members that are requested, not stored.

    Raise InvalidInput for none, too many, a collection that the user does not see or that is
    requested twice, a measure that has no mean over topics, a weight that is not positive, groups
    of some members alone, and a version of judgements that the user does not see.
    """
    if not 0 < len(requests) <= MAX_MEMBERS:
        message = f"a suite has 1 to {MAX_MEMBERS} collections, not {len(requests)}"
        raise InvalidInput(message, code="bad_suite", pointer="/members")

    names = [request.collection for request in requests]
    collections = {
        collection.slug: collection
        for collection in Collection.objects.visible_to(user).filter(slug__in=names)
    }
    scored = set(
        Collection.objects.scored_for(user).filter(slug__in=names).values_list("slug", flat=True)
    )

    grouped = any(request.group for request in requests)
    members = []
    for place, request in enumerate(requests):
        pointer, slug = f"/members/{place}", request.collection
        if slug not in collections:
            raise _refusal(f"you see no collection {slug[:64]!r}", f"{pointer}/collection")
        if slug in names[:place]:
            message = f"collection {slug} is in the suite twice; leave one out"
            raise _refusal(message, f"{pointer}/collection")
        if grouped and not request.group:
            message = f"{slug} has no group; give every collection one, or none"
            raise _refusal(message, f"{pointer}/group")
        if not (math.isfinite(request.weight) and 0 < request.weight <= MAX_WEIGHT):
            message = f"the weight of {slug} is above 0 and at most {MAX_WEIGHT:,.0f}"
            raise _refusal(message, f"{pointer}/weight")

        collection = collections[slug]
        members.append(
            SuiteMember(
                collection=collection,
                measure=_measure(collection, request.measure, f"{pointer}/measure").name,
                weight=request.weight,
                group=request.group,
                qrels=_qrels(collection, request.qrels, slug in scored, f"{pointer}/qrels"),
            )
        )
    return members


def averaged_measure(collection: Collection, name: str) -> Measure:
    """Return a measure that a suite can average. Raise MeasureError for others, and unknown ones."""
    measure = collection.measure(name)
    not_a_mean = measure.pools or measure.definition.aggregate is not Aggregate.MEAN
    if not_a_mean or measure.lower_is_better:
        message = (
            f"{measure.name}: a suite averages measures that are a mean over topics and better "
            "where they are higher, such as nDCG@10"
        )
        raise MeasureError(message, code="bad_suite")
    return measure


def _measure(collection: Collection, name: str, pointer: str) -> Measure:
    try:
        measure = averaged_measure(collection, name or effectiveness_measures(collection)[0])
    except MeasureError as error:
        raise _refusal(error.message, pointer, code=error.code) from error

    if len(measure.name) > MEASURE_LENGTH:
        message = f"the name of a measure has at most {MEASURE_LENGTH} characters here"
        raise _refusal(message, pointer)
    return measure


def _qrels(collection: Collection, number: int | None, scored: bool, pointer: str) -> Qrels | None:
    if number is None:
        return None

    qrels = collection.qrels.filter(version=number).first() if scored else None
    if qrels is None:
        message = f"you see no version {number} of the judgements of {collection.slug}"
        raise _refusal(message, pointer, code="unknown_qrels")
    return qrels


def _refusal(message: str, pointer: str, code: str = "bad_suite") -> InvalidInput:
    return InvalidInput(message, code=code, pointer=pointer)
