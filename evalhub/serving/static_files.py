"""Static files with a digest of their content in their names, which browsers cache permanently.

Files are not collected or written: an installed file is read at its first request, and kept
compressed in memory. So there is no step to forget on a fresh machine, in a test, or in a container
with a read-only disk.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from posixpath import splitext
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

_DIGEST_LENGTH = 12
_NAME_WITH_DIGEST = re.compile(rf"(.+)\.([0-9a-f]{{{_DIGEST_LENGTH}}})(\.[^./]+)")
_PERMANENT = "public, max-age=31536000, immutable"
_TEXT = ("text/", "application/javascript", "application/json", "image/svg+xml")


@dataclass(frozen=True)
class StaticFile:
    """A file as it was at its first request, compressed if that makes it smaller."""

    content: bytes
    compressed: bytes | None
    content_type: str
    digest: str


# Files by name; None if no app has such a file. The digest and the content come from one reading: a
# file that is replaced under a running process is never sent under the digest of the other.
_files: dict[str, StaticFile | None] = {}


class DigestStorage(StaticFilesStorage):
    """The storage that gives `{% static %}` its addresses."""

    def url(self, name: str | None) -> str:
        """Return the address under which a file can be cached permanently."""
        if name and not settings.DEBUG and (file := find_file(name)):
            stem, suffix = splitext(name)
            name = f"{stem}.{file.digest}{suffix}"
        return super().url(name)


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Serve every file under its own name, without caching, and under the name with its digest.

    Another digest belongs to another release, whose page a visitor may still have while servers are
    replaced: the answer is the current file, which must not be cached.
    """

    def __call__(self, request: HttpRequest) -> Any:
        match = _NAME_WITH_DIGEST.fullmatch(request.path_info.removeprefix(self.static_prefix))
        if match is None or request.path_info in self.files or settings.DEBUG:
            return super().__call__(request)

        stem, digest, suffix = match.groups()
        plain = self.files.get(f"{self.static_prefix}{stem}{suffix}")
        if plain is None:
            return super().__call__(request)

        file = find_file(stem + suffix)
        if file is None or digest != file.digest or request.method not in ("GET", "HEAD"):
            return self.serve(plain, request)
        return _permanent_response(request, file)

    def immutable_file_test(self, path: str, url: str) -> bool:
        """Return False, without reading the file: names with digests are served above."""
        return False


def find_file(name: str) -> StaticFile | None:
    """Return a static file as it was when this process first read it, or None if no app has it."""
    if name not in _files:
        path = finders.find(name)
        _files[name] = read_file(Path(path)) if isinstance(path, str) else None
    return _files[name]


def read_file(path: Path) -> StaticFile:
    """Return a file with its digest, compressed if it is text."""
    content = path.read_bytes()
    content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LENGTH]
    if not content_type.startswith(_TEXT):
        return StaticFile(content, None, content_type, digest)

    shorter = gzip.compress(content, 9, mtime=0)
    compressed = shorter if len(shorter) < len(content) else None
    return StaticFile(content, compressed, f"{content_type}; charset=utf-8", digest)


def _permanent_response(request: HttpRequest, file: StaticFile) -> HttpResponse:
    accepts = "gzip" in request.headers.get("Accept-Encoding", "")
    compressed = file.compressed if accepts else None
    response = HttpResponse(compressed or file.content, content_type=file.content_type)
    response["Cache-Control"] = _PERMANENT
    response["ETag"] = f'"{file.digest}{"-gzip" if compressed else ""}"'
    response["Access-Control-Allow-Origin"] = "*"
    response["Content-Length"] = str(len(response.content))
    if compressed:
        response["Content-Encoding"] = "gzip"

    if file.compressed:
        patch_vary_headers(response, ("Accept-Encoding",))

    not_modified = get_conditional_response(request, etag=response["ETag"], response=response)
    return not_modified if isinstance(not_modified, HttpResponse) else response
