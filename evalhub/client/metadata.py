"""Gather the metadata of runs from the program that makes them: `metadata="auto"`."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Union

from .version import VERSION

# Python 3.10 cannot evaluate `X | Y` of these types at run time.
Metadata = Union[dict[str, Any], Literal["auto"], None]  # noqa: UP007

# Packages that can change a ranking by their version.
_PACKAGES = (
    "beir", "bm25s", "faiss-cpu", "faiss-gpu", "ir-datasets", "mteb", "numpy", "pylate", "pyserini", "python-terrier",
    "rank-bm25", "ranx", "sentence-transformers", "splade", "torch", "transformers", "vllm",
)  # fmt: skip
_SECRET = re.compile(r"token|secret|passw|api[-_]?key|credential|auth", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?:evh|hf|ghp|gho|github_pat|glpat|xox[abp]|sk|AKIA)[-_]?[A-Za-z0-9_-]{8,}")
_LOGIN = re.compile(r"(?<=//)[^/@\s]+@")
_HIDDEN = "..."
_MAX_COMMAND = 1000


def metadata_of(metadata: Metadata) -> dict[str, Any] | None:
    """Return metadata as it is sent."""
    if metadata == "auto":
        return gather_metadata()
    if metadata is not None and not isinstance(metadata, dict):
        raise ValueError(f"metadata is a dictionary or 'auto', not {metadata!r}")
    return metadata


def gather_metadata(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the git commit, versions, and the command line without what looks like a secret.

    `git_dirty` says whether tracked files were changed; versions are those of Python and of
    retrieval packages.
    """
    fields: dict[str, Any] = {"python": platform.python_version(), "evalhub_client": VERSION}
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue

    if packages:
        fields["packages"] = packages

    commit = _git("rev-parse", "HEAD")
    if commit:
        fields["git_commit"] = commit
        fields["git_dirty"] = bool(_git("status", "--porcelain", "--untracked-files=no"))

    fields["command"] = command_line(sys.argv if arguments is None else arguments)
    return fields


def command_line(arguments: Sequence[str]) -> str:
    """Return a command line in which the values of tokens, passwords and logins are `...`."""
    words, hide = [], False
    for argument in arguments:
        # A value follows its option in the next argument, or after a "=" in the same one.
        name, sign, _ = argument.partition("=")
        secret = bool(_SECRET.search(name))
        if hide and not argument.startswith("-"):
            words.append(_HIDDEN)
        elif secret and sign:
            words.append(f"{name}={_HIDDEN}")
        else:
            words.append(_LOGIN.sub(f"{_HIDDEN}@", _TOKEN.sub(_HIDDEN, argument)))

        hide = secret and not sign and argument.startswith("-")

    return " ".join(words)[:_MAX_COMMAND]


def _git(*arguments: str) -> str:
    try:
        process = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""

    return process.stdout.strip()
