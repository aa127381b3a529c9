"""Static files under names that have a digest of their content in them: a browser keeps them for good, and an update
gives them other names.

Nothing is collected or written: what is installed is read when it is first asked for, and kept compressed in memory.
So there is no step to forget on a fresh machine, in a test, or in a container whose disk is read-only.
"""

from __future__ import annotations

import functools
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

_DIGEST = 12
_NAMED = re.compile(rf"(.+)\.([0-9a-f]{{{_DIGEST}}})(\.[^./]+)")
_FOR_GOOD = "public, max-age=31536000, immutable"
_TEXT = ("text/", "application/javascript", "application/json", "image/svg+xml")


@dataclass(frozen=True)
class StaticFile:
    """A file's content, and compressed where that makes it smaller."""

    content: bytes
    compressed: bytes | None
    content_type: str


class DigestStorage(StaticFilesStorage):
    """What `{% static %}` asks for addresses."""

    def url(self, name: str | None) -> str:
        return super().url(name if settings.DEBUG or not name else with_digest(name))


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Serves every file under its own name, which a browser asks for again each time, and under that with its digest.

    A digest that is not the file's own is another release's, whose page a visitor still has while servers are replaced:
    it gets what there is, not to be kept.
    """

    def __call__(self, request: HttpRequest) -> Any:
        named = _NAMED.fullmatch(request.path_info.removeprefix(self.static_prefix))
        if named is None or request.path_info in self.files or settings.DEBUG:
            return super().__call__(request)
        stem, digest, ending = named.groups()
        own = self.files.get(f"{self.static_prefix}{stem}{ending}")
        if own is None:
            return super().__call__(request)
        if digest != digest_of(stem + ending) or request.method not in ("GET", "HEAD"):
            return self.serve(own, request)
        return _kept(request, read_file(stem + ending), digest)


def with_digest(name: str) -> str:
    """The name under which a file may be kept for good; as it is, where there is no such file."""
    digest = digest_of(name)
    stem, ending = splitext(name)
    return f"{stem}.{digest}{ending}" if digest else name


@functools.cache
def digest_of(name: str) -> str | None:
    """Of a static file's content; None where no app has it."""
    found = finders.find(name)
    return hashlib.sha256(Path(found).read_bytes()).hexdigest()[:_DIGEST] if isinstance(found, str) else None


@functools.cache
def read_file(name: str) -> StaticFile:
    """A static file that there is."""
    path = Path(str(finders.find(name)))
    content, content_type = path.read_bytes(), mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if not content_type.startswith(_TEXT):
        return StaticFile(content, None, content_type)
    compressed = gzip.compress(content, 9, mtime=0)
    return StaticFile(content, compressed if len(compressed) < len(content) else None, f"{content_type}; charset=utf-8")


def _kept(request: HttpRequest, file: StaticFile, digest: str) -> HttpResponse:
    accepts = "gzip" in request.headers.get("Accept-Encoding", "")
    compressed = file.compressed if accepts else None
    response = HttpResponse(compressed or file.content, content_type=file.content_type)
    response["Cache-Control"] = _FOR_GOOD
    response["ETag"] = f'"{digest}{"-gzip" if compressed else ""}"'
    response["Access-Control-Allow-Origin"] = "*"
    response["Content-Length"] = str(len(response.content))
    if compressed:
        response["Content-Encoding"] = "gzip"
    if file.compressed:
        patch_vary_headers(response, ("Accept-Encoding",))
    conditional = get_conditional_response(request, etag=response["ETag"], response=response)
    return conditional if isinstance(conditional, HttpResponse) else response
