"""Check what must always be true of rows and files, and repair it where possible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, OperationalError
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.functions import Length
from django.utils import timezone

from metrics.engine.errors import EvalHubError
from metrics.models import (
    EVALUATIONS,
    JOBS,
    Comparison,
    Evaluation,
    Job,
    JudgedView,
    MetricVector,
    SessionEvaluation,
    SessionView,
)
from metrics.services.comparisons.content import decode, digest_of, query_from
from metrics.services.queue.damage import evaluate_anew, forget_result
from metrics.services.queue.lifecycle import queue_again, reap_expired
from metrics.services.queue.queueing import cancel_evaluations, queue_missing, unqueued
from metrics.services.queue.vectors import evaluations_behind, queue_vectors
from metrics.services.sessions.judged_sets import unpack_set
from metrics.services.upkeep.database_file import (
    find_in_database,
    find_in_json,
    find_in_types,
    finding_of_damage,
)
from metrics.services.upkeep.findings import Finding
from metrics.services.upkeep.parameters import find_in_parameters
from metrics.services.upkeep.stored_values import (
    find_in_session_means,
    find_in_topic_ids,
    find_in_value_tables,
    find_in_vectors,
    find_unsealed,
)
from metrics.services.upkeep.webhooks import find_in_webhooks
from metrics.services.values.judged_views import unpack_view
from runs import hooks
from runs.errors import StoredValueCorrupt
from runs.models import (
    Artifact,
    Collection,
    Label,
    LabelMove,
    Membership,
    Qrels,
    RememberedAnswer,
    Run,
    SessionSet,
    Team,
    User,
)
from runs.services.storage.files import Examined, examine_stored, files_of_apps
from runs.services.storage.stores.chosen import the_store
from runs.services.submissions.sweeping import (
    AGE,
    left_behind,
    orphans,
    sweep,
    takes_too_many,
    young_strangers,
)
from runs.services.tracking.labels import delete_label


def find_faults(*, fast: bool = False) -> Iterator[Finding]:
    """Yield all faults of this moment; `fast` leaves the contents of files and views unread."""

    checks = (
        partial(find_in_database, fast=fast),
        find_in_types,
        find_in_json,
        _find_in_collections,
        _find_in_qrels,
        _find_in_teams,
        _find_in_labels,
        _find_in_leases,
        _find_in_submissions,
        *(() if fast else (find_in_parameters,)),
        partial(_find_in_evaluations, fast),
        *(
            ()
            if fast
            else (find_in_topic_ids, find_in_vectors, find_in_value_tables, find_in_session_means)
        ),
        find_unsealed,
        partial(_find_in_comparisons, fast),
        find_in_webhooks,
        *(look for _, look in hooks.integrity_checks.send(None, fast=fast)),
        partial(_find_in_files, fast),
        _find_leftovers,
    )
    for check in checks:
        try:
            yield from check()
        except DatabaseError as error:
            finding = finding_of_damage(error)
            if finding is None:
                raise
            # Rows on other pages of the file can still be checked.
            yield finding
        except StoredValueCorrupt as error:
            yield Finding(
                "value_unreadable", f"{error.message}; what depends on it was not looked at"
            )


def _find_in_collections() -> Iterator[Finding]:
    """Check that the measures of collections can be computed, and that their values are stored."""
    for collection in Collection.objects.all():
        computable = True
        for name in collection.measures:
            try:
                collection.measure(name)
            except EvalHubError as error:
                text = (
                    f"collection {collection} asks for what this engine cannot compute; PATCH "
                    "its measures: "
                )
                yield Finding("measure_unknown", text + error.message)
                computable = False

        qrels = collection.active_qrels
        if not (qrels and computable):
            continue

        if behind := evaluations_behind(qrels).exclude(view=None).count():
            text = (
                f"{behind} evaluations of collection {collection} lack vectors or curves of its "
                "measures, which are "
                "computed when they are read; --repair queues them, as workers do hourly"
            )
            yield Finding("vector_missing", text, partial(queue_vectors, qrels), note=True)


def _find_in_qrels() -> Iterator[Finding]:
    active = Count("qrels", filter=Q(qrels__active=True))
    for collection in Collection.objects.annotate(active_versions=active).filter(
        active_versions__gt=1
    ):
        text = (
            f"collection {collection} has several active versions of judgements; activate one "
            "of them"
        )
        yield Finding("several_active_qrels", text)

    for qrels in (
        Qrels.objects.select_related("collection").defer("topic_ids", "warnings").iterator(50)
    ):
        try:
            topics = len(qrels.topic_ids)
        except (StoredValueCorrupt, OperationalError):
            # The check of contents tries to read them from the file again.
            text = (
                f"the topic ids of judgements {qrels} are damaged; fsck --repair reads them "
                "again from their file"
            )
            yield Finding("qrels_topics", text)
            continue

        if qrels.topics != topics:
            # A value that has its digest is unchanged.
            text = (
                f"judgements {qrels} name {topics} topics and count {qrels.topics}; --repair "
                "counts them again"
            )
            rows = Qrels.objects.filter(pk=qrels.pk, topics=qrels.topics)
            yield Finding("qrels_topics", text, partial(rows.update, topics=topics))


def _find_in_teams() -> Iterator[Finding]:
    for user in User.objects.filter(personal_team=None):
        text = f"user {user} has no team of their own; --repair makes one"
        yield Finding("no_personal_team", text, partial(Team.objects.create_personal, user))

    for team in Team.objects.exclude(personal_of=None).exclude(memberships__user=F("personal_of")):
        text = (
            f"user {team.personal_of} is not a member of their own team {team}; --repair makes "
            "them its owner"
        )
        owner = {"team": team, "user": team.personal_of, "role": Membership.Role.OWNER}
        yield Finding("not_in_personal_team", text, partial(Membership.objects.create, **owner))

    for team in Team.objects.filter(memberships=None, personal_of=None):
        text = (
            f"team {team} has no member: only an administrator can submit for it, or invite one "
            "on its page"
        )
        yield Finding("team_without_members", text, note=True)


def _find_in_labels() -> Iterator[Finding]:
    """Check that a label names a live run of its team and collection, the one of its last move."""
    moves = LabelMove.objects.filter(
        collection=OuterRef("collection"), team=OuterRef("team"), name=OuterRef("name")
    )

    labels: QuerySet[Any] = Label.objects.annotate(
        last=Subquery(moves.values("to_run")[:1], output_field=UUIDField())
    )
    for label in labels.select_related("collection", "team", "run"):
        if (label.run.collection_id, label.run.team_id) != (label.collection_id, label.team_id):
            text = (
                f"label {label} names run {label.run_id} of another team or collection; move it "
                "to one of its team's"
            )
            yield Finding("foreign_label", text)
        elif label.run.deleted_at:
            text = (
                f"label {label} names run {label.run_id}, which was withdrawn; --repair deletes "
                "the label"
            )
            yield Finding(
                "label_of_withdrawn_run", text, partial(delete_label, label=label, user=None)
            )
        elif label.last != label.run_id:
            text = (
                f"label {label} names run {label.run_id}, and its last move leads to {label.last}; "
                "move it to the right run, or restore a backup"
            )
            yield Finding("label_not_moved", text)


def _find_in_leases() -> Iterator[Finding]:
    """Check that a job has a complete lease exactly while a worker holds it.

    It must not be longer than a worker takes.
    """
    leased = Q(lease_token__isnull=False) | Q(lease_until__isnull=False)
    whole = Q(lease_token__isnull=False, lease_until__isnull=False)
    lease = timedelta(seconds=settings.EVALHUB_LEASE_SECONDS)

    for kind in JOBS:
        is_held, rows = Q(state=kind.HELD), kind._default_manager.all()
        for job in rows.filter((is_held & ~whole) | (~is_held & leased)):
            yield Finding(
                "lease_state",
                f"{_name(job)} is {job.state} and its lease says otherwise; restore a backup",
            )

        for job in rows.filter(is_held, lease_until__lt=timezone.now() - lease):
            text = (
                f"{_name(job)} holds a lease that ended at {job.lease_until:%F %T}, and no worker "
                "reaped it: start a worker; --repair queues it again"
            )
            yield Finding("lease_expired", text, reap_expired)

        for job in rows.filter(is_held, lease_until__gt=timezone.now() + 2 * lease):
            text = (
                f"{_name(job)} holds a lease until {job.lease_until:%F %T}: did the clock jump? "
                "--repair ends it"
            )
            yield Finding("lease_too_long", text, partial(_end_lease, job))


def _end_lease(job: Job) -> None:
    job_rows = type(job)._default_manager.filter(pk=job.pk, lease_token=job.lease_token)
    if job_rows.update(lease_until=timezone.now() - timedelta(seconds=1)):
        reap_expired()


def _name(job: Job) -> str:
    if isinstance(job, Evaluation | SessionEvaluation):
        return f"evaluation {job.pk} of {job.OF.noun()} {getattr(job, f'{job.OF.KEY}_id')}"
    return str(job)


def _find_in_submissions() -> Iterator[Finding]:
    """Check that withdrawn submissions are not queued, and that others have an evaluation."""
    for kind in EVALUATIONS.values():
        key, noun = kind.OF.KEY, kind.OF.noun()
        waiting = kind.OF.objects.filter(evaluations__state=Job.QUEUED).exclude(deleted_at=None)
        for submission in waiting.distinct():
            text = (
                f"{noun} {submission.pk} was withdrawn and waits to be evaluated; --repair "
                "cancels that"
            )
            yield Finding(f"deleted_{key}_queued", text, partial(cancel_evaluations, submission))

        for submission in (
            kind.OF.objects.exclude(digest=None).only("digest", *kind.OF.SEALED).iterator(500)
        ):
            if submission.digest != submission.digest_of_sealed():
                text = (
                    f"the row of {noun} {submission.pk} is not what was stored: its file, or what "
                    "was counted in it; nothing is shown of it; restore a backup"
                )
                yield Finding(f"{key}_altered", text)

        for missing in unqueued(kind.OF.objects.all()):
            text = (
                f"{noun} {getattr(missing, f'{key}_id')} is not queued; --repair queues it, as "
                "workers do hourly"
            )
            yield Finding(f"{key}_not_queued", text, queue_missing)


def _find_in_evaluations(fast: bool) -> Iterator[Finding]:
    """Check that evaluations use their collection's judgements, and have complete values.

    They need a judged view, and vectors of the right length.

    Unreadable values are computed again from the runs and logs.
    """
    for kind in EVALUATIONS.values():
        key, prefix = kind.OF.KEY, "" if kind is Evaluation else "session_"
        for evaluation in kind.objects.exclude(qrels=None).exclude(
            qrels__collection=F(f"{key}__collection")
        ):
            text = f"{_name(evaluation)} is by judgements of another collection; restore a backup"
            yield Finding("foreign_qrels", text)

        evaluated = kind.objects.evaluated().defer(*(() if kind is Evaluation else ("means",)))
        for evaluation in evaluated.with_files().filter(same_files=False):
            text = (
                f"{_name(evaluation)} was made from other files than its {kind.OF.noun()} names; "
                "--repair evaluates it again"
            )
            renew = partial(evaluate_anew, kind, [evaluation.pk])
            yield Finding(f"{prefix}evaluation_of_other_files", text, renew)

        # Means over replicates have none.
        without_view = evaluated.filter(view=None).exclude(**{f"{key}__sha256": ""})
        for evaluation in without_view:
            text = (
                f"{_name(evaluation)} is evaluated and has no judged view; --repair evaluates "
                "it again"
            )
            repair = partial(queue_again, evaluated.filter(pk=evaluation.pk))
            yield Finding(f"{prefix}view_missing", text, repair)

        if fast:
            continue

        for evaluation in (
            evaluated.exclude(view=None)
            .select_related("qrels", key)
            .defer("qrels__topic_ids")
            .iterator(50)
        ):
            if not _has_whole_view(evaluation):
                text = (
                    f"the judged view of {_name(evaluation)} is damaged; --repair evaluates it "
                    "again"
                )
                repair = partial(queue_again, evaluated.filter(pk=evaluation.pk))
                yield Finding(f"{prefix}view_unreadable", text, repair)

    sized = MetricVector.objects.annotate(size=Length("content")).exclude(
        size=8 * F("evaluation__qrels__topics")
    )

    for vector in sized.defer("content").select_related("evaluation"):
        text = (
            f"{_name(vector.evaluation)} has a vector of {vector.measure} with another length "
            "than its topics; --repair computes it again"
        )
        yield Finding("vector_length", text, vector.delete)


def _has_whole_view(evaluation: Evaluation | SessionEvaluation) -> bool:
    try:
        if isinstance(evaluation, Evaluation):
            view = JudgedView.objects.get(pk=evaluation.pk)
            return (
                view.is_sound(evaluation.qrels_id)
                and unpack_view(view).n_topics == evaluation.qrels.topics
            )

        row = SessionView.objects.get(pk=evaluation.pk)
        judged = unpack_set(row)
        return (
            row.is_sound(evaluation.qrels_id)
            and len(judged.sessions) == judged.view.n_sessions == evaluation.session_set.sessions
        )
    except Exception:
        return False


def _find_in_comparisons(fast: bool) -> Iterator[Finding]:
    """Check stored comparisons.

    A damaged result is deleted if it can be computed again on request.
    """
    for stored in (
        Comparison.objects.select_related("qrels").defer("content", "qrels__topic_ids").iterator(50)
    ):
        if digest_of(stored.query) != stored.digest or stored.query["qrels"] != stored.qrels.pk:
            text = f"{stored} is not the one that its inputs name; --repair forgets it"
            yield Finding("comparison_digest", text, stored.delete)

    if fast:
        return

    finished = Comparison.objects.filter(state=Comparison.State.COMPARED)
    for stored in finished.select_related("qrels__collection").iterator(1):
        try:
            content = bytes(stored.content or b"")
            if stored.content_digest not in (
                None,
                stored.digest_of_content(stored.digest, content),
            ):
                raise StoredValueCorrupt(str(stored))
            decode(content, query_from(stored.query, stored.qrels.collection))
        except Exception:
            text = f"the result of {stored} cannot be read; --repair queues it again"
            yield Finding("comparison_unreadable", text, partial(forget_result, stored.pk))


def _find_in_files(fast: bool) -> Iterator[Finding]:
    """Check that every file named by a row exists, and agrees with its name and its row."""
    examined: dict[str, Examined] = {}
    for sha256, size, owner in _named_files():
        if sha256 not in examined:
            examined[sha256] = _find_file(sha256) if fast else examine_stored(sha256)

        file = examined[sha256]
        if file.state == "missing":
            text = (
                f"{owner}: the stored file {sha256} is missing; submit the same file again, or "
                "take it out of a backup"
            )
            yield Finding("file_missing", text)
        elif file.state == "unreadable":
            text = (
                f"{owner}: the stored file {sha256} cannot be read ({file.reason}); look at its "
                "permissions and the disk, submit the same file again, or take it out of a backup"
            )
            yield Finding(
                "file_unreadable",
                text,
            )
        elif file.state == "altered":
            text = (
                f"{owner}: the stored file {sha256} was altered; submit the same file again, or "
                "take it out of a backup"
            )
            yield Finding("file_altered", text)
        elif size not in (None, file.size) and not fast:
            text = (
                f"{owner}: the stored file has {file.size:,} bytes and its row says {size:,}; "
                "restore a backup"
            )
            yield Finding("file_size", text)


def _find_file(sha256: str) -> Examined:
    """Check whether a stored file exists, without reading it."""
    try:
        the_store().look_at(sha256)
    except FileNotFoundError:
        return Examined("missing")
    except OSError as error:
        return Examined("unreadable", reason=error.strerror or str(error))

    return Examined("sound")


def _named_files() -> Iterator[tuple[str, int | None, str]]:
    """Yield stored files as rows name them.

    Each has its SHA-256, its size if the row has it, and a description of the row.
    """
    for qrels in Qrels.objects.select_related("collection").defer("topic_ids", "warnings"):
        yield qrels.sha256, qrels.size, f"judgements {qrels}"

    for log in SessionSet.objects.filter(deleted_at=None).only("sha256", "size", "tag"):
        yield log.sha256, log.size, f"session set {log.pk} ({log.tag})"

    runs = Run.objects.filter(deleted_at=None).with_files()
    for run in runs.only("sha256", "size", "known_sha256", "tag"):
        yield run.sha256, run.size, f"run {run.pk} ({run.tag})"
        if run.known_sha256:
            yield run.known_sha256, None, f"the known documents of run {run.pk} ({run.tag})"

    for artifact in Artifact.objects.live():
        yield artifact.sha256, artifact.size, f"the file {artifact.name} of run {artifact.run_id}"

    yield from files_of_apps()


def _find_leftovers() -> Iterator[Finding]:
    kinds = (
        ("orphan_file", "stored files without a row", orphans),
        ("old_upload", "old uploads", left_behind),
    )

    for code, noun, find in kinds:
        count = sum(1 for _ in find())
        if find is orphans and takes_too_many(count):
            text = (
                f"{count} {noun}, too many to be swept unasked: was the database restored from "
                "an older copy? "
            )
            yield Finding(code, f"{text}evalhub sweep --most {count} deletes them", note=True)
        elif count:
            yield Finding(
                code,
                f"{count} {noun}; workers sweep every hour, evalhub sweep does now",
                sweep,
                note=True,
            )

    if count := sum(1 for _ in young_strangers()):
        text = (
            f"{count} stored files of the last 24 hours have no row: submissions that were "
            "interrupted, or whose rows were lost with the end of a database file; keep them"
        )
        yield Finding("young_orphan", text, note=True)

    old = RememberedAnswer.objects.filter(created_at__lt=timezone.now() - 2 * AGE).count()
    if old:
        text = (
            f"{old} idempotency keys are older than two days: does no worker run? evalhub sweep "
            "removes them"
        )
        yield Finding("old_keys", text, sweep, note=True)
