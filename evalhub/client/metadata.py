"""What a program knows of itself, for the metadata of its runs: `metadata="auto"`."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, Literal, Union

from .version import VERSION

# `X | Y` of types at run time is not for Python 3.10.
Metadata = Union[dict[str, Any], Literal["auto"], None]  # noqa: UP007

# Programs whose version explains a ranking.
_PACKAGES = (
    "beir", "bm25s", "faiss-cpu", "faiss-gpu", "ir-datasets", "mteb", "numpy", "pylate", "pyserini", "python-terrier",
    "rank-bm25", "ranx", "sentence-transformers", "splade", "torch", "transformers", "vllm",
)  # fmt: skip
_SECRET = re.compile(r"token|secret|passw|api[-_]?key|credential|auth", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?:evh|hf|ghp|gho|github_pat|glpat|xox[abp]|sk|AKIA)[-_]?[A-Za-z0-9_-]{8,}")
_LOGIN = re.compile(r"(?<=//)[^/@\s]+@")
_HIDDEN = "..."
_LONGEST = 1000


def metadata_of(given: Metadata) -> dict[str, Any] | None:
    """Return metadata as it is sent."""
    if given == "auto":
        return gather_metadata()
    if given is not None and not isinstance(given, dict):
        raise ValueError(f"metadata is a dictionary or 'auto', not {given!r}")
    return given


def gather_metadata(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the git commit and whether it was changed, the versions of Python and of known packages, and the command
    line without what looks like a secret."""
    found: dict[str, Any] = {"python": platform.python_version(), "evalhub_client": VERSION}
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue

    if packages:
        found["packages"] = packages

    commit = _git("rev-parse", "HEAD")
    if commit:
        found |= {
            "git_commit": commit,
            "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        }

    return {**found, "command": command_line(sys.argv if arguments is None else arguments)}


def command_line(arguments: Sequence[str]) -> str:
    """Return a command line in which the values of tokens, passwords and logins are `...`."""
    shown, hide = [], False
    for argument in arguments:
        name, sign, _ = argument.partition("=")
        secret = bool(_SECRET.search(name))
        if hide and not argument.startswith("-"):
            shown.append(_HIDDEN)
        elif secret and sign:
            shown.append(f"{name}={_HIDDEN}")
        else:
            shown.append(_LOGIN.sub(f"{_HIDDEN}@", _TOKEN.sub(_HIDDEN, argument)))

        hide = secret and not sign and argument.startswith("-")

    return " ".join(shown)[:_LONGEST]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""

    return done.stdout.strip()
