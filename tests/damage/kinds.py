"""Every kind of damage: what is done to a stopped installation, and what is promised of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.damage.world import World

Damage = Callable[[World], None]


@dataclass(frozen=True)
class Kind:
    """A damage by its name. `repaired`: fsck --repair and a worker make everything as it was. `decides`: the rows are
    what decides, as those of campaigns do, and have no digest; nobody but fsck, which has the audit
    trail, can tell."""

    name: str
    do: Damage
    repaired: bool = True
    decides: bool = False


def sql(*statements: str) -> Damage:
    """Statements on the database's file, with the names of the world in braces."""

    def damage(world: World) -> None:
        names = {name: f"'{text.replace('-', '')}'" for name, text in world.names.items()}
        with world.damaged() as database:
            for statement in statements:
                database.execute(statement.format(**names))

    return damage


def exchange(table: str, key: str, columns: str, first: str, second: str) -> Damage:
    """Two rows with each other's columns."""

    def damage(world: World) -> None:
        names = {name: f"'{text.replace('-', '')}'" for name, text in world.names.items()}
        with world.damaged() as database:
            rows = []
            for where in (first, second):
                listed = database.execute(
                    f"SELECT {key}, {columns} FROM {table} WHERE {where.format(**names)} ORDER BY 1"
                ).fetchall()
                assert listed, where
                rows.append(listed)
            for mine, other in zip(*rows, strict=True):
                for row, values in ((mine, other), (other, mine)):
                    free = ", ".join(f"{name} = ?" for name in columns.split(", "))
                    database.execute(
                        f"UPDATE {table} SET {free} WHERE {key} = ?", [*values[1:], row[0]]
                    )

    return damage


def file_of(which: str) -> Callable[[World], Path]:
    """A stored file by what it is of."""

    def find(world: World) -> Path:
        key = {name: text.replace("-", "") for name, text in world.names.items()}
        if which == "judgements":
            return world.stored_file("runs_qrels", "1")
        if which == "known":
            return world.stored_file("runs_run", key["a"], "known_sha256")
        return world.stored_file("runs_sessionset" if which == "set" else "runs_run", key[which])

    return find


def to_file(which: str, do: Callable[[Path], object]) -> Damage:
    return lambda world: (do(file_of(which)(world)), None)[1]


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _exchange_files(world: World) -> None:
    a, b = file_of("a")(world), file_of("b")(world)
    spare = a.with_name("spare")
    a.rename(spare)
    b.rename(a)
    spare.rename(b)


def _to_database(do: Callable[[Path], object]) -> Damage:
    def damage(world: World) -> None:
        world.close()
        do(world.database)

    return damage


def _zero_page_of(table: str) -> Damage:
    """The first page of a table or an index, full of zeros."""

    def damage(world: World) -> None:
        with world.damaged() as database:
            ((root,),) = database.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = ?", [table]
            )
            ((size,),) = database.execute("PRAGMA page_size")
        with world.database.open("r+b") as file:
            file.seek((root - 1) * size)
            file.write(bytes(size))

    return damage


