"""Check and read the known documents that come with a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from metrics.engine.errors import EvalHubError
from metrics.engine.judgement.known import KnownDocuments
from runs.formats.known_documents import KnownSummary, known_limits, read_known
from runs.services.storage.files import HASH_SEED, FileSource, read_stored, upload_limits

_FIELD = "/known"


@dataclass(frozen=True)
class CheckedKnown:
    """A file of known documents that can be accepted."""

    summary: KnownSummary
    sha256: str
    size: int


def check_known(*, upload: Path) -> CheckedKnown:
    """Read the file to its end. Raise InvalidFile with every problem, pointing to its field."""
    limits = known_limits(upload_limits())
    source = FileSource(upload, limits)
    try:
        summary = read_known(source.open, limits=limits, seed=HASH_SEED)
        summary.report.check()
    except EvalHubError as error:
        error.pointer, error.message = _FIELD, f"known documents: {error.message}"
        raise
    finally:
        source.close()

    return CheckedKnown(summary, source.sha256, source.size)


def load_known(sha256: str) -> KnownDocuments:
    """Return the known documents of a stored file."""
    return read_stored(sha256, lambda opener: read_known(opener, seed=HASH_SEED)).known
