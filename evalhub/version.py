"""The version of this EvalHub as it was installed: the git tag, which pyproject.toml reads when a package is made."""

from __future__ import annotations

import sys
from importlib import metadata


def _installed() -> str:
    try:
        return metadata.version("evalhub")
    except metadata.PackageNotFoundError:
        return "0+unknown"  # a copy of the files that nobody installed


VERSION = _installed()
# The oldest evalhub-client that the API still serves: every answer of the API has it as
# LEAST_CLIENT_HEADER.
LEAST_CLIENT = "0.1"
LEAST_CLIENT_HEADER = "X-Evalhub-Least-Client"


def main(argv: list[str]) -> None:
    """Print it: `evalhub --version`."""
    sys.stdout.write(f"evalhub {VERSION}\n")


def in_pages(request: object) -> dict[str, str]:
    """Return what the foot of every page shows: a context processor."""
    return {"evalhub_version": VERSION}
