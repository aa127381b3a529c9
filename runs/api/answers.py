"""The API's answers for collections, judgements and submissions; `shape` of each is its description."""

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


class TopicsAnswer(TypedDict):
    format: str
    topics: int
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
    ir_metadata: Annotated[dict[str, Any] | None, Kind(JSONObjectField)]
    status: RunStatus
    sha256: Annotated[str, "of the decompressed file"]
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
            "which of its team's runs here it is, withdrawn ones included; in the answer for one run only",
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


def collection(counted: Any) -> Collection:
    """Return the description of a collection with its numbers, as `collections_of` finds it."""
    return Collection(
        slug=counted.slug,
        name=counted.name,
        description=counted.description,
        team=counted.team.slug,
        visibility=counted.visibility,
        blind=counted.blind,
        disclosure=counted.disclosure.label,
        released_at=counted.released_at,
        daily_submissions=counted.daily_submissions,
        simulated=counted.simulated,
        documents=counted.documents,
        document_url=counted.document_url,
        level_labels=counted.level_labels,
        measures=counted.measures,
        scores=counted.scores,
        active_qrels=counted.active_version,
        topics=counted.topic_count,
        runs=counted.run_count,
        session_sets=counted.session_set_count,
        created_at=counted.created_at,
    )


def topic(found: models.Topic) -> Topic:
    return Topic(topic_id=found.topic_id, title=found.title, fields=found.fields)


def qrels(found: models.Qrels) -> Qrels:
    return Qrels(
        version=found.version,
        active=found.active,
        keyed_by=found.keyed_by,
        iteration=found.iteration,
        sha256=found.sha256,
        size=found.size,
        lines=found.lines,
        judgements=found.judgements,
        topics=found.topics,
        levels=found.levels,
        warnings=grouped(found.warnings),
        note=found.note,
        reduced_from=found.reduced_from.version if found.reduced_from else None,
        created_at=found.created_at,
    )


def run_status(found: status.RunStatus) -> RunStatus:
    waiting = found.queue
    return RunStatus(
        state=found.state,
        since=found.since,
        qrels=found.qrels_version,
        code=found.code,
        reason=found.reason,
        queue=Waiting(
            position=waiting.position, seconds=waiting.seconds, waits_for=waiting.waits_for
        )
        if waiting
        else None,
    )


def run(request: Request, found: models.Run, known: status.RunStatus) -> Run:
    return Run(
        id=found.pk,
        url=reverse("run", args=[found.pk], request=request),
        collection=found.collection.slug,
        team=found.team.slug,
        tag=found.tag,
        description=found.description,
        metadata=found.metadata,
        costs=found.costs,
        labels=sorted(label.name for label in found.labels.all()),
        system=found.system.slug if found.system else None,
        version=found.version,
        ir_metadata=found.ir_metadata,
        status=run_status(known),
        sha256=found.sha256,
        size=found.size,
        lines=found.lines,
        documents=found.documents,
        topics=found.topics,
        tied_documents=found.tied_documents,
        warnings=grouped(found.warnings),
        known_sha256=found.known_sha256,
        known_documents=found.known_documents,
        known_warnings=grouped(found.known_warnings),
        created_at=found.created_at,
    )


def checked_run(checked: models.Run) -> CheckedRun:
    return CheckedRun(
        tag=checked.tag,
        metadata=checked.metadata,
        costs=checked.costs,
        sha256=checked.sha256,
        size=checked.size,
        lines=checked.lines,
        documents=checked.documents,
        topics=checked.topics,
        tied_documents=checked.tied_documents,
        warnings=grouped(checked.warnings),
        known_sha256=checked.known_sha256,
        known_documents=checked.known_documents,
        known_warnings=grouped(checked.known_warnings),
    )


def session_set(request: Request, found: models.SessionSet, known: status.RunStatus) -> SessionSet:
    return SessionSet(
        id=found.pk,
        url=reverse("session-set", args=[found.pk], request=request),
        collection=found.collection.slug,
        team=found.team.slug,
        tag=found.tag,
        description=found.description,
        metadata=found.metadata,
        judged_by=found.judged_by,
        status=run_status(known),
        sha256=found.sha256,
        size=found.size,
        format=found.format,
        sessions=found.sessions,
        queries=found.queries,
        empty_queries=found.empty_queries,
        documents=found.documents,
        topics=found.topics,
        searchers=found.searchers,
        systems=found.systems,
        judged_documents=found.judged_documents,
        warnings=grouped(found.warnings),
        created_at=found.created_at,
    )


def checked_sessions(checked: models.SessionSet) -> CheckedSessions:
    return CheckedSessions(
        tag=checked.tag,
        sha256=checked.sha256,
        size=checked.size,
        format=checked.format,
        sessions=checked.sessions,
        queries=checked.queries,
        empty_queries=checked.empty_queries,
        documents=checked.documents,
        topics=checked.topics,
        searchers=checked.searchers,
        systems=checked.systems,
        judged_documents=checked.judged_documents,
        warnings=grouped(checked.warnings),
    )
