"""Pools: the documents of runs that assessors judge."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote, urlencode

from .answers import Answer, Listed
from .sending import Call, Connection


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


def pools_of(hub: Connection, place: str) -> Pools:
    """Return the pools of a collection, or of a phase that is named as CAMPAIGN/PHASE."""
    campaign, slash, phase = place.partition("/")
    path = f"campaigns/{campaign}/phases/{phase}/pools/" if slash else f"collections/{place}/pools/"
    return Pools(hub, path)
