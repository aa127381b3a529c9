"""Receiving files: multipart or raw bodies, never more than the limit, straight to the store's file system."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import QueryDict
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, DataAndFiles, MultiPartParser

from metrics.engine.errors import FileTooLarge
from runs.services.files import upload_folder

_CHUNK = 1024 * 1024
# What a multipart body may hold beside the file.
_FORM_ROOM = 1024 * 1024


class StoredUpload(UploadedFile):
    """An upload in a file of its own, deleted when closed unless the store has linked it."""

    def __init__(self, name: str, content_type: str | None = None) -> None:
        file = tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload")  # noqa: SIM115
        super().__init__(file, name, content_type, 0)

    @property
    def path(self) -> Path:
        self.file.flush()  # type: ignore[union-attr]
        return Path(self.file.name)  # type: ignore[union-attr]

    def append(self, chunk: bytes) -> None:
        """Add a chunk, or raise FileTooLarge where the limit is passed."""
        self.size = (self.size or 0) + len(chunk)
        try:
            check_size(self.size)
        except FileTooLarge:
            self.close()
            raise
        self.file.write(chunk)  # type: ignore[union-attr]


def check_size(size: int) -> None:
    limit = settings.EVALHUB_MAX_UPLOAD_BYTES
    if size > limit:
        raise FileTooLarge(f"the file is larger than the limit of {limit:,} bytes")


class BoundedFileUploadHandler(FileUploadHandler):
    """Django's upload handler for multipart bodies, with the limit checked while the bytes arrive."""

    upload: StoredUpload

    def handle_raw_input(
        self,
        input_data: IO[bytes],
        META: Mapping[str, Any],
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> None:
        check_size(max(0, (content_length or 0) - _FORM_ROOM))

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.upload = StoredUpload(self.file_name or "upload", self.content_type)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.upload.append(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile:
        self.upload.seek(0)
        return self.upload


class RawFileParser(BaseParser):
    """A request whose whole body is the file."""

    media_type = "application/octet-stream"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> DataAndFiles[Any, Any]:
        request = (parser_context or {})["request"]
        check_size(_content_length(request.META))
        upload = StoredUpload("upload", media_type)
        while chunk := stream.read(_CHUNK):
            upload.append(chunk)
        upload.seek(0)
        files: Any = {"file": upload}
        return DataAndFiles(QueryDict(), files)


def _content_length(meta: Mapping[str, Any]) -> int:
    text = meta.get("CONTENT_LENGTH") or ""
    if not text.isdecimal():
        raise ParseError("send the file with a Content-Length; chunked bodies are not read")
    return int(text)


class PlainTextParser(RawFileParser):
    media_type = "text/plain"


class GzipParser(RawFileParser):
    media_type = "application/gzip"


class ZstandardParser(RawFileParser):
    media_type = "application/zstd"


FILE_PARSERS = (MultiPartParser, RawFileParser, PlainTextParser, GzipParser, ZstandardParser)
