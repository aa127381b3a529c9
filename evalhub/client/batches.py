"""Submit many files in one call, which a second call continues after the first was killed.

The journal has a line for each step, which is on the disk before the next one: the key with which a
file is sent, then its run. A file without a run is sent again with the same key, so that it is never
submitted twice.
"""

from __future__ import annotations

import glob
import json
import os
import threading
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadFile, BadSource, Conflict, EvalHubError
from .runs import Run, wait_for
from .sources import is_run, read_source, tag_of_file, tag_of_name

if TYPE_CHECKING:
    from .collection import Collection

_HIDDEN = "."


@dataclass
class Batch:
    """The outcome of submitting many files: `runs`, and errors by path.

    `refused` has the files that were refused, `unsent` those that were not sent, because the quota
    was used up or an earlier file stopped the batch.
    """

    runs: list[Run] = field(default_factory=list)
    refused: dict[str, EvalHubError] = field(default_factory=dict)
    unsent: dict[str, EvalHubError] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        rows = [
            {"tag": run.tag, "state": run.state, "id": run.raw["id"], "error": ""}
            for run in self.runs
        ]
        for state, errors in (("refused", self.refused), ("unsent", self.unsent)):
            rows += [
                {"tag": path, "state": state, "id": "", "error": str(error)}
                for path, error in errors.items()
            ]

        return rows


class Journal:
    """Lines of JSON in a file, if there is a `path`; each is on the disk when `note` returns."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = Path(path) if path else None
        self._lock = threading.Lock()
        self._entries: dict[str, dict[str, Any]] = {}

        if self._path and self._path.exists():
            content = self._path.read_bytes()
            for line in content.split(b"\n"):
                try:
                    entry = json.loads(line)
                except ValueError:
                    # The last line may be incomplete if its writer was killed.
                    continue
                self._entries.setdefault(entry["file"], {}).update(entry)

            if content and not content.endswith(b"\n"):
                self._append(b"\n")

    def find(self, file: str) -> dict[str, Any]:
        """Return the entries of a file together, by its identity."""
        return self._entries.get(file, {})

    def note(self, file: str, **entry: Any) -> None:
        """Add an entry about a file."""
        with self._lock:
            self._entries.setdefault(file, {}).update(entry)
            self._append(json.dumps({"file": file, **entry}).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        if self._path is None:
            return
        with self._path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def files_of(sources: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files of a folder, a pattern or a list of these, each folder sorted by name.

    Raise BadSource for a name that matches no file.
    """
    files: list[Path] = []
    for source in [sources] if isinstance(sources, str | Path) else sources:
        path = Path(source)
        if path.is_dir():
            inside = [file for file in path.iterdir() if file.is_file()]
            files += sorted(file for file in inside if not file.name.startswith(_HIDDEN))
        elif path.is_file():
            files.append(path)
        else:
            # Unlike Path.glob, this matches absolute patterns, too.
            matches = sorted(Path(name) for name in glob.glob(str(source)))
            if not matches:
                raise BadSource(f"{source}: there is no such file")
            files += [file for file in matches if file.is_file()]

    return list(dict.fromkeys(files))


def check_files(files: list[Path], *, by_name: bool = False) -> None:
    """Raise BadSource for files that are not runs, and for several that would get one tag.

    Replicates are called after the names of their files (`by_name`).
    """
    if not_runs := [str(path) for path in files if not is_run(path)]:
        raise BadSource(
            "nothing was sent, as the first line of these is not that of a run: "
            f"{', '.join(not_runs)}"
        )

    tags: dict[str, list[str]] = {}
    for path in files:
        tag = tag_of_name(path.name) if by_name else tag_of_file(path)
        tags.setdefault(tag, []).append(str(path))

    if duplicates := {tag: paths for tag, paths in tags.items() if len(paths) > 1}:
        listed = "; ".join(f"{tag}: {', '.join(paths)}" for tag, paths in duplicates.items())
        raise BadSource(f"nothing was sent, as several files would get one tag: {listed}")


def submit_batch(
    collection: Collection,
    files: list[Path],
    *,
    team: str | None,
    fields: dict[str, Any],
    if_taken: str,
    wait_for_quota: bool,
    parallel: int,
    journal: str | Path | None,
    timeout: float,
    stop: bool,
) -> Batch:
    """Send every file that is not in the journal, `parallel` at once; then wait for all runs.

    Wait at most `timeout` seconds, if it is not 0. `fields` has what every run gets: `description`,
    `metadata`, `experiment`, `replicate`.
    """
    check_files(files, by_name=bool(fields.get("replicate")))
    hub, batch, log = collection._hub, Batch(), Journal(journal)
    # Reasons to stop, which files that wait for their turn check.
    reasons: list[EvalHubError] = []

    def submit(path: Path) -> Run:
        """Return the run of a file: that of the journal, or a new one with the key of the journal."""
        source = read_source(path)
        # The digest of a zstd file is unknown: its size and its time of change identify it.
        content = source.sha256 or [path.stat().st_size, path.stat().st_mtime_ns]
        parts = [hub.url, collection.slug, team, fields, str(path.resolve()), content]
        identity = json.dumps(parts)

        entry = log.find(identity)
        if "run" in entry:
            run = Run(hub, entry["run"])
            run.existed = True
            return run

        key = entry.get("key") or uuid.uuid4().hex
        if "key" not in entry:
            log.note(identity, key=key)

        run = collection.submit(
            source,
            team=team,
            key=key,
            if_taken=if_taken,
            wait_for_quota=wait_for_quota,
            dry_run=False,
            **fields,
        )

        names = ("id", "collection", "team", "tag", "status")
        log.note(identity, run={name: run.raw[name] for name in names})
        return run

    def attempt(path: Path) -> Exception | None:
        """Submit a file into the batch; return an error that neither file nor server explains."""
        if reasons:
            batch.unsent[str(path)] = reasons[0]
            return None

        watcher = hub.watcher
        try:
            run = submit(path)
        except EvalHubError as error:
            # Any error that is not about this file concerns all of them.
            of_file = isinstance(error, BadFile | BadSource | Conflict)
            errors_by_path = batch.refused if of_file else batch.unsent
            errors_by_path[str(path)] = error
            state = "refused" if of_file else "not sent"

            if stop or not of_file:
                reasons.append(error)
        except Exception as error:
            return error
        else:
            batch.runs.append(run)
            state = run.state

        if watcher:
            watcher.finish(path.name, state)

        return None

    with ThreadPoolExecutor(max(1, parallel)) as threads:
        errors = list(threads.map(attempt, files))

    # An unexpected error is raised only after every file had its turn.
    if unexpected := [error for error in errors if error is not None]:
        raise unexpected[0]

    batch.runs.sort(key=lambda run: str(run.tag))
    if timeout:
        wait_for(hub, batch.runs, timeout)

    return batch
