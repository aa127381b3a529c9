"""What must always be true of rows and files, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Length
from django.utils import timezone

from metrics.engine.errors import EvalHubError
from metrics.engine.grammar import Measure, parse_measure
from metrics.models import JOBS, Comparison, Evaluation, Job, MetricVector
from metrics.services.comparisons.content import decode, digest_of, query_from
from metrics.services.queue.lifecycle import cancel_evaluations, queue_missing, reap_expired
from metrics.services.upkeep.findings import Finding
from metrics.services.upkeep.session_integrity import find_session_faults, find_unreadable_sessions
from metrics.services.values.judged_views import load_view, means_of
from runs.formats.compression import Reader
from runs.models import Collection, Membership, Qrels, RememberedAnswer, Run, SessionSet, Team, User
from runs.services.files import read_stored, stored_path
from runs.services.sweeping import AGE, left_behind, orphans, sweep

_STATE = Evaluation.State
_STEP = 1024 * 1024


def find_faults(*, fast: bool = False) -> Iterator[Finding]:
    """Everything that is wrong at this moment; `fast` leaves the contents of files and views unread."""
    for check in _CHECKS if fast else (*_CHECKS, *_SLOW_CHECKS):
        yield from check()


def _again(evaluation: Evaluation) -> Callable[[], object]:
    """Evaluate anew: the run's file is the truth."""
    again = {"state": _STATE.QUEUED, "attempts": 0, "lease_token": None, "lease_until": None, "dispatched_at": None}
    return lambda: Evaluation.objects.filter(pk=evaluation.pk, state=_STATE.EVALUATED).update(**again)


def _name(evaluation: Evaluation) -> str:
    return f"evaluation {evaluation.pk} of run {evaluation.run_id}"


def _evaluated() -> QuerySet[Evaluation]:
    return Evaluation.objects.filter(state=_STATE.EVALUATED)


def _views() -> Iterator[Finding]:
    for evaluation in _evaluated().filter(view=None):
        text = f"{_name(evaluation)} is evaluated and has no judged view; --repair evaluates it again"
        yield Finding("view_missing", text, _again(evaluation))


def _vectors() -> Iterator[Finding]:
    """Collections of equal length: a vector has a value for every topic of its qrels."""
    sized = MetricVector.objects.annotate(size=Length("content")).exclude(size=8 * F("evaluation__qrels__topics"))
    for vector in sized.defer("content").select_related("evaluation"):
        text = f"{_name(vector.evaluation)} has a vector of {vector.measure} with another length than its topics; "
        yield Finding("vector_length", text + "--repair computes it again", vector.delete)
    for collection in Collection.objects.all():
        yield from _vectors_of(collection)


def _vectors_of(collection: Collection) -> Iterator[Finding]:
    measures, _ = _parsed(collection)
    names = {measure.name for measure in measures}
    stored = Count("vectors", filter=Q(vectors__measure__in=names))
    current = _evaluated().filter(run__collection=collection, run__deleted_at=None, qrels__active=True)
    short = current.exclude(view=None).annotate(stored=stored).filter(stored__lt=len(names))
    if ids := list(short.values_list("pk", flat=True)):
        text = f"{len(ids)} evaluations of collection {collection} have not every measure of it stored, which was "
        yield Finding(
            "vector_missing",
            text + "changed since; what is missing is computed when it is read, or by --repair",
            lambda: means_of(ids, measures, names),
            note=True,
        )


def _measures() -> Iterator[Finding]:
    for collection in Collection.objects.all():
        for problem in _parsed(collection)[1]:
            text = f"collection {collection} asks for what this engine cannot compute; PATCH its measures: {problem}"
            yield Finding("measure_unknown", text)


def _parsed(collection: Collection) -> tuple[list[Measure], list[str]]:
    """The collection's measures, and what is wrong with those that are none."""
    measures, problems = [], []
    for name in collection.measures:
        try:
            measures.append(parse_measure(name, collection.documents))
        except EvalHubError as error:
            problems.append(error.message)
    return measures, problems


def _leases() -> Iterator[Finding]:
    for kind in JOBS:
        yield from _leases_of(kind)


