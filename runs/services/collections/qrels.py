"""Versions of judgements: import, activate, read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from django.db import transaction
from django.db.models import Max, QuerySet

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judging import Judgements
from metrics.engine.judgement.sampling import Design
from runs import hooks
from runs.errors import Conflict, InvalidInput
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.sampled_qrels import read_sampled_qrels
from runs.formats.scanning.pieces import WHOLE_FILE, Opener
from runs.formats.sessions.qrels import read_session_qrels
from runs.formats.trec_qrels import QrelsSummary, read_qrels
from runs.models import AuditEvent, Collection, Disclosure, Phase, Qrels, User
from runs.models.campaigns.disclosure import feedback_on
from runs.models.collections.collections import NOTHING_RELEVANT
from runs.models.collections.disclosure import files_of
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.collections.authorship import (
    UNKNOWN,
    Authorship,
    check_derivation,
    of_reduced,
)
from runs.services.collections.reduced_qrels import excluded_topics_of, written_without
from runs.services.storage.files import (
    HASH_SEED,
    FileSource,
    keep_file,
    read_stored,
    storing,
    upload_limits,
)
from runs.services.storage.reports import list_topics, report_as_json
from runs.services.webhooks.events import qrels_activated

# The judgements that were read last, by file and way of reading, the latest at the end. Judgements
# with more topics than this are large: a hundred bytes for each row.
_cache: OrderedDict[tuple[str, ...], Judgements] = OrderedDict()
_cache_lock = Lock()
_CACHE_SIZE, _LARGE_TOPICS = 4, 1_000_000
_T = TypeVar("_T")


@dataclass(frozen=True)
class SamplingFields:
    """How the judged documents were drawn, and whether evaluations ignore it."""

    sampling: str = Qrels.Sampling.NONE
    ignore_sampling: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of a version."""
        return {"sampling": self.sampling, "ignore_sampling": self.ignore_sampling}

    @property
    def declared(self) -> Design | None:
        """Return the design that the lines of the file have."""
        return None if self.sampling == Qrels.Sampling.NONE else cast(Design, self.sampling)


NOT_SAMPLED = SamplingFields()


def sampling_of(fields: dict[str, Any]) -> SamplingFields:
    """Return the sampling that the fields of an upload declare."""
    return SamplingFields(fields["sampling"], fields["ignore_sampling"])


def check_qrels(
    *,
    collection: Collection,
    upload: Path,
    keyed_by: str = Qrels.KeyedBy.TOPIC,
    iteration: str | None = None,
    sampling: SamplingFields = NOT_SAMPLED,
    authorship: Authorship = UNKNOWN,
) -> tuple[QrelsSummary, FileSource]:
    """Read a qrels file to its end. Raise InvalidFile with every problem.

    The judgements are compared with those of the parent of their `authorship`.

    Judgements of a session's queries are keyed by query: the second column is the number of the
    query instead of an iteration. Without an `iteration`, `read_qrels` infers the use of the second
    column; if the previous version has subtopics, this one has them too.
    """
    if keyed_by == Qrels.KeyedBy.QUERY and iteration is not None:
        message = "with keyed_by=query the second column is a query number: leave out iteration"
        raise InvalidInput(message, pointer="/iteration")

    _check_sampling(sampling, keyed_by, iteration)
    # The second column of sampled judgements says nothing of subtopics.
    comparable = collection.qrels.filter(keyed_by=Qrels.KeyedBy.TOPIC, sampling=Qrels.Sampling.NONE)
    previous = comparable.order_by("-version").first()
    had_subtopics = bool(previous and previous.iteration == Qrels.Iteration.SUBTOPIC)
    source = FileSource(upload, upload_limits())
    try:
        with WHOLE_FILE:
            summary = _read(
                source.open,
                keyed_by=keyed_by,
                iteration=iteration,
                had_subtopics=had_subtopics,
                sampling=sampling,
                limits=upload_limits(),
            )
    finally:
        source.close()

    summary.report.check()
    parent = authorship.parent
    if parent:
        if parent.keyed_by != keyed_by:
            message = f"version {parent.version} is keyed by {parent.keyed_by}, not by {keyed_by}"
            raise InvalidInput(message, pointer="/parent")
        check_derivation(summary.report, summary.judgements, load_judgements(parent), authorship)
        summary.report.check()

    return summary, source


def _check_sampling(sampling: SamplingFields, keyed_by: str, iteration: str | None) -> None:
    """Raise InvalidInput for a sampling that contradicts the other fields of an upload."""
    design = sampling.declared
    if design is None:
        if sampling.ignore_sampling:
            message = "say how the documents were drawn: sampling=strata or sampling=probabilities"
            raise InvalidInput(message, code="required", pointer="/sampling")
        return

    if keyed_by == Qrels.KeyedBy.QUERY:
        message = "only judgements of topics can be sampled: leave out keyed_by=query"
        raise InvalidInput(message, pointer="/sampling")
    if iteration is not None:
        message = f"leave out iteration: sampling={design} says what the columns are"
        raise InvalidInput(message, pointer="/iteration")


