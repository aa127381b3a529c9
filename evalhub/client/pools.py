"""Pools: the documents of runs that assessors judge."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote, urlencode

from .answers import Answer, Listed
from .sending import Call, Connection
from .sources import read_file


class PoolCheck(Answer):
    """What a pool has: `rows()` gives the documents of the first runs at each depth."""

    def rows(self) -> list[dict[str, Any]]:
        depths = self.raw["depths"]
        rows = []
        for run, counts in zip(self.raw["runs"], depths["documents"], strict=True):
            by_depth = {
                f"@{depth}": count for depth, count in zip(depths["depths"], counts, strict=True)
            }
            rows.append({"tag": run["tag"], "team": run["team"], "depth": run["depth"], **by_depth})
        return rows


class PoolStatistics(Answer):
    """Counts of a pool: `rows()` gives those of each run."""

    def rows(self) -> list[dict[str, Any]]:
        return [dict(run) for run in self.raw["runs"]]


class PoolAgreement(Answer):
    """How far assessors agree: `rows()` gives the coefficients."""

    def rows(self) -> list[dict[str, Any]]:
        coefficients = self.raw["coefficients"]
        return [{"coefficient": name, **value} for name, value in coefficients.items()]


class Pools:
    """The pools of a collection, or of a phase of a campaign; nothing is sent before a method is called."""

    def __init__(self, hub: Connection, path: str) -> None:
        self._hub, self.path = hub, path

    def rows(self) -> list[dict[str, Any]]:
        """Return the pools that you see, newest first."""
        return Listed(self._hub.pages(self.path)).rows()

    def check(self, **recipe: Any) -> PoolCheck:
        """Return what a pool would have; nothing is stored."""
        call = Call("POST", self.path, json={**recipe, "dry_run": True})
        return PoolCheck(self._hub.send(call).json())

    def make(self, **recipe: Any) -> PoolCheck:
        """Make a draft by a recipe: `method`, `k`, `budget`, `n`, `strata`, ..."""
        call = Call("POST", self.path, json=recipe, key=str(uuid.uuid4()))
        return PoolCheck(self._hub.send(call).json())


class Reusability(Answer):
    """How far the judgements reach: `rows()` gives the runs by the first measure, the best first."""

    def rows(self) -> list[dict[str, Any]]:
        runs = sorted(self.raw["measures"][0]["runs"], key=lambda row: row["rank"])
        return [{**row, "run": f"{row['run']['team']}/{row['run']['tag']}"} for row in runs]

    @property
    def sentences(self) -> list[str]:
        return list(self.raw["measures"][0]["sentences"])


class Undecided(Answer):
    """What unjudged documents decide between two runs: `rows()` gives the documents."""

    def rows(self) -> list[dict[str, Any]]:
        return [dict(document) for document in self.raw["documents"]]


class Pool:
    """A pool by its id; nothing is sent before a method is called."""

    def __init__(self, hub: Connection, pool: str) -> None:
        self._hub, self.path = hub, f"pools/{pool}/"

    def info(self) -> PoolCheck:
        return PoolCheck(self._hub.read(self.path))

    def freeze(self) -> PoolCheck:
        """Freeze a draft: it never changes again."""
        call = Call("POST", f"{self.path}freeze/", key=str(uuid.uuid4()))
        return PoolCheck(self._hub.send(call).json())

    def show(self, shown: bool = True) -> PoolCheck:
        """Show a frozen pool to all who see the results of its collection, or to organisers alone."""
        call = Call("PATCH", self.path, json={"shown": shown})
        return PoolCheck(self._hub.send(call).json())

    def delete(self) -> None:
        """Delete a draft."""
        self._hub.send(Call("DELETE", self.path))

    def statistics(self) -> PoolStatistics:
        return PoolStatistics(self._hub.read(f"{self.path}statistics/"))

    def file(self, topic: str, form: str = "tsv", assessor: str = "") -> bytes:
        """Return the documents of a topic, in the order of an assessor."""
        query = f"?{urlencode({'assessor': assessor})}" if assessor else ""
        return self._hub.download(f"{self.path}files/{quote(topic, safe='/')}.{form}{query}")

    def archive(self, form: str = "tsv", assessor: str = "") -> bytes:
        """Return the files of all topics as a zip archive."""
        query = {"form": form, **({"assessor": assessor} if assessor else {})}
        return self._hub.download(f"{self.path}files.zip?{urlencode(query)}")

    def assignments(self) -> list[dict[str, Any]]:
        """Return who judges which topics; for an assessor the own ones."""
        return Listed(self._hub.pages(f"{self.path}assignments/")).rows()

    def assign(self, assessor: str, **fields: Any) -> list[dict[str, Any]]:
        """Give topics to an assessor: `topics`, by default all, `copies`, `overlap`, `due_at`."""
        body = {"assessor": assessor, **fields}
        call = Call("POST", f"{self.path}assignments/", json=body, key=str(uuid.uuid4()))
        return list(self._hub.send(call).json())

    def unassign(self, assessor: str, topic: str) -> None:
        """Take a topic from an assessor; the judgements stay."""
        path = f"{self.path}assignments/{quote(assessor, safe='')}/{quote(topic, safe='/')}/"
        self._hub.send(Call("DELETE", path))

    def documents(self, topic: str) -> list[dict[str, Any]]:
        """Return the documents of a topic that you judge, with their titles and your levels."""
        return Listed(self._hub.pages(f"{self.path}documents/", {"topic": topic})).rows()

    def judgements(self, *, history: bool = False) -> list[dict[str, Any]]:
        """Return the judgements; for an assessor the own ones. `history` has superseded ones, too."""
        params = {"history": "true"} if history else {}
        return Listed(self._hub.pages(f"{self.path}judgements/", params)).rows()

    def store_judgements(self, source: Any, **fields: Any) -> Answer:
        """Store a file of judgements: `assessor`, `format`, `iteration`, `scale`, `dry_run`, ..."""
        form = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in fields.items()
            if value not in (None, "")
        }
        call = Call(
            "POST",
            f"{self.path}judgements/",
            fields=form,
            files={"file": read_file(source)},
            key=str(uuid.uuid4()),
        )
        return Answer(self._hub.send(call).json())

    def conflicts(self, **params: Any) -> list[dict[str, Any]]:
        """Return the documents on which assessors differ."""
        return Listed(self._hub.pages(f"{self.path}conflicts/", params)).rows()

    def adjudicate(self, decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Decide levels: each of `decisions` has `topic_id`, `doc_id`, `level` and perhaps `note`."""
        path = f"{self.path}adjudications/"
        call = Call("POST", path, json=decisions, key=str(uuid.uuid4()))
        return list(self._hub.send(call).json())

    def agreement(self, **params: Any) -> PoolAgreement:
        return PoolAgreement(self._hub.read(f"{self.path}agreement/", params))

    def make_qrels(self, **fields: Any) -> Answer:
        """Make a version of the judgements: `resolve`, `activate`, `note`, ..."""
        call = Call("POST", f"{self.path}qrels/", json=fields, key=str(uuid.uuid4()))
        return Answer(self._hub.send(call).json())


def pools_of(hub: Connection, place: str) -> Pools:
    """Return the pools of a collection, or of a phase that is named as CAMPAIGN/PHASE."""
    campaign, slash, phase = place.partition("/")
    path = f"campaigns/{campaign}/phases/{phase}/pools/" if slash else f"collections/{place}/pools/"
    return Pools(hub, path)
