"""The API of collections, topics and judgements."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpResponseBase, QueryDict
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, PolymorphicProxySerializer, extend_schema
from rest_framework import status
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from metrics.services.queue.queueing import queue_judged
from runs.api import answers
from runs.api.serializers import (
    AttributesUploadSerializer,
    CollectionChangeSerializer,
    CollectionSerializer,
    DocumentsUploadSerializer,
    QrelsUploadSerializer,
    TopicsUploadSerializer,
)
from runs.errors import InvalidInput
from runs.models import (
    Collection,
    DocumentTitle,
    Qrels,
    Scope,
    Team,
    Topic,
    TopicAttributes,
    User,
)
from runs.services.collections.authorship import authorship_of
from runs.services.collections.collections import (
    change_collection,
    create_collection,
    release_collection,
)
from runs.services.collections.documents import (
    check_documents,
    delete_documents,
    import_documents,
)
from runs.services.collections.qrels import (
    activate_qrels,
    check_qrels,
    import_qrels,
    record_reading,
    sampling_of,
)
from runs.services.collections.topic_attributes import delete_attributes, import_attributes
from runs.services.collections.topics import import_topics
from runs.services.storage.files import StoredFile
from runs.services.storage.reports import report_as_json
from runs.web import conditions, idempotency
from runs.web.access import (
    collections_of,
    counted_collection,
    managed_collection,
    scored_collection,
    visible_collection,
)
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.shapes import shape
from runs.web.uploads import FILE_PARSERS, empty_body, query_fields

FILE = OpenApiResponse(OpenApiTypes.BINARY, "the file, decompressed")


def either(name: str, *shapes: Any) -> PolymorphicProxySerializer:
    """Describe one of several answers, such as the existing object or the result of a dry run."""
    return PolymorphicProxySerializer(
        component_name=name, serializers=list(shapes), resource_type_field_name=None
    )


@contextlib.contextmanager
def upload_fields(request: Request, serializer_class: Any) -> Iterator[dict[str, Any]]:
    """Return the checked fields of an upload, from its form or, for a raw body, its query string.

    The uploaded file is deleted afterwards, unless the store has linked it.
    """
    with contextlib.ExitStack() as uploads:
        for upload in request.FILES.values():
            uploads.callback(upload.close)

        form = request.data if isinstance(request.data, QueryDict) else QueryDict()
        for name, values in form.lists():
            if len(values) > 1 or name in request.query_params:
                message = (
                    f"{name} is given more than once; send it once, in the form or in the address"
                )
                raise InvalidInput(message, code="repeated_field", pointer=f"/{name[:200]}")

        data: dict[str, Any] = {**request.query_params.dict(), **form.dict()}

        if empty := empty_body(request):
            uploads.callback(empty.close)
            data["file"] = empty

        serializer = serializer_class(data=data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        yield serializer.validated_data


def _may_create(request: Request, body: Any) -> bool:
    return bool(Team.objects.led_by(request.user).filter(slug=body["team"]).exists())


def _may_judge(request: Request, body: Any, collection: str) -> bool:
    return Collection.objects.managed_by(request.user).filter(slug=collection).exists()


class CollectionList(AnswerList[Collection]):
    """Collections that the caller may see; POST creates one that belongs to one of the caller's
    teams."""

    serializer_class = shape(answers.Collection)
    answer = staticmethod(answers.collection)
    scopes = {"POST": Scope.MANAGE}
    queryset = Collection.objects.none()

    def get_queryset(self) -> QuerySet[Collection]:
        return collections_of(self.request.user)

    @extend_schema(
        request=CollectionSerializer,
        responses={201: shape(answers.Collection)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_create)
    def post(self, request: Request) -> Response:
        serializer = CollectionSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        with transaction.atomic():
            collection = create_collection(origin=origin_of(request), **serializer.validated_data)
            data = answers.collection(counted_collection(request, collection.slug))
            response = Response(data, status.HTTP_201_CREATED)
            idempotency.remember(request, lambda: response)

        return response


class CollectionDetail(APIView):
    """One collection; PATCH changes its description and the way its runs are evaluated."""

    scopes = {"PATCH": Scope.MANAGE}
    conditional = ("PATCH",)

    @extend_schema(responses=shape(answers.Collection))
    def get(self, request: Request, collection: str) -> Response:
        return self._response(counted_collection(request, collection))

    @extend_schema(
        request=CollectionChangeSerializer,
        responses=shape(answers.Collection),
        parameters=[conditions.PARAMETER],
    )
    def patch(self, request: Request, collection: str) -> Response:
        managed_collection(request, collection)
        with transaction.atomic():
            row = Collection.objects.select_for_update().get(slug=collection)
            conditions.check_unchanged(request, _tag(row))
            serializer = CollectionChangeSerializer(
                row, request.data, partial=True, context={"request": request}
            )
            serializer.is_valid(raise_exception=True)
            change_collection(
                collection=row,
                changes=serializer.validated_data,
                enqueue=queue_judged,
                origin=origin_of(request),
            )

        return self._response(counted_collection(request, collection))

    def _response(self, collection: Collection) -> Response:
        return Response(answers.collection(collection), headers={"ETag": _tag(collection)})


def _tag(collection: Collection) -> str:
    return conditions.tag_of(collection, CollectionChangeSerializer.Meta.fields)


class CollectionRelease(APIView):
    """Show the scores of a blind collection permanently to everyone who can see it."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=shape(answers.Collection))
    def post(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        release_collection(collection=managed, origin=origin_of(request))
        return Response(answers.collection(counted_collection(request, collection)))


class TopicList(AnswerList[Topic]):
    """The topics of a collection; PUT replaces them by those of a file (TREC SGML, TREC XML, JSONL
    or TSV), or checks it with dry_run=true."""

    serializer_class = shape(answers.Topic)
    answer = staticmethod(answers.topic)
    scopes = {"PUT": Scope.MANAGE}
    parser_classes = FILE_PARSERS
    queryset = Topic.objects.none()

    def get_queryset(self) -> QuerySet[Topic]:
        collection = visible_collection(self.request, self.kwargs["collection"])
        return collection.topics.order_by("position")

    @extend_schema(
        request={"multipart/form-data": TopicsUploadSerializer},
        responses=shape(answers.TopicsAnswer),
        parameters=query_fields(TopicsUploadSerializer),
    )
    def put(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        with upload_fields(request, TopicsUploadSerializer) as fields:
            summary = import_topics(
                collection=managed,
                upload=fields["file"].path,
                format=fields["format"],
                dry_run=fields["dry_run"],
                origin=origin_of(request),
            )

        answer = answers.TopicsAnswer(
            format=summary.format,
            topics=len(summary.topics),
            attributes=summary.keys,
            warnings=report_as_json(summary.report),
        )
        return Response(answer)


class TopicAttributeList(AnswerList[TopicAttributes]):
    """The attributes of a collection's topics. PUT replaces them by those of a file (TSV with a
    header, or JSONL), or checks it with dry_run=true. DELETE deletes them."""

    serializer_class = shape(answers.TopicAttributes)
    answer = staticmethod(answers.topic_attributes)
    scopes = {"PUT": Scope.MANAGE, "DELETE": Scope.MANAGE}
    parser_classes = FILE_PARSERS
    queryset = TopicAttributes.objects.none()

    def get_queryset(self) -> QuerySet[TopicAttributes]:
        collection = visible_collection(self.request, self.kwargs["collection"])
        return collection.topic_attributes.order_by("pk")

    def get_parsers(self) -> list[Any]:
        # As of DocumentList.
        if self.request and self.request.method == "DELETE":
            return [JSONParser()]
        return super().get_parsers()

    @extend_schema(
        request={"multipart/form-data": AttributesUploadSerializer},
        responses=shape(answers.AttributesAnswer),
        parameters=query_fields(AttributesUploadSerializer),
    )
    def put(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        with upload_fields(request, AttributesUploadSerializer) as fields:
            summary = import_attributes(
                collection=managed,
                upload=fields["file"].path,
                dry_run=fields["dry_run"],
                origin=origin_of(request),
            )

        answer = answers.AttributesAnswer(
            topics=summary.topics, keys=summary.keys, warnings=report_as_json(summary.report)
        )
        return Response(answer)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        delete_attributes(collection=managed, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class DocumentList(AnswerList[DocumentTitle]):
    """The titles and snippets of a collection's documents. PUT replaces them by those of a file
    (TSV or JSONL), or checks it with dry_run=true. DELETE deletes them."""

    serializer_class = shape(answers.DocumentTitle)
    answer = staticmethod(answers.document_title)
    scopes = {"PUT": Scope.MANAGE, "DELETE": Scope.MANAGE}
    parser_classes = FILE_PARSERS
    queryset = DocumentTitle.objects.none()

    def get_queryset(self) -> QuerySet[DocumentTitle]:
        collection = visible_collection(self.request, self.kwargs["collection"])
        return collection.document_titles.order_by("doc_id")

    def get_parsers(self) -> list[Any]:
        # Clients send their usual media type with an empty body, too. A description has no request.
        if self.request and self.request.method == "DELETE":
            return [JSONParser()]
        return super().get_parsers()

    @extend_schema(
        request={"multipart/form-data": DocumentsUploadSerializer},
        responses=shape(answers.DocumentsAnswer),
        parameters=query_fields(DocumentsUploadSerializer),
    )
    def put(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        with upload_fields(request, DocumentsUploadSerializer) as fields:
            path = fields["file"].path
            if fields["dry_run"]:
                summary = check_documents(upload=path)
            else:
                summary = import_documents(
                    collection=managed, upload=path, origin=origin_of(request)
                )

        answer = answers.DocumentsAnswer(
            documents=summary.documents,
            titled=summary.titled,
            sha256=summary.sha256,
            warnings=report_as_json(summary.report),
        )
        return Response(answer)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        delete_documents(collection=managed, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class QrelsList(AnswerList[Qrels]):
    """The versions of a collection's judgements; POST uploads one and activates it unless
    activate=false."""

    serializer_class = shape(answers.Qrels)
    answer = staticmethod(answers.qrels)
    scopes = {"POST": Scope.MANAGE}
    parser_classes = FILE_PARSERS
    queryset = Qrels.objects.none()

    def get_queryset(self) -> QuerySet[Qrels]:
        collection = scored_collection(self.request, self.kwargs["collection"], values=False)
        return (
            collection.qrels.select_related("reduced_from", "parent")
            .defer("prompt")
            .order_by("-version")
        )

    @extend_schema(
        request={"multipart/form-data": QrelsUploadSerializer},
        responses={
            201: shape(answers.Qrels),
            200: either("QrelsOrCheck", shape(answers.Qrels), shape(answers.CheckedQrels)),
        },
        parameters=[*query_fields(QrelsUploadSerializer), idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_judge)
    def post(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        with upload_fields(request, QrelsUploadSerializer) as fields:
            path = fields["file"].path
            authorship = authorship_of(managed, fields)
            if fields["dry_run"]:
                summary, source = check_qrels(
                    collection=managed,
                    upload=path,
                    keyed_by=fields["keyed_by"],
                    iteration=fields["iteration"],
                    sampling=sampling_of(fields),
                    authorship=authorship,
                )

                report = report_as_json(summary.report)
                checked = answers.CheckedQrels(
                    sha256=source.sha256,
                    iteration=summary.iteration,
                    warnings=report["warnings"],
                    counts=report["counts"],
                )

                return Response(checked)

            qrels, new = import_qrels(
                collection=managed,
                user=cast(User, request.user),
                upload=path,
                note=fields["note"],
                keyed_by=fields["keyed_by"],
                iteration=fields["iteration"],
                sampling=sampling_of(fields),
                authorship=authorship,
                activate=fields["activate"],
                enqueue=queue_judged,
                origin=origin_of(request),
                accept=lambda qrels, new: idempotency.remember(
                    request, lambda: _qrels_response(request, qrels, new)
                ),
            )

        return _qrels_response(request, qrels, new)


def _qrels_response(request: Request, qrels: Qrels, new: bool) -> Response:
    code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
    address = reverse("qrels", args=[qrels.collection.slug, qrels.version], request=request)
    return Response(answers.qrels(qrels), code, headers={"Location": address})


def _version(collection: Collection, version: int) -> Qrels:
    qrels = collection.qrels.filter(version=version).first()
    if qrels is None:
        raise Http404(f"collection {collection.slug} has no qrels version {version}")
    return qrels


class QrelsDetail(APIView):
    """One version of the judgements."""

    @extend_schema(responses=shape(answers.Qrels))
    def get(self, request: Request, collection: str, version: int) -> Response:
        scored = scored_collection(request, collection, values=False)
        qrels = _version(scored, version)
        return Response(answers.Qrels(**answers.qrels(qrels), prompt=qrels.prompt))


class QrelsActivation(APIView):
    """Activate a version of the judgements; every run is evaluated again under it."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=shape(answers.Qrels))
    def post(self, request: Request, collection: str, version: int) -> Response:
        qrels = _version(managed_collection(request, collection), version)
        activate_qrels(qrels=qrels, enqueue=queue_judged, origin=origin_of(request))
        return Response(answers.qrels(qrels))


class QrelsFile(APIView):
    """A version of the judgements as a TREC qrels file."""

    @extend_schema(responses=FILE)
    def get(self, request: Request, collection: str, version: int) -> HttpResponseBase:
        qrels = _version(scored_collection(request, collection, values=False), version)
        if qrels.collection.blind:
            record_reading(qrels=qrels, origin=origin_of(request))
        return download(qrels.sha256, f"{collection}-v{version}.qrels")


def download(sha256: str, name: str) -> FileResponse:
    """Return a stored file, decompressed, with a file name."""
    response = FileResponse(
        StoredFile(sha256), as_attachment=True, filename=name, content_type="text/plain"
    )

    # The web server stores answers that are read slowly, and many small writes take long.
    response.block_size = 1024 * 1024
    return response