def _read(
    open_qrels: Opener,
    *,
    keyed_by: str,
    iteration: str | None,
    had_subtopics: bool,
    sampling: SamplingFields,
    limits: Limits,
) -> QrelsSummary:
    if keyed_by == Qrels.KeyedBy.QUERY:
        summary = read_session_qrels(open_qrels, limits=limits, seed=HASH_SEED)
    elif sampling.declared:
        summary = read_sampled_qrels(open_qrels, sampling.declared, limits=limits, seed=HASH_SEED)
    else:
        summary = read_qrels(
            open_qrels,
            iteration=iteration,
            had_subtopics=had_subtopics,
            limits=limits,
            seed=HASH_SEED,
        )

    base = summary.judgements.recall_base
    without_relevant = np.flatnonzero(base.sum_where(base.level > 0) == 0)
    if count := len(without_relevant):
        topic_ids = summary.judgements.topic_ids
        units = ("query", "queries") if keyed_by == Qrels.KeyedBy.QUERY else ("topic", "topics")
        listed = list_topics([
            topic_ids[topic].decode(errors="replace") for topic in without_relevant.tolist()
        ])  # fmt: skip
        message = (
            f"{count:,} {units[count > 1]} with nothing relevant ({listed}): measures are 0 there "
            "for every run, or undefined"
        )
        summary.report.warning(0, NOTHING_RELEVANT, message, count)

    return summary


def import_qrels(
    *,
    collection: Collection,
    user: User | None,
    upload: Path,
    note: str = "",
    keyed_by: str = Qrels.KeyedBy.TOPIC,
    iteration: str | None = None,
    sampling: SamplingFields = NOT_SAMPLED,
    authorship: Authorship = UNKNOWN,
    activate: bool,
    enqueue: Callable[[Qrels], object],
    origin: Origin = SYSTEM,
    accept: Callable[[Qrels, bool], object] | None = None,
) -> tuple[Qrels, bool]:
    """Store a new version of the judgements. Return it and whether it is new.

    The same bytes with the same key as an earlier version are that version, unless another
    `iteration`, `sampling` or authorship is named than the earlier one has. In the same
    transaction, `enqueue` is called when the version becomes active, and `accept` with the values
    returned.
    """
    summary, source = check_qrels(
        collection=collection,
        upload=upload,
        keyed_by=keyed_by,
        iteration=iteration,
        sampling=sampling,
        authorship=authorship,
    )
    fields = _VersionFields(keyed_by, iteration, sampling, authorship)
    same = fields.versions(collection, source)
    existing = same.order_by("-version").first()

    with storing():
        keep_file(upload, source.sha256)
        with transaction.atomic():
            if existing and activate:
                activate_qrels(qrels=existing, enqueue=enqueue, origin=origin)

            qrels = existing or _create(
                collection=collection,
                user=user,
                summary=summary,
                source=source,
                note=note,
                fields=fields,
            )
            if existing is None:
                replaced = _activate(qrels, enqueue, origin) if activate else None
                _record_upload(origin, qrels, replaced)

            if accept:
                accept(qrels, existing is None)

    return qrels, existing is None


def activate_qrels(
    *, qrels: Qrels, enqueue: Callable[[Qrels], object], origin: Origin = SYSTEM
) -> None:
    """Activate a version; evaluations under the others become stale.

    If phases exclude topics, the version without these is activated instead.
    """
    with storing(), transaction.atomic():
        replaced = _activate(qrels, enqueue, origin)
        if qrels.active:
            _record_activation(origin, qrels, replaced)


def activate_again(
    *, collection: Collection, enqueue: Callable[[Qrels], object], origin: Origin = SYSTEM
) -> None:
    """Activate the active judgements anew, without exactly those topics that phases exclude now.

    Call this inside `storing` and a transaction.
    """
    active = collection.active_qrels
    if active is None:
        return

    whole = active.reduced_from or active
    if set(whole.topic_ids) - excluded_topics_of(collection) == set(active.topic_ids):
        return

    replaced = _activate(whole, enqueue, origin)
    if whole.active:
        _record_activation(origin, whole, replaced)


def _record_activation(origin: Origin, qrels: Qrels, replaced: int | None) -> None:
    after = {"active": qrels.version, "sha256": qrels.sha256}
    action = AuditEvent.Action.QRELS_ACTIVATED
    record(
        origin, action, qrels, collection=qrels.collection, before={"active": replaced}, after=after
    )


