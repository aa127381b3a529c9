"""Suites: several collections with one leaderboard."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from .answers import Answer, Listed
from .batches import files_of
from .errors import NotFound, WrongOption
from .sending import Call, Connection

_BOARD = (
    "rank", "system", "mean", "group_mean", "borda", "borda_low", "borda_high", "mean_rank",
)  # fmt: skip


class SuiteAnswer(Answer):
    """A suite with a version: `rows()` gives its collections."""

    def rows(self) -> list[dict[str, Any]]:
        return [dict(member) for member in self.raw["content"]["members"]]

    @property
    def page(self) -> str:
        return str(self.raw["page"])


class SuiteBoard(Answer):
    """The leaderboard of a suite: `rows()` gives its systems, those without a rank last."""

    def rows(self) -> list[dict[str, Any]]:
        columns = [column["collection"] for column in self.raw["columns"]]
        rows = []
        for system in self.raw["systems"]:
            row = {name: system[name] for name in _BOARD}
            for name in ("other_topics", "other_collections"):
                row |= _ends(name, system[name])
            row |= dict(zip(columns, system["values"], strict=True))
            rows.append({**row, "lacks": "; ".join(system["lacks"])})
        return rows

    @property
    def sentences(self) -> list[str]:
        return list(self.raw["sentences"])


class SuiteComparison(Answer):
    """Two systems of a suite: `rows()` gives their difference by collection, and over all."""

    def rows(self) -> list[dict[str, Any]]:
        first, second = self.raw["systems"]
        rows = [
            {
                "collection": line["collection"],
                first: line["first"],
                second: line["second"],
                "topics": line["topics"],
                **line["difference"],
            }
            for line in self.raw["collections"]
        ]
        over_all = {"(other topics)": "other_topics", "(other collections)": "other_collections"}
        blank = {first: None, second: None, "topics": None}
        rows += [
            {"collection": name, **blank, **self.raw[field]} for name, field in over_all.items()
        ]
        if effects := self.raw["random_effects"]:
            ends = {name: effects[name] for name in ("low", "high", "p")}
            mean = {"difference": effects["mean"], **ends}
            rows.append({"collection": "(random effects)", **blank, **mean})
        return rows

    @property
    def sentences(self) -> list[str]:
        return list(self.raw["sentences"])


def _ends(name: str, interval: dict[str, Any] | None) -> dict[str, Any]:
    values = interval or {}
    return {f"{name}_{end}": values.get(end) for end in ("difference", "low", "high")}


class Suite:
    """A suite by its short name; nothing is sent before a method is called."""

    def __init__(self, hub: Connection, slug: str) -> None:
        self._hub, self.slug, self.path = hub, slug, f"suites/{slug}/"

    def info(self, version: int | None = None) -> SuiteAnswer:
        query = f"?{urlencode({'version': version})}" if version else ""
        return SuiteAnswer(self._hub.read(f"{self.path}{query}"))

    def make(self, members: Sequence[dict[str, Any]], **fields: Any) -> SuiteAnswer:
        """Make the suite, or if it exists a new version of it.

        `fields` are `name`, `team` and `description` of a new one, and the `note` of the version.
        """
        body: dict[str, Any] = {"members": list(members), "note": fields.pop("note", "")}
        try:
            self.info()
        except NotFound:
            new = {"slug": self.slug, "name": self.slug, **fields}
            path, body = "suites/", {**body, **new}
        else:
            path = f"{self.path}versions/"

        self._hub.send(Call("POST", path, json=body, key=str(uuid.uuid4())))
        return self.info()

    def delete(self) -> None:
        """Delete the suite with all versions; its collections stay."""
        self._hub.send(Call("DELETE", self.path))

    def board(self, **parameters: Any) -> SuiteBoard:
        """Return the leaderboard; `parameters` are `version`, `systems`, `topics`, `order`, and
        `resamples` and `seed` of the intervals of Borda's counts."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return SuiteBoard(self._hub.read(f"{self.path}leaderboard/{query}"))

    def compare(
        self, first: str, second: str, version: int | None = None, topics: str = ""
    ) -> SuiteComparison:
        """Compare two systems, each named as team/system, on all topics or on those selected."""
        query: dict[str, Any] = {"systems": f"{first},{second}"}
        if version:
            query["version"] = version
        if topics:
            query["topics"] = topics
        return SuiteComparison(self._hub.read(f"{self.path}comparison/?{urlencode(query)}"))


def suites_of(hub: Connection) -> list[dict[str, Any]]:
    """Return the suites that you see."""
    return Listed(hub.pages("suites/")).rows()


class SuiteFile(NamedTuple):
    """A run file and the collection that its name or the name of its folder names."""

    collection: str
    path: Path
    by_folder: bool


def match_files(collections: Sequence[str], folder: str | Path) -> list[SuiteFile]:
    """Return the run files of a folder by collection, in the order of the suite.

    A file belongs to the collection that its name begins with, before a dot, as in scifact.run.gz;
    a folder with the name of a collection has runs of it. Where all names of collections begin
    with the same word, as in beir-scifact, it may be left out. Raise WrongOption for a file that no
    collection is named in, or if there are none.
    """
    root = Path(folder)
    if not root.is_dir():
        raise WrongOption(f"{root} is not a folder; write evh submit --suite SUITE FOLDER")

    by_name = {}
    if len({name.partition("-")[0] for name in collections}) == 1:
        by_name = {name.partition("-")[2]: name for name in collections}
    # A short name may be the whole name of another collection.
    by_name |= {name: name for name in collections}

    matched: list[SuiteFile] = []
    for entry in sorted(root.iterdir()):
        if entry.name.startswith("."):
            continue
        stem = entry.name if entry.is_dir() else entry.name.partition(".")[0]
        if stem not in by_name:
            raise WrongOption(
                f"{entry}: no collection of the suite has this name; name it as one of "
                f"{', '.join(collections)}, as in {collections[0]}.run"
            )
        files = files_of([entry]) if entry.is_dir() else [entry]
        matched += [SuiteFile(by_name[stem], path, entry.is_dir()) for path in files]

    if not matched:
        raise WrongOption(f"{root} has no files")
    order = {name: place for place, name in enumerate(collections)}
    return sorted(matched, key=lambda file: order[file.collection])
