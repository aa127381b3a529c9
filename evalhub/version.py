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


def main(argv: list[str]) -> None:
    """Print it: `evalhub --version`."""
    sys.stdout.write(f"evalhub {VERSION}\n")


def in_pages(request: object) -> dict[str, str]:
    """Return what the foot of every page shows: a context processor."""
    return {"evalhub_version": VERSION}
