"""Submitting runs, and notes on stored runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from runs.errors import Conflict, FileReport, StoredValueCorrupt
from runs.formats.header_parameters import with_header
from runs.formats.links import Link, with_header_links
from runs.formats.trec_run import RunSummary, check_run, say_contradicted
from runs.models import Collection, Experiment, Qrels, Run, System
from runs.services.campaigns.guards import check_outside
from runs.services.collections.known_documents import CheckedKnown, check_known
from runs.services.storage.files import HASH_SEED, FileSource, upload_limits
from runs.services.storage.reports import (
    named,
    report_as_json,
    warn_of_outside,
    warn_where_none_matches,
)
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

# What a submission does where another run has its tag.
FAIL, VERSION = "fail", "version"
_CONTRADICTED = "warnings__counts__rank_contradicts_score"


@dataclass(frozen=True, kw_only=True)
class RunUpload(Upload[Run]):
    """A run, possibly with its costs, with a file of the documents that its user knew, for an experiment of its team,
    and with a label of the team that is moved to it.

    With a `system` it becomes the next version of it, and without a tag it is named after that
    version. Where the tag is taken, it is refused, or with `if_taken` version it becomes the next
    version of the system of that run.
    """

    known: Path | None = None
    system: str | None = None
    if_taken: str = FAIL
    parents: list[Parent] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    costs: dict[str, Any] = field(default_factory=dict)
    experiment: Experiment | None = None
    label: str | None = None

    @property
    def paths(self) -> list[Path]:
        return [self.file, self.known] if self.known else [self.file]

    def check(self) -> Run:
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
            # The tag of the file is not meant.
            summary.report.drop_warnings("tag_differs")
        find_parents(self.parents, self.user)
        with_header_links(summary.metadata, self.links, summary.report)
        known = check_known(upload=self.known) if self.known else None
        _warn_of_topics(self.collection, summary, known)
        metadata, costs = with_header(summary.metadata, self.metadata, self.costs, summary.report)
        _warn_of_left_out(left_out_of(self.collection, metadata, costs), summary.report)
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

    def check_summary(self, summary: RunSummary) -> None:
        """Refuse a file for what it contains. A run outside campaigns is taken as it is."""

    @property
    def _is_numbered(self) -> bool:
        """Return whether the run is named after its version."""
        return bool(self.system) and not self.tag

    def _next_tag(self) -> str | None:
        if not self.system or self.tag:
            return None
        return tag_of(
            self.system, next_version(collection=self.collection, team=self.team, slug=self.system)
        )

    def _system_of(self, made: Run, there: Run | None) -> str | None:
        """Return the system whose next version the run becomes; `there` is another run with its tag."""
        if self.system or self.if_taken != VERSION:
            return self.system
        if there and there.system:
            return there.system.slug
        stem = stem_of(made.tag)
        return stem if there or System.objects.filter(team=made.team, slug=stem).exists() else None

    def find_existing(self, made: Run) -> Run | None:
        """Return the run that this upload repeats: of the tag, or a version of the system with the same files."""
        there = None if self._is_numbered else namesake(made)
        if there and self.if_taken != VERSION:
            self.check_same(there, made)
            return there
        if there is None or there.files != made.files:
            slug = self._system_of(made, there)
            there = (
                version_with_files(made, slug)
                if slug and (self._is_numbered or self.if_taken == VERSION)
                else None
            )
        if there:
            _warn_of_differing(self, there, made)
        return there

    def place(self, made: Run) -> None:
        there = None if self._is_numbered else namesake(made)
        slug = self._system_of(made, there)
        if slug and (there is None or self.if_taken == VERSION):
            named = there is None and not self._is_numbered
            join_system(made, slug, before=there, named=named, origin=self.origin)

    def check_same(self, there: Run, made: Run) -> None:
        super().check_same(there, made)
        if there.known_sha256 != made.known_sha256:
            message = f"run {made.tag!r} of team {self.team} has different known documents; choose a new tag"
            raise Conflict(message, code="tag_taken", pointer="/tag")
        _warn_of_differing(self, there, made)

    def count(self, made: Run) -> None:
        check_outside(made)
        _check_not_removed(made)
        super().count(made)

    def keep(self, made: Run) -> None:
        store_parameters(made.collection, [made])
        store_parents(made, find_parents(self.parents, self.user))
        # What is left out was reported by the check.
        store_links(made, with_header_links(made.ir_metadata, self.links, FileReport()))
        self.keep_again(made)

    def keep_again(self, there: Run) -> None:
        if self.experiment:
            add_submitted(experiment=self.experiment, run=there, user=self.user, origin=self.origin)
        if self.label:
            move_label(
                run=there,
                name=self.label,
                user=self.user,
                note="with the submission",
                origin=self.origin,
            )


def _check_not_removed(run: Run) -> None:
    """Raise Conflict for a file of the team that organisers took out of the collection."""
    same = Run.objects.filter(collection=run.collection, team=run.team, sha256=run.sha256)
    removed = same.exclude(removal_reason="").first()
    if removed:
        message = f"the organisers took this run out of collection {run.collection}: {removed.removal_reason}"
        raise Conflict(message, code="run_removed")


def contradicted_ranks(runs: Iterable[UUID]) -> dict[UUID, str]:
    """Return a note for each run whose rank column contradicts its scores."""
    rows = Run.objects.filter(pk__in=runs).values_list("pk", _CONTRADICTED, "documents")
    return {pk: say_contradicted(lines, documents) for pk, lines, documents in rows if lines}


def _warn_of_left_out(names: list[str], report: FileReport) -> None:
    if names:
        say = f"{len(names):,} values of the metadata are kept, not searched: {named(names)}"
        report.warning(0, "parameters_left_out", say, len(names))


def _warn_of_differing(upload: RunUpload, there: Run, made: Run) -> None:
    """Add to the answer for a run that was sent again, which is not stored: its metadata or costs stay as they are."""
    kept = [
        name
        for name in ("metadata", "costs")
        if getattr(upload, name) and getattr(there, name) != getattr(made, name)
    ]
    given = {(one.run, one.relation, one.weight) for one in upload.parents}
    if given and given != set(there.parent_edges.values_list("parent_id", "relation", "weight")):
        kept.append("parents")
    if upload.links and upload.links != links_of(there):
        kept.append("links")
    if upload.system and (there.system is None or there.system.slug != upload.system):
        kept.append("system")
    if kept:
        report = FileReport()
        say = f"the run exists with other {' and '.join(kept)}, which are kept; change them with PATCH"
        report.warning(0, "metadata_differs", say)
        told, stored = report_as_json(report), there.warnings
        there.warnings = {
            "warnings": [*stored.get("warnings", []), *told["warnings"]],
            "counts": {**stored.get("counts", {}), **told["counts"]},
        }


def _warn_of_topics(
    collection: Collection, summary: RunSummary, known: CheckedKnown | None
) -> None:
    """Compare with the collection's topic list, which is public, but never with judgements that are or may become
    blind."""
    report, found = summary.report, list(summary.topics)
    listed = list(collection.topics.order_by("position").values_list("topic_id", flat=True))
    if not listed:
        open_ones = Qrels.objects.filter(
            collection=collection, collection__blind=False, active=True
        )
        active = open_ones.defer("warnings").first()
        try:
            judged = active.topic_ids if active else []
        except StoredValueCorrupt:
            # The run is valid without this warning.
            return
        warn_where_none_matches(report, found, judged, "judged in the collection")
        return
    warn_of_outside(report, found, listed)
    missing = [topic for topic in listed if topic not in summary.topics]
    if 0 < len(missing) < len(listed):
        say = (
            f"{len(missing):,} of the collection's {len(listed):,} topics have no document ({named(missing)}); "
            "those that are judged count 0"
        )
        report.warning(0, "topic_missing", say, len(missing))
    if known:
        warn_of_outside(known.summary.report, known.summary.topics, listed)


def number_of(run: UUID) -> int:
    """Return which of its team's runs in its collection a run is, from 1, withdrawn ones included: how often the team
    has tried these topics by then."""
    this = Run.objects.filter(pk=run)
    same = {"collection__in": this.values("collection"), "team__in": this.values("team")}
    return Run.objects.filter(**same, created_at__lte=this.values("created_at")[:1]).count()