def _leases_of(kind: type[Job]) -> Iterator[Finding]:
    leased = Q(lease_token__isnull=False) | Q(lease_until__isnull=False)
    whole = Q(lease_token__isnull=False, lease_until__isnull=False)
    held, rows = Q(state=kind.HELD), kind._default_manager.all()
    for job in rows.filter((held & ~whole) | (~held & leased)):
        yield Finding("lease_state", f"{_job(job)} is {job.state} and its lease says otherwise; restore a backup")
    lease = timedelta(seconds=settings.EVALHUB_LEASE_SECONDS)
    for job in rows.filter(held, lease_until__lt=timezone.now() - lease):
        text = f"{_job(job)} holds a lease that ended at {job.lease_until:%F %T}, and no worker reaped it: "
        yield Finding("lease_expired", text + "start a worker; --repair queues it again", reap_expired)
    for job in rows.filter(held, lease_until__gt=timezone.now() + 2 * lease):
        text = f"{_job(job)} holds a lease until {job.lease_until:%F %T}: did the clock jump? --repair ends it"
        yield Finding("lease_too_long", text, _end_lease(job))


def _job(job: Job) -> str:
    return _name(job) if isinstance(job, Evaluation) else str(job)


def _end_lease(job: Job) -> Callable[[], object]:
    held = type(job)._default_manager.filter(pk=job.pk, lease_token=job.lease_token)
    return lambda: held.update(lease_until=timezone.now() - timedelta(seconds=1)) and reap_expired()


def _queue() -> Iterator[Finding]:
    for run in Run.objects.filter(evaluations__state=_STATE.QUEUED).exclude(deleted_at=None).distinct():
        text = f"run {run.pk} was deleted and waits to be evaluated; --repair cancels that"
        yield Finding("deleted_run_queued", text, lambda run=run: cancel_evaluations(run))  # type: ignore[misc]
    judged = Run.objects.filter(deleted_at=None, collection__qrels__active=True)
    for run in judged.filter(evaluations=None).select_related("collection"):
        text = f"run {run.pk} of collection {run.collection} was never queued; --repair queues it, as workers do hourly"
        yield Finding("run_not_queued", text, queue_missing)


def _qrels() -> Iterator[Finding]:
    active = Count("qrels", filter=Q(qrels__active=True))
    for collection in Collection.objects.annotate(active_versions=active).filter(active_versions__gt=1):
        text = f"collection {collection} has several active versions of judgements; activate the one that counts"
        yield Finding("several_active_qrels", text)
    for qrels in Qrels.objects.select_related("collection").iterator(50):
        if qrels.topics != len(qrels.topic_ids):
            text = f"judgements {qrels} name {len(qrels.topic_ids)} topics and count {qrels.topics}; restore a backup"
            yield Finding("qrels_topics", text)
    for evaluation in Evaluation.objects.exclude(qrels__collection=F("run__collection")):
        text = f"{_name(evaluation)} is by judgements of another collection; restore a backup"
        yield Finding("foreign_qrels", text)


def _members() -> Iterator[Finding]:
    for user in User.objects.filter(personal_team=None):
        text = f"user {user} has no team of their own; --repair makes one"
        yield Finding("no_personal_team", text, lambda user=user: Team.objects.create_personal(user))  # type: ignore[misc]
    for team in Team.objects.exclude(personal_of=None).exclude(memberships__user=F("personal_of")):
        text = f"user {team.personal_of} is no member of their own team {team}; --repair makes them its owner"
        yield Finding("not_in_personal_team", text, lambda team=team: _make_owner(team))  # type: ignore[misc]
    for team in Team.objects.filter(memberships=None, personal_of=None):
        text = f"team {team} has no member: only an administrator can submit for it, or add one under /admin/"
        yield Finding("team_without_members", text, note=True)


def _make_owner(team: Team) -> None:
    if team.personal_of:
        Membership.objects.create(team=team, user=team.personal_of, role=Membership.Role.OWNER)


def _leftovers() -> Iterator[Finding]:
    swept = (("orphan_file", "stored files without a row", orphans), ("old_upload", "old uploads", left_behind))
    for code, what, find in swept:
        if count := sum(1 for _ in find()):
            yield Finding(code, f"{count} {what}; workers sweep every hour, evalhub sweep does now", sweep, note=True)
    old = RememberedAnswer.objects.filter(created_at__lt=timezone.now() - 2 * AGE).count()
    if old:
        text = f"{old} idempotency keys are older than two days: does no worker run? evalhub sweep takes them away"
        yield Finding("old_keys", text, sweep, note=True)


