"""Making, damaging and restoring backups in tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management import call_command

from evalhub.operating.backup import saved_models
from runs.services.storage.install_marker import remember

BOARD = "/api/v1/collections/small/leaderboard/"
RUNS = "collections/small/runs/"


def start_anew(settings: Any, folder: Path) -> None:
    """An empty database and an empty data folder."""
    call_command("flush", interactive=False, verbosity=0)
    settings.EVALHUB_DATA = folder
    folder.mkdir()
    remember(unmarked=True)


def counts() -> dict[str, int]:
    return {model._meta.label_lower: model._base_manager.count() for model in saved_models()}


def restore(path: Path, *options: str) -> str:
    out = io.StringIO()
    call_command("restore", str(path), *options, stdout=out)
    return out.getvalue()


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Every member of a tar file through a function; None leaves it out."""
    with tarfile.open(path) as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            changed = change(name, content)
            if changed is not None:
                member = tarfile.TarInfo(name)
                member.size = len(changed)
                tar.addfile(member, io.BytesIO(changed))


def attempt(command: str, *arguments: str) -> tuple[int, str]:
    """The exit status of a command, and what it printed."""
    out = io.StringIO()
    try:
        call_command(command, *arguments, stdout=out, stderr=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()
