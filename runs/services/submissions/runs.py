"""Submitting runs, and notes on stored runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from runs import hooks
from runs.errors import Conflict, FileReport, InvalidInput, StoredValueCorrupt
from runs.formats.header_parameters import with_header
from runs.formats.links import Link, with_header_links
from runs.formats.trec_run import RunSummary, check_run, say_contradicted
from runs.models import Collection, Experiment, Qrels, Run, System, User
from runs.models.submissions.runs import NO_RANKING
from runs.services.collections.known_documents import CheckedKnown, check_known
from runs.services.storage.files import HASH_SEED, FileSource, upload_limits
from runs.services.storage.reports import (
    list_topics,
    report_as_json,
    warn_of_outside,
    warn_where_none_matches,
)
from runs.services.submissions.passages import best_passages
from runs.services.submissions.replicates import (
    find_replicated,
    join_replicates,
    keep_common_metadata,
    next_number,
    replicate_with_files,
)
from runs.services.submissions.replicates import tag_of as tag_of_replicate
from runs.services.submissions.submissions import Upload, namesake
from runs.services.tracking.experiments import add_submitted
from runs.services.tracking.labels import move_label
from runs.services.tracking.lineage import (
    Parent,
    find_parents,
    links_of,
    store_links,
    store_parents,
)
from runs.services.tracking.parameters import left_out_of, store_parameters
from runs.services.tracking.systems import (
    join_system,
    next_version,
    stem_of,
    tag_of,
    version_with_files,
)

# What a submission does if another run has its tag.
FAIL, VERSION = "fail", "version"
# What a run has: a ranking of documents, or values from tables alone.
RANKING, VALUES = KINDS = ("ranking", "values")
# Of a run that comes with its first replicate.
REPLICATES = "replicates"
_CONTRADICTED = "warnings__counts__rank_contradicts_score"


@dataclass(frozen=True, kw_only=True)
class RunUpload(Upload[Run]):
    """A run, with what may come with it: costs, known documents, parents, links.

    With a separator in `passages`, its documents are passages: each document is stored with the
    score of its best one.

    Of the `kind` values it has no ranking, and its file is empty: tables have its values.

    It is put into the `experiment` of its team, and the `label` of the team is moved to it.

    It is a `replicate` of the run with this name, which is stored with its first replicate, and
    takes its place in the experiment and under the label. Without a tag it is named after it.

    With a `system` it becomes the next version of it, and without a tag it is named after that
    version. If the tag is taken, it is refused, or with `if_taken` version it becomes the next
    version of the system of that run.
    """

    known: Path | None = None
    passages: str = ""
    kind: str = RANKING
    system: str | None = None
    if_taken: str = FAIL
    replicate: str | None = None
    parents: list[Parent] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    costs: dict[str, Any] = field(default_factory=dict)
    experiment: Experiment | None = None
    label: str | None = None

    @property
    def paths(self) -> list[Path]:
        return [self.file, self.known] if self.known else [self.file]

    @contextlib.contextmanager
    def prepared(self) -> Iterator[Self]:
        if not self.passages or self.kind == VALUES:
            yield self
            return

        with best_passages(self.file, self.passages, self.tag or self._next_tag()) as best:
            metadata = {**best.metadata, **self.metadata}
            yield replace(self, file=best.path, metadata=metadata, passages="")

    def check(self) -> Run:
        if self.kind == VALUES:
            return self._check_values()

        source = FileSource(self.file, upload_limits())
        try:
            summary = check_run(
                source.open,
                tag=self.tag or self._next_tag(),
                limits=upload_limits(),
                seed=HASH_SEED,
            )
        finally:
            source.close()

        summary.report.check()
        self.check_summary(summary)

        if self._is_numbered:
            # The version or the replicates name the run, not the file.
            summary.report.drop_warnings("tag_differs")

        # Refuse a name, parents and links here already; `place` and `keep` store them.
        if self.replicate:
            find_replicated(Run(**self.columns()), self.replicate)
        find_parents(self.parents, self.user)
        with_header_links(summary.metadata, self.links, summary.report)

        known = check_known(upload=self.known) if self.known else None
        _warn_of_topics(self.collection, summary, known)

        metadata, costs = with_header(summary.metadata, self.metadata, self.costs, summary.report)
        if unsearched := left_out_of(self.collection, metadata, costs):
            message = (
                f"{len(unsearched):,} values of the metadata are kept, not searched: "
                f"{list_topics(unsearched)}"
            )
            summary.report.warning(0, "parameters_left_out", message, len(unsearched))

        return Run(
            **{**self.columns(), "metadata": metadata},
            costs=costs,
            tag=summary.tag or "run",
            ir_metadata=summary.metadata,
            sha256=source.sha256,
            size=source.size,
            lines=summary.lines,
            documents=summary.documents,
            topics=len(summary.topics),
            tied_documents=summary.tied_documents,
            grouped=summary.grouped,
            warnings=report_as_json(summary.report),
            known_sha256=known.sha256 if known else "",
            known_documents=known.summary.count if known else 0,
            known_warnings=report_as_json(known.summary.report) if known else {},
        )

    def _check_values(self) -> Run:
        """Return the unsaved run without a ranking. Raise InvalidInput for one with a file."""
        if self.file.stat().st_size:
            message = (
                "kind=values is a run without a ranking: send an empty file, and its values as a "
                "value table"
            )
            raise InvalidInput(message, pointer="/file")
        if not self.tag:
            message = "a run without a ranking needs a tag, by which value tables name it"
            raise InvalidInput(message, pointer="/tag")
        if self.known or self.passages:
            name = "known" if self.known else "passages"
            message = f"a run without a ranking has no documents: leave {name} out"
            raise InvalidInput(message, pointer=f"/{name}")

        find_parents(self.parents, self.user)
        return Run(
            **self.columns(),
            costs=self.costs,
            tag=self.tag,
            sha256=NO_RANKING,
            size=0,
            lines=0,
            documents=0,
            topics=0,
            tied_documents=0,
            grouped=True,
            warnings=report_as_json(FileReport()),
        )

    def check_summary(self, summary: RunSummary) -> None:
        """Refuse a file for its contents. A run outside campaigns is taken as it is."""

    @property
    def _is_numbered(self) -> bool:
        """Return whether the run is named after its version, or after its replicates."""
        return bool(self.system or self.replicate) and not self.tag

    def _next_tag(self) -> str | None:
        if self.tag:
            return None
        if self.replicate:
            run = Run(collection=self.collection, team=self.team)
            return tag_of_replicate(self.replicate, next_number(run, self.replicate))
        if not self.system:
            return None
        version = next_version(collection=self.collection, team=self.team, slug=self.system)
        return tag_of(self.system, version)

    def _system_of(self, run: Run, existing: Run | None) -> str | None:
        """Return the slug of the system to join; `existing` is another run with the run's tag."""
        if self.system or self.if_taken != VERSION:
            return self.system
        if existing and existing.system:
            return existing.system.slug

        slug = stem_of(run.tag)
        if existing or System.objects.filter(team=run.team, slug=slug).exists():
            return slug

        return None

    def find_existing(self, run: Run) -> Run | None:
        """Return the run that this upload repeats, or None.

        This is the run with the tag, or a version of the system with the same files.
        """
        existing = None if self._is_numbered else namesake(run)
        if existing and self.if_taken != VERSION:
            self.check_same(existing, run)
            return existing

        if self.replicate:
            existing = replicate_with_files(run, self.replicate) if self._is_numbered else None
            if existing:
                _warn_of_differing(self, existing, run)
            return existing

        if existing is None or existing.files != run.files:
            slug = self._system_of(run, existing)
            existing = None
            if slug and (self._is_numbered or self.if_taken == VERSION):
                existing = version_with_files(run, slug)

        if existing:
            _warn_of_differing(self, existing, run)

        return existing

    def place(self, run: Run) -> None:
        if self.replicate:
            keep_tag = not self._is_numbered
            join_replicates(run, self.replicate, keep_tag=keep_tag, origin=self.origin)
            return

        existing = None if self._is_numbered else namesake(run)
        slug = self._system_of(run, existing)
        if slug and (existing is None or self.if_taken == VERSION):
            keep_tag = existing is None and not self._is_numbered
            join_system(run, slug, previous=existing, keep_tag=keep_tag, origin=self.origin)

    def check_same(self, existing: Run, run: Run) -> None:
        super().check_same(existing, run)
        if existing.known_sha256 != run.known_sha256:
            raise Conflict(
                f"run {run.tag!r} of team {self.team} has different known documents; "
                "choose a new tag",
                code="tag_taken",
                pointer="/tag",
            )

        replicated = existing.replicate_of
        if self.replicate and (replicated is None or replicated.tag != self.replicate):
            raise Conflict(
                f"run {run.tag!r} of team {self.team} has this file and is not a replicate of "
                f"{self.replicate!r}; make it one (PATCH runs/{existing.pk}/ with replicate), or "
                "choose another tag for the replicate",
                code="tag_taken",
                pointer="/replicate",
            )

        _warn_of_differing(self, existing, run)

    def count(self, run: Run) -> None:
        hooks.before_submission.send(Run, run=run)
        _check_not_removed(run)
        super().count(run)

    def keep(self, run: Run) -> None:
        store_parameters(run.collection, [run])
        keep_common_metadata(run)
        store_parents(run, find_parents(self.parents, self.user))

        # The check has reported the links that are left out.
        store_links(run, with_header_links(run.ir_metadata, self.links, FileReport()))
        self.keep_again(run)
        _warn_of_same_file(run, self.user)

    def keep_again(self, existing: Run) -> None:
        row = existing.replicate_of or existing
        if self.experiment:
            add_submitted(experiment=self.experiment, run=row, user=self.user, origin=self.origin)

        if self.label:
            move_label(
                run=row,
                name=self.label,
                user=self.user,
                note="with the submission",
                origin=self.origin,
            )


