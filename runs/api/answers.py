"""The API's answers for collections, judgements and submissions; `shape` describes each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.reverse import reverse

from metrics.services.queue import status
from runs import models
from runs.services.storage.reports import FileReport, FileWarning, grouped
from runs.services.submissions.runs import KINDS, RANKING, REPLICATES, VALUES
from runs.web.fields import JSONObject, JSONObjectField
from runs.web.shapes import Kind, OneOf, Url

Iteration = Annotated[str, OneOf(models.Qrels.Iteration.choices)]


class Collection(TypedDict):
    slug: str
    name: str
    description: str
    team: str
    visibility: Annotated[str, OneOf(models.Collection.Visibility.choices)]
    blind: Annotated[bool, "not everybody sees what depends on the judgements"]
    disclosure: Annotated[
        str, OneOf(models.Disclosure.labels), "to whom what depends on the judgements is shown"
    ]
    released_at: datetime | None
    daily_submissions: Annotated[int | None, "submissions of a team per day (UTC)"]
    simulated: Annotated[bool, "simulated data; labelled as such wherever it is listed"]
    documents: Annotated[int | None, "number of documents in the corpus"]
    document_url: Annotated[
        str, "where a document can be read, with {doc_id} for its id; empty if unknown"
    ]
    level_labels: Annotated[JSONObject, 'what the levels mean: {"0": "not relevant"}']
    measures: Annotated[list[str], "computed for every run"]
    scores: Annotated[str, OneOf(models.Collection.Scores.choices)]
    active_qrels: Annotated[int | None, "null where they are blind"]
    topics: int
    runs: Annotated[int, "those that the caller sees"]
    session_sets: Annotated[int, "those that the caller sees"]
    created_at: datetime


class Topic(TypedDict):
    topic_id: str
    title: str
    fields: JSONObject


class TopicAttributes(TypedDict):
    """The attributes of a topic as texts by key."""

    topic_id: str
    attributes: dict[str, str]


class AttributesAnswer(TypedDict):
    topics: int
    keys: Annotated[dict[str, int], "distinct values by key"]
    warnings: FileReport


class DocumentTitle(TypedDict):
    """What pages show of a document."""

    doc_id: str
    title: str
    snippet: str


class DocumentsAnswer(TypedDict):
    documents: int
    titled: Annotated[int, "those with a title"]
    sha256: Annotated[str, "of the decompressed file"]
    warnings: FileReport


class TopicsAnswer(TypedDict):
    format: str
    topics: int
    attributes: Annotated[
        dict[str, int] | None,
        "of the topics: distinct values by key; null for a file without attributes, which leaves "
        "those that there are",
    ]
    warnings: FileReport


class Qrels(TypedDict):
    version: int
    active: bool
    keyed_by: Annotated[
        str,
        OneOf(models.Qrels.KeyedBy.choices),
        "whether the file's second column is an iteration, or the number of a session's query",
    ]
    iteration: Annotated[
        Iteration,
        "what the file's second column is taken for: subtopics, rounds of judging, or nothing",
    ]
    sampling: Annotated[
        str, OneOf(models.Qrels.Sampling.choices), "how the judged documents were drawn"
    ]
    ignore_sampling: Annotated[bool, "documents outside the sample count as not relevant"]
    sha256: str
    size: Annotated[int, "bytes, decompressed"]
    lines: int
    judgements: int
    topics: int
    levels: Annotated[dict[str, int], "number of judgements at each level"]
    warnings: FileReport
    note: str
    reduced_from: Annotated[
        int | None, "the version with all topics, if phases of campaigns exclude topics of it"
    ]
    author_kind: Annotated[
        str, OneOf(models.Qrels.AuthorKind.choices), "who judged; empty where unknown"
    ]
    author: Annotated[str, "the name of the judge"]
    model: Annotated[str, "the model that judged"]
    prompt: NotRequired[Annotated[str, "in the answer for one version only"]]
    prompt_sha256: str
    parent: Annotated[int | None, "the version from which this one was made"]
    derivation: Annotated[str, OneOf(models.Qrels.Derivation.choices)]
    produced_at: datetime | None
    authors: Annotated[
        str, "the authors as titles have them; empty unless a model or clicks took part"
    ]
    created_at: datetime


class CheckedQrels(TypedDict):
    """The answer to a dry run."""

    sha256: str
    iteration: Annotated[Iteration, "how it would be read"]
    warnings: list[FileWarning]
    counts: Annotated[dict[str, int], "warnings by code"]


class Waiting(TypedDict):
    position: Annotated[int, Kind(serializers.IntegerField, min_value=1)]
    seconds: Annotated[float, Kind(serializers.FloatField, min_value=0)]
    waits_for: Annotated[str, OneOf(("worker", "retry", "no_worker_alive"))]


class RunStatus(TypedDict):
    state: Annotated[str, OneOf(status.RUN_STATES)]
    since: datetime
    qrels: int | None
    code: str
    reason: str
    queue: Waiting | None


class Run(TypedDict):
    """A run with its status."""

    id: UUID
    url: Url
    collection: str
    team: str
    tag: str
    description: str
    metadata: JSONObject
    costs: Annotated[JSONObject, "by name a number, or an object with value, low, high and n"]
    labels: Annotated[list[str], "names of the labels that name it"]
    system: Annotated[str | None, "of its team, of which it is a version"]
    version: Annotated[int | None, "in its collection, from 1"]
    replicate_of: Annotated[
        UUID | None, "the run whose values are the means over this run and its other replicates"
    ]
    ir_metadata: Annotated[dict[str, Any] | None, Kind(JSONObjectField)]
    status: RunStatus
    kind: Annotated[
        str,
        OneOf((*KINDS, REPLICATES)),
        "values: it has no ranking, and its values come from tables; replicates: they are means over "
        "its replicates",
    ]
    sha256: Annotated[str, "of the decompressed file; empty for a run with replicates"]
    size: Annotated[int, "bytes, decompressed"]
    lines: int
    documents: int
    topics: int
    tied_documents: int
    warnings: FileReport
    known_sha256: Annotated[
        str, "of the file of known documents, empty where none came with the run"
    ]
    known_documents: int
    known_warnings: FileReport
    created_at: datetime
    number: NotRequired[
        Annotated[
            int,
            "which of its team's runs here it is, withdrawn ones included; "
            "in the answer for one run only",
        ]
    ]


class CheckedRun(TypedDict):
    """The answer to a dry run."""

    tag: str
    metadata: Annotated[JSONObject, "with what the header of the file adds"]
    costs: JSONObject
    sha256: str
    size: int
    lines: int
    documents: int
    topics: int
    tied_documents: int
    warnings: FileReport
    known_sha256: str
    known_documents: int
    known_warnings: FileReport


class SessionSet(TypedDict):
    """A session set with its status."""

    id: UUID
    url: Url
    collection: str
    team: str
    tag: str
    description: str
    metadata: JSONObject
    judged_by: Annotated[str, OneOf(models.SessionSet.JudgedBy.choices)]
    status: RunStatus
    sha256: Annotated[str, "of the decompressed file"]
    size: Annotated[int, "bytes, decompressed"]
    format: str
    sessions: int
    queries: int
    empty_queries: int
    documents: int
    topics: int
    searchers: int
    systems: list[str]
    judged_documents: int
    warnings: FileReport
    created_at: datetime


class CheckedSessions(TypedDict):
    """The answer to a dry run."""

    tag: str
    sha256: str
    size: int
    format: str
    sessions: int
    queries: int
    empty_queries: int
    documents: int
    topics: int
    searchers: int
    systems: list[str]
    judged_documents: int
    warnings: FileReport


def collection(collection: Any) -> Collection:
    """Return the answer for a collection that `collections_of` or `counted_collection` returned."""
    return Collection(
        slug=collection.slug,
        name=collection.name,
        description=collection.description,
        team=collection.team.slug,
        visibility=collection.visibility,
        blind=collection.blind,
        disclosure=collection.disclosure.label,
        released_at=collection.released_at,
        daily_submissions=collection.daily_submissions,
        simulated=collection.simulated,
        documents=collection.documents,
        document_url=collection.document_url,
        level_labels=collection.level_labels,
        measures=collection.measures,
        scores=collection.scores,
        active_qrels=collection.active_version,
        topics=collection.topic_count,
        runs=collection.run_count,
        session_sets=collection.session_set_count,
        created_at=collection.created_at,
    )


def topic(topic: models.Topic) -> Topic:
    return Topic(topic_id=topic.topic_id, title=topic.title, fields=topic.fields)


def topic_attributes(row: models.TopicAttributes) -> TopicAttributes:
    return TopicAttributes(topic_id=row.topic_id, attributes=row.attributes)


def document_title(document: models.DocumentTitle) -> DocumentTitle:
    return DocumentTitle(doc_id=document.doc_id, title=document.title, snippet=document.snippet)


def qrels(qrels: models.Qrels) -> Qrels:
    return Qrels(
        version=qrels.version,
        active=qrels.active,
        keyed_by=qrels.keyed_by,
        iteration=qrels.iteration,
        sampling=qrels.sampling,
        ignore_sampling=qrels.ignore_sampling,
        sha256=qrels.sha256,
        size=qrels.size,
        lines=qrels.lines,
        judgements=qrels.judgements,
        topics=qrels.topics,
        levels=qrels.levels,
        warnings=grouped(qrels.warnings),
        note=qrels.note,
        reduced_from=qrels.reduced_from.version if qrels.reduced_from else None,
        author_kind=qrels.author_kind,
        author=qrels.author,
        model=qrels.model,
        prompt_sha256=qrels.prompt_sha256,
        parent=qrels.parent.version if qrels.parent else None,
        derivation=qrels.derivation,
        produced_at=qrels.produced_at,
        authors=qrels.authors,
        created_at=qrels.created_at,
    )


def run_status(state: status.RunStatus) -> RunStatus:
    place = state.queue
    queue = (
        Waiting(position=place.position, seconds=place.seconds, waits_for=place.waits_for)
        if place
        else None
    )

    return RunStatus(
        state=state.state,
        since=state.since,
        qrels=state.qrels_version,
        code=state.code,
        reason=state.reason,
        queue=queue,
    )


def run(request: Request, run: models.Run, state: status.RunStatus) -> Run:
    return Run(
        id=run.pk,
        url=reverse("run", args=[run.pk], request=request),
        collection=run.collection.slug,
        team=run.team.slug,
        tag=run.tag,
        description=run.description,
        metadata=run.metadata,
        costs=run.costs,
        labels=sorted(label.name for label in run.labels.all()),
        system=run.system.slug if run.system else None,
        version=run.version,
        replicate_of=run.replicate_of_id,
        ir_metadata=run.ir_metadata,
        status=run_status(state),
        kind=RANKING if run.has_ranking else REPLICATES if run.has_replicates else VALUES,
        sha256=run.sha256,
        size=run.size,
        lines=run.lines,
        documents=run.documents,
        topics=run.topics,
        tied_documents=run.tied_documents,
        warnings=grouped(run.warnings),
        known_sha256=run.known_sha256,
        known_documents=run.known_documents,
        known_warnings=grouped(run.known_warnings),
        created_at=run.created_at,
    )


def checked_run(run: models.Run) -> CheckedRun:
    return CheckedRun(
        tag=run.tag,
        metadata=run.metadata,
        costs=run.costs,
        sha256=run.sha256,
        size=run.size,
        lines=run.lines,
        documents=run.documents,
        topics=run.topics,
        tied_documents=run.tied_documents,
        warnings=grouped(run.warnings),
        known_sha256=run.known_sha256,
        known_documents=run.known_documents,
        known_warnings=grouped(run.known_warnings),
    )


def session_set(
    request: Request, session_set: models.SessionSet, state: status.RunStatus
) -> SessionSet:
    return SessionSet(
        id=session_set.pk,
        url=reverse("session-set", args=[session_set.pk], request=request),
        collection=session_set.collection.slug,
        team=session_set.team.slug,
        tag=session_set.tag,
        description=session_set.description,
        metadata=session_set.metadata,
        judged_by=session_set.judged_by,
        status=run_status(state),
        sha256=session_set.sha256,
        size=session_set.size,
        format=session_set.format,
        sessions=session_set.sessions,
        queries=session_set.queries,
        empty_queries=session_set.empty_queries,
        documents=session_set.documents,
        topics=session_set.topics,
        searchers=session_set.searchers,
        systems=session_set.systems,
        judged_documents=session_set.judged_documents,
        warnings=grouped(session_set.warnings),
        created_at=session_set.created_at,
    )


def checked_sessions(session_set: models.SessionSet) -> CheckedSessions:
    return CheckedSessions(
        tag=session_set.tag,
        sha256=session_set.sha256,
        size=session_set.size,
        format=session_set.format,
        sessions=session_set.sessions,
        queries=session_set.queries,
        empty_queries=session_set.empty_queries,
        documents=session_set.documents,
        topics=session_set.topics,
        searchers=session_set.searchers,
        systems=session_set.systems,
        judged_documents=session_set.judged_documents,
        warnings=grouped(session_set.warnings),
    )