@dataclass(frozen=True)
class _Named:
    """A stored file as a row names it; `size` is None where the row does not say."""

    sha256: str
    size: int | None
    who: str


def _named() -> Iterator[_Named]:
    for qrels in Qrels.objects.select_related("collection").defer("topic_ids", "warnings"):
        yield _Named(qrels.sha256, qrels.size, f"judgements {qrels}")
    for log in SessionSet.objects.filter(deleted_at=None).only("sha256", "size", "tag"):
        yield _Named(log.sha256, log.size, f"session set {log.pk} ({log.tag})")
    for run in Run.objects.filter(deleted_at=None).only("sha256", "size", "known_sha256", "tag"):
        yield _Named(run.sha256, run.size, f"run {run.pk} ({run.tag})")
        if run.known_sha256:
            yield _Named(run.known_sha256, None, f"the known documents of run {run.pk} ({run.tag})")


def _files_there() -> Iterator[Finding]:
    for named in _named():
        if not stored_path(named.sha256).is_file():
            text = f"{named.who}: the stored file {named.sha256} is missing; submit the same file again, or take it "
            yield Finding("file_missing", text + "out of a backup")


def _files_whole() -> Iterator[Finding]:
    checked: dict[str, int | None] = {}
    for named in _named():
        if named.sha256 not in checked:
            checked[named.sha256] = _size_of(named.sha256)
        size = checked[named.sha256]
        if size is None and stored_path(named.sha256).is_file():
            text = f"{named.who}: the stored file {named.sha256} was altered; take it out of a backup"
            yield Finding("file_altered", text)
        elif size is not None and named.size not in (None, size):
            text = f"{named.who}: the stored file has {size:,} bytes and its row says {named.size:,}; restore a backup"
            yield Finding("file_size", text)


def _size_of(sha256: str) -> int | None:
    """Decompressed bytes of a stored file, None where it is not what its name says."""

    def count(opener: Callable[[], Reader]) -> int:
        reader, size = opener(), 0
        while content := reader.read(_STEP):
            size += len(content)
        return size

    try:
        return read_stored(sha256, count)
    except EvalHubError:
        return None


def _views_readable() -> Iterator[Finding]:
    for evaluation in _evaluated().exclude(view=None).select_related("qrels").defer("qrels__topic_ids").iterator(50):
        try:
            whole = load_view(evaluation).n_topics == evaluation.qrels.topics
        except Exception:
            whole = False
        if not whole:
            text = f"the judged view of {_name(evaluation)} cannot be read; --repair evaluates it again"
            yield Finding("view_unreadable", text, _again(evaluation))


def _comparisons() -> Iterator[Finding]:
    """What can be made again is forgotten: whoever asks for it has it made."""
    for stored in Comparison.objects.select_related("qrels").defer("content", "qrels__topic_ids").iterator(50):
        if digest_of(stored.query) != stored.digest or stored.query["qrels"] != stored.qrels.pk:
            text = f"{stored} is not the one that its inputs name; --repair forgets it"
            yield Finding("comparison_digest", text, stored.delete)


def _comparisons_readable() -> Iterator[Finding]:
    for stored in Comparison.objects.filter(state=Comparison.State.COMPARED).iterator(1):
        try:
            decode(bytes(stored.content or b""), query_from(stored.query))
        except Exception:
            text = f"the result of {stored} cannot be read; --repair queues it again"
            yield Finding("comparison_unreadable", text, _compare_again(stored))


def _compare_again(stored: Comparison) -> Callable[[], object]:
    again = {"state": Comparison.State.QUEUED, "content": None, "size": 0, "attempts": 0, "dispatched_at": None}
    return lambda: Comparison.objects.filter(pk=stored.pk, state=Comparison.State.COMPARED).update(**again)


# In this order; each yields what it finds.
_CHECKS = (
    _measures, _qrels, _members, _leases, _queue, _views, _vectors, _comparisons, find_session_faults, _files_there,
    _leftovers,
)  # fmt: skip
_SLOW_CHECKS = (_files_whole, _views_readable, find_unreadable_sessions, _comparisons_readable)