def _check_not_removed(run: Run) -> None:
    """Raise Conflict for a file of the team that organisers took out of the collection."""
    same_file = Run.objects.filter(collection=run.collection, team=run.team, sha256=run.sha256)
    if not run.has_ranking:
        same_file = same_file.filter(tag=run.tag)
    removed = same_file.exclude(removal_reason="").first()
    if removed:
        raise Conflict(
            f"the organisers took this run out of collection {run.collection}: "
            f"{removed.removal_reason}",
            code="run_removed",
        )


def contradicted_ranks(runs: Iterable[UUID]) -> dict[UUID, str]:
    """Return a note for each run with a rank column that contradicts its scores."""
    rows = Run.objects.filter(pk__in=runs).values_list("pk", _CONTRADICTED, "documents")
    return {pk: say_contradicted(lines, documents) for pk, lines, documents in rows if lines}


def _warn_of_differing(upload: RunUpload, existing: Run, run: Run) -> None:
    """Warn if a run that is sent again differs in what it keeps, such as its metadata.

    The warning is only in the answer: it is set on the existing run, which is not saved.
    """
    differing = [
        name
        for name in ("metadata", "costs")
        if getattr(upload, name) and getattr(existing, name) != getattr(run, name)
    ]

    parents = {(parent.run, parent.relation, parent.weight) for parent in upload.parents}
    edges = existing.parent_edges.values_list("parent_id", "relation", "weight")
    if parents and parents != set(edges):
        differing.append("parents")

    if upload.links and upload.links != links_of(existing):
        differing.append("links")

    if upload.system and (existing.system is None or existing.system.slug != upload.system):
        differing.append("system")

    if not differing:
        return

    message = (
        f"the run exists with other {' and '.join(differing)}, which are kept; "
        "change them with PATCH"
    )
    _warn_in_answer(existing, "metadata_differs", message)


