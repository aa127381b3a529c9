"""Load collections into the database as users would upload them, now or again after an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from evalhub.example.collection import (
    ATTRIBUTES,
    DOCUMENTS,
    LABELS,
    MEASURES,
    TOPICS,
    Corpus,
    pooled_qrels,
    read_corpus,
    read_file,
    simulate_sessions,
)
from evalhub.example.runs import LAB, REPLICATED
from metrics.services.queue.queueing import (
    queue_evaluation,
    queue_judged,
    queue_replicated,
    queue_submitted,
)
from runs.errors import Conflict
from runs.models import Collection, Note, Run, Team, User
from runs.services.audit.trail import SYSTEM, Origin
from runs.services.collections.collections import create_collection
from runs.services.collections.documents import import_documents
from runs.services.collections.qrels import import_qrels
from runs.services.collections.topic_attributes import import_attributes
from runs.services.collections.topics import import_topics
from runs.services.submissions.replicates import change_replicate
from runs.services.submissions.runs import RunUpload
from runs.services.submissions.session_sets import SessionSetUpload
from runs.services.submissions.submissions import submit
from runs.services.tracking.edits import change_run
from runs.services.tracking.labels import move_label
from runs.services.tracking.lineage import Parent
from runs.services.tracking.notes import write_note
from runs.web.uploads import StoredUpload

LAB_SLUG = "sea"
_ABOUT = (
    "209 short texts about the sea with 30 topics, written for this example. Real systems, each "
    "run with its parameters; the dates of the runs and the searchers of the sessions are simulated."
)


@dataclass(frozen=True)
class Loader:
    """Loads files in the name of a user. What is stored already stays as it is."""

    team: Team
    user: User
    origin: Origin = SYSTEM

    def create(self, slug: str, **fields: Any) -> Collection:
        """Return the collection. Raise Conflict if another team has the short name."""
        existing = Collection.objects.filter(slug=slug).first()
        if existing and existing.team_id != self.team.pk:
            raise Conflict(f"team {existing.team} has a collection {slug!r}", code="slug_taken")

        return existing or create_collection(
            origin=self.origin, team=self.team, slug=slug, **fields
        )

    def add_topics(self, collection: Collection, content: str) -> None:
        with stored_upload(content) as upload:
            import_topics(collection=collection, upload=upload.path, origin=self.origin)

    def add_attributes(self, collection: Collection, content: str) -> None:
        with stored_upload(content) as upload:
            import_attributes(collection=collection, upload=upload.path, origin=self.origin)

    def add_documents(self, collection: Collection, content: str) -> None:
        with stored_upload(content) as upload:
            import_documents(collection=collection, upload=upload.path, origin=self.origin)

    def add_qrels(self, collection: Collection, content: str) -> None:
        with stored_upload(content) as upload:
            import_qrels(
                collection=collection,
                user=self.user,
                upload=upload.path,
                activate=True,
                enqueue=queue_judged,
                origin=self.origin,
            )

    def add_run(
        self, collection: Collection, tag: str, content: str, *, days: float = 0, **fields: Any
    ) -> Run:
        """Submit a run as if so many days ago."""
        with stored_upload(content) as upload:
            run, _ = submit(
                upload=RunUpload(
                    collection=collection,
                    team=self.team,
                    user=self.user,
                    file=upload.path,
                    tag=tag,
                    origin=self.origin,
                    **fields,
                ),
                enqueue=queue_submitted,
            )

        Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=days))
        return run

    def make_replicate(self, run: Run, name: str, *, days: float) -> Run:
        """Make a run a replicate of this name, and return the row, which is as old as the first one."""
        change_replicate(run=run, name=name, renew=queue_replicated, origin=self.origin)
        row = Run.objects.select_related("collection", "team").get(replicates=run)
        if row.replicates.count() == 1:
            Run.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days))
        return row

    def add_sessions(self, collection: Collection, tag: str, content: str) -> None:
        with stored_upload(content) as upload:
            submit(
                upload=SessionSetUpload(
                    collection=collection,
                    team=self.team,
                    user=self.user,
                    file=upload.path,
                    tag=tag,
                    origin=self.origin,
                ),
                enqueue=queue_submitted,
            )


def load_lab(loader: Loader, corpus: Corpus | None = None) -> Collection:
    """Load the collection of the lab: topics, documents, judgements, runs, notes and sessions.

    Raise Conflict if another team has its short name.
    """
    collection = loader.create(
        LAB_SLUG,
        name="The sea",
        description=_ABOUT,
        level_labels=LABELS,
        measures=MEASURES,
        documents=read_file(DOCUMENTS).count("\n"),
    )
    corpus = corpus or read_corpus()
    loader.add_topics(collection, read_file(TOPICS))
    loader.add_attributes(collection, read_file(ATTRIBUTES))
    loader.add_documents(collection, read_file(DOCUMENTS))
    loader.add_qrels(collection, pooled_qrels(corpus))

    runs: dict[str, Run] = {}
    for lab_run in LAB:
        run = loader.add_run(
            collection,
            lab_run.tag,
            corpus.run(lab_run.tag, lab_run.parameters),
            days=lab_run.days,
            description=lab_run.description,
            metadata=lab_run.parameters,
            costs={"latency_ms": lab_run.latency},
            parents=[Parent(run=runs[tag].pk) for tag in lab_run.parents],
        )
        runs[lab_run.tag] = run

        if lab_run.replicate:
            run = loader.make_replicate(run, lab_run.replicate, days=lab_run.days)
            changes = {
                "description": REPLICATED[lab_run.replicate],
                "costs": {"latency_ms": lab_run.latency},
            }
            change_run(
                submission=run, changes=changes, enqueue=queue_evaluation, origin=loader.origin
            )

        _annotate(loader, run, note=lab_run.note, label=lab_run.label, days=lab_run.days)

    loader.add_sessions(collection, "searchers", simulate_sessions(corpus))
    return collection


def _annotate(loader: Loader, run: Run, *, note: str, label: str, days: float) -> None:
    if label:
        move_label(run=run, name=label, user=loader.user, origin=loader.origin)

    if note and not Note.objects.about(run).exists():
        written = write_note(subject=run, author=loader.user, text=note, origin=loader.origin)
        time = timezone.now() - timedelta(days=days)
        Note.objects.filter(pk=written.pk).update(created_at=time)


@contextmanager
def stored_upload(content: str) -> Iterator[StoredUpload]:
    """Write a file as an upload, deleted at the end unless the store has taken it."""
    with StoredUpload("file") as upload:
        upload.append(content.encode())
        yield upload