def record_reading(*, qrels: Qrels, origin: Origin) -> None:
    """Record a download of blind judgements."""
    with transaction.atomic():
        after = {"sha256": qrels.sha256}
        record(
            origin, AuditEvent.Action.QRELS_READ, qrels, collection=qrels.collection, after=after
        )


def _activate(qrels: Qrels, enqueue: Callable[[Qrels], object], origin: Origin) -> int | None:
    """Make a version the only active one. Return the number of the version that was active before.

    If phases exclude topics, the version without these becomes active instead.
    """
    # The row lock of PostgreSQL serialises two activations; SQLite has only one writer.
    collection = Collection.objects.select_for_update().get(pk=qrels.collection_id)
    active = collection.active_qrels
    replaced = active.version if active else None
    excluded = excluded_topics_of(collection) & set(qrels.topic_ids)
    activated = _without_topics(qrels, excluded, origin) if excluded else qrels
    _check_measures(collection, activated)
    files = files_of(qrels) | files_of(activated)
    _check_feedback(collection, activated, files - files_of(active))
    Qrels.objects.filter(collection=collection, active=True).exclude(pk=activated.pk).update(
        active=False
    )
    Qrels.objects.filter(pk=activated.pk).update(active=True)

    # In this order: both may be one object.
    qrels.active, qrels.collection = False, collection
    activated.active, activated.collection = True, collection

    if activated is not qrels:
        _record_activation(origin, activated, replaced)

    qrels_activated(activated, origin.request_id)
    if active and active.pk != activated.pk:
        hooks.judgements_replaced.send(Qrels, qrels=activated)

    enqueue(activated)
    return replaced


def _check_measures(collection: Collection, qrels: Qrels) -> None:
    """Raise Conflict if measures of the collection, or of its phases, are wrong under the sampling
    of these judgements."""
    if qrels.design is None:
        return

    names = list(collection.measures)
    for measures in collection.phases.values_list("measures", flat=True):
        names += measures or ()

    for name in dict.fromkeys(names):
        try:
            measure = collection.measure(name)
        except MeasureError:
            # A later release may no longer have it.
            continue

        try:
            measure.check_design(qrels.design)
        except MeasureError as error:
            message = (
                f"{error.message}. Change the measures of the collection and of its phases first, "
                "or upload the judgements with ignore_sampling=true"
            )
            raise Conflict(message, code="sampled_judgements") from error


def _check_feedback(collection: Collection, qrels: Qrels, files: set[str]) -> None:
    """Raise Conflict if a phase with feedback on another collection uses the files.

    This concerns judgements of evaluations, which such a phase would leak.
    """
    evaluations = collection.phases.filter(kind=Phase.Kind.EVALUATION)
    if not files or collection.disclosure > Disclosure.ORGANISERS or not evaluations.exists():
        return

    phase = feedback_on(files, collection)
    if phase:
        message = (
            f"phase {phase} gives feedback on collection {phase.collection}, "
            f"which has the file of version {qrels.version}, "
            "and would leak the judgements of an evaluation. Activate another version; "
            "to upload one for later, write activate=false"
        )
        raise Conflict(message, code="feedback_would_leak")


def _without_topics(qrels: Qrels, topics: set[str], origin: Origin) -> Qrels:
    """Return the version without these topics, which is created unless it exists."""
    if len(topics) == len(qrels.topic_ids):
        raise Conflict("phases exclude every topic of these judgements", code="conflict")

    # A version that lacks topics already is reduced further, from the version with all.
    whole = qrels.reduced_from or qrels
    excluded = topics | (set(whole.topic_ids) - set(qrels.topic_ids))
    keyed_by = whole.keyed_by
    iteration = whole.iteration if keyed_by == Qrels.KeyedBy.TOPIC else None
    sampling = SamplingFields(whole.sampling, whole.ignore_sampling)
    if sampling.declared:
        iteration = None

    with written_without(whole.sha256, excluded) as path:
        summary, source = check_qrels(
            collection=whole.collection,
            upload=path,
            keyed_by=keyed_by,
            iteration=iteration,
            sampling=sampling,
        )
        fields = _VersionFields(keyed_by, iteration, sampling, of_reduced(whole))
        existing = fields.versions(whole.collection, source).first()
        if existing:
            return existing
        keep_file(path, source.sha256)

    note = f"version {whole.version} without topic {', '.join(sorted(excluded))}"[:500]
    reduced = _create(
        collection=whole.collection,
        user=origin.actor,
        summary=summary,
        source=source,
        note=note,
        fields=fields,
    )
    Qrels.objects.filter(pk=reduced.pk).update(reduced_from=whole)
    reduced.reduced_from = whole

    return reduced