def _warn_of_same_file(run: Run, user: User) -> None:
    """Warn if a new run is the file of other runs of the collection that its submitter sees."""
    if not run.has_ranking:
        return

    others = Run.objects.visible_to(user).filter(collection=run.collection, sha256=run.sha256)
    others = others.exclude(pk=run.pk).select_related("team").order_by("created_at", "pk")
    if names := [str(other) for other in others]:
        message = f"the same ranking as {list_topics(names)}: the files are identical"
        _warn_in_answer(run, "same_file", message)


def _warn_in_answer(run: Run, code: str, message: str) -> None:
    """Add a warning to a run that is not saved any more: it is only in the answer."""
    report = FileReport()
    report.warning(0, code, message)
    added, stored = report_as_json(report), run.warnings
    run.warnings = {
        "warnings": [*stored.get("warnings", []), *added["warnings"]],
        "counts": {**stored.get("counts", {}), **added["counts"]},
    }


def _warn_of_topics(
    collection: Collection, summary: RunSummary, known: CheckedKnown | None
) -> None:
    """Warn of topics that differ from the collection's topic list, which is public.

    Without a list, compare with judged topics, but never with judgements that are or may become
    blind.
    """
    report, topics = summary.report, list(summary.topics)
    listed = list(collection.topics.order_by("position").values_list("topic_id", flat=True))

    if not listed:
        visible = Qrels.objects.filter(collection=collection, collection__blind=False, active=True)
        active = visible.defer("warnings").first()
        try:
            judged = active.topic_ids if active else []
        except StoredValueCorrupt:
            # The run is valid without this warning.
            return

        warn_where_none_matches(report, topics, judged, "judged in the collection")
        return

    warn_of_outside(report, topics, listed)
    missing = [topic for topic in listed if topic not in summary.topics]
    if 0 < len(missing) < len(listed):
        message = (
            f"{len(missing):,} of the collection's {len(listed):,} topics have no document "
            f"({list_topics(missing)}); those that are judged count 0"
        )
        report.warning(0, "topic_missing", message, len(missing))

    if known:
        warn_of_outside(known.summary.report, known.summary.topics, listed)


def number_of(run: UUID) -> int:
    """Return a run's number among its team's runs in its collection, from 1.

    Withdrawn runs count: the number says how often the team has tried these topics by then.
    """
    row = Run.objects.filter(pk=run)
    same_team = {"collection__in": row.values("collection"), "team__in": row.values("team")}

    earlier = Run.objects.filter(**same_team, created_at__lte=row.values("created_at")[:1])
    return earlier.with_files().count()
