"""The address of an object store: the value of `EVALHUB_FILES_URL`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

_EXAMPLE = "s3://bucket/prefix?endpoint=https://s3.example.org&region=eu-1"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[\w!.*'()/-]*", re.ASCII)
_STYLES = ("path", "virtual")


@dataclass(frozen=True)
class Location:
    """A bucket of an S3-compatible store, and the credentials for it.

    `prefix` is empty or ends with a slash. Without an endpoint the store is Amazon's.
    """

    bucket: str
    prefix: str
    endpoint: str | None
    region: str
    style: str
    key: str = field(repr=False)
    secret: str = field(repr=False)

    def __str__(self) -> str:
        endpoint = f" at {self.endpoint}" if self.endpoint else ""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") + endpoint


def parse_location(url: str, key: str, secret: str) -> Location | None:
    """Return the store that a URL names, or None without a URL.

    It is s3://[KEY:SECRET@]BUCKET[/PREFIX][?endpoint=...&region=...&style=...]. Raise ValueError,
    which does not repeat secrets, for anything else.
    """
    if not url:
        return None

    try:
        parts = urlsplit(url)
        options = {
            name: values[-1]
            for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
        }
    except ValueError as error:
        raise ValueError(f"it is such as {_EXAMPLE}") from error

    bucket, prefix = parts.netloc.rpartition("@")[2], parts.path.strip("/")
    if parts.scheme != "s3" or parts.fragment or not _BUCKET.fullmatch(bucket):
        raise ValueError(f"it names no bucket; it is such as {_EXAMPLE}")

    if not _PREFIX.fullmatch(prefix) or "//" in prefix or ".." in prefix:
        raise ValueError(
            "a prefix has letters, digits and - _ . ! * ' ( ) alone, between single slashes"
        )

    if unknown := options.keys() - {"endpoint", "region", "style"}:
        raise ValueError(f"it has endpoint, region and style after its ?, and not {min(unknown)}")

    endpoint = options.get("endpoint")
    if endpoint is not None and not re.fullmatch(r"https?://[^\s/?#@]+/?", endpoint):
        raise ValueError("its endpoint is such as https://s3.example.org or http://127.0.0.1:9000")

    style = options.get("style", "path" if endpoint else "virtual")
    if style not in _STYLES:
        raise ValueError(f"its style is {' or '.join(_STYLES)}")

    key, secret = unquote(parts.username or "") or key, unquote(parts.password or "") or secret
    if not (key and secret):
        raise ValueError(
            "set EVALHUB_FILES_KEY and EVALHUB_FILES_SECRET, or write s3://KEY:SECRET@bucket"
        )

    prefix = f"{prefix}/" if prefix else ""
    return Location(
        bucket, prefix, endpoint, options.get("region", "us-east-1"), style, key, secret
    )