def _record_upload(origin: Origin, qrels: Qrels, replaced: int | None) -> None:
    after = {
        "version": qrels.version,
        "sha256": qrels.sha256,
        "lines": qrels.lines,
        "active": qrels.active,
        "iteration": qrels.iteration,
        "sampling": qrels.sampling,
        "ignore_sampling": qrels.ignore_sampling,
        "author_kind": qrels.author_kind,
        "model": qrels.model,
    }

    before = {"active": replaced} if qrels.active else {}
    action = AuditEvent.Action.QRELS_UPLOADED
    record(origin, action, qrels, collection=qrels.collection, before=before, after=after)


def load_judgements(qrels: Qrels) -> Judgements:
    """Return the judgements of a version from its stored file, without a sampling that it ignores.

    The last ones stay in memory, because a worker evaluates many runs by the same judgements; large
    ones only until others are loaded.
    """
    return _load(qrels, SamplingFields(qrels.sampling, qrels.ignore_sampling))


def _load(qrels: Qrels, sampling: SamplingFields) -> Judgements:
    key = qrels.sha256, qrels.keyed_by, qrels.iteration, *map(str, sampling.fields.values())

    with _cache_lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]

        sizes = {other: len(judgements.topics) for other, judgements in _cache.items()}
        for other, size in sizes.items():
            if size > _LARGE_TOPICS:
                del _cache[other]

    summary = read_stored(
        qrels.sha256,
        lambda opener: _read(
            opener,
            keyed_by=qrels.keyed_by,
            iteration=qrels.iteration,
            had_subtopics=False,
            sampling=sampling,
            limits=DEFAULT_LIMITS,
        ),
    )
    judgements = summary.judgements
    if sampling.ignore_sampling:
        judgements = replace(judgements, sampling=None)

    with _cache_lock:
        _cache[key] = judgements
        while len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)

    return judgements


def levels_by_topic(qrels: Qrels) -> dict[str, dict[str, int]]:
    """Return the level of each document that a version judges, by topic."""
    judgements = load_judgements(qrels)
    return _by_topic(judgements, judgements.levels.tolist())


@dataclass(frozen=True)
class DrawnDocument:
    """How a document of sampled judgements was drawn.

    `group` is the same for the documents of a stratum of a topic, or for those with the same
    `probability`, which in a stratum is the share of its documents that are judged.
    """

    group: int
    probability: float


def drawn_by_topic(qrels: Qrels) -> dict[str, dict[str, DrawnDocument]]:
    """Return how the documents of a version were drawn, by topic; empty where none were.

    A version that ignores its sampling has it all the same.
    """
    judgements = _load(qrels, SamplingFields(qrels.sampling))
    sampling = judgements.sampling
    if sampling is None:
        return {}

    groups = [
        DrawnDocument(group, probability)
        for group, probability in enumerate(sampling.probability.tolist())
    ]
    return _by_topic(judgements, [groups[row] for row in sampling.rows.tolist()])


def _by_topic(judgements: Judgements, values: Sequence[_T]) -> dict[str, dict[str, _T]]:
    """Return the value of each row by topic and document."""
    names = [topic.decode() for topic in judgements.topic_ids]
    by_topic: dict[str, dict[str, _T]] = {name: {} for name in names}
    for (topic, doc_id), row in judgements.places.items():
        by_topic[names[topic]][doc_id.decode()] = values[row]

    return by_topic


@dataclass(frozen=True)
class _VersionFields:
    """What tells two versions with the same file apart; any iteration if it is None."""

    keyed_by: str
    iteration: str | None
    sampling: SamplingFields
    authorship: Authorship

    def versions(self, collection: Collection, source: FileSource) -> QuerySet[Qrels]:
        """Return the versions of a collection that have the file and these fields."""
        versions = collection.qrels.filter(
            sha256=source.sha256,
            keyed_by=self.keyed_by,
            **self.sampling.fields,
            **self.authorship.identity,
        )
        return versions if self.iteration is None else versions.filter(iteration=self.iteration)


def _create(
    *,
    collection: Collection,
    user: User | None,
    summary: QrelsSummary,
    source: FileSource,
    note: str,
    fields: _VersionFields,
) -> Qrels:
    Collection.objects.select_for_update().get(pk=collection.pk)
    latest = collection.qrels.aggregate(latest=Max("version"))["latest"] or 0
    if fields.versions(collection, source).exists():
        raise Conflict("the same judgements are being uploaded right now; try again")

    judgements = summary.judgements
    return Qrels.objects.create(
        collection=collection,
        version=latest + 1,
        sha256=source.sha256,
        keyed_by=fields.keyed_by,
        iteration=summary.iteration,
        size=source.size,
        lines=summary.lines,
        judgements=len(judgements.levels),
        topics=len(judgements.topic_ids),
        topic_ids=[topic_id.decode() for topic_id in judgements.topic_ids],
        levels={str(level): count for level, count in summary.levels.items()},
        warnings=report_as_json(summary.report),
        note=note,
        created_by=user,
        **fields.sampling.fields,
        **fields.authorship.fields,
    )
