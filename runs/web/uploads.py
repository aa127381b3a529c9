"""Receive files: multipart or raw bodies up to a limit, directly on the store's file system."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import QueryDict
from django.http.multipartparser import MultiPartParserError
from django.utils.http import parse_header_parameters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import parsers, serializers
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from runs.errors import FileTooLarge
from runs.services.storage.files import upload_folder

_CHUNK = 1024 * 1024
# The last boundary is within this many bytes of a body's end.
_TAIL = 4096
# The bytes that a multipart body may have in addition to the file.
_FORM_BYTES = 1024 * 1024
# The fields of the only form with two files.
_TWO_FILES = ["file", "known"]
# The files of one form.
MAX_FILES = 20


class StoredUpload(UploadedFile):
    """An upload in its own file, deleted when it is closed unless the store has linked it."""

    def __init__(self, name: str, content_type: str | None = None) -> None:
        file = tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload")  # noqa: SIM115
        super().__init__(file, name, content_type, 0)

    @property
    def path(self) -> Path:
        self.file.flush()  # type: ignore[union-attr]
        return Path(self.file.name)  # type: ignore[union-attr]

    def append(self, chunk: bytes) -> None:
        """Add a chunk. Raise FileTooLarge beyond the limit."""
        self.size = (self.size or 0) + len(chunk)
        try:
            check_size(self.size)
        except FileTooLarge:
            self.close()
            raise

        self.file.write(chunk)  # type: ignore[union-attr]


class UploadTooLarge(FileTooLarge, RequestDataTooBig):
    """FileTooLarge in a form that Django also answers when a form outside the API is posted."""


def check_size(size: int) -> None:
    limit = settings.EVALHUB_MAX_UPLOAD_BYTES
    if size > limit:
        raise UploadTooLarge(f"the file is larger than the limit of {limit:,} bytes")


class BoundedFileUploadHandler(FileUploadHandler):
    """Django's handler of multipart bodies, with the limit checked while the bytes arrive."""

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        self.fields: list[str] = []
        self.uploads: list[StoredUpload] = []

    def handle_raw_input(
        self,
        input_data: IO[bytes],
        META: Mapping[str, Any],
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> None:
        check_size(max(0, (content_length or 0) - _FORM_BYTES))

    def check_fields(self, fields: list[str]) -> None:
        """Raise MultiPartParserError if the files so far, in these fields, are too many."""
        if len(fields) > 1 and sorted(fields) != _TWO_FILES:
            raise MultiPartParserError(
                "send one file at a time, plus one of known documents with a run"
            )

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.fields.append(self.field_name or "")
        self.check_fields(self.fields)
        self.uploads.append(StoredUpload(self.file_name or "upload", self.content_type))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.uploads[-1].append(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile | None:
        upload = self.uploads[-1]
        upload.seek(0)
        return upload

    def abandon(self) -> None:
        """Delete the bytes received so far."""
        for upload in self.uploads:
            upload.close()


class ManyFilesUploadHandler(BoundedFileUploadHandler):
    """The same for a form with several files in its field `file`, together within the limit."""

    def check_fields(self, fields: list[str]) -> None:
        files = fields.count("file")
        if files > MAX_FILES or len(fields) - files > 1:
            raise MultiPartParserError(
                f"send {MAX_FILES} files at most, plus one of known documents with a single run"
            )


class _WatchedStream:
    """A request's body that records how it ended."""

    def __init__(self, stream: IO[Any]) -> None:
        self._stream = stream
        self.tail = b""

    def read(self, *size: int) -> bytes:
        content: bytes = self._stream.read(*size)
        self.tail = (self.tail + content[-_TAIL:])[-_TAIL:]
        return content


class MultiPartParser(parsers.MultiPartParser):
    """Parse complete multipart bodies: Django would accept a file cut off with its connection."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> parsers.DataAndFiles[Any, Any]:
        context = dict(parser_context or {})

        # Names and fields are UTF-8 whatever charset a request declares: Python has charsets that
        # raise on any text.
        context["encoding"] = "utf-8"
        watched: Any = _WatchedStream(stream)
        try:
            parsed = super().parse(watched, media_type, context)
            boundary = parse_header_parameters(media_type or "")[1].get("boundary", "")
            if b"--%b--" % boundary.encode() not in watched.tail:
                raise ParseError("the body ends before its last boundary")
        except Exception:
            for handler in context["request"].upload_handlers:
                handler.abandon()
            raise

        return parsed


class RawFileParser(parsers.BaseParser):
    """Parse a request with the file as its body."""

    media_type = "application/octet-stream"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> parsers.DataAndFiles[Any, Any]:
        request = (parser_context or {})["request"]
        length = _content_length(request.META)
        check_size(length)

        upload = StoredUpload("upload", media_type)
        try:
            while chunk := stream.read(_CHUNK):
                upload.append(chunk)

            if upload.size != length:
                raise ParseError(f"the body ends after {upload.size:,} of {length:,} bytes")
        except Exception:
            upload.close()
            raise

        upload.seek(0)
        files: Any = {"file": upload}
        return parsers.DataAndFiles(QueryDict(), files)


def empty_body(request: Request) -> StoredUpload | None:
    """Return an empty file that was sent as the body; parsers see no body that is empty."""
    raw_types = {parser.media_type for parser in FILE_PARSERS if issubclass(parser, RawFileParser)}
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    if media_type not in raw_types or request.FILES:
        return None

    if "HTTP_TRANSFER_ENCODING" in request.META:
        _content_length(request.META)

    if request.META.get("CONTENT_LENGTH") != "0":
        return None

    return StoredUpload("upload", media_type)


def _content_length(meta: Mapping[str, Any]) -> int:
    text = meta.get("CONTENT_LENGTH") or ""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ParseError("send the file with a Content-Length; chunked bodies are not read")
    return int(text)


class PlainTextParser(RawFileParser):
    media_type = "text/plain"


class GzipParser(RawFileParser):
    media_type = "application/gzip"


class ZstandardParser(RawFileParser):
    media_type = "application/zstd"


FILE_PARSERS = (MultiPartParser, RawFileParser, PlainTextParser, GzipParser, ZstandardParser)


def query_fields(serializer: type[serializers.Serializer[Any]]) -> list[OpenApiParameter]:
    """Describe the fields of an upload as query parameters, for requests with the file as body."""
    return [
        OpenApiParameter(
            name,
            OpenApiTypes.BOOL if isinstance(field, serializers.BooleanField) else OpenApiTypes.STR,
            description=f"the field {name}, where the body is the file itself",
            enum=list(field.choices) if isinstance(field, serializers.ChoiceField) else None,
        )
        for name, field in serializer().fields.items()
        if not isinstance(field, serializers.FileField)
    ]
