"""Requests to an S3-compatible object store, and the meaning of its errors.

This is the only module that uses the client library. It reads nothing but EvalHub's settings:
neither variables nor files of other programs.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO

from runs.attention import check_client
from runs.errors import StorageUnavailable, StoreRefuses
from runs.services.storage.stores.location import Location

_log = logging.getLogger(__name__)
AWAY = "the server's file store does not answer; nothing was stored, try again later"
_STEP = 1024 * 1024
# A store that does not accept a connection, or is silent for so long, is unavailable.
_CONNECT_SECONDS, _SILENT_SECONDS = 3, 15
_TRIES = 2
# A signature is valid for this long. Stores accept clocks that differ by a quarter of an hour.
_DELETION_SECONDS = 5 * 60
SIGNED_SECONDS = 15 * 60 + _DELETION_SECONDS
_MISSING = ("NoSuchKey", "404", "NotFound")
_EXISTS = ("PreconditionFailed", "ConditionalRequestConflict", "412")
_FULL = ("QuotaExceeded", "XMinioStorageFull", "InsufficientStorage")
# Errors that an operator must resolve, with what is wrong.
_REFUSED = {
    "NoSuchBucket": "there is no such bucket",
    "InvalidBucketName": "there is no such bucket",
    "InvalidAccessKeyId": "the store does not know the access key",
    "SignatureDoesNotMatch": "the secret does not belong to the access key",
    "AccessDenied": "the access key may not do this",
    "403": "the access key may not do this",
    "AuthorizationHeaderMalformed": "the region is another one",
    "PermanentRedirect": "the endpoint or the region is another one",
    "301": "the endpoint or the region is another one",
}


def is_installed() -> bool:
    """Return whether the client library is installed."""
    try:
        import botocore.session  # noqa: F401
    except ImportError:
        return False

    return True


class Bucket:
    """The objects of a location. Keys are below its prefix.

    Methods raise FileNotFoundError for a missing object, FileExistsError for a conditional write of
    an existing one, StoreRefuses if credentials or bucket are wrong, StorageUnavailable if the
    store does not answer.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        # A client belongs to one process: forked processes cannot share its connections.
        self._client_of_process: tuple[int, Any] | None = None

    def get(self, key: str, file: BinaryIO) -> None:
        """Write an object to a file."""
        for last in (False, True):
            with self._translated_errors(f"GET {key}"):
                body = self._client().get_object(**self._address(key))["Body"]

            file.seek(0)
            file.truncate()

            try:
                with self._translated_errors(f"GET {key}"), contextlib.closing(body):
                    # The body itself raises an error if it is shorter than announced.
                    while chunk := body.read(_STEP):
                        check_client()
                        file.write(chunk)

                return
            except StorageUnavailable:
                # The client repeats a request, but not the reading of its answer.
                if last:
                    raise

    def read(self, key: str) -> bytes:
        """Return a small object."""
        with self._translated_errors(f"GET {key}"):
            content: bytes = self._client().get_object(**self._address(key))["Body"].read()
        return content

    def put(self, key: str, content: bytes | Path, *, only_new: bool = False) -> None:
        """Write an object whole. The store compares it with its MD5."""
        condition = {"IfNoneMatch": "*"} if only_new else {}

        with contextlib.ExitStack() as stack:
            body: Any = content
            if isinstance(content, bytes):
                digest = hashlib.md5(content, usedforsecurity=False)
            else:
                body = stack.enter_context(content.open("rb"))
                digest = hashlib.file_digest(body, lambda: hashlib.md5(usedforsecurity=False))
                body.seek(0)

            checksum = base64.b64encode(digest.digest()).decode()
            stack.enter_context(self._translated_errors(f"PUT {key}"))
            self._client().put_object(
                **self._address(key), Body=body, ContentMD5=checksum, **condition
            )

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        self.signed_deletion(key)()

    def signed_deletion(self, key: str) -> Callable[[], None]:
        """Return a function that deletes an object by a request that is signed now.

        However late the request arrives, the store does not accept it later than `SIGNED_SECONDS`
        from now.
        """
        with self._translated_errors(f"DELETE {key}"):
            url = self._client().generate_presigned_url(
                "delete_object", Params=self._address(key), ExpiresIn=_DELETION_SECONDS
            )

        def send() -> None:
            from botocore.awsrequest import AWSRequest
            from botocore.httpsession import URLLib3Session

            with self._translated_errors(f"DELETE {key}"):
                session = URLLib3Session(timeout=(_CONNECT_SECONDS, _SILENT_SECONDS), proxies={})
                with contextlib.closing(session):
                    answer = session.send(AWSRequest("DELETE", url).prepare())

            if answer.status_code not in (200, 204, 404):
                _log.error("%s: DELETE %s failed: %s", self._location, key, answer.text[:500])
                raise StorageUnavailable(AWAY)

        return send

    def age(self, key: str) -> float:
        """Return how many seconds ago an object was written, by the clock of the store."""
        with self._translated_errors(f"HEAD {key}"):
            answer = self._client().head_object(**self._address(key))
        return _age(answer["LastModified"], answer)

    def list(self, folder: str) -> Iterator[tuple[str, float]]:
        """Yield the key and the age of every object in a folder."""
        prefix = self._location.prefix
        with self._translated_errors(f"LIST {folder}"):
            pages = self._client().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._location.bucket, Prefix=f"{prefix}{folder}"):
                for entry in page.get("Contents", ()):
                    yield entry["Key"].removeprefix(prefix), _age(entry["LastModified"], page)

    def _address(self, key: str) -> dict[str, str]:
        return {"Bucket": self._location.bucket, "Key": f"{self._location.prefix}{key}"}

    def _client(self) -> Any:
        client = self._client_of_process
        if client is None or client[0] != os.getpid():
            client = self._client_of_process = (os.getpid(), _create_client(self._location))
        return client[1]

    @contextlib.contextmanager
    def _translated_errors(self, request: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            raise self._error_of(error, request) from error
        except BotoCoreError as error:
            _log.error("%s: %s failed: %s", self._location, request, error)
            raise StorageUnavailable(AWAY) from error

    def _error_of(self, error: Any, request: str) -> Exception:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _MISSING:
            return FileNotFoundError(errno.ENOENT, request)
        if code in _EXISTS:
            return FileExistsError(errno.EEXIST, request)
        if code in _FULL:
            return OSError(errno.ENOSPC, "the object store is full")

        _log.error("%s: %s failed: %s", self._location, request, error)
        if code in _REFUSED:
            return StoreRefuses(AWAY, reason=f"{self._location}: {_REFUSED[code]} ({code})")

        return StorageUnavailable(AWAY)


def _age(modified_at: Any, answer: Any) -> float:
    """Return the age of an object at the moment of an answer."""
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    now = parsedate_to_datetime(date) if date else datetime.now(UTC)
    return float((now - modified_at).total_seconds())


def _create_client(location: Location) -> Any:
    from botocore.config import Config
    from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES
    from botocore.session import Session

    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_SILENT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
        max_pool_connections=32,
        tcp_keepalive=True,
        proxies={},
        signature_version="s3v4",
        s3={"addressing_style": location.style},
        # Every store knows the MD5 that is sent with an object, but not newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )

    # No variable of the environment and no file is read.
    variables = {
        name: (None, None, *rest)
        for name, (_, _, *rest) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
    }
    for name in ("config_file", "credentials_file"):
        variables[name] = (None, None, os.devnull, None)

    return Session(session_vars=variables).create_client(
        "s3",
        region_name=location.region,
        endpoint_url=location.endpoint,
        aws_access_key_id=location.key,
        aws_secret_access_key=location.secret,
        config=config,
    )
