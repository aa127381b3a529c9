"""The shapes of answers about judging."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypedDict

from django.urls import reverse
from rest_framework.request import Request

from evalhub.pools.models import Adjudication, Assignment, JudgedVersion, Judgement
from evalhub.pools.services.agreement import PoolAgreement
from evalhub.pools.services.importing import ImportSummary
from evalhub.pools.services.resolving import Rule
from metrics.api.answers import number
from metrics.api.comparisons.agreement import (
    Coefficient,
    RelevantAgreement,
    TopicAgreement,
    coefficients_of,
    relevant_agreements,
    topic_agreements,
)
from runs.services.storage.reports import FileWarning, report_as_json
from runs.web.fields import JSONObject
from runs.web.shapes import OneOf, Url

_RULES = [str(rule) for rule in Rule]


class AssignmentAnswer(TypedDict):
    """A topic that an assessor judges."""

    assessor: str
    topic_id: str
    primary: Annotated[bool, "the first assessor of the topic"]
    copies: Annotated[int, "how many assessors judge a document of the topic"]
    overlap: Annotated[float, "share of the documents with several assessors"]
    documents: Annotated[int, "that this assessor judges"]
    judged: int
    due_at: datetime | None


class DocumentToJudge(TypedDict):
    """A document of a topic, with what is known of both."""

    topic_id: str
    query: str
    topic: Annotated[JSONObject, "the other fields of the topic, such as its description"]
    doc_id: str
    title: str
    snippet: str
    link: Annotated[str, "where the document can be read"]
    level: Annotated[int | None, "your judgement; null: none yet"]


class JudgementAnswer(TypedDict):
    topic_id: str
    doc_id: str
    assessor: str
    aspect: str
    level: Annotated[int, "-1: not judged, such as after undo; -2: could not be judged"]
    round: str
    seconds: Annotated[float | None, "spent on it"]
    note: str
    outside: Annotated[bool, "the document is not in the pool"]
    at: datetime
    active: Annotated[bool, "no later judgement supersedes it"]


class ImportedJudgements(TypedDict):
    """What a file of judgements had, and what changed."""

    lines: int
    new: int
    changed: Annotated[int, "superseded by another level or note"]
    same: Annotated[int, "there already"]
    unjudged: Annotated[int, "lines without a level"]
    assessors: Annotated[dict[str, int], "judgements of each"]
    warnings: list[FileWarning]
    dry_run: bool


class LevelOfAssessor(TypedDict):
    assessor: str
    level: int
    note: str


class ConflictAnswer(TypedDict):
    """A document on which assessors differ."""

    topic_id: str
    doc_id: str
    levels: list[LevelOfAssessor]
    decided: Annotated[int | None, "the adjudicated level"]


class AdjudicationAnswer(TypedDict):
    topic_id: str
    doc_id: str
    aspect: str
    level: int
    note: str
    decided_by: str | None
    at: datetime


class PairOfAssessors(TypedDict):
    first: str
    second: str
    documents: Annotated[int, "that both judged"]
    agreement: Annotated[float | None, "share with the same level"]
    kappa: float | None
    confusion: Annotated[list[list[int]], "rows are levels of the first, columns of the second"]


class AssessorsAgreement(TypedDict):
    """The agreement of the assessors of a pool."""

    assessors: list[str]
    documents: Annotated[int, "with at least two judgements"]
    levels: list[int]
    coefficients: dict[str, Coefficient]
    relevant: list[RelevantAgreement]
    pairs: list[PairOfAssessors]
    by_topic: list[TopicAgreement]
    resamples: int
    seed: int


class JudgedVersionAnswer(TypedDict):
    """A version of the judgements that was made of pools."""

    collection: str
    version: int
    active: bool
    url: Url
    judgements: int
    levels: Annotated[dict[str, int], "number of judgements at each level"]
    resolve: Annotated[str, OneOf(_RULES)]
    aspect: str
    provenance: Annotated[JSONObject, "pools, judgements of each assessor, agreement"]
    created_by: str | None
    created_at: datetime


def assignment_answer(assignment: Assignment, progress: tuple[int, int]) -> AssignmentAnswer:
    judged, documents = progress
    return AssignmentAnswer(
        assessor=assignment.assessor.name,
        topic_id=assignment.topic_id,
        primary=assignment.primary,
        copies=assignment.copies,
        overlap=assignment.overlap,
        documents=documents,
        judged=judged,
        due_at=assignment.due_at,
    )


def judgement_answer(row: Judgement) -> JudgementAnswer:
    return JudgementAnswer(
        topic_id=row.topic_id,
        doc_id=row.doc_id,
        assessor=row.assessor.name,
        aspect=row.aspect,
        level=row.level,
        round=row.round,
        seconds=row.seconds,
        note=row.note,
        outside=row.outside,
        at=row.at,
        active=row.active,
    )


def import_answer(summary: ImportSummary, dry_run: bool) -> ImportedJudgements:
    return ImportedJudgements(
        lines=summary.lines,
        new=summary.counts.new,
        changed=summary.counts.changed,
        same=summary.counts.same,
        unjudged=summary.unjudged,
        assessors=summary.assessors,
        warnings=report_as_json(summary.report)["warnings"],
        dry_run=dry_run,
    )


def conflict_answer(row: dict[str, Any], judgements: Sequence[Judgement]) -> ConflictAnswer:
    return ConflictAnswer(
        topic_id=row["topic_id"],
        doc_id=row["doc_id"],
        levels=[
            LevelOfAssessor(assessor=each.assessor.name, level=each.level, note=each.note)
            for each in judgements
        ],
        decided=row["decided"],
    )


def adjudication_answer(row: Adjudication) -> AdjudicationAnswer:
    return AdjudicationAnswer(
        topic_id=row.topic_id,
        doc_id=row.doc_id,
        aspect=row.aspect,
        level=row.level,
        note=row.note,
        decided_by=row.decided_by.username if row.decided_by else None,
        at=row.at,
    )


def pool_agreement(agreement: PoolAgreement, resamples: int, seed: int) -> AssessorsAgreement:
    return AssessorsAgreement(
        assessors=agreement.assessors,
        documents=agreement.documents,
        levels=agreement.levels,
        coefficients=coefficients_of(agreement.agreement),
        relevant=relevant_agreements(agreement.agreement),
        pairs=[
            PairOfAssessors(
                first=pair.first,
                second=pair.second,
                documents=pair.documents,
                agreement=number(pair.agreement),
                kappa=number(pair.kappa),
                confusion=pair.confusion.tolist(),
            )
            for pair in agreement.pairs
        ],
        by_topic=topic_agreements(agreement.agreement, agreement.topic_ids),
        resamples=resamples,
        seed=seed,
    )


def judged_version(request: Request, version: JudgedVersion) -> JudgedVersionAnswer:
    qrels = version.qrels
    slug = qrels.collection.slug
    return JudgedVersionAnswer(
        collection=slug,
        version=qrels.version,
        active=qrels.active,
        url=request.build_absolute_uri(reverse("qrels", args=[slug, qrels.version])),
        judgements=qrels.judgements,
        levels=qrels.levels,
        resolve=version.resolve,
        aspect=version.aspect,
        provenance=version.provenance,
        created_by=version.created_by.username if version.created_by else None,
        created_at=version.created_at,
    )
