"""The API of judging: assignments, documents, judgements, conflicts, agreement, new versions."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.pools.api.judging_answers import (
    AdjudicationAnswer,
    AssessorsAgreement,
    AssignmentAnswer,
    ConflictAnswer,
    DocumentToJudge,
    ImportedJudgements,
    JudgedVersionAnswer,
    JudgementAnswer,
    adjudication_answer,
    assignment_answer,
    conflict_answer,
    import_answer,
    judged_version,
    judgement_answer,
    pool_agreement,
)
from evalhub.pools.models import Adjudication, Assignment, JudgedVersion, Judgement, Pool
from evalhub.pools.questions.judging import (
    AdjudicationSerializer,
    AssignmentSerializer,
    JudgedQrelsSerializer,
    JudgementsUploadSerializer,
    adjudications_of,
)
from evalhub.pools.questions.lookup import (
    assignments_of,
    check_managed,
    find_assigned_pool,
    managed_pool,
    manages,
)
from evalhub.pools.services.agreement import RESAMPLES, read_agreement
from evalhub.pools.services.assigning import assign_topics, documents_to_judge, remove_assignment
from evalhub.pools.services.importing import ImportSummary, import_judgements
from evalhub.pools.services.judging import levels_by_document, progress_of
from evalhub.pools.services.pool_file import documents_of
from evalhub.pools.services.resolving import (
    Rule,
    adjudicate,
    conflicts_of,
    judgements_of,
    make_qrels,
)
from runs.api.collections.collections import upload_fields
from runs.errors import InvalidInput, NotAllowed
from runs.models import Collection, Scope, User
from runs.models.collections.collections import document_address
from runs.parameters import flag_in, integer_in
from runs.services.collections.authorship import authorship_of
from runs.services.collections.documents import read_titles
from runs.web import idempotency
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.shapes import shape
from runs.web.uploads import FILE_PARSERS, query_fields

_MAX_ASPECT = 64
_MAX_RESAMPLES = 10_000
_MAX_NUMBER = 1_000_000
_ASPECT = OpenApiParameter("aspect", str, description="default: relevance")
_TOPIC = OpenApiParameter("topic", str, description="a topic id")


def _list_of(component: str) -> dict[str, Any]:
    """Describe a plain list: that of a view with pages would be described as one of its pages."""
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{component}"}}


def _may_manage(request: Request, body: Any, pool: UUID, **_: Any) -> bool:
    return bool(Pool.objects.managed_by(request.user).filter(pk=pool).exists())


def _may_manage_assigned(request: Request, body: Any, assigned_pool: UUID) -> bool:
    return _may_manage(request, body, assigned_pool)


def _may_judge(request: Request, body: Any, assigned_pool: UUID) -> bool:
    own = Assignment.objects.filter(pool=assigned_pool, assessor__user=request.user.pk)
    return _may_manage(request, body, assigned_pool) or bool(own.exists())


def _may_make_qrels(request: Request, body: Any, pool: UUID) -> bool:
    collections = Collection.objects.managed_by(request.user)
    return bool(collections.filter(pools=pool).exists())


class AssignmentList(AnswerList[Assignment]):
    """The topics that assessors judge, for organisers, and for an assessor the own ones; POST gives
    topics to an assessor."""

    serializer_class = shape(AssignmentAnswer)
    scopes = {"POST": Scope.MANAGE}
    signed_in = True
    problems = (403, 409)
    queryset = Assignment.objects.none()

    def get_queryset(self) -> QuerySet[Assignment]:
        pool = find_assigned_pool(self.request, self.kwargs["assigned_pool"])
        return assignments_of(self.request.user, pool)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(_assignments(page))

    @extend_schema(
        request=AssignmentSerializer,
        responses={201: _list_of("AssignmentAnswer")},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(_may_manage_assigned)
    def post(self, request: Request, assigned_pool: UUID) -> Response:
        managed = check_managed(request, find_assigned_pool(request, assigned_pool))
        serializer = AssignmentSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        assignments = assign_topics(
            pool=managed,
            user=fields["assessor"],
            topics=fields.get("topics"),
            copies=fields.get("copies"),
            overlap=fields.get("overlap"),
            due_at=fields["due_at"],
            by=cast(User, request.user),
            origin=origin_of(request),
        )
        return Response(_assignments(assignments), status.HTTP_201_CREATED)


def _assignments(rows: list[Assignment]) -> list[AssignmentAnswer]:
    progress = progress_of(rows)
    return [assignment_answer(row, progress[row.pk]) for row in rows]


class AssignmentView(APIView):
    """DELETE takes a topic from an assessor; the judgements stay."""

    scopes = {"DELETE": Scope.MANAGE}
    problems = (403,)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pool: UUID, username: str, topic: str) -> Response:
        rows = managed_pool(request, pool).assignments.select_related("assessor", "pool")
        row = get_object_or_404(rows, assessor__user__username=username, topic_id=topic)
        remove_assignment(assignment=row, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class DocumentList(AnswerList[Pool]):
    """The documents of a topic that the caller judges, in the caller's order, with their titles;
    for organisers without the topic all of its documents."""

    serializer_class = shape(DocumentToJudge)
    signed_in = True
    queryset = Pool.objects.none()

    @extend_schema(parameters=[OpenApiParameter("topic", str, required=True)])
    def get(self, request: Request, assigned_pool: UUID) -> Response:
        return self.list(request, assigned_pool)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        pool = find_assigned_pool(request, self.kwargs["assigned_pool"])
        topic_id = request.query_params.get("topic", "")
        if not topic_id:
            raise InvalidInput("name a topic, as in topic=51", code="required", pointer="topic")

        doc_ids, levels = _documents(request, pool, topic_id)
        listed: list[str] = self.paginate_queryset(doc_ids) or []  # type: ignore[arg-type]
        titles = read_titles(pool.collection, listed)
        topic = pool.collection.topics.filter(topic_id=topic_id).first()
        rows = [
            DocumentToJudge(
                topic_id=topic_id,
                query=topic.title if topic else "",
                topic=topic.fields if topic else {},
                doc_id=doc_id,
                title=titles[doc_id].title,
                snippet=titles[doc_id].snippet,
                link=document_address(pool.collection, doc_id),
                level=levels.get(doc_id),
            )
            for doc_id in listed
        ]
        return self.get_paginated_response(rows)


def _documents(request: Request, pool: Pool, topic_id: str) -> tuple[list[str], dict[str, int]]:
    """Return the documents of a topic that the user judges, and their levels."""
    own = pool.assignments.filter(assessor__user=request.user.pk, topic_id=topic_id)
    assignment = own.select_related("pool", "assessor").first()
    if assignment:
        return documents_to_judge(assignment), levels_by_document(assignment)

    doc_ids = documents_of(pool, topic_id) if manages(request.user, pool) else []
    if not doc_ids:
        raise Http404(f"you have no topic {topic_id[:40]!r} to judge in this pool")
    return doc_ids, {}


class JudgementList(AnswerList[Judgement]):
    """The judgements of a pool, for organisers, and for an assessor the own ones; POST stores those
    of a file, all or none."""

    serializer_class = shape(JudgementAnswer)
    answer = staticmethod(judgement_answer)
    scopes = {"POST": Scope.SUBMIT}
    signed_in = True
    problems = (403, 409)
    parser_classes = FILE_PARSERS
    queryset = Judgement.objects.none()

    @extend_schema(
        parameters=[
            _TOPIC,
            OpenApiParameter("history", bool, description="superseded ones, too"),
        ]
    )
    def get(self, request: Request, assigned_pool: UUID) -> Response:
        return self.list(request, assigned_pool)

    def get_queryset(self) -> QuerySet[Judgement]:
        user, parameters = self.request.user, self.request.query_params
        pool = find_assigned_pool(self.request, self.kwargs["assigned_pool"])
        rows = pool.judgements.select_related("assessor").order_by("pk")
        if not manages(user, pool):
            rows = rows.filter(assessor__user=user.pk)
        if topic := parameters.get("topic"):
            rows = rows.filter(topic_id=topic)
        return rows if flag_in(parameters, "history") else rows.filter(active=True)

    @extend_schema(
        request={"multipart/form-data": JudgementsUploadSerializer},
        responses={201: shape(ImportedJudgements), 200: shape(ImportedJudgements)},
        parameters=[*query_fields(JudgementsUploadSerializer), idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_judge)
    def post(self, request: Request, assigned_pool: UUID) -> Response:
        pool = find_assigned_pool(request, assigned_pool)
        with upload_fields(request, JudgementsUploadSerializer) as fields:

            def answer(summary: ImportSummary) -> Response:
                stored = not fields["dry_run"]
                code = status.HTTP_201_CREATED if stored else status.HTTP_200_OK
                return Response(import_answer(summary, fields["dry_run"]), code)

            summary = import_judgements(
                pool=pool,
                upload=fields["file"].path,
                options=fields["options"],
                user=cast(User, request.user),
                manager=manages(request.user, pool),
                dry_run=fields["dry_run"],
                origin=origin_of(request),
                accept=lambda summary: idempotency.remember(request, lambda: answer(summary)),
            )
        return answer(summary)


class ConflictList(AnswerList[Pool]):
    """The documents on which assessors differ: relevant to one and not to another, or by levels
    `conflict_at` or more apart."""

    serializer_class = shape(ConflictAnswer)
    access = {"GET": Access.ORGANISERS}
    problems = (403,)
    queryset = Pool.objects.none()

    @extend_schema(
        parameters=[
            _ASPECT,
            OpenApiParameter("conflict_at", int, description="levels apart; default: relevance"),
            OpenApiParameter("decided", bool, description="those that are adjudicated, too"),
        ]
    )
    def get(self, request: Request, pool: UUID) -> Response:
        return self.list(request, pool)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        pool = managed_pool(request, self.kwargs["pool"])
        parameters, aspect = request.query_params, _aspect(request)
        apart = integer_in(parameters, "conflict_at", 0, 0, _MAX_NUMBER)
        conflicts = conflicts_of(
            pool,
            conflict_at=apart or None,
            aspect=aspect,
            undecided=not flag_in(parameters, "decided"),
        )
        rows: Any = self.paginate_queryset(conflicts) or []  # type: ignore[arg-type]
        judgements = judgements_of(pool, rows, aspect)
        return self.get_paginated_response(
            [conflict_answer(row, judgements[row["topic_id"], row["doc_id"]]) for row in rows]
        )


def _aspect(request: Request) -> str:
    aspect = request.query_params.get("aspect", "")
    if len(aspect) > _MAX_ASPECT:
        message = f"an aspect has at most {_MAX_ASPECT} characters"
        raise InvalidInput(message, pointer="aspect")
    return aspect


class AdjudicationList(AnswerList[Adjudication]):
    """The levels that organisers decided where assessors differ; POST decides a list of them."""

    serializer_class = shape(AdjudicationAnswer)
    answer = staticmethod(adjudication_answer)
    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    problems = (403, 409)
    queryset = Adjudication.objects.none()

    def get_queryset(self) -> QuerySet[Adjudication]:
        pool = managed_pool(self.request, self.kwargs["pool"])
        return pool.adjudications.filter(active=True).select_related("decided_by").order_by("pk")

    @extend_schema(
        request=AdjudicationSerializer(many=True),
        responses={201: _list_of("AdjudicationAnswer")},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(_may_manage)
    def post(self, request: Request, pool: UUID) -> Response:
        rows = adjudicate(
            pool=managed_pool(request, pool),
            decisions=adjudications_of(request.data),
            user=cast(User, request.user),
            origin=origin_of(request),
        )
        return Response([adjudication_answer(row) for row in rows], status.HTTP_201_CREATED)


class PoolAgreementView(APIView):
    """How far the assessors of a pool agree: Cohen's, Fleiss' and Krippendorff's coefficients with
    intervals over topics, for each two assessors, and on each topic."""

    access = {"GET": Access.ORGANISERS}
    problems = (403, 409)

    @extend_schema(
        responses=shape(AssessorsAgreement),
        parameters=[
            _ASPECT,
            OpenApiParameter("resamples", int, description=f"B; default: {RESAMPLES}"),
            OpenApiParameter("seed", int, description="default: 0"),
        ],
    )
    def get(self, request: Request, pool: UUID) -> Response:
        managed, parameters = managed_pool(request, pool), request.query_params
        resamples = integer_in(parameters, "resamples", RESAMPLES, 10, _MAX_RESAMPLES)
        seed = integer_in(parameters, "seed", 0, 0, _MAX_NUMBER)
        agreement = read_agreement([managed], _aspect(request), resamples=resamples, seed=seed)
        return Response(pool_agreement(agreement, resamples, seed))


class JudgedVersionList(AnswerList[JudgedVersion]):
    """The versions of the judgements that were made of a pool; POST makes one."""

    serializer_class = shape(JudgedVersionAnswer)
    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    problems = (403, 409)
    queryset = JudgedVersion.objects.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        pool = managed_pool(request, self.kwargs["pool"])
        rows = pool.versions.select_related("qrels__collection", "created_by").order_by("-pk")
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response([judged_version(request, row) for row in page])

    @extend_schema(
        request=JudgedQrelsSerializer,
        responses={201: shape(JudgedVersionAnswer), 200: shape(JudgedVersionAnswer)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_make_qrels)
    def post(self, request: Request, pool: UUID) -> Response:
        managed = managed_pool(request, pool)
        if not _may_make_qrels(request, None, pool):
            raise NotAllowed("only organisers of the collection make versions of its judgements")

        serializer = JudgedQrelsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data

        def answer(version: JudgedVersion, new: bool) -> Response:
            data = judged_version(request, version)
            code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
            return Response(data, code, headers={"Location": data["url"]})

        version, new = make_qrels(
            pool=managed,
            rule=Rule(fields["resolve"]),
            user=cast(User, request.user),
            aspect=fields["aspect"],
            activate=fields["activate"],
            note=fields["note"],
            ignore_sampling=fields["ignore_sampling"],
            authorship=authorship_of(managed.collection, _authors(fields)),
            origin=origin_of(request),
            accept=lambda version, new: idempotency.remember(request, lambda: answer(version, new)),
        )
        return answer(version, new)


def _authors(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an upload that say who judged."""
    own = {name: fields[name] for name in ("author_kind", "author", "model")}
    nothing = {"prompt": "", "prompt_sha256": "", "parent": None, "produced_at": None}
    return {**own, **nothing, "derivation": "none"}
