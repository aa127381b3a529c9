"""The version of this EvalHub, from the git tag that its package was built from."""

from __future__ import annotations

import sys
from importlib import metadata


def _installed() -> str:
    try:
        return metadata.version("evalhub")
    except metadata.PackageNotFoundError:
        # A copy of the files that nobody installed.
        return "0+unknown"


VERSION = _installed()
# The oldest evalhub-client that the API still serves: every answer of the API has it as
# LEAST_CLIENT_HEADER.
LEAST_CLIENT = "0.1"
LEAST_CLIENT_HEADER = "X-Evalhub-Least-Client"
# The evalhub-client that this server offers at /client/, in every answer of the API.
OFFERED_CLIENT_HEADER = "X-Evalhub-Offered-Client"


def main(argv: list[str]) -> None:
    """Print the version, for `evalhub --version`."""
    sys.stdout.write(f"evalhub {VERSION}\n")


def in_pages(request: object) -> dict[str, str]:
    """Return the version for the foot of every page, as a context processor."""
    return {"evalhub_version": VERSION}
