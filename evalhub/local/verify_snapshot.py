"""`evalhub verify-snapshot FILE`: check the archive of a snapshot, without server or database."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from runs.formats.canonical_json import is_canonical

_FAILED, _WRONG_USE = 1, 2
# No archive of a snapshot is larger.
_MAX_BYTES = 4 * 1024**3
# Files that the manifest does not name: citations, and the digests of all files.
_EXTRA_FILES = {
    "manifest.json", "CITATION.cff", "datacite.json", "zenodo.json", "ro-crate-metadata.json",
    "every_eval_ever.json", "SHA256SUMS",
}  # fmt: skip


def main(argv: list[str]) -> None:
    """Run the command, and raise SystemExit: 0 for a sound archive, 1 for others, 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="evalhub verify-snapshot",
        description="Check every file of a snapshot's archive against its digests.",
    )
    parser.add_argument("file", type=Path, help="the archive, as it was downloaded: .tar.zst")
    parser.add_argument(
        "--sha256", help="that of the manifest, as the paper cites it; the first digits are enough"
    )

    options = parser.parse_args(argv[2:])
    try:
        content = options.file.read_bytes()
    except OSError as error:
        sys.stderr.write(f"evalhub verify-snapshot: cannot read {options.file}: {error.strerror}\n")
        raise SystemExit(_WRONG_USE) from error

    try:
        files = read_archive(content)
    except ValueError as error:
        sys.stderr.write(f"evalhub verify-snapshot: {options.file}: {error}\n")
        raise SystemExit(_FAILED) from error

    digits = (options.sha256 or "").lower().removeprefix("sha256:")
    faults = list(problems(files, digits))
    for problem in faults:
        sys.stderr.write(f"{problem}\n")

    if faults:
        raise SystemExit(_FAILED)

    sys.stdout.write(_summary(files))
    raise SystemExit(0)


def read_archive(content: bytes) -> dict[str, bytes]:
    """Return the files of an archive by name. Raise ValueError if it is not an archive."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as stream:
            tar_content = stream.read(_MAX_BYTES + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"not a file of Zstandard, or damaged: {error}") from error

    if len(tar_content) > _MAX_BYTES:
        raise ValueError("more than 4 GB: not an archive of a snapshot")

    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(tar_content), mode="r:") as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is None or member.name in files:
                    raise ValueError(f"{member.name!r} is not a file, or there twice")
                files[member.name] = file.read()
    except tarfile.TarError as error:
        raise ValueError(f"not a tar file, or damaged: {error}") from error

    return files


def problems(files: dict[str, bytes], cited: str = "") -> Iterator[str]:
    """Yield the faults of an archive; the SHA-256 of its manifest must begin with `cited`."""
    text = files.get("manifest.json")
    if text is None:
        yield "manifest.json is missing"
        return

    sha256 = hashlib.sha256(text).hexdigest()
    if not sha256.startswith(cited):
        yield f"manifest.json has the SHA-256 {sha256}, which does not begin with {cited}"

    if not is_canonical(text):
        yield "manifest.json is not in canonical form (RFC 8785)"

    digests = _digests_in(text)
    if digests is None:
        yield "manifest.json does not name its files"
        return

    for name in sorted(digests.keys() - files.keys()):
        yield f"{name} is missing"

    for name in sorted(files.keys() - digests.keys() - _EXTRA_FILES):
        yield f"{name} is not named by the manifest"

    for name in sorted(digests.keys() & files.keys()):
        if hashlib.sha256(files[name]).hexdigest() != digests[name]:
            yield f"{name} is not the file that the manifest names"

    lines = files.get("SHA256SUMS", b"").decode(errors="replace").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in sorted(files.keys() - {"SHA256SUMS"}):
        if sums.get(name) != hashlib.sha256(files[name]).hexdigest():
            yield f"{name} is not the file of SHA256SUMS"

    for name in sorted(sums.keys() - files.keys()):
        yield f"{name} of SHA256SUMS is missing"


def _digests_in(manifest: bytes) -> dict[str, str] | None:
    """Return the SHA-256 of each file that a manifest names, or None for a malformed one."""
    try:
        files = json.loads(manifest)["files"]
        return {str(name): str(fields["sha256"]) for name, fields in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _summary(files: dict[str, bytes]) -> str:
    manifest: dict[str, Any] = json.loads(files["manifest.json"])
    entries = sum(len(phase["entries"]) for phase in manifest["phases"])
    counts = f"{entries} entries, {len(files)} files"
    return (
        f"sound: {manifest['campaign']['name']}, {manifest['label']}: {counts}\n"
        f"sha256:{hashlib.sha256(files['manifest.json']).hexdigest()}\n"
    )
