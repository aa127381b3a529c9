"""Single bits flipped, one after another, in every stored kind: columns, files, and pages of the database's file."""

from __future__ import annotations

import random
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.damage.judging import ORDER, TRACEBACK, WRONG, judge
from tests.damage.world import CAMPAIGN, EVERYTHING, World

RUNS = (
    "board",
    "board of others",
    "values",
    "other values",
    "curve",
    "recall",
    "difference",
    "what-if",
)
SESSIONS = ("session board", "session values", "session curves")


@dataclass(frozen=True)
class Stored:
    """A kind of what is stored: a column of a table or a file; which answers depend on it; its share of the flips."""

    name: str
    asks: tuple[str, ...]
    share: int = 1
    table: str = ""
    column: str = ""
    key: str = "id"
    file: str = ""


def _column(
    table: str, column: str, asks: tuple[str, ...], share: int = 1, key: str = "id"
) -> Stored:
    return Stored(f"{table}.{column}", asks, share, table, column, key)


KINDS = (
    _column("metrics_metricvector", "content", RUNS, 4),
    _column("metrics_metricvector", "mean", RUNS, 4),
    _column("metrics_metricvector", "topics", RUNS),
    _column("metrics_metricvector", "digest", RUNS),
    _column("metrics_metricvector", "mean_digest", RUNS),
    _column("metrics_metricvector", "measure", RUNS),
    _column("metrics_judgedview", "content", RUNS, 5, "evaluation_id"),
    _column("metrics_judgedview", "digest", RUNS, 1, "evaluation_id"),
    _column("metrics_storedcurves", "means", ("curve",), 2),
    _column("metrics_storedcurves", "content", ("curve",), 2),
    _column("metrics_storedcurves", "measure", ("curve",)),
    _column("metrics_storedcurves", "depth", ("curve",)),
    _column("metrics_storedcurves", "digest", ("curve",)),
    _column("metrics_evaluation", "judged_depth", ("phase board",)),
    _column("metrics_evaluation", "depth_digest", ("phase board",)),
    _column("metrics_sessionview", "content", SESSIONS, 3, "evaluation_id"),
    _column("metrics_sessionview", "sessions", SESSIONS, 2, "evaluation_id"),
    _column("metrics_sessionview", "digest", SESSIONS, 1, "evaluation_id"),
    _column("metrics_storedsessioncurves", "content", ("session curves",), 2, "evaluation_id"),
    _column("metrics_storedsessioncurves", "digest", ("session curves",), 1, "evaluation_id"),
    _column("metrics_sessionevaluation", "means", SESSIONS, 2),
    _column("metrics_sessionevaluation", "means_digest", SESSIONS),
    _column("metrics_comparison", "content", ("comparison",), 2),
    _column("metrics_comparison", "content_digest", ("comparison",)),
    _column("metrics_comparison", "query", ("comparison",)),
    _column("runs_qrels", "topic_ids", (*RUNS, "judgements"), 2),
    _column("runs_qrels", "topic_ids_digest", (*RUNS, "judgements")),
    _column("runs_packet", "content", CAMPAIGN),
    _column("runs_snapshot", "manifest", CAMPAIGN),
    _column("runs_snapshot", "archive", CAMPAIGN),
    Stored("the file of a run", ("run file", "ranking"), 3, "runs_run", file="a"),
    Stored("the file of judgements", ("judgements file", "ranking"), 2, "runs_qrels", file="judgements"),
    Stored("the file of known documents", ("known file",), 1, "runs_run", file="known"),
    Stored("the file of a session log", ("log file",), 2, "runs_sessionset", file="set"),
    Stored("the file of a pool", ("pool statistics", "pool file"), 2, "pools_pool", file="pool"),
    Stored("a page of the database", EVERYTHING, 6),
)  # fmt: skip


@dataclass
class Row:
    """What became of the flips of one kind: of each, the worst of its answers."""

    name: str
    flips: int = 0
    became: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def flipped(value: Any, rng: random.Random) -> tuple[Any, str]:
    """The value with another bit somewhere, and how SQL is given it."""
    if isinstance(value, float):
        whole = struct.unpack("<Q", struct.pack("<d", value))[0] ^ 1 << rng.randrange(64)
        return struct.unpack("<d", struct.pack("<Q", whole))[0], "%s"
    if isinstance(value, int):
        return value ^ 1 << rng.randrange(31), "%s"
    content = bytearray(value.encode() if isinstance(value, str) else value)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content), "CAST(%s AS TEXT)" if isinstance(value, str) else "%s"


def flip_all(world: World, flips: int, rng: random.Random) -> list[Row]:
    """Flip so many bits in all, each in a sound installation, and judge every answer that depends on it; print a row
    for each kind."""
    sys.stdout.write(f"\n{'a bit of':46} {'flips':>5}  what was shown\n")
    shares = sum(kind.share for kind in KINDS)
    rows = []
    for kind in KINDS:
        row = Row(kind.name)
        for _ in range(max(1, -(-flips * kind.share // shares))):
            where = flip_one(world, kind, rng)
            row.flips += 1
            judged = {name: judge(world.ask(name), world.sound[name]) for name in kind.asks}
            worst = max(judged.values(), key=ORDER.index)
            row.became[worst] += 1
            row.wrong += [
                f"{where}: {name} is {verdict}"
                for name, verdict in judged.items()
                if verdict in (WRONG, TRACEBACK)
            ]
            world.put_back()
            if kind.file:
                world.put_files_back()
        became = ", ".join(f"{count} {verdict}" for verdict, count in row.became.most_common())
        sys.stdout.write(f"{row.name:46} {row.flips:5}  {became}\n")
        sys.stdout.flush()
        rows.append(row)
    return rows


def flip_one(world: World, kind: Stored, rng: random.Random) -> str:
    """Flip one bit of a kind; returns where it is."""
    if kind.file:
        return _flip_in_file(_file_of(world, kind), rng)
    if not kind.column:
        world.close()
        return _flip_in_file(world.database, rng)
    with world.damaged() as database:
        # What is no text any more is read as well.
        database.text_factory = bytes
        types = "typeof({0}) = 'text', {0}".format(f'"{kind.column}"')
        rows = database.execute(
            f'SELECT "{kind.key}", {types} FROM "{kind.table}" WHERE "{kind.column}" IS NOT NULL'
        ).fetchall()
        pk, text, value = rng.choice(sorted(rows))
        other, damaged = flipped(value.decode() if text else value, rng)
        set_to = damaged.replace("%s", "?")
        pk = pk.decode() if isinstance(pk, bytes) else pk
        database.execute(
            f'UPDATE "{kind.table}" SET "{kind.column}" = {set_to} WHERE "{kind.key}" = ?',
            [other, pk],
        )
    return f"{kind.name} of {pk!r}"


def _file_of(world: World, kind: Stored) -> Path:
    names = world.names
    if kind.file == "judgements":
        return world.stored_file("runs_qrels", "1")
    if kind.file == "known":
        return world.stored_file("runs_run", names["a"].replace("-", ""), "known_sha256")
    return world.stored_file(kind.table, names[kind.file].replace("-", ""))


def _flip_in_file(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place} of {path.name}"
