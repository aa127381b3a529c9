"""Many files in one call, which a second call continues after the first was killed.

The journal has a line for each step, which is on the disk before the next one: the key with which a
file is sent, then the run that came of it. A file without a run is sent again with the same key, so
that it is never there twice.
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
from .sources import is_run, read_source, tag_of_file

if TYPE_CHECKING:
    from .collection import Collection

_HIDDEN = "."


@dataclass
class Batch:
    """What became of many files: the runs that are there, and by path the errors of those that were refused (`refused`)
    and of those that were not sent (`unsent`), because the quota was used up or the batch was told
    to stop."""

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
    """Lines of JSON in a file, or nowhere where `path` is None; each is on the disk when `note` returns."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = Path(path) if path else None
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}

        if self._path and self._path.exists():
            whole = self._path.read_bytes()
            for line in whole.split(b"\n"):
                try:
                    entry = json.loads(line)
                except ValueError:
                    # The last line may have been cut short with its writer.
                    continue
                self._known.setdefault(entry["file"], {}).update(entry)

            if whole and not whole.endswith(b"\n"):
                self._append(b"\n")

    def find(self, file: str) -> dict[str, Any]:
        """Return what is known of a file, by its identity."""
        return self._known.get(file, {})

    def note(self, file: str, **entry: Any) -> None:
        """Write down something of a file."""
        with self._lock:
            self._known.setdefault(file, {}).update(entry)
            self._append(json.dumps({"file": file, **entry}).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        if self._path is None:
            return
        with self._path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def files_of(sources: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files of a folder, a pattern or a list of these, in the order of their names; BadSource for none."""
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    found: list[Path] = []
    for one in given:
        path = Path(one)
        if path.is_dir():
            inside = [
                inner
                for inner in path.iterdir()
                if inner.is_file() and not inner.name.startswith(_HIDDEN)
            ]
            found += sorted(inside)
        elif path.is_file():
            found.append(path)
        else:
            matched = sorted(
                Path(name) for name in glob.glob(str(one))
            )  # an absolute pattern works, too
            if not matched:
                raise BadSource(f"{one}: there is no such file")

            found += [path for path in matched if path.is_file()]

    return list(dict.fromkeys(found))


def check_files(files: list[Path]) -> None:
    """Raise BadSource for files that are no runs, and for several that would get one tag."""
    if strange := [str(path) for path in files if not is_run(path)]:
        raise BadSource(
            "nothing was sent, as the first line of these is not that of a run: "
            f"{', '.join(strange)}"
        )

    tags: dict[str, list[str]] = {}
    for path in files:
        tags.setdefault(tag_of_file(path), []).append(str(path))

    if doubled := {tag: paths for tag, paths in tags.items() if len(paths) > 1}:
        listed = "; ".join(f"{tag}: {', '.join(paths)}" for tag, paths in doubled.items())
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
    """Send every file that is not there yet, `parallel` at once; then wait for all of them, at most `timeout` seconds.

    `fields` has what every run gets: `description`, `metadata`, `experiment`.
    """
    check_files(files)
    hub, batch, notes = collection._hub, Batch(), Journal(journal)
    # The first reason to stop, if any: files that wait for their turn look here.
    reasons: list[EvalHubError] = []

    def submit(path: Path) -> Run:
        """Return the run of a file: that of the journal, or a new one with the key of the journal."""
        source = read_source(path)
        content = source.sha256 or [path.stat().st_size, path.stat().st_mtime_ns]
        identity = json.dumps(
            [hub.url, collection.slug, team, fields, str(path.resolve()), content]
        )

        entry = notes.find(identity)
        if "run" in entry:
            run = Run(hub, entry["run"])
            run.there = True
            return run

        key = entry.get("key") or uuid.uuid4().hex
        if "key" not in entry:
            notes.note(identity, key=key)

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
        notes.note(identity, run={name: run.raw[name] for name in names})
        return run

    def attempt(path: Path) -> Exception | None:
        """Put a file into the batch; return an error that is of neither the file nor the server."""
        if reasons:
            batch.unsent[str(path)] = reasons[0]
            return None

        watcher = hub.watcher
        try:
            run = submit(path)
        except EvalHubError as error:
            # Whatever is not about the file itself is about all of them.
            own = isinstance(error, BadFile | BadSource | Conflict)
            (batch.refused if own else batch.unsent)[str(path)] = error
            if stop or not own:
                reasons.append(error)
            state = "refused" if own else "not sent"
        except Exception as error:
            return error
        else:
            batch.runs.append(run)
            state = run.state

        if watcher:
            watcher.ended(path.name, state)

        return None

    with ThreadPoolExecutor(max(1, parallel)) as threads:
        errors = list(threads.map(attempt, files))

    for error in filter(None, errors):
        raise error

    batch.runs.sort(key=lambda run: str(run.tag))
    if timeout:
        wait_for(hub, batch.runs, timeout)

    return batch
