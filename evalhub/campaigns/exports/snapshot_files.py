"""A snapshot as files: its manifest, tables and citations, and all of them in one archive.

The manifest names every table with its SHA-256, and the SHA-256 of the manifest is the snapshot's.
The files of its citations, which name its address, number or day, are not in the manifest.
SHA256SUMS has the digests of all files of the archive.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

import zstandard

from evalhub.campaigns.exports.citations import Cited, citation_cff, datacite, ro_crate, zenodo
from evalhub.campaigns.exports.every_eval_ever import every_eval_ever
from evalhub.campaigns.exports.packet import UPPER_MEDIAN, describe_set
from evalhub.campaigns.services.manifest import INCLUDED, FrozenPhase
from metrics.exports.formats import FORMATS
from metrics.exports.table import Table
from metrics.services.boards.mean_intervals import MEAN_INTERVAL_METHOD
from runs.formats.canonical_json import canonical
from runs.services.storage.files import StoredFile

_LEVEL = 10


def files_of(frozen: FrozenPhase) -> dict[str, bytes]:
    """Return the files of a phase by name, each in a folder named after the phase.

    They are its tables, its judgements, and if everybody may have them its runs. Everybody who
    sees the results may read the judgements.
    """
    tables = (_board(frozen), _topics(frozen), _values(frozen))
    files = {f"{table.name}.tsv": FORMATS["tsv"].content(table) for table in tables}
    # As they were sent: their digests are those of the entries and of the judgements.
    files["qrels.txt"] = _read_stored(frozen.read.qrels.sha256)
    if frozen.run_files == INCLUDED:
        for entry in frozen.read.entries:
            files[f"runs/{entry.number}-{entry.run.tag}.txt"] = _read_stored(entry.run.sha256)

    return {f"{frozen.phase.slug}/{name}": content for name, content in files.items()}


def _read_stored(sha256: str) -> bytes:
    with closing(StoredFile(sha256)) as file:
        return file.read()


def sealed(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """Return the manifest with its files in its canonical form."""
    listing = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in files.items()
    }
    return canonical({**manifest, "files": listing})


def archive_of(manifest: bytes, files: Mapping[str, bytes], cited: Cited) -> bytes:
    """Return a tar file, compressed by Zstandard, that depends only on the snapshot.

    Files are in the order of their names, with the time of the snapshot and without a user.
    """
    contents = {"manifest.json": manifest, **files}
    contents |= {
        "CITATION.cff": citation_cff(cited).encode(),
        "datacite.json": datacite(cited).encode(),
        "zenodo.json": zenodo(cited).encode(),
        "every_eval_ever.json": every_eval_ever(json.loads(manifest), cited).encode(),
        "ro-crate-metadata.json": ro_crate(cited, contents).encode(),
    }
    digests = "".join(
        f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents)
    )

    return zstandard.ZstdCompressor(level=_LEVEL).compress(
        _tar({**contents, "SHA256SUMS": digests.encode()}, cited.at)
    )


def _tar(files: Mapping[str, bytes], at: datetime) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(files[name]), int(at.timestamp()), 0o644
            tar.addfile(info, io.BytesIO(files[name]))

    return buffer.getvalue()


def _board(frozen: FrozenPhase) -> Table:
    names = [measure.name for measure in frozen.read.measures]
    columns = [
        *("rank", "tier", "in_best_set", "number", "team", "tag", "role", "run_type", "late"),
        *("judged@10", "judged_depth"),
        *(f"{name}{end}" for name in names for end in ("", " low", " high", " topics")),
    ]
    by_row = {described.row: described for described in frozen.described}
    official_rows = [row for row, _ in frozen.places]
    ranks = dict(frozen.places)
    rows = []

    # Late runs are below the official ones.
    for row in [*official_rows, *(row for row in by_row if row not in ranks)]:
        described, entry = by_row[row], frozen.read.entries[row]
        team = entry.participation.name if entry.participation else ""
        tier, best = frozen.tiers.get(row, (None, None))
        cells: list[Any] = [ranks.get(row), tier, best, entry.number, team, entry.run.tag, entry.role,
                            entry.run_type, entry.late, described.judged, described.depth]  # fmt: skip

        for name in names:
            mean, topics = described.means[name]
            cells += [mean, *described.intervals.get(name, (None, None)), topics]

        rows.append(cells)

    comments = [f"low and high: 95% interval of the mean, {MEAN_INTERVAL_METHOD}"]

    return Table.of_values("board", columns, rows, comments)


def _topics(frozen: FrozenPhase) -> Table:
    rows = []
    for reference_set in frozen.sets:
        for measure in frozen.read.by_topic:
            figures = reference_set.by_topic[measure.name]
            figure_columns = (
                figures.n,
                figures.low,
                figures.q1,
                figures.median,
                figures.median_upper,
                figures.q3,
                figures.high,
            )
            for topic, *cells in zip(
                frozen.read.qrels.topic_ids,
                *(column.tolist() for column in figure_columns),
                strict=True,
            ):
                rows.append([reference_set.run_type, topic, measure.name, *cells])

    columns_named = [
        "run_type",
        "topic",
        "measure",
        "n",
        "min",
        "q1",
        "median",
        "median_upper",
        "q3",
        "max",
    ]
    notes = [*(describe_set(reference_set) for reference_set in frozen.sets), UPPER_MEDIAN]

    return Table.of_values("topics", columns_named, rows, notes)


def _values(frozen: FrozenPhase) -> Table:
    rows = (
        [entry.number, entry.run.tag, measure.name, topic, value]
        for row, entry in enumerate(frozen.read.entries)
        for measure in frozen.read.by_topic
        for topic, value in zip(
            frozen.read.qrels.topic_ids, frozen.read.values[measure.name][row].tolist(), strict=True
        )
    )
    return Table.of_values("values", ["entry", "tag", "measure", "topic", "value"], rows)
