"""An object store in this process that speaks as much S3 over HTTP as stored files need, and fails as it is told.

It checks the access key and the MD5 of what arrives, but no signature. tests/reliability/rigs.py
starts a real one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEY, BUCKET = "evalhub", "evalhub-tests"
# Of a listing, so that a few files already need a second one.
_PAGE = 3


@dataclass
class Objects:
    """The store: objects with the time at which they were written, and what was asked."""

    port: int = 0
    stored: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    # Sent instead of the answer: a status and a code, such as (500, "InternalError"); with 0 the
    # connection is closed.
    refuses: tuple[int, str] | None = None
    # The next answer is cut off after so many bytes.
    cut: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, prefix: str = "", *, key: str = KEY, bucket: str = BUCKET) -> str:
        return f"s3://{key}:only-for-tests@{bucket}/{prefix}?endpoint=http://127.0.0.1:{self.port}"

    def age(self, seconds: float) -> None:
        """Make every object older."""
        for key, (content, written) in self.stored.items():
            self.stored[key] = content, written - seconds


def _handler(store: Objects) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

        def do(self) -> None:
            parts = urlsplit(self.path)
            bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            store.requests.append(f"{self.command} {key}")
            query = parse_qs(parts.query)
            signed = self.headers.get("Authorization", "") + query.get("X-Amz-Credential", [""])[0]
            if store.refuses:
                self.refuse(*store.refuses)
            elif f"{KEY}/" not in signed:
                self.refuse(403, "InvalidAccessKeyId")
            elif bucket != BUCKET:
                self.refuse(404, "NoSuchBucket")
            elif not key:
                self.list(query)
            else:
                with store.lock:
                    getattr(self, f"answer_{self.command.lower()}")(key, body)

        do_GET = do_HEAD = do_PUT = do_DELETE = do  # noqa: N815

        def answer_put(self, key: str, body: bytes) -> None:
            digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
            if self.headers.get("Content-MD5") != digest:
                self.refuse(400, "BadDigest")
            elif key in store.stored and self.headers.get("If-None-Match") == "*":
                self.refuse(412, "PreconditionFailed")
            else:
                store.stored[key] = body, time.time()
                self.send(200)

        def answer_get(self, key: str, body: bytes) -> None:
            if key not in store.stored:
                self.refuse(404, "NoSuchKey")
                return
            content, written = store.stored[key]
            self.send(200, content, {"Last-Modified": formatdate(written, usegmt=True)})

        answer_head = answer_get

        def answer_delete(self, key: str, body: bytes) -> None:
            store.stored.pop(key, None)
            self.send(204)

        def list(self, query: dict[str, list[str]]) -> None:
            prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
            keys = sorted(key for key in store.stored if key.startswith(prefix) and key > after)
            page, more = keys[:_PAGE], len(keys) > _PAGE
            rows = "".join(
                f"<Contents><Key>{escape(key)}</Key><LastModified>"
                f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(store.stored[key][1]))}</LastModified></Contents>"
                for key in page
            )
            token = (
                f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
            )
            truncated = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
            self.send(
                200, f"<ListBucketResult>{truncated}{token}{rows}</ListBucketResult>".encode()
            )

        def refuse(self, status: int, code: str) -> None:
            if not status:
                self.close_connection = True
                return
            self.send(
                status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
            )

        def send(
            self, status: int, content: bytes = b"", headers: dict[str, str] | None = None
        ) -> None:
            cut = None
            if self.command != "HEAD":
                # Before the client can have this answer: a test may then have the next one cut off.
                cut, store.cut = store.cut, None
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.close_connection = self.close_connection or cut is not None
                self.wfile.write(content[:cut])

    return Handler


@contextlib.contextmanager
def objects() -> Iterator[Objects]:
    """Serve an empty store."""
    store = Objects()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(store))
    server.daemon_threads = True
    store.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
