"""Collections as datasets of PyTerrier: pt.get_dataset("evalhub:robust04")."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pandas
import pyterrier as pt

from ..answers import Answer
from ..collection import Collection
from ..errors import EvalHubError, NotFound
from ..hub import connect

# PyTerrier asks every provider for its datasets: a server that is away must not delay the list.
_LIMITS: dict[str, Any] = {"timeout": 5.0, "retry_for": 0.0}
_log = logging.getLogger("evalhub_client")


def judgements_in(file: bytes) -> dict[str, dict[str, int]]:
    """Return the levels of documents by topic, the highest of a document's subtopics."""
    judgements: dict[str, dict[str, int]] = {}
    for topic, _, document, level in _columns(file, 4):
        levels = judgements.setdefault(topic, {})
        levels[document] = max(int(level), levels.get(document, int(level)))

    return judgements


def _columns(file: bytes, number: int) -> Iterator[list[str]]:
    """Yield the first columns of every line that has this number and is not a comment.

    Only ASCII white space separates: other spaces belong to ids.
    """
    for line in file.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        columns = line.split()[:number]
        if len(columns) == number and not columns[0].startswith(b"#"):
            yield [column.decode(errors="replace") for column in columns]


class CollectionDatasets(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """The collections of the configured server, which PyTerrier finds as `evalhub:NAME`."""

    def get_dataset(self, name: str) -> CollectionDataset:
        """Return a collection by its short name; raise KeyError if there is none."""
        collection = connect().collection(name)
        try:
            return CollectionDataset(collection, collection.info())
        except NotFound as error:
            raise KeyError(f"{collection.page}: {error}") from error

    def list_dataset_names(self) -> Iterable[str]:
        """Return the short names of the visible collections, or nothing without a server."""
        try:
            with connect(**_LIMITS) as hub:
                return [row["slug"] for row in hub.collections().rows()]
        except EvalHubError as error:
            _log.info("the collections of EvalHub are not listed: %s", error)
            return []


class CollectionDataset(pt.datasets.Dataset):  # type: ignore[misc]
    """Topics, judgements and runs of a collection as tables; it has no documents."""

    def __init__(self, collection: Collection, info: Answer) -> None:
        self._collection, self._info = collection, info

    def __repr__(self) -> str:
        return f"CollectionDataset({self._collection.slug!r})"

    def get_topics(self, variant: str | None = None) -> Any:
        """Return `qid` and `query`: the title, or the section of the topics that `variant` names."""
        topics = self._collection.topics().rows()
        if not topics:
            raise NotImplementedError(f"{self!r} has no topics, only judgements")

        texts = [topic["fields"].get(variant) if variant else topic["title"] for topic in topics]
        if all(text is None for text in texts):
            names = sorted({name for topic in topics for name in topic["fields"]})
            raise ValueError(
                f"{self!r} has no topics {variant!r}; there are "
                f"{', '.join(names) or 'titles alone'}"
            )

        rows = [(topic["topic_id"], text or "") for topic, text in zip(topics, texts, strict=True)]
        return pandas.DataFrame(rows, columns=["qid", "query"])

    def get_qrels(self, variant: str | int | None = None) -> Any:
        """Return `qid`, `docno` and `label` of the active judgements, or of version `variant`.

        Raise Blind while the judgements are not released.
        """
        version = variant or self._info.active_qrels
        if not version:
            # If the judgements are blind, this raises the error of the server.
            self._collection.qrels()
            raise NotImplementedError(f"{self!r} has no active judgements")

        judgements = judgements_in(self._collection.qrels_file(int(version)))
        rows = [
            (topic, document, level)
            for topic, levels in judgements.items()
            for document, level in levels.items()
        ]
        return pandas.DataFrame(rows, columns=["qid", "docno", "label"])

    def get_results(self, variant: str | None = None) -> Any:
        """Return the run `tag` or `team/tag` as `qid`, `docno`, `score`, `rank`, and `query`.

        Ranks are those by which EvalHub evaluates. Without topics there is no `query`.
        """
        if not variant:
            raise ValueError(f"name a run of {self!r}: get_results('team/tag')")

        file = self._collection.run(variant).file()
        rows = [
            (topic, document, float(score)) for topic, _, document, _, score in _columns(file, 5)
        ]
        rows.sort(key=lambda row: (row[2], row[1].encode()), reverse=True)
        results = pandas.DataFrame(rows, columns=["qid", "docno", "score"])
        results = results.sort_values("qid", kind="stable").reset_index(drop=True)
        results = pt.model.add_ranks(results)
        if not self._collection.topics().rows():
            return results

        return results.merge(self.get_topics(), on="qid", how="left")

    def info_url(self) -> str:
        """Return the address of its page."""
        return self._collection.page

    def _describe_component(self, component: str) -> bool | None:
        components = {
            "topics": self._info.raw.get("topics"),
            "qrels": self._info.raw.get("active_qrels"),
        }
        return True if components.get(component) else None