def _zero_head(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def _exchange_evaluations(world: World) -> None:
    """By way of a third name, as no two evaluations may be of one run."""
    a, b = (world.names[name].replace("-", "") for name in ("a", "b"))
    with world.damaged() as database:
        for new, old in (("0" * 32, a), (a, b), (b, "0" * 32)):
            database.execute(
                "UPDATE metrics_evaluation SET run_id = ? WHERE run_id = ?", [new, old]
            )


_A = "evaluation_id = (SELECT id FROM metrics_evaluation WHERE run_id = {a})"
_B = "evaluation_id = (SELECT id FROM metrics_evaluation WHERE run_id = {b})"
_VECTOR = "content, digest, mean, topics, mean_digest"
_SET, _OTHER = (
    f"evaluation_id = (SELECT id FROM metrics_sessionevaluation WHERE session_set_id = {{{name}}})"
    for name in ("set", "other set")
)
_OF_SET, _OF_OTHER = "session_set_id = {set}", "session_set_id = {other set}"

KINDS = (
    Kind(
        "a vector is longer",
        sql("UPDATE metrics_metricvector SET content = CAST(content || zeroblob(8) AS BLOB)"),
    ),
    Kind(
        "vectors and views are texts",
        sql(
            *(
                f"UPDATE metrics_{table} SET content = CAST(content AS TEXT)"
                for table in ("metricvector", "judgedview", "sessionview", "comparison")
            )
        ),
    ),
    Kind(
        "a vector is gone", sql(f"DELETE FROM metrics_metricvector WHERE {_A} AND measure = 'AP'")
    ),
    Kind(
        "all vectors are zeros",
        sql("UPDATE metrics_metricvector SET content = zeroblob(length(content))"),
    ),
    Kind("all means are 0.5", sql("UPDATE metrics_metricvector SET mean = 0.5")),
    Kind("a mean is null", sql(f"UPDATE metrics_metricvector SET mean = NULL WHERE {_A}")),
    Kind(
        "vectors of two runs exchanged",
        exchange(
            "metrics_metricvector",
            "id",
            _VECTOR,
            f"{_A} AND measure = 'AP'",
            f"{_B} AND measure = 'AP'",
        ),
    ),
    Kind(
        "vectors of two measures exchanged",
        exchange(
            "metrics_metricvector",
            "id",
            _VECTOR,
            f"{_A} AND measure = 'AP'",
            f"{_A} AND measure = 'nDCG@10'",
        ),
    ),
    Kind("the curves of a run are gone", sql(f"DELETE FROM metrics_storedcurves WHERE {_A}")),
    Kind(
        "curves of two runs exchanged",
        exchange("metrics_storedcurves", "id", "means, content, digest", _A, _B),
    ),
    Kind("a judged view is gone", sql(f"DELETE FROM metrics_judgedview WHERE {_A}")),
    Kind("a judged view is empty", sql(f"UPDATE metrics_judgedview SET content = x'' WHERE {_A}")),
    Kind(
        "judged views of two runs exchanged",
        exchange("metrics_judgedview", "evaluation_id", "content, digest", _A, _B),
    ),
    # A comparison that was stored of them is forgotten.
    Kind("evaluations of two runs exchanged", _exchange_evaluations, repaired=False),
    Kind("a session view is gone", sql(f"DELETE FROM metrics_sessionview WHERE {_SET}")),
    Kind(
        "session views exchanged",
        exchange("metrics_sessionview", "evaluation_id", "content, sessions, digest", _SET, _OTHER),
    ),
    Kind(
        "curves of session sets exchanged",
        exchange("metrics_storedsessioncurves", "evaluation_id", "content, digest", _SET, _OTHER),
    ),
    Kind(
        "means of session sets exchanged",
        exchange("metrics_sessionevaluation", "id", "means, means_digest", _OF_SET, _OF_OTHER),
    ),
    Kind(
        "means of a session set are no JSON",
        sql(f"UPDATE metrics_sessionevaluation SET means = 'x' WHERE {_OF_SET}"),
    ),
    Kind(
        "topic ids in another order",
        sql(
            """UPDATE runs_qrels SET topic_ids = replace(topic_ids, '"101", "102"', '"102", "101"')""",
        ),
    ),
    Kind("topic ids are no JSON", sql("UPDATE runs_qrels SET topic_ids = '['")),
    Kind("metadata are no JSON", sql("UPDATE runs_run SET metadata = '['"), repaired=False),
    Kind(
        "a collection's measures are no JSON",
        sql("UPDATE runs_collection SET measures = 'x'"),
        repaired=False,
    ),
    Kind("the number of topics is another", sql("UPDATE runs_qrels SET topics = topics + 1")),
    Kind("a comparison's result is gone", sql("UPDATE metrics_comparison SET content = NULL")),
    Kind(
        "a comparison's result is cut",
        sql("UPDATE metrics_comparison SET content = substr(content, 1, 50)"),
    ),
    Kind(
        "a comparison's inputs are others",
        sql("""UPDATE metrics_comparison SET query = replace(query, '"alpha"', '"beta"')"""),
        repaired=False,
    ),
    Kind(
        "the digests are gone",
        sql(
            "UPDATE metrics_metricvector SET digest = NULL, mean_digest = NULL",
            "UPDATE metrics_judgedview SET digest = NULL",
        ),
    ),
    Kind("the file of a run: a bit", to_file("a", _flip), repaired=False),
    Kind("the file of a run: half of it", to_file("a", _halve), repaired=False),
    Kind("the file of a run: gone", to_file("a", Path.unlink), repaired=False),
    Kind("the file of a run: a folder", to_file("a", _folder), repaired=False),
    Kind("the files of two runs exchanged", _exchange_files, repaired=False),
    Kind(
        "two runs name each other's files",
        exchange("runs_run", "id", "sha256, size", "id = {a}", "id = {b}"),
        repaired=False,
    ),
    Kind(
        "a run's numbers of lines and topics are others",
        sql("UPDATE runs_run SET lines = lines + 1, topics = topics + 1 WHERE id = {a}"),
        repaired=False,
    ),
    Kind(
        "a run's size is another",
        sql("UPDATE runs_run SET size = size + 1 WHERE id = {a}"),
        repaired=False,
    ),
    Kind("the file of known documents: a bit", to_file("known", _flip), repaired=False),
    Kind("the file of judgements: a bit", to_file("judgements", _flip), repaired=False),
    Kind("the file of a session log: gone", to_file("set", Path.unlink), repaired=False),
    Kind(
        "an evaluation is gone",
        sql("PRAGMA foreign_keys = OFF", "DELETE FROM metrics_evaluation WHERE run_id = {a}"),
        repaired=False,
    ),
    Kind(
        "a run is gone, its rows are not",
        sql("PRAGMA foreign_keys = OFF", "DELETE FROM runs_run WHERE id = {a}"),
        repaired=False,
    ),
    Kind(
        "the judgements' row is gone",
        sql("PRAGMA foreign_keys = OFF", "DELETE FROM runs_qrels"),
        repaired=False,
    ),
    Kind(
        "an evaluation has a lease for ever",
        sql(
            "UPDATE metrics_evaluation SET state = 'evaluating', lease_token = run_id, "
            "lease_until = '2090-01-01 00:00:00' WHERE run_id = {a}",
        ),
    ),
    Kind(
        "an evaluation is held without a lease",
        sql("UPDATE metrics_evaluation SET state = 'evaluating' WHERE run_id = {a}"),
        repaired=False,
    ),
    *(
        Kind(name, sql(statement), repaired=False, decides=True)
        for name, statement in {
            "a phase closed later": "UPDATE runs_phase SET closes_at = late_closes_at",
            "a phase has another measure": """UPDATE runs_phase SET measures = '["AP"]'""",
            "a team is removed": "UPDATE runs_participation SET state = 'removed'",
            "an entry is entered again": "UPDATE runs_entry SET state = 'entered'",
            "a priority is another": "UPDATE runs_entry SET priority = 9 WHERE priority = 2",
            "a release names no entries": "UPDATE runs_release SET official = '[]'",
            "a release names no judgements": "UPDATE runs_release SET qrels_id = NULL",
        }.items()
    ),
    Kind(
        "a packet is another",
        sql("UPDATE runs_packet SET content = content || 'x'"),
        repaired=False,
    ),
    Kind(
        "a manifest is another",
        sql("UPDATE runs_snapshot SET manifest = manifest || ' '"),
        repaired=False,
    ),
    Kind("an archive is another", sql("UPDATE runs_snapshot SET archive = x'00'"), repaired=False),
    Kind("an index: its first page is zeros", _zero_page_of("means_and_digests"), repaired=False),
    Kind(
        "the vectors: their first page is zeros",
        _zero_page_of("metrics_metricvector"),
        repaired=False,
    ),
    Kind("the runs: their first page is zeros", _zero_page_of("runs_run"), repaired=False),
    Kind("the database: its head is zeros", _to_database(_zero_head), repaired=False),
    Kind("the database: half of it", _to_database(_halve), repaired=False),
    Kind("the database: gone", _to_database(Path.unlink), repaired=False),
    Kind("the database: empty", _to_database(lambda path: path.write_bytes(b"")), repaired=False),
    Kind(
        "the folder of files is gone",
        lambda world: shutil.rmtree(world.data / "files"),
        repaired=False,
    ),
)
